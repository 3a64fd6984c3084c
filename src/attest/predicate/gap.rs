//! `gap`: evidence was lost, and that is said.

use serde::{Deserialize, Serialize};

use super::super::text::{List, Text};
use super::{EventBlock, EvidenceRef};

/// An admission that evidence was lost, signed by the executor. The chain goes on; a verifier reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// The event.
    pub event: EventBlock,
    /// What happened.
    pub detail: Text,
    /// The documents that are gone.
    pub evidence: List<EvidenceRef>,
}
