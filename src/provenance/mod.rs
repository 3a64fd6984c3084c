//! What a diagnosis was fed: every distinct input once, in two trust classes, each by hash.
//!
//! *Quarantined* inputs are untrusted text (a CI log). They record the raw bytes and what was extracted, so that the extraction
//! can be done again and compared. *Direct* inputs are what caretaker trusts as it stands (the intent document, tracked source,
//! the incident's own data). They record a hash, so that a substitution after the fact shows.

mod comparison;
mod manifest;

pub use comparison::{Discrepancy, Part, QuarantinedInput};
pub use manifest::{ContextEntry, ContextManifest, ManifestError};

/// The name under which the manifest's format is signed.
pub const CONTEXT_MANIFEST_FORMAT: &str = "caretaker/context-manifest/v1";
