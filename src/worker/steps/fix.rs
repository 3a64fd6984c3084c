//! Letting the coder edit a scratch tree, proving the result, and committing it in the trusted repository.

use super::super::Stepped;
use super::super::repository::{Clone, broken, on_disk};
use super::super::session::{Ended, Opening, Purpose, SessionCheck, opened};
use super::super::session_record;
use super::super::test_runs::Scratch;
use super::super::work::{Work, expect};
use super::diagnose::{coder, no_answer, task};
use super::evidence::test_result;
use super::judge::{Judged, judge};
use super::propose::{Refusal, proposal_id, refuse_files};
use super::reproduce::{checked_out, detected};
use crate::agent::{Diagnosis, FixSummary};
use crate::change::{ChangeDocument, ChangeSet, Oid, RepoPath};
use crate::incident::{
    DiagnosisFact, EscalationReason, EvidenceDocument, Fact, FixFact, Outcome, SessionFact,
    StepError,
};
use crate::workspace::red_green::{
    Plan, Planned, Proof, TestEvidence, TestLimits, Unproven, Verdict as Proven, plan, prove,
};
use crate::workspace::toolchain::Detection;
use crate::workspace::{BRANCH_PREFIX, TreeLimits, TrustedRepository, WorkspaceError};

/// Bytes of a diff that are kept for people.
const PATCH_BYTES: usize = 256 << 10;
/// Characters of a run's output that a hand-over shows.
const TAIL_CHARACTERS: usize = 400;
/// Files whose own tests are looked for, at most.
const MOST_LOOKED_AT: usize = 50;
/// Commands that a session's end waits for, at most.
const MOST_CHECKS: usize = 8;
/// Trailer of a fix branch's one commit.
const PROPOSAL_TRAILER: &str = "Caretaker-Proposal";

pub(super) async fn fix(work: Work<'_>) -> Stepped {
    let clone = Clone::of(work.engine, &work.project.id, work.connector)?;
    let base = work.snapshot.failure.commit;
    let scratch = Scratch::new(work.engine)?;
    let (summary, ended) = edited(&work, &clone, &scratch).await?;
    let tree = taken_in(&clone, scratch.tree("fix"), base).await?;
    let judged = judge(&work, &clone, base, tree).await?;
    if judged.change.entries().is_empty() {
        return Err(failed(
            EscalationReason::CoderFailed,
            "the coder said it was done but changed nothing",
        ));
    }
    if let Some(refusal) = Refusal::of_decision(&judged.decision) {
        // Nothing of a refused change is run or committed.
        let paths: Vec<RepoPath> = judged.change.paths().cloned().collect();
        return refuse_files(work, &paths, &refusal).await;
    }
    let session = match &ended {
        Some(ended) => Some(kept(&work, ended).await?),
        None => None,
    };
    let proof = proven(&work, &clone, &scratch, tree, &judged).await?;
    work.engine.passed("proof").await;
    let commit = committed(&work, &clone, tree, &summary, &judged).await?;
    let mended = Mended {
        commit,
        summary,
        judged,
        proof,
    };
    recorded(&work, &clone, mended, session).await
}

/// A fix that is proven and committed.
struct Mended {
    commit: Oid,
    summary: FixSummary,
    judged: Judged,
    proof: Proof,
}

/// What a gated session leaves: its fact, and the documents that it names.
type Kept = (SessionFact, Vec<EvidenceDocument>);

/// The checks once more outside of the session, and what is kept of it. Without both there is no fix.
async fn kept(work: &Work<'_>, ended: &Ended) -> Result<Kept, StepError> {
    let completion = ended.checked(work.engine).await?;
    let kept = session_record::recorded(work, ended, Some(&completion)).await?;
    // Break it: leave this out; `worker::gated::a_fix_whose_checks_fail_outside_the_session_is_not_proposed` fails.
    match completion.refusal() {
        Some(refusal) => Err(failed(EscalationReason::FixUnproven, refusal)),
        None => Ok(kept),
    }
}

fn failed(reason: EscalationReason, detail: impl Into<String>) -> StepError {
    StepError::escalate(reason, detail)
}

