//! What failed, and what was made of it before the five stages.

use super::super::evidence::LogReading;
use super::super::shown::{Link, Shown};
use super::proof::{self, RunView};
use crate::attest::TrustHistory;
use crate::clock::Millis;
use crate::incident::{DiagnosisFact, Fact, Failure, Reproduction, SessionFact, Snapshot};
use crate::store::{Scoped, StoreError};

/// Facts of a log that are listed.
const LISTED: usize = 20;

/// The observed failure.
pub(super) struct FailureView {
    pub(super) kind: &'static str,
    pub(super) workflow: Shown,
    pub(super) job: Shown,
    pub(super) branch: Shown,
    pub(super) scope: Shown,
    pub(super) commit: String,
    pub(super) run: u64,
    pub(super) attempt: u64,
    pub(super) link: Option<Link>,
}

impl From<&Failure> for FailureView {
    fn from(failure: &Failure) -> Self {
        Self {
            kind: failure.kind.as_str(),
            workflow: Shown::line(failure.workflow.as_deref().unwrap_or("without a name")),
            job: Shown::line(failure.job.as_deref().unwrap_or("the run had no jobs")),
            branch: Shown::line(&failure.base_ref),
            scope: Shown::line(&failure.scope),
            commit: failure.commit.to_string(),
            run: failure.run_id,
            attempt: failure.attempt,
            link: failure.url.as_deref().map(Link::plain),
        }
    }
}

/// Trying it in the sandbox.
pub(super) struct ReproductionView {
    /// What came of it, in a sentence.
    pub(super) outcome: String,
    /// Why it could not be tried.
    pub(super) reason: Shown,
    pub(super) sandbox: Shown,
    pub(super) runs: Vec<RunView>,
}

/// Reads and checks it.
pub(super) async fn reproduction(
    scope: Scoped<'_>,
    trust: &TrustHistory,
    snapshot: &Snapshot,
) -> Result<Option<ReproductionView>, StoreError> {
    let Some(reproduction) = snapshot.reproduction() else {
        return Ok(None);
    };
    let (outcome, sandbox, evidence) = match reproduction {
        Reproduction::Unrunnable { reason } => {
            return Ok(Some(ReproductionView {
                outcome: "The tests cannot be run here.".to_owned(),
                reason: Shown::line(reason),
                sandbox: Shown::default(),
                runs: Vec::new(),
            }));
        }
        Reproduction::Red {
            sandbox,
            evidence,
            repeated,
            ..
        } => {
            let all = std::iter::once(evidence).chain(repeated).collect();
            ("The tests fail in the sandbox, too", sandbox, all)
        }
        Reproduction::Flaky {
            sandbox, evidence, ..
        } => {
            let outcome = "The tests are flaky: at the same commit they fail in the sandbox";
            (outcome, sandbox, evidence.iter().collect())
        }
        Reproduction::Green {
            sandbox, evidence, ..
        } => ("The tests pass in the sandbox", sandbox, vec![evidence]),
    };
    let mut runs = Vec::new();
    for digest in evidence {
        runs.push(proof::reproduction(scope, trust, *digest, reproduction).await?);
    }
    Ok(Some(ReproductionView {
        outcome: match reproduction.tally() {
            Some(tally) => format!("{outcome}, {tally}."),
            None => format!("{outcome}."),
        },
        reason: Shown::default(),
        sandbox: Shown::line(sandbox),
        runs,
    }))
}

/// What came of running the failed job again at the provider, in a sentence; none when that never was a question.
pub(super) fn rerun(snapshot: &Snapshot, now: Millis) -> Option<Shown> {
    let words = snapshot.rerun_in_words(now)?;
    let mut letters = words.chars();
    let first = letters.next()?.to_uppercase();
    Some(Shown::line(format!("{first}{}.", letters.as_str())))
}

/// What was read from the log.
pub(super) struct LogView {
    pub(super) count: u32,
    pub(super) suspicious: bool,
    pub(super) missing: Shown,
    pub(super) facts: Vec<Shown>,
    pub(super) digest: String,
}

/// Reads it.
pub(super) async fn log(
    scope: Scoped<'_>,
    snapshot: &Snapshot,
) -> Result<Option<LogView>, StoreError> {
    let mut facts = snapshot.facts.iter().rev();
    let extracted = facts.find_map(|recorded| match &recorded.fact {
        Fact::Extracted {
            evidence,
            count,
            suspicious,
            missing,
        } => Some((evidence, *count, *suspicious, missing)),
        _ => None,
    });
    let Some((evidence, count, suspicious, missing)) = extracted else {
        return Ok(None);
    };
    let reading = LogReading::read(scope, evidence).await?;
    let facts = reading.map(|reading| reading.extraction.facts);
    Ok(Some(LogView {
        count,
        suspicious,
        missing: Shown::line(missing.as_deref().unwrap_or_default()),
        facts: facts.iter().flatten().take(LISTED).map(fact).collect(),
        digest: evidence.to_string(),
    }))
}

/// One fact on one line: `cargo-test test-failed: tests::sums (src/lib.rs:12)`.
fn fact(fact: &crate::agent::ExtractedFact) -> Shown {
    let mut text = format!("{} {}", fact.tool, fact.kind);
    let named = [&fact.code, &fact.exception, &fact.test_name];
    let named: Vec<&str> = named.into_iter().flatten().map(String::as_str).collect();
    if !named.is_empty() {
        text = format!("{text}: {}", named.join(" "));
    }
    match (&fact.file, fact.line) {
        (Some(file), Some(line)) => text = format!("{text} ({file}:{line})"),
        (Some(file), None) => text = format!("{text} ({file})"),
        _ => {}
    }
    Shown::line(text)
}

/// The gated session of a coder.
pub(super) fn session(session: Option<&SessionFact>) -> Option<Shown> {
    session.map(|session| Shown::line(session.in_words()))
}

/// What the coder found.
pub(super) struct DiagnosisView {
    pub(super) cause: Shown,
    pub(super) summary: Shown,
    pub(super) files: Vec<Shown>,
    pub(super) confidence: u16,
    pub(super) coder: Shown,
    pub(super) model: Shown,
    pub(super) remark: Shown,
    pub(super) manifest: String,
    pub(super) session: Option<Shown>,
}

impl From<&DiagnosisFact> for DiagnosisView {
    fn from(diagnosis: &DiagnosisFact) -> Self {
        Self {
            cause: Shown::block(&diagnosis.cause),
            summary: Shown::block(&diagnosis.summary),
            files: diagnosis.files.iter().map(Shown::line).collect(),
            confidence: diagnosis.confidence,
            coder: Shown::line(&diagnosis.agent),
            model: Shown::line(diagnosis.model.as_deref().unwrap_or_default()),
            remark: Shown::block(&diagnosis.remark),
            manifest: diagnosis.manifest.to_string(),
            session: session(diagnosis.session.as_ref()),
        }
    }
}
