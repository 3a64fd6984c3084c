//! Rate limits, counted for each credential.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use super::locked;

const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;
/// Seconds that a client is told to wait where nothing else follows from the limit.
const PAUSE: u64 = 60;

/// What a credential may ask for. `None`: as much as it likes. An answer 304 costs nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests in an hour that begins with the first of them: the primary limit.
    pub primary_per_hour: Option<u64>,
    /// Points in any minute: 1 for a reading request, 5 for every other. A secondary limit, like all that follow.
    pub points_per_minute: Option<u64>,
    /// Pull requests, comments and merges in any minute.
    pub content_per_minute: Option<u64>,
    /// The same in any hour.
    pub content_per_hour: Option<u64>,
    /// Requests at the same time.
    pub concurrent: Option<u64>,
    /// The status of refusals: GitHub says 403 or 429.
    pub status: u16,
    /// Whether refusals by a secondary limit say in `retry-after` how long to wait; GitHub does not always.
    pub retry_after: bool,
}

impl Default for Limits {
    /// None at all; refusals would be 403 with `retry-after`.
    fn default() -> Self {
        Self {
            primary_per_hour: None,
            points_per_minute: None,
            content_per_minute: None,
            content_per_hour: None,
            concurrent: None,
            status: 403,
            retry_after: true,
        }
    }
}

/// Which limit refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    Primary,
    /// Too fast or too many at once; so many seconds help.
    Secondary(u64),
    /// Too much content; so many seconds help.
    Content(u64),
}

/// Where a credential stands with the primary limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) limit: u64,
    pub(crate) used: u64,
    /// When it begins anew, in seconds since 1970.
    pub(crate) reset: u64,
}

/// What one request costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) points: u64,
    pub(crate) content: bool,
}

/// What one credential has used.
#[derive(Default)]
struct Account {
    /// When the hour of the primary limit began.
    began: u64,
    used: u64,
    /// Times and points of the last minute.
    points: VecDeque<(u64, u64)>,
    /// Times of the last hour.
    content: VecDeque<u64>,
}

/// The counters of all credentials.
#[derive(Default)]
pub(crate) struct Meter {
    limits: Mutex<Limits>,
    accounts: Mutex<HashMap<String, Account>>,
    under_way: Arc<Mutex<HashMap<String, u64>>>,
}

/// A request under way; it ends when this is dropped.
pub(crate) struct UnderWay {
    credential: String,
    counts: Arc<Mutex<HashMap<String, u64>>>,
    /// How many the credential had under way then, with this one.
    pub(crate) together: u64,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut counts = locked(&self.counts);
        if let Some(count) = counts.get_mut(&self.credential) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.credential);
            }
        }
    }
}

impl Meter {
    pub(crate) fn set(&self, limits: Limits) {
        *locked(&self.limits) = limits;
        locked(&self.accounts).clear();
    }

    pub(crate) fn limits(&self) -> Limits {
        locked(&self.limits).clone()
    }

    /// Whether anything is counted, so that the clock is to be looked at.
    pub(crate) fn counts(&self) -> bool {
        let limits = locked(&self.limits);
        limits.primary_per_hour.is_some()
            || limits.points_per_minute.is_some()
            || limits.content_per_minute.is_some()
            || limits.content_per_hour.is_some()
    }

    /// A request of this credential begins.
    pub(crate) fn enter(&self, credential: &str) -> UnderWay {
        let mut counts = locked(&self.under_way);
        let count = counts.entry(credential.to_owned()).or_default();
        *count += 1;
        UnderWay {
            credential: credential.to_owned(),
            together: *count,
            counts: Arc::clone(&self.under_way),
        }
    }

    /// Takes the cost from the credential's account, or says which limit forbids that.
    pub(crate) fn charge(&self, credential: &str, cost: Cost, now: u64) -> Result<(), Excess> {
        let limits = self.limits();
        let mut accounts = locked(&self.accounts);
        let account = accounts.entry(credential.to_owned()).or_default();
        account.forget(now);
        if limits
            .primary_per_hour
            .is_some_and(|limit| account.used >= limit)
        {
            return Err(Excess::Primary);
        }
        let spent: u64 = account.points.iter().map(|(_, points)| points).sum();
        if limits
            .points_per_minute
            .is_some_and(|limit| spent + cost.points > limit)
        {
            let oldest = account.points.front().map_or(now, |(at, _)| *at);
            return Err(Excess::Secondary(
                (oldest + MINUTE).saturating_sub(now).max(1),
            ));
        }
        if cost.content {
            account.content_allowed(&limits, now)?;
            account.content.push_back(now);
        }
        account.used += 1;
        account.points.push_back((now, cost.points));
        Ok(())
    }

    /// Gives the cost of a reading request back, since its answer is 304.
    pub(crate) fn refund(&self, credential: &str) {
        if let Some(account) = locked(&self.accounts).get_mut(credential) {
            account.used = account.used.saturating_sub(1);
            account.points.pop_back();
        }
    }

    /// Where the credential stands, if there is a primary limit.
    pub(crate) fn standing(&self, credential: &str, now: u64) -> Option<Standing> {
        let limit = self.limits().primary_per_hour?;
        let mut accounts = locked(&self.accounts);
        let account = accounts.entry(credential.to_owned()).or_default();
        account.forget(now);
        Some(Standing {
            limit,
            used: account.used,
            reset: account.began + HOUR,
        })
    }
}

impl Account {
    /// Forgets what lies further back than any limit looks.
    fn forget(&mut self, now: u64) {
        if self.began == 0 || now >= self.began + HOUR {
            self.began = now;
            self.used = 0;
        }
        while self
            .points
            .front()
            .is_some_and(|(at, _)| at + MINUTE <= now)
        {
            self.points.pop_front();
        }
        while self.content.front().is_some_and(|at| at + HOUR <= now) {
            self.content.pop_front();
        }
    }

    fn content_allowed(&self, limits: &Limits, now: u64) -> Result<(), Excess> {
        let within = |span: u64| self.content.iter().filter(|at| **at + span > now).count() as u64;
        let spans = [
            (limits.content_per_minute, MINUTE),
            (limits.content_per_hour, HOUR),
        ];
        for (limit, span) in spans {
            if limit.is_some_and(|limit| within(span) >= limit) {
                return Err(Excess::Content(PAUSE));
            }
        }
        Ok(())
    }
}