/// The coder's edits in a scratch tree, and what it says of them.
async fn edited(
    work: &Work<'_>,
    clone: &Clone<'_>,
    scratch: &Scratch,
) -> Result<(FixSummary, Option<Ended>), StepError> {
    let coder = coder(work)?;
    let reading = work.reading().await?;
    let diagnosis = asked(expect(work.snapshot.diagnosis(), "the diagnosis")?);
    let task = task(work, clone, &reading, Some(diagnosis)).await?;
    let (tree, home) = (scratch.tree("fix"), scratch.tree("home"));
    checked_out(clone, work.snapshot.failure.commit, tree.clone()).await?;
    let session = opened(
        work,
        coder,
        opening(work, clone, scratch, &tree, &home).await?,
    )
    .await?;
    let given = session.as_ref().map(|session| &session.given);
    let summary = coder.fix(&task, &tree, given).await;
    let ended = match session {
        Some(session) => Some(session.end().await),
        None => None,
    };
    let summary = summary.map_err(|error| no_answer(&error))?;
    work.engine.passed("fix").await;
    let forged = |text: &str| {
        let lines = text
            .lines()
            .map(|line| line.trim_start().to_ascii_lowercase());
        lines.into_iter().any(|line| line.starts_with("caretaker-"))
    };
    // Such a line in a landed message would be read as ours when a lost answer is looked for.
    if forged(&summary.title) || forged(&summary.summary) {
        return Err(failed(
            EscalationReason::FixUnusable,
            "the coder's summary holds a line that begins with Caretaker-, which is reserved for caretaker's own trailers",
        ));
    }
    Ok((summary, ended))
}

/// A fix may write the files that the diagnosis names, and is done when the project's tests pass.
async fn opening<'a>(
    work: &Work<'a>,
    clone: &Clone<'_>,
    scratch: &Scratch,
    tree: &'a std::path::Path,
    home: &'a std::path::Path,
) -> Result<Opening<'a>, StepError> {
    let diagnosis = expect(work.snapshot.diagnosis(), "the diagnosis")?;
    let base = work.snapshot.failure.commit;
    let checks = checks(work, clone, base, &diagnosis.files).await?;
    let (place, scratch_tree) = (clone.path().to_path_buf(), scratch.tree("fix"));
    let changed = move || {
        let repository = TrustedRepository::open_or_create(&place);
        let snapshot = repository.and_then(|repository| {
            repository.snapshot(&scratch_tree, base, &TreeLimits::default())
        });
        let snapshot = snapshot.map_err(|error| error.to_string())?;
        Ok(snapshot
            .changes
            .paths()
            .map(|path| path.as_bytes().to_vec())
            .collect())
    };
    Ok(Opening {
        purpose: Purpose::Fix,
        tree,
        home,
        files: &diagnosis.files,
        checks,
        changed: Box::new(changed),
    })
}

/// The tests of all files together, which prove the fix, and those of each file, where they are others. Where several ways to run
/// them speak for one file, none of them is required.
async fn checks(
    work: &Work<'_>,
    clone: &Clone<'_>,
    base: Oid,
    files: &[RepoPath],
) -> Result<Vec<SessionCheck>, StepError> {
    let alone = files
        .iter()
        .take(MOST_LOOKED_AT)
        .map(|file| vec![file.clone()]);
    let mut found = Vec::new();
    for hints in std::iter::once(files.to_vec()).chain(alone) {
        if let Detection::Found(toolchain) = detected(*work, clone, base, hints).await? {
            let check = SessionCheck {
                folder: toolchain.root,
                command: toolchain.test,
            };
            if !found.contains(&check) && found.len() < MOST_CHECKS {
                found.push(check);
            }
        }
    }
    Ok(found)
}

fn asked(fact: &DiagnosisFact) -> Diagnosis {
    Diagnosis {
        cause: fact.cause.clone(),
        files: fact.files.clone(),
        confidence: fact.confidence,
        summary: fact.summary.clone(),
    }
}

/// The scratch tree as a tree object. What cannot be a tree of a proposal is the coder's doing, not a passing fault.
async fn taken_in(
    clone: &Clone<'_>,
    scratch: std::path::PathBuf,
    base: Oid,
) -> Result<Oid, StepError> {
    let repository = clone.open()?;
    on_disk(move || {
        let limits = TreeLimits::default();
        match repository.snapshot(&scratch, base, &limits) {
            Ok(snapshot) => Ok(snapshot.tree),
            Err(error @ WorkspaceError::Io { .. }) => Err(broken(&error)),
            Err(error) => Err(failed(EscalationReason::FixUnusable, error.to_string())),
        }
    })
    .await
}

