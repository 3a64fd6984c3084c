//! Drafting signed statements: positions, links between events, and the block that every event carries.

use std::sync::Arc;

use super::repository::on_disk;
use super::work::{SIGNED, Work};
use crate::attest::dsse::{IN_TOTO, pae};
use crate::attest::predicate::{EventBlock, EvidenceBlock, Producer, Project};
use crate::attest::{
    Event, Evidence, Label, Role, SignError, Statement, StatementError, Subject, Text, TextError,
};
use crate::change::Sha256Digest;
use crate::id::EventId;
use crate::incident::{Draft, EscalationReason, EvidenceDocument, StepError};

/// Numbers and links the statements of one step.
pub(super) struct Drafter<'a> {
    work: Work<'a>,
    seq: u64,
    prev: Option<Sha256Digest>,
    drafts: Vec<Draft>,
}

impl<'a> Drafter<'a> {
    /// Goes on where the snapshot's chain ends.
    pub(super) fn after(work: Work<'a>) -> Self {
        Self {
            work,
            seq: work.snapshot.ledger.drafted,
            prev: work.snapshot.ledger.head,
            drafts: Vec::new(),
        }
    }

    /// The block of the next event, which `role` will sign.
    pub(super) fn block(&self, role: Role) -> Result<EventBlock, StepError> {
        let work = &self.work;
        // A statement names the trust root in force, so none is drafted by one that is no longer.
        work.allow_acting()?;
        Ok(EventBlock {
            id: event_id(work)?,
            incident: work.snapshot.incident.clone(),
            seq: self.seq,
            prev: self.prev.map(Into::into),
            project: project(work)?,
            role,
            occurred_at: work.now,
            trust_root: work.engine.keys.trust().reference(),
            policy: (*work.rules.digest()).into(),
            producer: producer(),
        })
    }

    /// Drafts an event and returns how others name it.
    pub(super) fn draft(&mut self, event: Event) -> Result<Sha256Digest, StepError> {
        let role = event.predicate_type().role();
        let statement = Statement::event(event)
            .and_then(|statement| statement.draft())
            .map_err(|error| undraftable(&error))?;
        let digest = Sha256Digest::of(&pae(IN_TOTO, &statement));
        self.drafts.push(Draft {
            seq: self.seq,
            role,
            statement,
            pae: digest,
        });
        self.seq += 1;
        self.prev = Some(digest);
        Ok(digest)
    }

    /// The drafts.
    pub(super) fn finish(self) -> Vec<Draft> {
        self.drafts
    }
}

/// The block of an evidence document, which `role` signs.
pub(super) fn evidence_block(work: &Work<'_>, role: Role) -> Result<EvidenceBlock, StepError> {
    work.allow_acting()?;
    Ok(EvidenceBlock {
        id: event_id(work)?,
        incident: work.snapshot.incident.clone(),
        project: project(work)?,
        role,
        occurred_at: work.now,
        trust_root: work.engine.keys.trust().reference(),
        producer: producer(),
    })
}

/// Signs an evidence document about `subjects`; the signer may be another process.
pub(super) async fn signed_evidence(
    work: &Work<'_>,
    subjects: Vec<Subject>,
    evidence: Evidence,
) -> Result<EvidenceDocument, StepError> {
    let statement = Statement::evidence(subjects, evidence).map_err(|error| undraftable(&error))?;
    let bytes = statement.draft().map_err(|error| undraftable(&error))?;
    let (keys, role) = (Arc::clone(&work.engine.keys), statement.role());
    let envelope = on_disk(move || {
        let signed = keys.signer(role).sign(&bytes);
        signed.map_err(|error| unsigned(&error))
    });
    let envelope = envelope.await?;
    let bytes = envelope
        .to_bytes()
        .map_err(|error| StepError::retry(std::time::Duration::from_secs(5), error))?;
    Ok(EvidenceDocument {
        media_type: SIGNED,
        bytes,
    })
}

/// A signature that could not be made. It is tried again: nothing goes on without it.
pub(super) fn unsigned(error: &SignError) -> StepError {
    StepError::retry(
        std::time::Duration::from_secs(5),
        format!("signing: {error}"),
    )
}

/// A machine word for a statement.
pub(super) fn label(text: &str) -> Result<Label, StepError> {
    Label::new(text).map_err(|error| unusable(&error))
}

/// A whole text for a statement; one that does not fit is refused, not cut.
pub(super) fn text(text: &str) -> Result<Text, StepError> {
    Text::new(text).map_err(|error| unusable(&error))
}

fn project(work: &Work<'_>) -> Result<Project, StepError> {
    Ok(Project {
        uri: text(&work.project.url)?,
        repository_id: label(&work.project.repository_id)?,
    })
}

fn event_id(work: &Work<'_>) -> Result<EventId, StepError> {
    let entropy = work.engine.entropy()?;
    Ok(EventId::new(work.now, entropy))
}

fn producer() -> Producer {
    Producer {
        id: Text::clipped("urn:caretaker:worker"),
        version: Label::fixed(env!("CARGO_PKG_VERSION")),
    }
}

fn undraftable(error: &StatementError) -> StepError {
    StepError::escalate(EscalationReason::FixUnusable, error.to_string())
}

fn unusable(error: &TextError) -> StepError {
    StepError::escalate(EscalationReason::FixUnusable, error.to_string())
}
