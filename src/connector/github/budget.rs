//! How much one credential may still ask of the provider, decided before anything is sent.
//!
//! The provider counts three things: requests in an hour (it tells how many are left), points in a minute (a read costs one, a
//! change five), and things that people are notified of, in a minute and in an hour. Whoever goes on asking at a limit may be
//! locked out, so that one answer that is a limit stops everything that uses the credential.

use std::collections::VecDeque;

use http::Method;

use super::credential::Use;
use crate::clock::Millis;

/// Points that a credential may spend in any minute.
pub const POINTS_PER_MINUTE: u32 = 900;
/// Things that people are notified of, in any minute.
pub const CONTENT_PER_MINUTE: u32 = 80;
/// The same in any hour.
pub const CONTENT_PER_HOUR: u32 = 500;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
/// How long to wait at the first limit that does not say how long, in seconds; each next one doubles it.
const UNSTATED_WAIT: i64 = 60;
/// The longest wait that is not asked for by the provider, in seconds.
const LONGEST_UNSTATED_WAIT: i64 = 60 * 60;
/// How far the clock must be behind what it has shown before to have been moved back, in milliseconds: requests that are weighed at
/// the same time may come in any order.
const MOVED_BACK: i64 = 1_000;

/// What a request costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Points of the allowance per minute.
    pub points: u32,
    /// Whether it makes something that people are notified of.
    pub content: bool,
}

impl Cost {
    /// What a request with this method costs. Not every `POST` notifies somebody; counting all of them errs on the safe side.
    pub fn of(method: &Method) -> Self {
        let read = *method == Method::GET;
        Self {
            points: if read { 1 } else { 5 },
            content: matches!(*method, Method::POST | Method::PUT),
        }
    }
}

/// Whether a request may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// It may, and is booked: what becomes of it is to be told with this ticket.
    Go(Ticket),
    /// Not before then.
    Wait(Wait),
}

/// When something may be sent again, and why not before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// When.
    pub until: Millis,
    /// Why, in words.
    pub why: String,
}

/// A request that was booked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    booked_at: Millis,
    cost: Cost,
}

/// What an answer says of the limits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heard {
    /// Requests an hour.
    pub limit: Option<u64>,
    /// How many of them are left.
    pub remaining: Option<u64>,
    /// When the hour ends.
    pub resets_at: Option<Millis>,
    /// The answer was "not modified", which costs nothing.
    pub unchanged: bool,
    /// The answer was the one hoped for.
    pub success: bool,
    /// The answer was a limit.
    pub limited: Option<Limited>,
}

/// An answer that is a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limited {
    /// When to come back, where it says so.
    pub until: Option<Millis>,
    /// Which limit, in words.
    pub why: String,
}

/// What is left, for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// Requests an hour, when the provider says.
    pub limit: Option<u64>,
    /// How many of them are left.
    pub remaining: Option<u64>,
    /// When the hour ends.
    pub resets_at: Option<Millis>,
    /// Nothing is watched with this credential before then.
    pub paused: Option<Wait>,
}

/// Everything that was spent in the last while.
#[derive(Debug)]
struct Window {
    /// How long an entry counts, in milliseconds.
    span: i64,
    spent: VecDeque<(Millis, u32)>,
    total: u32,
}

impl Window {
    const fn new(span: i64) -> Self {
        Self {
            span,
            spent: VecDeque::new(),
            total: 0,
        }
    }

    fn forget(&mut self, now: Millis) {
        while let Some((at, amount)) = self.spent.front().copied() {
            if at.plus_millis(self.span) > now {
                return;
            }
            self.total = self.total.saturating_sub(amount);
            self.spent.pop_front();
        }
    }

    /// When there is room for `amount` below `cap`; none when there is room now.
    fn room_at(&self, amount: u32, cap: u32) -> Option<Millis> {
        let mut left = self.total;
        if left.saturating_add(amount) <= cap {
            return None;
        }
        for (at, spent) in &self.spent {
            left = left.saturating_sub(*spent);
            if left.saturating_add(amount) <= cap {
                return Some(at.plus_millis(self.span));
            }
        }
        // More than the cap by itself, which no request is.
        self.spent.back().map(|(at, _)| at.plus_millis(self.span))
    }

    fn book(&mut self, now: Millis, amount: u32) {
        self.total = self.total.saturating_add(amount);
        match self.spent.back_mut() {
            Some((at, spent)) if *at == now => *spent = spent.saturating_add(amount),
            _ => self.spent.push_back((now, amount)),
        }
    }