async fn proven(
    work: &Work<'_>,
    clone: &Clone<'_>,
    scratch: &Scratch,
    tree: Oid,
    judged: &Judged,
) -> Result<Proof, StepError> {
    let base = work.snapshot.failure.commit;
    let hints = judged.change.paths().cloned().collect();
    let Detection::Found(toolchain) = detected(*work, clone, base, hints).await? else {
        return Err(failed(
            EscalationReason::FixUnproven,
            "which tests belong to the changed files cannot be told; name the command in the project's rules (test: [argv…])",
        ));
    };
    let (repository, place) = (clone.open()?, scratch.path().to_path_buf());
    let (plan, trees) = on_disk(move || {
        let planned = plan(&repository, base, tree, &toolchain).map_err(|error| broken(&error))?;
        let plan: Box<Plan> = match planned {
            Planned::Ready(plan) => plan,
            Planned::Unproven(unproven) => return Err(not_proven(&unproven)),
        };
        let limits = TreeLimits::default();
        let trees = plan.check_out(&repository, &place, &limits);
        Ok((plan, trees.map_err(|error| broken(&error))?))
    })
    .await?;
    let runner = scratch.runner(work.engine);
    match prove(&plan, &trees, &runner, TestLimits::default()).await {
        Ok(Proven::Proven(proof)) => Ok(*proof),
        Ok(Proven::Unproven(unproven, runs)) => Err(shown_run(&unproven, runs.last())),
        Err(error) => Err(StepError::retry(std::time::Duration::from_secs(5), error)),
    }
}

/// With the end of what the deciding run printed, so that a person need not run it again to know.
fn shown_run(unproven: &Unproven, run: Option<&TestEvidence>) -> StepError {
    let Some(run) = run else {
        return not_proven(unproven);
    };
    let skipped = run.tail.chars().count().saturating_sub(TAIL_CHARACTERS);
    let tail: String = run.tail.chars().skip(skipped).collect();
    failed(
        EscalationReason::FixUnproven,
        format!("{unproven}. The run ended with: {}", tail.trim()),
    )
}

fn not_proven(unproven: &Unproven) -> StepError {
    failed(EscalationReason::FixUnproven, unproven.to_string())
}

/// The one commit, and our own branch so that git keeps it.
async fn committed(
    work: &Work<'_>,
    clone: &Clone<'_>,
    tree: Oid,
    summary: &FixSummary,
    judged: &Judged,
) -> Result<Oid, StepError> {
    let cleared = judged.decision.cleared(&judged.change).ok_or_else(|| {
        failed(
            EscalationReason::FixUnusable,
            "the gate did not clear the change",
        )
    })?;
    let proposal = proposal_id(&work.snapshot.incident)?;
    let message = format!(
        "{}\n\n{}\n\n{PROPOSAL_TRAILER}: {proposal}\n",
        summary.title.trim(),
        summary.summary.trim()
    );
    let (repository, base) = (clone.open()?, work.snapshot.failure.commit);
    let (author, now, branch) = (work.engine.settings.author.clone(), work.now, branch(work));
    on_disk(move || {
        let written = repository.commit(&cleared, tree, base, &author, &message, now);
        let commit = written.map_err(|error| broken(&error))?;
        let named = repository.write_branch(&branch, commit);
        named.map(|()| commit).map_err(|error| broken(&error))
    })
    .await
}

/// The fix's branch.
fn branch(work: &Work<'_>) -> String {
    format!("{BRANCH_PREFIX}{}-1", work.snapshot.incident)
}

async fn recorded(
    work: &Work<'_>,
    clone: &Clone<'_>,
    mended: Mended,
    session: Option<Kept>,
) -> Stepped {
    let Mended {
        commit,
        summary,
        judged,
        proof,
    } = mended;
    let (session, mut evidence) = match session {
        Some((fact, documents)) => (Some(fact), documents),
        None => (None, Vec::new()),
    };
    let mut tests = Vec::new();
    for run in [&proof.red, &proof.green, &proof.base_on_fix] {
        let (signed, whole) = test_result(work, run).await?;
        tests.push(signed.digest());
        evidence.extend([whole, signed]);
    }
    let tree = clone.open()?.commit_tree(commit);
    let patch = patch(clone, judged.change.clone()).await?;
    let fact = FixFact {
        branch: branch(work),
        base_commit: work.snapshot.failure.commit,
        commit,
        tree: tree.map_err(|error| broken(&error))?,
        change: ChangeDocument::from(&judged.change),
        title: summary.title.trim().to_owned(),
        body: summary.summary.trim().to_owned(),
        lines: judged.measured.lines,
        binary: judged.measured.binary.map(|count| count > 0),
        tests,
        patch: Some(patch.digest()),
        session,
    };
    evidence.push(patch);
    Ok(Outcome {
        evidence,
        ..Outcome::fact(Fact::Fixed(fact))
    })
}

/// The change as a person reads it. What they approve are the entries; this only shows what those say.
async fn patch(clone: &Clone<'_>, change: ChangeSet) -> Result<EvidenceDocument, StepError> {
    let repository = clone.open()?;
    let text = on_disk(move || {
        let text = repository.patch(&change, PATCH_BYTES);
        text.map_err(|error| broken(&error))
    });
    Ok(EvidenceDocument {
        media_type: "text/x-diff; charset=utf-8",
        bytes: text.await?.into_bytes(),
    })
}
