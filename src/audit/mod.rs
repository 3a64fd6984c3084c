//! The record of what happened, twice and apart from each other.
//!
//! - [`verify()`]: the signed chain as it is stored, checked afresh on every read, down to every column.
//! - [`verify_bundle()`]: a copy of one incident's ledger, checked by a stranger.
//! - [`timeline()`]: the incident's history put together from its records, without any signature.
//!
//! [`LedgerRow::derive`] is the one way to make a row, for the store that appends it and for the check that reads it back.

mod archive;
mod bundle;
mod cosigned;
mod evidence;
mod fit;
mod landed;
mod report;
mod row;
mod stored;
mod stream;
mod timeline;
mod timestamp;
mod verify;

pub use archive::{Archive, ArchiveError, write as write_archive};
pub use bundle::{
    BundleContents, BundleError, BundleReport, Ending, MAX_BUNDLE, Pin, log_keys, log_origin,
    log_policy, reference, trust_from, verify_bundle, verify_bundle_with,
};
pub use cosigned::{ASKED, Cosignature, cosigned};
pub use evidence::KeptEvidence;
pub use landed::{LandedCommit, LandedFailure, LandedReport, LoggedExecutions, audit_landed};
pub use report::{Failure, Report, Rule};
pub use row::{DeriveError, LedgerRow};
pub use stored::{ChainRecord, LogPlace, StoredLedger};
pub use stream::{
    IncidentKey, LogFiles, LogMemory, LogReport, Places, Policies, extends, verify_log,
};
pub use timeline::{ApprovalRecord, AuditRecord, Entry, Records, timeline};
pub use timestamp::{
    BroughtTimestamp, Stamped, TimestampRoots, TimestampVerdict, authority_of, by_authority,
    stamped_checkpoint,
};
pub use verify::verify;
