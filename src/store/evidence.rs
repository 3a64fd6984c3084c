//! Documents by the digest of their bytes.

use super::statement::statements;
use super::{Store, StoreError, Work};
use crate::change::Sha256Digest;
use crate::id::OrganisationId;
use crate::incident::EvidenceDocument;

statements! {
    /// Kept once; the same bytes again change nothing.
    KEEP = "INSERT INTO evidence (organisation, digest, media_type, bytes) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (organisation, digest) DO NOTHING";
}

impl Store {
    /// Keeps a document that arrived together with its digest; refuses it when the two do not belong together.
    pub async fn keep_evidence(
        &self,
        organisation: &OrganisationId,
        expected: &Sha256Digest,
        document: &EvidenceDocument,
    ) -> Result<(), StoreError> {
        let found = document.digest();
        if found != *expected {
            return Err(StoreError::EvidenceDigest {
                expected: *expected,
                found,
            });
        }
        let mut work = self.writing("keeping evidence").await?;
        work.keep(organisation, document).await?;
        work.commit().await
    }
}

impl Work {
    /// Keeps a document under the digest of its bytes, the only key it can have.
    pub(super) async fn keep(
        &mut self,
        organisation: &OrganisationId,
        document: &EvidenceDocument,
    ) -> Result<(), StoreError> {
        let keep = sqlx::query(KEEP)
            .bind(organisation.as_str())
            .bind(document.digest().to_string())
            .bind(document.media_type)
            .bind(document.bytes.as_slice());
        self.execute(keep).await.map(|_| ())
    }
}
