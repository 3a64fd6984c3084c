//! Trusted repositories: what caretaker reads and writes with git's object model, without ever running git there.

mod error;
pub mod git_command;
mod repository;
mod tree;

pub use error::WorkspaceError;
pub use repository::{RepositoryReader, TrustedRepository, open_read_only};
