//! Asking the coder for the cause, and recording what it was fed.

use super::super::Stepped;
use super::super::drafting::{evidence_block, label, signed_evidence, text};
use super::super::repository::{Clone, broken, on_disk};
use super::super::session::{Opening, Purpose, opened};
use super::super::session_record::recorded;
use super::super::test_runs::Scratch;
use super::super::work::{PLAIN, Reading, Work};
use super::reproduce::checked_out;
use crate::agent::{Coder, CoderError, CoderTask, Diagnosis, FailureBrief};
use crate::attest::predicate::{ContextItem, ContextManifest as SignedManifest, TrustClass};
use crate::attest::{Evidence, List, Role, Subject};
use crate::change::Sha256Digest;
use crate::incident::{
    DiagnosisFact, EscalationReason, EvidenceDocument, Fact, Outcome, StepError,
};
use crate::provenance::{ContextEntry, ContextManifest};

pub(super) async fn diagnose(work: Work<'_>) -> Stepped {
    let coder = coder(&work)?;
    let reading = work.reading().await?;
    let clone = Clone::of(work.engine, &work.project.id, work.connector)?;
    let task = task(&work, &clone, &reading, None).await?;
    let scratch = Scratch::new(work.engine)?;
    let tree = scratch.tree("diagnosis");
    let commit = work.snapshot.failure.commit;
    let tree_id = checked_out(&clone, commit, tree.clone()).await?;
    let opening = Opening {
        purpose: Purpose::Diagnosis,
        tree: &tree,
        home: &scratch.tree("home"),
        files: &[],
        checks: Vec::new(),
        changed: Box::new(|| Ok(Vec::new())),
    };
    let session = opened(&work, coder, opening).await?;
    let given = session.as_ref().map(|session| &session.given);
    let diagnosis = coder.diagnose(&task, &tree, given).await;
    let ended = match session {
        Some(session) => Some(session.end().await),
        None => None,
    };
    let diagnosis = diagnosis.map_err(|error| no_answer(&error))?;
    work.engine.passed("diagnosis").await;
    let (session, mut evidence) = match &ended {
        Some(ended) => recorded(&work, ended, None)
            .await
            .map(|(fact, kept)| (Some(fact), kept))?,
        None => (None, Vec::new()),
    };
    let inputs = inputs(&task, &reading, &tree_id.to_string());
    let (signed, whole) = signed_manifest(&work, &inputs).await?;
    let description = coder.describe();
    let fact = DiagnosisFact {
        cause: diagnosis.cause,
        files: diagnosis.files,
        confidence: diagnosis.confidence,
        summary: diagnosis.summary,
        agent: description.id,
        model: description.model,
        remark: description.remark,
        manifest: signed.digest(),
        session,
    };
    evidence.extend([whole, signed]);
    Ok(Outcome {
        evidence,
        ..Outcome::fact(Fact::Diagnosed(fact))
    })
}

/// The configured coder.
pub(super) fn coder<'a>(work: &Work<'a>) -> Result<&'a dyn Coder, StepError> {
    work.engine.coder.as_deref().ok_or_else(|| {
        StepError::escalate(
            EscalationReason::CoderFailed,
            "no coder is configured; set agent.adapter in the configuration, or fix it by hand",
        )
    })
}

/// A coder that gave nothing usable; only one that could not be started is asked again.
pub(super) fn no_answer(error: &CoderError) -> StepError {
    match error {
        CoderError::Unavailable { .. } => {
            StepError::retry(std::time::Duration::from_secs(5), error)
        }
        CoderError::Failed { .. } | CoderError::Answer { .. } => {
            StepError::escalate(EscalationReason::CoderFailed, error.to_string())
        }
    }
}

