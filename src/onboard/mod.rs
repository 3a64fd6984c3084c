//! Registering a project. Registration makes a draft and reads nothing but what shows that the draft can work; a person
//! confirms the draft, and only then the project is watched.

mod access;
mod address;
pub mod app;
mod confirm;
mod error;
mod policy;
mod register;
mod rotate;
mod tending;

pub use access::{AccessNotes, access_notes, replacing};
pub use address::{Repository, RepositoryAddressError};
pub use confirm::{Confirmation, confirm, draft_digest, find, pause, resume, unfreeze};
pub use error::OnboardError;
pub use register::{Connect, Office, Registered, Registration, register};
pub use rotate::{RotateError, Rotated, RotationPoint, rotate_deployment_key};
pub use tending::{
    ConnectTo, Renamed, Replaced, Tending, find_present, remove, rename, replace_credential,
};
