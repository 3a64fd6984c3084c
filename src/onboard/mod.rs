//! Registering a project. Registration makes a draft and reads nothing but what shows that the draft can work; a person
//! confirms the draft, and only then the project is watched.

mod address;
pub mod app;
mod confirm;
mod error;
mod register;

pub use address::{Repository, RepositoryAddressError};
pub use confirm::{confirm, draft_digest, find, pause, resume, unfreeze};
pub use error::OnboardError;
pub use register::{Connect, Office, Registered, Registration, WatchMode, register};
