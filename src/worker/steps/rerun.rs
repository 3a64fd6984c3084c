//! Having the failed job run once more at the provider, at the same commit.

use super::super::Stepped;
use super::super::work::{Work, unanswered};
use crate::connector::RunView;
use crate::incident::{Fact, Outcome, StepError};

/// Looks whether there is another attempt already, whoever asked for it, and asks for one when there is none. A worker that
/// was killed after it asked finds the attempt and does not ask again; what the attempt comes to, the watch observes.
pub(super) async fn rerun(work: Work<'_>) -> Stepped {
    if work.rules.document().reruns.count() == 0 {
        return Ok(declined("the project's rules say `reruns: 0`"));
    }
    let run = match look(&work).await? {
        Look::Further(outcome) => return Ok(outcome),
        Look::Failed(run) => run,
        Look::Declined(reason) => return Ok(declined(&reason)),
    };
    if run.status != "completed" {
        let reason = format!(
            "run {} has not ended (it is {}), so that it cannot be run again yet",
            run.id, run.status
        );
        return Err(StepError::retry(std::time::Duration::from_secs(30), reason));
    }
    // Break it: ask without the look above; a worker that was killed after it asked then asks for a third attempt as soon as
    // the second has ended (`worker::flake::killed_after_any_effect_one_rerun_is_asked_for`).
    let asked = work.connector.rerun_failed(run.id).await;
    work.engine.passed("rerun").await;
    match asked {
        Ok(()) => Ok(awaited(run.id, run.attempt.saturating_add(1))),
        Err(error) if error.is_transient() => Err(unanswered(&error, work.now)),
        // Another incident of the same run may have been quicker.
        Err(error) => match look(&work).await? {
            Look::Further(outcome) => Ok(outcome),
            Look::Failed(_) | Look::Declined(_) => Ok(declined(&error.to_string())),
        },
    }
}

/// What the provider says of the failed run.
enum Look {
    /// There is a further attempt, which is waited for.
    Further(Outcome),
    /// The attempt that failed is the newest.
    Failed(RunView),
    /// It cannot be told, and asking again will not help.
    Declined(String),
}

async fn look(work: &Work<'_>) -> Result<Look, StepError> {
    let failure = &work.snapshot.failure;
    match work.connector.run(failure.run_id).await {
        Ok(run) if run.attempt > failure.attempt => Ok(Look::Further(awaited(run.id, run.attempt))),
        Ok(run) => Ok(Look::Failed(run)),
        Err(error) if error.is_transient() => Err(unanswered(&error, work.now)),
        Err(error) => Ok(Look::Declined(error.to_string())),
    }
}

fn awaited(run_id: u64, attempt: u64) -> Outcome {
    Outcome::fact(Fact::RerunAsked { run_id, attempt })
}

fn declined(reason: &str) -> Outcome {
    Outcome::fact(Fact::RerunDeclined {
        reason: reason.to_owned(),
    })
}
