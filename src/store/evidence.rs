//! Documents by the digest of their bytes.

mod retention;

use std::collections::BTreeSet;

use super::scoped::EVIDENCE;
use super::statement::statements;
use super::{Store, StoreError, Work, value};
use crate::attest::Label;
use crate::audit::{KeptEvidence, LedgerRow};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::{IncidentId, OrganisationId};
use crate::incident::{EvidenceDocument, Snapshot};
use crate::log::Record;

pub(super) const RETENTION: &[super::Statement] = retention::STATEMENTS;

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
        now: Millis,
    ) -> Result<(), StoreError> {
        let found = document.digest();
        if found != *expected {
            return Err(StoreError::EvidenceDigest {
                expected: *expected,
                found,
            });
        }
        let mut work = self.writing("keeping evidence").await?;
        work.keep(organisation, None, document, now).await?;
        work.commit().await
    }
}

/// How many documents of one incident are looked at, at most; more than any incident makes: an outcome and a score for each call of a
/// session, and what else there is.
const MOST_DOCUMENTS: usize = 2 * 4_096 + 200;

impl Work {
    /// What is kept of what the events of these rows name.
    pub(super) async fn kept_evidence(
        &mut self,
        organisation: &OrganisationId,
        rows: &[LedgerRow],
        snapshot: &Snapshot,
    ) -> Result<KeptEvidence, StoreError> {
        let mut kept = KeptEvidence::default();
        let mut asked = BTreeSet::new();
        let mut wanted = KeptEvidence::wanted(rows, snapshot);
        while !wanted.is_empty() && asked.len() < MOST_DOCUMENTS {
            for digest in wanted {
                if let Some((_, bytes)) = self.document(organisation, &digest).await? {
                    kept.add(digest, &bytes);
                }
                asked.insert(digest);
            }
            wanted = kept.wanted_further();
            wanted.retain(|digest| !asked.contains(digest));
        }
        Ok(kept)
    }

    /// A document with its media type, unchecked.
    pub(super) async fn document(
        &mut self,
        organisation: &OrganisationId,
        digest: &Sha256Digest,
    ) -> Result<Option<(String, Vec<u8>)>, StoreError> {
        let query = sqlx::query(EVIDENCE)
            .bind(organisation.as_str())
            .bind(digest.to_string());
        let Some(row) = self.optional(query).await? else {
            return Ok(None);
        };
        Ok(Some((
            value::text(&row, "media_type")?,
            value::bytes(&row, "bytes")?,
        )))
    }

    /// Keeps a document under the digest of its bytes, the only key it can have, and logs that it was there. With no incident it
    /// is everybody's and stays.
    pub(super) async fn keep(
        &mut self,
        organisation: &OrganisationId,
        incident: Option<&IncidentId>,
        document: &EvidenceDocument,
        now: Millis,
    ) -> Result<(), StoreError> {
        let keep = sqlx::query(KEEP)
            .bind(organisation.as_str())
            .bind(document.digest().to_string())
            .bind(document.media_type)
            .bind(document.bytes.as_slice());
        let kept = self.execute(keep).await?;
        let used = sqlx::query(retention::USE)
            .bind(organisation.as_str())
            .bind(document.digest().to_string())
            .bind(incident.map_or("", IncidentId::as_str));
        self.execute(used).await?;
        if kept == 0 {
            return Ok(());
        }
        let record = Record::Evidence {
            sha256: document.digest(),
            bytes: document.bytes.len() as u64,
            media_type: Label::new(essence(document.media_type)).map_err(|_| {
                StoreError::Value {
                    what: "the kind of a document",
                    reason: "it is no label",
                }
            })?,
        };
        self.log_record(organisation, record, now).await
    }
}

/// A media type without its parameters (RFC 9110, section 8.3.1), whose separators no label may hold.
fn essence(media_type: &str) -> &str {
    media_type
        .split_once(';')
        .map_or(media_type, |(essence, _)| essence)
        .trim_end()
}
