//! Telling a flaky failure from a real one: what fails and passes at one commit is not fixed, it is reported.
//!
//! There are two witnesses: the sandbox, where failing tests are run once more, and the provider, which is asked for one more
//! attempt of the run when the sandbox cannot confirm the failure. A later attempt runs at the commit of the first, so that its
//! success says more than that of a newer run, whoever asked for it.

use super::{Fact, Failure, Reproduction, Snapshot};
use crate::clock::Millis;

/// How long another attempt is waited for, in seconds. A queue of runners may be long; an incident must not wait for ever.
const PATIENCE: i64 = 60 * 60;

/// What is known of running the failed job again at the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rerun<'a> {
    /// Nothing.
    Open,
    /// What was observed first was a repetition already. It is not repeated again: of one run, however many incidents come of
    /// it, one further attempt is asked for at most.
    Repetition {
        /// The run.
        run_id: u64,
        /// The attempt that failed.
        attempt: u64,
    },
    /// An attempt is under way.
    Awaited {
        /// The run.
        run_id: u64,
        /// The attempt.
        attempt: u64,
        /// What is waited for no longer than this.
        until: Millis,
    },
    /// The job failed once more.
    FailedAgain {
        /// The run.
        run_id: u64,
        /// The attempt.
        attempt: u64,
    },
    /// The job succeeded.
    Passed {
        /// The run.
        run_id: u64,
        /// The attempt; 0 when it is not known.
        attempt: u64,
    },
    /// There is no further attempt.
    Declined {
        /// Why, in words.
        reason: &'a str,
    },
}

impl Rerun<'_> {
    /// What came of it, in words without a full stop; none before anything did.
    pub fn in_words(&self, now: Millis) -> Option<String> {
        Some(match self {
            Self::Open => return None,
            Self::Repetition { run_id, attempt } => {
                format!("attempt {attempt} of run {run_id} was a repetition already")
            }
            Self::Awaited {
                run_id,
                attempt,
                until,
            } if now < *until => {
                format!("attempt {attempt} of run {run_id} is waited for until {until}")
            }
            Self::Awaited {
                run_id, attempt, ..
            } => format!("attempt {attempt} of run {run_id} did not end in time"),
            Self::FailedAgain { run_id, attempt } => {
                format!("attempt {attempt} of run {run_id} failed at the provider again")
            }
            Self::Passed { run_id, attempt: 0 } => format!("run {run_id} passed"),
            Self::Passed { run_id, attempt } => format!("attempt {attempt} of run {run_id} passed"),
            Self::Declined { reason } => {
                format!("it was not run again at the provider: {reason}")
            }
        })
    }
}

