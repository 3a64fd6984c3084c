//! Whether the targets of the self-check answer.

use std::time::Duration;

use super::Finding;
use crate::cli::assembly;
use crate::config::Configuration;
use crate::probe::Probe as _;

const WITHIN: Duration = Duration::from_secs(5);

/// Asks every target that is configured; nothing to say when none is.
pub(super) async fn self_check(configuration: &Configuration) -> Option<Finding> {
    const CHECK: &str = "self-check";
    let targets = &configuration.health.self_check;
    if targets.is_empty() {
        return None;
    }
    let probe = match assembly::probe(configuration) {
        Ok(probe) => probe,
        Err(error) => return Some(Finding::failed(CHECK, error.to_string())),
    };
    let mut silent = Vec::new();
    for target in targets {
        if !probe.reaches(target.url(), WITHIN).await {
            silent.push(target.to_string());
        }
    }
    let count = targets.len();
    Some(if silent.is_empty() && count == 1 {
        Finding::warning(
            CHECK,
            "the one target answers; name a second one that has nothing to do with it under health_self_check, or its outage counts as ours",
        )
    } else if silent.is_empty() {
        Finding::ok(CHECK, format!("all {count} targets answer"))
    } else if silent.len() == count {
        Finding::warning(
            CHECK,
            format!(
                "no target answers ({}): a health check that fails counts for nothing while that is so; check the network, or name others under health_self_check",
                silent.join(", ")
            ),
        )
    } else {
        Finding::warning(
            CHECK,
            format!(
                "no answer from {}; name another under health_self_check",
                silent.join(", ")
            ),
        )
    })
}