/// What a coder is told.
pub(super) async fn task(
    work: &Work<'_>,
    clone: &Clone<'_>,
    reading: &Reading,
    diagnosis: Option<Diagnosis>,
) -> Result<CoderTask, StepError> {
    let failure = &work.snapshot.failure;
    let (repository, commit) = (clone.open()?, failure.commit);
    let files = on_disk(move || {
        let paths = repository.tracked_paths(commit);
        let paths = paths.map_err(|error| broken(&error))?;
        let texts = paths.iter().filter_map(|path| path.as_text());
        Ok(texts.map(str::to_owned).collect())
    })
    .await?;
    Ok(CoderTask {
        incident: work.snapshot.incident.clone(),
        failure: FailureBrief {
            kind: failure.kind.as_str().to_owned(),
            workflow: failure.workflow.clone(),
            job: failure.job.clone(),
            commit: failure.commit.to_string(),
            url: failure.url.clone(),
        },
        extraction: reading.extraction.facts.clone(),
        intent: work.project.intent.clone(),
        files,
        diagnosis,
    })
}

/// An input of the diagnosis and its length in bytes.
struct Input {
    entry: ContextEntry,
    bytes: usize,
}

impl Input {
    fn direct(name: &str, content: &[u8]) -> Self {
        let entry = ContextEntry::Direct {
            name: name.to_owned(),
            sha256: Sha256Digest::of(content),
        };
        Self {
            entry,
            bytes: content.len(),
        }
    }
}

/// Every distinct input, each once. The tree is content that git names; what is hashed is its id.
fn inputs(task: &CoderTask, reading: &Reading, tree: &str) -> Vec<Input> {
    // Text and numbers always serialise; an empty text would merely compare as different later.
    let facts = serde_json::to_vec(&task.extraction).unwrap_or_default();
    let log = reading
        .job
        .map_or_else(|| "log".to_owned(), |job| format!("log:{job}"));
    let quarantined = Input {
        entry: ContextEntry::Quarantined {
            name: log,
            raw: reading.extraction.raw,
            extraction: reading.extraction.extraction,
        },
        bytes: facts.len(),
    };
    vec![
        quarantined,
        Input::direct("intent", task.intent.as_bytes()),
        Input::direct(
            "failure",
            &serde_json::to_vec(&task.failure).unwrap_or_default(),
        ),
        Input::direct(
            "files",
            &serde_json::to_vec(&task.files).unwrap_or_default(),
        ),
        Input::direct("tree", tree.as_bytes()),
    ]
}

/// The signed manifest and the whole list that it names by digest.
async fn signed_manifest(
    work: &Work<'_>,
    inputs: &[Input],
) -> Result<(EvidenceDocument, EvidenceDocument), StepError> {
    let entries = inputs.iter().map(|input| input.entry.clone()).collect();
    let manifest = ContextManifest::new(entries)
        .map_err(|error| StepError::escalate(EscalationReason::FixUnusable, error.to_string()))?;
    let whole = EvidenceDocument {
        media_type: PLAIN,
        bytes: manifest.canonical(),
    };
    let items: Result<Vec<ContextItem>, StepError> = inputs.iter().map(item).collect();
    let document = SignedManifest {
        document: evidence_block(work, Role::Proposer)?,
        count: inputs.len() as u64,
        items: List::first_of(items?),
        all: Some(whole.digest().into()),
        prompt: None,
    };
    let commit = work.snapshot.failure.commit.to_string();
    let subject = Subject {
        name: "commit".to_owned(),
        digest: std::collections::BTreeMap::from([("gitCommit".to_owned(), commit)]),
    };
    let evidence = Evidence::ContextManifest(Box::new(document));
    let signed = signed_evidence(work, vec![subject], evidence).await?;
    Ok((signed, whole))
}

fn item(input: &Input) -> Result<ContextItem, StepError> {
    let (kind, trust, sha256, raw) = match &input.entry {
        ContextEntry::Quarantined {
            raw, extraction, ..
        } => (
            "extraction",
            TrustClass::Quarantined,
            *extraction,
            Some((*raw).into()),
        ),
        ContextEntry::Direct { sha256, .. } => ("input", TrustClass::Direct, *sha256, None),
    };
    Ok(ContextItem {
        kind: label(kind)?,
        source: text(input.entry.name())?,
        trust,
        sha256,
        bytes: input.bytes as u64,
        raw,
    })
}
