//! What one step is given: the snapshot and what it belongs to, read-only.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Engine;
use crate::agent::Extraction;
use crate::agent::reader::ReadingReport;
use crate::attest::Envelope;
use crate::attest::keys::FillError;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::connector::{Connector, ConnectorError};
use crate::gate::Rules;
use crate::incident::{EscalationReason, EvidenceDocument, Snapshot, StepError};
use crate::store::{Project, StoreError};

/// Media type of signed documents in the evidence store.
pub(super) const SIGNED: &str = "application/vnd.dsse.envelope.v1+json";
/// Media type of plain documents there.
pub(super) const PLAIN: &str = "application/json";

/// One step's surroundings.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) engine: &'a Engine,
    pub(super) project: &'a Project,
    pub(super) rules: &'a Rules,
    pub(super) connector: &'a dyn Connector,
    pub(super) snapshot: &'a Snapshot,
    pub(super) now: Millis,
}

/// The reading of a log as it is kept: which job's, what was taken from it, and what was done to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reading {
    /// The provider's number of the job.
    pub(super) job: Option<u64>,
    /// Facts and hashes.
    pub(super) extraction: Extraction,
    /// What was left out and taken out.
    pub(super) report: ReadingReport,
}

impl Work<'_> {
    /// Whether the keys may be used now; if not, the step waits until somebody did what the reason says.
    pub(super) fn allow_acting(&self) -> Result<(), StepError> {
        let acting = self.engine.keys.allow_acting(self.now);
        acting.map_err(|error| StepError::retry(Duration::from_mins(1), error))
    }

    /// A document of the evidence store.
    pub(super) async fn evidence(&self, digest: &Sha256Digest) -> Result<Vec<u8>, StepError> {
        let organisation = &self.snapshot.organisation;
        let scoped = self.engine.store.within(organisation);
        match scoped.evidence(digest).await {
            Ok(Some((_, bytes))) => Ok(bytes),
            Ok(None) => Err(lost(digest, "is gone")),
            Err(error @ StoreError::Unreadable { .. }) => Err(lost(digest, &error.to_string())),
            Err(error) => Err(unread(&error)),
        }
    }

    /// The same, as a typed document.
    pub(super) async fn document<T: DeserializeOwned>(
        &self,
        digest: &Sha256Digest,
    ) -> Result<T, StepError> {
        let bytes = self.evidence(digest).await?;
        serde_json::from_slice(&bytes).map_err(|error| lost(digest, &error.to_string()))
    }

    /// How statements name a signed document of the evidence store.
    pub(super) async fn signed_name(
        &self,
        digest: &Sha256Digest,
    ) -> Result<Sha256Digest, StepError> {
        let bytes = self.evidence(digest).await?;
        let envelope = Envelope::parse(&bytes).map_err(|error| lost(digest, &error.to_string()))?;
        Ok(envelope.digest())
    }

    /// What was read from the log.
    pub(super) async fn reading(&self) -> Result<Reading, StepError> {
        let digest = expect(self.snapshot.extraction(), "the reading of the log")?;
        self.document(&digest).await
    }
}

/// A plain document for the evidence store.
pub(super) fn plain<T: Serialize>(document: &T) -> Result<EvidenceDocument, StepError> {
    let bytes = serde_json::to_vec(document).map_err(|error| {
        StepError::escalate(
            EscalationReason::FixUnusable,
            format!("writing a record: {error}"),
        )
    })?;
    Ok(EvidenceDocument {
        media_type: PLAIN,
        bytes,
    })
}

/// A fact that [`crate::incident::next`] has promised. Its absence is a fault of ours and stops the incident, not the process.
pub(super) fn expect<T>(fact: Option<T>, what: &str) -> Result<T, StepError> {
    fact.ok_or_else(|| {
        StepError::escalate(
            EscalationReason::LedgerBroken,
            format!("{what} is missing from the incident's facts; its records were changed"),
        )
    })
}

fn lost(digest: &Sha256Digest, how: &str) -> StepError {
    StepError::escalate(
        EscalationReason::LedgerBroken,
        format!("evidence {digest} {how}; restore the database from a backup"),
    )
}

/// A failed read of the database.
pub(super) fn unread(error: &StoreError) -> StepError {
    StepError::retry(Duration::from_secs(1), error)
}

/// Without random bytes there is nothing to do but to try again.
impl From<FillError> for StepError {
    fn from(error: FillError) -> Self {
        Self::Retry {
            after: Duration::from_secs(1),
            reason: error.to_string(),
        }
    }
}

/// An answer of the provider that is none.
pub(super) fn unanswered(error: &ConnectorError, now: Millis) -> StepError {
    let after = match error {
        ConnectorError::Limited { until, .. } => {
            let left = until.0.saturating_sub(now.0);
            Duration::from_millis(u64::try_from(left).unwrap_or(0))
        }
        error if error.is_transient() => Duration::from_secs(2),
        // A person has to do something first, such as giving a permission.
        _ => Duration::from_secs(30),
    };
    StepError::retry(after, error)
}
