//! The record of what happened, twice and apart from each other.
//!
//! - [`verify()`]: the signed chain as it is stored, checked afresh on every read, down to every column.
//! - [`verify_bundle()`]: a copy of one incident's ledger, checked by a stranger.
//! - [`timeline()`]: the incident's history put together from its records, without any signature.
//!
//! [`LedgerRow::derive`] is the one way to make a row, for the store that appends it and for the check that reads it back.

mod archive;
mod bundle;
mod evidence;
mod fit;
mod report;
mod row;
mod stored;
mod stream;
mod timeline;
mod verify;

pub use archive::{Archive, ArchiveError, write as write_archive};
pub use bundle::{
    BundleContents, BundleError, BundleReport, Ending, MAX_BUNDLE, Pin, log_origin, log_policy,
    reference, trust_from, verify_bundle,
};
pub use evidence::KeptEvidence;
pub use report::{Failure, Report, Rule};
pub use row::{DeriveError, LedgerRow};
pub use stored::{ChainRecord, StoredLedger};
pub use stream::{LogFiles, LogMemory, LogReport, verify_log};
pub use timeline::{ApprovalRecord, AuditRecord, Entry, Records, timeline};
pub use verify::verify;
