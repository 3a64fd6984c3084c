//! The provider: whether it answers, and whether its clock agrees with this machine's.

use std::time::Duration;

use super::Finding;
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::config::Github;
use crate::connector::github::reach;

/// How long the provider may take.
const WITHIN: Duration = Duration::from_secs(10);
/// How far the two clocks may be apart, in milliseconds. An app's signed requests are refused beyond a minute.
const TOLERANCE_MILLIS: i64 = 60_000;

/// `needed`: there are projects that cannot be watched without it.
pub(super) async fn look(github: &Github, needed: bool) -> Vec<Finding> {
    const CHECK: &str = "provider";
    let address = github.api_url.as_str();
    let before = SystemClock.now();
    let reached = reach(address, WITHIN).await;
    let after = SystemClock.now();
    match reached {
        Ok(told) => {
            let mut findings = vec![Finding::ok(CHECK, format!("{address} answers"))];
            findings.extend(told.map(|told| clock(before, told, after)));
            findings
        }
        Err(reason) => {
            let found = format!(
                "{address} does not answer: {reason}; check the network and github.api_url"
            );
            vec![if needed {
                Finding::failed(CHECK, found)
            } else {
                Finding::warning(CHECK, found)
            }]
        }
    }
}

/// Compares what the provider said the time is, to the second, with what this machine's clock showed before and after.
fn clock(before: Millis, told: Millis, after: Millis) -> Finding {
    const CHECK: &str = "provider clock";
    let ahead = before.0.saturating_sub(told.plus_seconds(1).0);
    let behind = told.0.saturating_sub(after.0);
    let (apart, which) = if ahead >= behind {
        (ahead, "ahead of")
    } else {
        (behind, "behind")
    };
    if apart > TOLERANCE_MILLIS {
        Finding::warning(
            CHECK,
            format!(
                "this machine's clock is {} s {which} the provider's; set it (for example with an NTP service): ages, limits and an app's requests depend on it",
                apart / 1000
            ),
        )
    } else {
        Finding::ok(CHECK, "agrees with this machine's to a minute")
    }
}

#[cfg(test)]
mod tests {
    use super::clock;
    use crate::cli::doctor::State;
    use crate::clock::Millis;

    #[test]
    fn a_clock_that_is_wrong_by_more_than_a_minute_is_told_either_way() {
        let found = |machine: i64| {
            let now = Millis(machine);
            let finding = clock(now, Millis(1_000_000), now);
            (finding.state, finding.found)
        };
        assert_eq!(found(1_000_000).0, State::Ok);
        assert_eq!(found(1_060_000).0, State::Ok);
        assert_eq!(found(940_000).0, State::Ok);
        let (state, text) = found(1_121_000);
        assert!(
            state == State::Warning && text.contains("120 s ahead of"),
            "{text}"
        );
        let (state, text) = found(900_000);
        assert!(
            state == State::Warning && text.contains("100 s behind"),
            "{text}"
        );
    }
}
