//! How long a service is waited for, and how often it is asked again.

use std::time::Duration;

use crate::clock::Millis;

/// The patience that one call has, its repetitions included. The default is for embedders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// All of it, from the first byte of the first request to the last byte of the last answer.
    pub deadline: Duration,
    /// One request and its answer.
    pub attempt: Duration,
    /// Requests at most.
    pub attempts: u32,
    /// The longest pause before the second request; it doubles from request to request.
    pub first_pause: Duration,
    /// The longest pause before any.
    pub longest_pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(20),
            attempt: Duration::from_secs(8),
            attempts: 4,
            first_pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(4),
        }
    }
}

impl Patience {
    /// How long to wait before the next request, after `asked` of them (at least one), with `left` of the deadline: full jitter by
    /// `random`, and not less than the server asked for. `None` when there is no point in waiting.
    pub fn pause(
        &self,
        asked: u32,
        server: Duration,
        left: Duration,
        random: u64,
    ) -> Option<Duration> {
        // Break it: leave the bound out; a provider that is down is then asked until the deadline
        // (`embedder::patience::requests_are_bounded_in_number_and_time`).
        if asked >= self.attempts {
            return None;
        }
        let doubled = 1_u32
            .checked_shl(asked.saturating_sub(1))
            .unwrap_or(u32::MAX);
        let ceiling = self
            .first_pause
            .saturating_mul(doubled)
            .min(self.longest_pause);
        let span = u64::try_from(ceiling.as_micros()).unwrap_or(u64::MAX);
        let jitter = Duration::from_micros(random % span.saturating_add(1).max(1));
        // Break it: take the jitter alone (`embedder::patience::a_server_that_says_when_is_not_asked_before`).
        let pause = jitter.max(server);
        // Waiting only to have no time left for the request helps nobody.
        (pause < left).then_some(pause)
    }
}

/// What `Retry-After` says (RFC 9110, 10.2.3): seconds, or a date. What it does not say so is not there.
pub fn retry_after(value: &str, now: Millis) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(value)
        .ok()?;
    let after = date.as_millisecond().saturating_sub(now.0);
    Some(Duration::from_millis(u64::try_from(after).unwrap_or(0)))
}
