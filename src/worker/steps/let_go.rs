//! Letting the evidence of a finished incident go, once it was kept as long as the configuration says. The gaps that say so are
//! signed first; appending them deletes what they name.

use super::super::Stepped;
use super::super::drafting::{Drafter, label};
use super::super::work::{Work, unread};
use crate::attest::predicate::{Gap, GapReason, GoneEvidence};
use crate::attest::text::MAX_ITEMS;
use crate::attest::{Envelope, Event, Label, List, Role, SignedDocument, Statement, Text};
use crate::clock::Millis;
use crate::incident::{Fact, Outcome, Snapshot, Stage, StepError, stage};

/// How often it is looked again when nothing may go although it was made due.
const AGAIN_SECONDS: i64 = 24 * 3_600;
const DAY_MILLIS: i64 = 24 * 3_600_000;

/// Drafts the gaps.
pub(super) async fn let_go(work: Work<'_>) -> Stepped {
    let Some(days) = kept_long_enough(&work) else {
        let until = work.now.plus_seconds(AGAIN_SECONDS);
        let reason = "its evidence is not to be let go (evidence.keep_days)";
        return Ok(Outcome::pause(until, reason));
    };
    let documents = documents(&work).await?;
    let mut drafter = Drafter::after(work);
    for chunk in documents.chunks(MAX_ITEMS) {
        let gap = Gap {
            event: drafter.block(Role::Executor)?,
            reason: Some(GapReason::Retention),
            detail: Text::clipped(&format!(
                "kept for {days} days after the incident had ended"
            )),
            evidence: List::first_of(chunk.iter().cloned()),
        };
        drafter.draft(Event::Gap(Box::new(gap)))?;
    }
    let mut outcome = Outcome::fact(Fact::EvidenceLetGo {
        documents: u32::try_from(documents.len()).unwrap_or(u32::MAX),
    });
    outcome.drafts = drafter.finish();
    Ok(outcome)
}

/// For how many days evidence is kept, if the incident ended longer ago than that.
fn kept_long_enough(work: &Work<'_>) -> Option<u32> {
    let days = work.engine.settings.evidence_days?;
    ended_before(work.snapshot, days, work.now).then_some(days)
}

/// Whether an incident is resolved or closed, and has been for so many days.
pub(in super::super) fn ended_before(snapshot: &Snapshot, days: u32, now: Millis) -> bool {
    let finished = matches!(stage(snapshot), Stage::Resolved | Stage::Closed);
    let facts = snapshot.facts.iter();
    let last = facts
        .filter(|one| !matches!(one.fact, Fact::EvidenceDue | Fact::EvidenceLetGo { .. }))
        .map(|one| one.at)
        .max();
    let until = last.map(|last| last.plus_millis(i64::from(days).saturating_mul(DAY_MILLIS)));
    finished && until.is_some_and(|until| until <= now)
}

/// What the incident has in the evidence store, as gaps name it.
async fn documents(work: &Work<'_>) -> Result<Vec<GoneEvidence>, StepError> {
    let scoped = work.engine.store.within(&work.snapshot.organisation);
    let own = scoped.evidence_of(&work.snapshot.incident).await;
    let own = own.map_err(|error| unread(&error))?;
    own.iter()
        .map(|(digest, bytes)| {
            let envelope = Envelope::parse(bytes).ok();
            Ok(GoneEvidence {
                kind: kind(bytes)?,
                sha256: *digest,
                signed_as: envelope.map(|envelope| envelope.digest()),
            })
        })
        .collect()
}

/// A signed document's kind; anything else is a document.
fn kind(bytes: &[u8]) -> Result<Label, StepError> {
    let document = SignedDocument::parse(bytes).ok();
    let statement = document.and_then(|one| Statement::parse(one.unverified_payload()).ok());
    label(statement.map_or("document", |one| one.predicate_type().name()))
}

/// Why a drafted gap is not signed, if so. A gap excuses missing evidence: whoever can write the database must not get one for
/// evidence that is not to go, nor for what is not the incident's.
pub(super) async fn objection(
    work: &Work<'_>,
    gap: &Gap,
) -> Result<Option<&'static str>, StepError> {
    // Break it: answer `None` at once; `worker::retention::a_gap_written_into_the_database_is_not_signed` then fails.
    if gap.reason != Some(GapReason::Retention) {
        return Ok(Some("no step of this program drafts such a gap"));
    }
    if kept_long_enough(work).is_none() {
        return Ok(Some("the evidence is not to be let go"));
    }
    let own: Vec<GoneEvidence> = documents(work).await?;
    let known = gap.evidence.iter().all(|gone| own.contains(gone));
    Ok((!known).then_some("the gap names what is not the incident's evidence"))
}

/// Before when an incident must have ended for its evidence to go; none when evidence is kept for ever.
pub(in super::super) fn cutoff(days: Option<u32>, now: Millis) -> Option<Millis> {
    let days = i64::from(days?);
    Some(now.plus_millis(-days.saturating_mul(DAY_MILLIS)))
}