    fn move_back(&mut self, by: i64) {
        for (at, _) in &mut self.spent {
            *at = at.plus_millis(-by);
        }
    }

    fn give_back(&mut self, booked_at: Millis, amount: u32) {
        let booked = self.spent.iter_mut().rev().find(|(at, _)| *at == booked_at);
        if let Some((_, spent)) = booked {
            let given = amount.min(*spent);
            *spent -= given;
            self.total = self.total.saturating_sub(given);
        }
    }
}

/// What the provider said of its hour.
#[derive(Debug, Clone, Copy)]
struct Hour {
    limit: u64,
    /// As far as is known: what was sent since is taken off.
    remaining: u64,
    resets_at: Millis,
}

/// The budget of one credential. Pure: time is told to it, and it sends nothing.
#[derive(Debug)]
pub struct Budget {
    hour: Option<Hour>,
    points: Window,
    content_in_minute: Window,
    content_in_hour: Window,
    pause: Option<Wait>,
    /// Limits met in a row.
    strikes: u32,
    /// Requests whose answers are not known yet.
    under_way: u64,
    /// The latest moment that the clock has shown since it was last moved back.
    latest: Millis,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            hour: None,
            points: Window::new(MINUTE),
            content_in_minute: Window::new(MINUTE),
            content_in_hour: Window::new(HOUR),
            pause: None,
            strikes: 0,
            under_way: 0,
            latest: Millis(i64::MIN),
        }
    }
}

impl Budget {
    /// Whether a request may be sent now; if so, it is booked.
    pub fn admit(&mut self, now: Millis, task: Use, cost: Cost) -> Admission {
        self.follow(now);
        self.points.forget(now);
        self.content_in_minute.forget(now);
        self.content_in_hour.forget(now);
        let waits = [
            self.paused(now),
            self.hour_is_spent(now, task),
            self.minute_is_spent(task, cost),
            self.content_is_spent(cost),
        ];
        // The latest decides: whoever comes back at an earlier one would be sent away again.
        // Break it: leave one of them out; `connector::budget::admitted_is_never_more_than_allowed_in_any_window` then fails,
        // for the hour `connector::budget::what_is_left_is_kept_for_proposing_and_merging`.
        if let Some(wait) = waits.into_iter().flatten().max_by_key(|wait| wait.until) {
            return Admission::Wait(wait);
        }
        self.points.book(now, cost.points);
        if cost.content {
            self.content_in_minute.book(now, 1);
            self.content_in_hour.book(now, 1);
        }
        if let Some(hour) = &mut self.hour {
            hour.remaining = hour.remaining.saturating_sub(1);
        }
        self.under_way = self.under_way.saturating_add(1);
        Admission::Go(Ticket {
            booked_at: now,
            cost,
        })
    }

    /// Takes an answer in. When it is a limit, the wait that it makes is given back.
    pub fn answered(&mut self, now: Millis, ticket: Ticket, heard: &Heard) -> Option<Wait> {
        self.under_way = self.under_way.saturating_sub(1);
        self.follow(now);
        if heard.unchanged {
            self.points.give_back(ticket.booked_at, ticket.cost.points);
            if let Some(hour) = &mut self.hour {
                hour.remaining = hour.remaining.saturating_add(1).min(hour.limit);
            }
        }
        self.hear(now, heard);
        if let Some(limited) = &heard.limited {
            return Some(self.stop(now, limited));
        }
        if heard.success && self.paused(now).is_none() {
            self.strikes = 0;
            self.pause = None;
        }
        None
    }

    /// The answer never came. What was booked stays booked: the request may have arrived.
    pub fn unanswered(&mut self, _: Ticket) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// What is left.
    pub fn standing(&mut self, now: Millis) -> Standing {
        self.follow(now);
        let hour = self.hour.filter(|hour| hour.resets_at > now);
        Standing {
            limit: self.hour.map(|hour| hour.limit),
            remaining: hour.map(|hour| hour.remaining),
            resets_at: hour.map(|hour| hour.resets_at),
            paused: self
                .paused(now)
                .or_else(|| self.hour_is_spent(now, Use::Read)),
        }
    }

