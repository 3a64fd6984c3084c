//! Documents of the evidence store, checked before anything of them is shown.

use serde::Deserialize;

use crate::agent::Extraction;
use crate::attest::predicate::{TestOutcome, TestResult};
use crate::attest::{Envelope, Evidence, TrustHistory, authenticate, statement::Predicate};
use crate::change::Sha256Digest;
use crate::store::{Scoped, StoreError};
use crate::workspace::red_green::TestEvidence;

/// The bytes of a document; none when it is gone, or when its bytes are not what its digest says.
pub(super) async fn kept(
    scope: Scoped<'_>,
    digest: &Sha256Digest,
) -> Result<Option<Vec<u8>>, StoreError> {
    match scope.evidence(digest).await {
        Ok(found) => Ok(found.map(|(_, bytes)| bytes)),
        Err(error @ StoreError::Unreadable { .. }) => {
            tracing::error!(%error, "evidence cannot be shown");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A run of tests as evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestRun {
    /// How the signed result is named.
    pub(super) digest: Sha256Digest,
    /// The signed result, or why it counts for nothing.
    pub(super) signed: Result<TestResult, String>,
    /// The whole record of the run that the result names.
    pub(super) run: Option<TestEvidence>,
}

impl TestRun {
    /// Reads and authenticates.
    pub(super) async fn read(
        scope: Scoped<'_>,
        trust: &TrustHistory,
        digest: Sha256Digest,
    ) -> Result<Self, StoreError> {
        let signed = match kept(scope, &digest).await? {
            Some(bytes) => authentic(trust, &bytes),
            None => Err("the document is gone, or is not what its digest says".to_owned()),
        };
        let run = match signed.as_ref().ok().and_then(record_of) {
            Some(record) => kept(scope, &record).await?,
            None => None,
        };
        Ok(Self {
            digest,
            signed,
            run: run.and_then(|bytes| serde_json::from_slice(&bytes).ok()),
        })
    }

    /// Whether the tests passed; none when the evidence does not count.
    pub(super) fn passed(&self) -> Option<bool> {
        let result = self.signed.as_ref().ok()?;
        Some(result.result != TestOutcome::Failed)
    }
}

fn authentic(trust: &TrustHistory, bytes: &[u8]) -> Result<TestResult, String> {
    let envelope = Envelope::parse(bytes).map_err(|error| error.to_string())?;
    let attested = authenticate(trust, &envelope).map_err(|refusal| refusal.to_string())?;
    match attested.into_statement().predicate() {
        Predicate::Evidence(Evidence::TestResult(result)) => Ok(result.as_ref().clone()),
        _ => Err("the document is not a test result".to_owned()),
    }
}

/// The digest of the whole record, as the signed result names it.
fn record_of(result: &TestResult) -> Option<Sha256Digest> {
    let named = result.configuration.first()?.digest.as_ref()?;
    named.get("sha256")?.parse().ok()
}

/// What was read from the failed job's log; other members of the document are not needed here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct LogReading {
    /// The facts and hashes.
    pub(super) extraction: Extraction,
}

impl LogReading {
    /// Reads the document.
    pub(super) async fn read(
        scope: Scoped<'_>,
        digest: &Sha256Digest,
    ) -> Result<Option<Self>, StoreError> {
        let bytes = kept(scope, digest).await?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }
}
