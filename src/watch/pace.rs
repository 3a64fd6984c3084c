//! When a project is looked at next: a pure decision.

use crate::clock::Millis;
use crate::config::{Poll, PollSchedule};
use crate::connector::Condition;

/// The longest pause between two looks at a provider that does not answer, in seconds.
const LONGEST_BACKOFF: i64 = 600;
/// The pause while a person has to do something first, in seconds.
const WAITING_FOR_A_PERSON: i64 = 600;
/// The most by which chance delays a moment of a schedule, in milliseconds.
const SCHEDULE_JITTER: i64 = 5_000;
/// Requests that may be sent at once after a quiet time.
const BURST: i64 = 40;

/// What a look showed, as far as the next one depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// Something runs, or is not understood yet.
    pub busy: bool,
    /// How the repository can be reached.
    pub condition: Condition,
    /// Looks in a row that failed for the moment.
    pub failures: u32,
    /// The provider asks to wait until then.
    pub until: Option<Millis>,
}

/// When the next look is due. `own` is the project's schedule, `chance` any number.
pub fn next_look(
    poll: &Poll,
    own: Option<&PollSchedule>,
    shown: Shown,
    now: Millis,
    chance: u32,
) -> Millis {
    let spread = |length: i64| length.max(0) * i64::from(chance) / i64::from(u32::MAX);
    if let Some(until) = shown.until {
        // All projects of a credential wait for the same moment; they must not all come at once.
        return until.max(now).plus_millis(spread(10_000));
    }
    let quiet = i64::from(poll.quiet_seconds);
    let seconds = match shown.condition {
        Condition::Fine | Condition::Renamed | Condition::Transferred => {
            if let Some(next) = scheduled(own.or(poll.schedule.as_ref()), now, &spread) {
                return next;
            }
            if shown.busy {
                i64::from(poll.busy_seconds).min(quiet)
            } else {
                quiet
            }
        }
        Condition::Unreachable | Condition::Failing | Condition::Limited => {
            let doublings = shown.failures.saturating_sub(1).min(10);
            (quiet << doublings).min(LONGEST_BACKOFF.max(quiet))
        }
        Condition::CredentialRefused
        | Condition::PermissionMissing
        | Condition::Archived
        | Condition::Disabled
        | Condition::Absent => WAITING_FOR_A_PERSON.max(quiet),
    };
    // Up to a tenth earlier, so that projects that started together drift apart and none is later than its pace.
    let length = seconds.saturating_mul(1000);
    now.plus_millis(length - spread(length / 10))
}

/// The schedule's next moment, delayed by at most a tenth of the gap that follows it.
fn scheduled(
    schedule: Option<&PollSchedule>,
    now: Millis,
    spread: &impl Fn(i64) -> i64,
) -> Option<Millis> {
    let schedule = schedule?;
    // A schedule that never comes again: not in this year.
    let Some(next) = schedule.next_after(now) else {
        return Some(now.plus_seconds(365 * 24 * 3600));
    };
    let gap = schedule
        .next_after(next)
        .map_or(0, |after| after.0 - next.0);
    Some(next.plus_millis(spread((gap / 10).min(SCHEDULE_JITTER))))
}

/// How many requests a project may still send: a bucket that fills at the configured pace.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// Thousandths of a request.
    left: i64,
    at: Millis,
}

impl Allowance {
    /// A full one.
    pub const fn full(now: Millis) -> Self {
        Self {
            left: BURST * 1000,
            at: now,
        }
    }

    /// Takes requests that were sent. More than there were are a debt.
    pub fn spend(&mut self, poll: &Poll, requests: u64, now: Millis) {
        let elapsed = now.0.saturating_sub(self.at.0).max(0);
        let filled = elapsed.saturating_mul(i64::from(poll.requests_per_hour)) / 3600;
        let requests = i64::try_from(requests).unwrap_or(i64::MAX);
        self.left = self
            .left
            .saturating_add(filled)
            .min(BURST * 1000)
            .saturating_sub(requests.saturating_mul(1000));
        self.at = now;
    }

    /// When there is a request left again.
    pub fn ready_at(&self, poll: &Poll) -> Millis {
        if self.left >= 1000 {
            return self.at;
        }
        let missing = 1000 - self.left;
        let per_hour = i64::from(poll.requests_per_hour.max(1));
        self.at
            .plus_millis(missing.saturating_mul(3600) / per_hour + 1)
    }
}
