//! Bringing the fix to the provider: first the branch, then the pull request.

use super::super::Stepped;
use super::super::repository::{Clone, name};
use super::super::work::{Work, expect, unanswered};
use super::judge::judge;
use crate::change::Oid;
use crate::connector::NewPull;
use crate::gate::Cleared;
use crate::incident::{EscalationReason, Fact, FixFact, Outcome, StepError};
use crate::workspace::git_command::Push;

/// Pushes the branch, once: one that is there already with our commit is ours.
pub(super) async fn push(work: Work<'_>) -> Stepped {
    let fix = expect(work.snapshot.fix(), "the fix")?;
    let there = work.connector.branch(&fix.branch).await;
    match there.map_err(|error| unanswered(&error, work.now))? {
        Some(commit) if commit == fix.commit => {}
        Some(other) => return Err(intruded(&fix.branch, other)),
        None => {
            let clone = Clone::of(work.engine, &work.project.id, work.connector)?;
            let judged = judge(&work, &clone, fix.base_commit, fix.commit).await?;
            let cleared = judged.decision.cleared(&judged.change);
            let cleared = cleared.ok_or_else(|| {
                StepError::escalate(
                    EscalationReason::FixUnusable,
                    "the project's rules now refuse the change; nothing is pushed",
                )
            })?;
            push_cleared(&clone, &cleared, fix).await?;
            work.engine.passed("push").await;
        }
    }
    Ok(Outcome::fact(Fact::Pushed { commit: fix.commit }))
}

/// Only a change that the gate cleared leaves this machine.
async fn push_cleared(
    clone: &Clone<'_>,
    cleared: &Cleared,
    fix: &FixFact,
) -> Result<(), StepError> {
    if *cleared.change() != fix.change.digest {
        return Err(StepError::escalate(
            EscalationReason::ChangeMismatch,
            "the gate cleared another change than the one to be pushed",
        ));
    }
    let push = Push {
        reference: name(&format!("refs/heads/{}", fix.branch))?,
        commit: Some(fix.commit),
        expected: None,
    };
    clone.push(&push).await
}

/// Opens the pull request, once: one that is open from our branch is ours.
pub(super) async fn open(work: Work<'_>) -> Stepped {
    let fix = expect(work.snapshot.fix(), "the fix")?;
    let found = work.connector.find_pull(&fix.branch).await;
    let pull = match found.map_err(|error| unanswered(&error, work.now))? {
        Some(pull) if pull.merged || !pull.open => {
            return Err(StepError::escalate(
                EscalationReason::PersonIntervened,
                format!(
                    "pull request {} was closed or merged by somebody",
                    pull.number
                ),
            ));
        }
        Some(pull) => pull,
        None => {
            let opened = work.connector.open_pull(&described(&work, fix)).await;
            let opened = opened.map_err(|error| unanswered(&error, work.now))?;
            work.engine.passed("open-pull").await;
            opened
        }
    };
    if pull.head_commit != fix.commit {
        return Err(intruded(&fix.branch, pull.head_commit));
    }
    Ok(Outcome::fact(Fact::Opened {
        number: pull.number,
        url: pull.url,
    }))
}

fn intruded(branch: &str, commit: Oid) -> StepError {
    StepError::escalate(
        EscalationReason::PersonIntervened,
        format!("the branch {branch} is at {commit}, which is not caretaker's commit"),
    )
}

/// What reviewers read. The landed commit's own text is bound separately.
fn described(work: &Work<'_>, fix: &FixFact) -> NewPull {
    let snapshot = work.snapshot;
    let failure = &snapshot.failure;
    let cause = snapshot
        .diagnosis()
        .map_or("", |diagnosis| diagnosis.cause.as_str());
    let run = failure.url.as_deref().unwrap_or("(no page)");
    let agent = snapshot
        .diagnosis()
        .map_or("", |diagnosis| diagnosis.remark.as_str());
    let (incident, digest) = (&snapshot.incident, fix.change.digest);
    let body = format!(
        "{}\n\n**Cause.** {cause}\n\n**Failed run.** {run}\n\n**Tests.** The added test fails without the fix and passes with it.\n\n\
         This pull request was opened by caretaker for incident `{incident}` (change digest `{digest}`). {agent}\n\
         Do not push to this branch: that voids the approval and hands the incident over.\n",
        fix.body
    );
    NewPull {
        head_ref: fix.branch.clone(),
        base_ref: work.rules.document().base.0.clone(),
        title: fix.title.clone(),
        body,
    }
}