impl Snapshot {
    /// What is known of running the failed job again at the provider.
    pub fn rerun(&self) -> Rerun<'_> {
        if let Some((run_id, attempt)) = self.success() {
            return Rerun::Passed { run_id, attempt };
        }
        let again = self
            .facts
            .iter()
            .rev()
            .find_map(|recorded| match &recorded.fact {
                Fact::Recurred {
                    run_id, attempt, ..
                } => Some(Rerun::FailedAgain {
                    run_id: *run_id,
                    attempt: *attempt,
                }),
                _ => None,
            });
        let asked = || {
            self.facts.iter().find_map(|recorded| match &recorded.fact {
                Fact::RerunAsked { run_id, attempt } => Some(Rerun::Awaited {
                    run_id: *run_id,
                    attempt: *attempt,
                    until: recorded.at.plus_seconds(PATIENCE),
                }),
                Fact::RerunDeclined { reason } => Some(Rerun::Declined { reason }),
                _ => None,
            })
        };
        // Break it: leave the repetition out; a run that goes on failing is then run again without an end, once for each
        // incident that its attempts open (`incident::flake::a_repetition_is_never_repeated`).
        let repetition = || {
            (self.failure.attempt > 1).then_some(Rerun::Repetition {
                run_id: self.failure.run_id,
                attempt: self.failure.attempt,
            })
        };
        again
            .or_else(asked)
            .or_else(repetition)
            .unwrap_or(Rerun::Open)
    }

    /// What came of running the failed job again, as [`Rerun::in_words`] says it; none when that never was a question.
    pub fn rerun_in_words(&self, now: Millis) -> Option<String> {
        match self.rerun() {
            Rerun::Open | Rerun::Repetition { .. } => None,
            Rerun::Passed { run_id, .. } if self.failed_attempts(run_id).is_empty() => None,
            rerun => rerun.in_words(now),
        }
    }

    /// Run and attempt of the success that was observed.
    fn success(&self) -> Option<(u64, u64)> {
        self.facts.iter().find_map(|recorded| match recorded.fact {
            Fact::Recovered { run_id, attempt } => Some((run_id, attempt)),
            _ => None,
        })
    }

    /// The attempts of a run in which the job is known to have failed, in order.
    pub fn failed_attempts(&self, run: u64) -> Vec<u64> {
        let first = (self.failure.run_id, self.failure.attempt);
        let again = self
            .facts
            .iter()
            .filter_map(|recorded| match recorded.fact {
                Fact::Recurred {
                    run_id, attempt, ..
                } => Some((run_id, attempt)),
                _ => None,
            });
        let mut attempts: Vec<u64> = std::iter::once(first)
            .chain(again)
            .filter(|(failed, _)| *failed == run)
            .map(|(_, attempt)| attempt)
            .collect();
        attempts.sort_unstable();
        attempts.dedup();
        attempts
    }

    /// Whether a further failure of the same job tells something: another attempt of a run that failed, or an answer to the
    /// question of whether it fails again. Every other one is history only: a fact makes the worker begin its step anew, and
    /// on a branch that keeps failing no step would ever end.
    pub fn learns_from(&self, failure: &Failure) -> bool {
        let failed = self.failed_attempts(failure.run_id);
        let another = failed.last().is_some_and(|last| *last < failure.attempt);
        let (first, further) = (self.failure.run_id, failure.run_id);
        let awaited = matches!(self.rerun(), Rerun::Awaited { .. }) && further > first;
        self.landed().is_none() && self.closed().is_none() && (another || awaited)
    }

    /// Why the failure is flaky, in words and with counts; none when nothing says so.
    pub fn flake(&self) -> Option<String> {
        self.flake_at_the_provider()
            .or_else(|| self.flake_in_the_sandbox())
    }

    fn flake_at_the_provider(&self) -> Option<String> {
        // An endpoint or a silent workflow that comes back is no test that passes by chance.
        if !self.failure.kind.may_be_code() {
            return None;
        }
        let (run, passed) = self.success()?;
        let mut failed = self.failed_attempts(run);
        failed.retain(|attempt| *attempt < passed);
        if failed.is_empty() {
            return None;
        }
        Some(format!(
            "failed in {}, passed in attempt {passed} of run {run} at the same commit",
            attempts(&failed)
        ))
    }

    fn flake_in_the_sandbox(&self) -> Option<String> {
        let Some(Reproduction::Flaky {
            command,
            passed,
            failed,
            ..
        }) = self.reproduction()
        else {
            return None;
        };
        Some(format!(
            "{} failed in {} and passed in {} at the failing commit in the sandbox",
            command.join(" "),
            runs(*failed),
            runs(*passed)
        ))
    }
}

/// `attempt 1`, `attempts 1 and 2`, `attempts 1, 2 and 3`.
fn attempts(numbers: &[u64]) -> String {
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    match words.split_last() {
        Some((last, [])) => format!("attempt {last}"),
        Some((last, before)) => format!("attempts {} and {last}", before.join(", ")),
        None => String::new(),
    }
}

fn runs(count: u32) -> String {
    match count {
        1 => "1 run".to_owned(),
        count => format!("{count} runs"),
    }
}
