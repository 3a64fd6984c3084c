//! Health endpoints: what may be asked, what an answer means, when an outage is one, and who hears of it.

use caretaker::clock::Millis;
use caretaker::config::{HealthCheck, health_checks};

mod address;
mod checks;
mod command;
mod judging;
mod probing;
mod reach;
mod server;
mod state;
mod story;
mod tls;

/// The moment at which every story begins.
const NOW: Millis = Millis(1_800_000_000_000);

fn after(seconds: i64) -> Millis {
    NOW.plus_seconds(seconds)
}

/// One check from its JSON.
fn check(text: &str) -> HealthCheck {
    let checks = health_checks(format!("[{text}]").as_bytes(), "test");
    checks.unwrap().into_iter().next().unwrap()
}
