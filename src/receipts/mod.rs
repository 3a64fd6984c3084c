//! Capability tokens and receipts: what an agent may do, signed before it does it, and what a gate decided about each call, signed
//! afterwards. Everything here is a function of bytes; formats in `docs/receipts.md`.
//!
//! - [`canonical`]: the one spelling of what is signed; [`name`], [`key`]: who and with which key.
//! - [`constraints`], [`arguments`]: what a call must be like, and what it is; [`intent`]: what it is for.
//! - [`token`]: what may be done; [`gate`]: whether a call is that; [`revocation`]: what counts no longer.
//! - [`outcome`], [`receipt`], [`chain`]: the receipts of a session; [`verify`]: whether they hold.
//!
//! The wire formats are the published `cap:v1` and `provenance-receipt/v1`, so that other people's verifiers read them; a token or a
//! receipt without an intent is what those programs would have written, byte for byte.

pub mod arguments;
pub mod canonical;
pub mod chain;
pub mod constraints;
pub mod gate;
pub mod intent;
pub mod key;
pub mod name;
pub mod outcome;
pub mod receipt;
pub mod revocation;
pub mod token;
pub mod verify;

pub use arguments::{ArgumentError, Arguments, GivenArguments};
pub use chain::{Head, ReceiptChain, Session};
pub use constraints::{ConstraintError, Constraints};
pub use gate::{Call, Checked, Denial, Gate, Stage};
pub use intent::{Intent, IntentError};
pub use key::{PemError, PemKey, PemKeyId, TrustedKeys, public_pem, read_public_pem};
pub use name::{AgentId, NameError, TokenId, ToolName};
pub use outcome::{Alignment, Decision, Door, InForce, Outcome};
pub use receipt::{MAX_JWS, MAX_PAYLOAD, ReceiptHash, ReceiptLine, ReceiptTooLong};
pub use revocation::{RevocationError, Revocations};
pub use token::{Claims, Grant, IssueError, Issuer, MAX_TOKEN, Narrowing, Token, TokenError};
pub use verify::{ChainReport, Expectation, Failure, Fault, Receipt, Walk};
