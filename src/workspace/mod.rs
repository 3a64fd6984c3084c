//! Repositories that caretaker trusts, scratch trees that agents edit, and the proof that a fix fixes.
//!
//! A fix is built in two places. The agent works in a *scratch tree*: plain files, no repository. Everything that is later
//! decided on (trees, commits, change sets) lives in the *trusted repository*, a bare one that no agent can write; a scratch
//! tree is read back into it file by file, and git never runs inside a directory that an agent wrote.

mod changed;
mod checkout;
mod commit;
mod error;
pub mod git_command;
mod history;
mod left_out;
mod measure;
mod patch;
mod record;
pub mod red_green;
mod repository;
mod resolve;
mod snapshot;
pub mod toolchain;
mod tree;

pub use changed::changed_paths;
pub use checkout::{CheckedOut, TreeLimits};
pub use commit::{BRANCH_PREFIX, Identity};
pub use error::WorkspaceError;
pub use history::CommitRecord;
pub use measure::Measurement;
pub use record::RecordCommit;
pub use repository::{RepositoryReader, TrustedRepository, open_read_only};
pub use resolve::Resolved;
pub use snapshot::Snapshot;