    /// When the clock was moved back, everything that is known moves with it: no limit lasts until the clock has caught up. How much
    /// time passed meanwhile is not known, so that none is taken off.
    fn follow(&mut self, now: Millis) {
        let back = self.latest.0.saturating_sub(now.0);
        if back <= MOVED_BACK {
            self.latest = self.latest.max(now);
            return;
        }
        // Break it: leave this out; a credential that met a limit then does nothing until the clock has caught up
        // (`connector::budget::a_clock_that_is_moved_back_makes_no_limit_longer`).
        let windows = [
            &mut self.points,
            &mut self.content_in_minute,
            &mut self.content_in_hour,
        ];
        for window in windows {
            window.move_back(back);
        }
        if let Some(hour) = &mut self.hour {
            hour.resets_at = hour.resets_at.plus_millis(-back);
        }
        if let Some(pause) = &mut self.pause {
            pause.until = pause.until.plus_millis(-back);
        }
        self.latest = now;
    }

    fn paused(&self, now: Millis) -> Option<Wait> {
        self.pause.clone().filter(|pause| pause.until > now)
    }

    fn hour_is_spent(&self, now: Millis, task: Use) -> Option<Wait> {
        let hour = self.hour.filter(|hour| hour.resets_at > now)?;
        let kept = hour.limit.saturating_mul(task.reserve()) / 100;
        (hour.remaining <= kept).then(|| Wait {
            until: hour.resets_at,
            why: format!(
                "{} of {} requests of this hour are left, of which {kept} are kept for proposing and merging",
                hour.remaining, hour.limit
            ),
        })
    }

    fn minute_is_spent(&self, task: Use, cost: Cost) -> Option<Wait> {
        let kept = u64::from(POINTS_PER_MINUTE).saturating_mul(task.reserve()) / 100;
        let cap = POINTS_PER_MINUTE.saturating_sub(u32::try_from(kept).unwrap_or(0));
        let until = self.points.room_at(cost.points, cap)?;
        Some(Wait {
            until,
            why: format!(
                "{} of {cap} points of this minute are spent",
                self.points.total
            ),
        })
    }

    fn content_is_spent(&self, cost: Cost) -> Option<Wait> {
        if !cost.content {
            return None;
        }
        let minute = self.content_in_minute.room_at(1, CONTENT_PER_MINUTE);
        let hour = self.content_in_hour.room_at(1, CONTENT_PER_HOUR);
        let until = minute.max(hour)?;
        Some(Wait {
            until,
            why: format!(
                "{} changes in this minute and {} in this hour, of {CONTENT_PER_MINUTE} and {CONTENT_PER_HOUR}",
                self.content_in_minute.total, self.content_in_hour.total
            ),
        })
    }

    fn hear(&mut self, now: Millis, heard: &Heard) {
        let (Some(limit), Some(remaining), Some(resets_at)) =
            (heard.limit, heard.remaining, heard.resets_at)
        else {
            return;
        };
        // An hour that is over says nothing. Nor is one believed that ends days from now: some servers send milliseconds.
        if resets_at <= now {
            return;
        }
        let resets_at = resets_at.min(now.plus_millis(HOUR));
        let known = self.hour.filter(|hour| hour.resets_at > now);
        let remaining = match known {
            // An answer that was overtaken by one of the next hour.
            Some(hour) if hour.resets_at > resets_at => return,
            Some(hour) if hour.resets_at == resets_at && self.under_way > 0 => {
                hour.remaining.min(remaining)
            }
            // What is under way is not in the provider's count yet, or is: the smaller number is the safe one.
            _ => remaining.saturating_sub(self.under_way),
        };
        self.hour = Some(Hour {
            limit,
            remaining,
            resets_at,
        });
    }

    /// One limit stops the credential. Those that were under way when the first one came are part of the same one.
    fn stop(&mut self, now: Millis, limited: &Limited) -> Wait {
        let before = self.paused(now);
        if before.is_none() {
            self.strikes = self.strikes.saturating_add(1);
        }
        let until = limited.until.unwrap_or_else(|| {
            let doublings = self.strikes.saturating_sub(1).min(6);
            let seconds = (UNSTATED_WAIT << doublings).min(LONGEST_UNSTATED_WAIT);
            now.plus_seconds(seconds)
        });
        let wait = match before {
            Some(before) if before.until >= until => before,
            _ => Wait {
                until,
                why: limited.why.clone(),
            },
        };
        self.pause = Some(wait.clone());
        wait
    }
}
