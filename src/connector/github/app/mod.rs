//! Acting as a GitHub App: its key, its tokens and what they may do.
//!
//! The App's key signs an assertion of nine minutes; with it a token is minted for one use, one repository and one hour. The
//! key never leaves this module and tokens are never written down.

mod event;
mod http;
mod interface;
mod key;
mod manifest;
mod permissions;
mod stored;
mod tokens;
mod wire;

pub use event::{Ended, TokenEvent, TokenRecord, TokenSink};
pub use interface::{AppInterface, AppOptions, AppView, InstallationView};
pub use key::{AppKey, AppKeyError};
pub use manifest::{ManifestExchange, NewApp};
pub use permissions::{Level, Permissions, needed, of_app, welcome};
pub use stored::{StoredCredential, token_source};
pub use tokens::{AppTokens, Form, InstallationTokens, Mint, MintOrder, Minted, Target};
