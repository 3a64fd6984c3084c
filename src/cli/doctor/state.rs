//! Where state lies: the configuration, the home, the database.

use std::os::unix::fs::PermissionsExt as _;

use super::Finding;
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::config::Configuration;
use crate::store::{Store, StoreError};

pub(super) fn configuration(configuration: &Configuration) -> Vec<Finding> {
    let read = configuration.file.as_ref().map_or_else(
        || "no file, everything is at its default".to_owned(),
        |file| file.display().to_string(),
    );
    let mut findings = vec![Finding::ok("configuration", read), home(configuration)];
    findings.extend(schedule(configuration, SystemClock.now()));
    findings
}

/// A schedule that does not come any more, so that nothing is looked at.
fn schedule(configuration: &Configuration, now: Millis) -> Option<Finding> {
    let passed = configuration
        .poll
        .schedule
        .as_ref()?
        .comes_after(now)
        .err()?;
    let found = format!("poll.schedule: {passed}; until then no project is looked at by it");
    Some(Finding::failed("schedule", found))
}

fn home(configuration: &Configuration) -> Finding {
    const CHECK: &str = "home";
    let path = configuration.home.display();
    match std::fs::metadata(&configuration.home) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::ok(CHECK, format!("{path}, not there yet"))
        }
        Err(error) => Finding::failed(
            CHECK,
            format!("{path}: {error}; set CARETAKER_HOME to a folder that this user may write"),
        ),
        Ok(metadata) if !metadata.is_dir() => Finding::failed(
            CHECK,
            format!("{path} is no folder; set CARETAKER_HOME to a folder of its own"),
        ),
        Ok(metadata) if metadata.permissions().mode() & 0o022 != 0 => Finding::warning(
            CHECK,
            format!("others may write into {path}; run: chmod go-w '{path}'"),
        ),
        Ok(_) => Finding::ok(CHECK, path.to_string()),
    }
}

/// How far the database's clock may be from this machine's, in milliseconds.
const TOLERANCE_MILLIS: i64 = 5_000;

/// Whether the database can be used, and whether its clock agrees with this machine's.
pub(super) async fn database(configuration: &Configuration) -> Vec<Finding> {
    const CHECK: &str = "database";
    let place = &configuration.database;
    let store = match Store::open_existing(place.secret()).await {
        Ok(store) => store,
        Err(StoreError::Missing { .. }) => {
            let found = format!("{place} is not there yet; `caretaker project register` makes it");
            return vec![Finding::warning(CHECK, found)];
        }
        Err(error) => return vec![Finding::failed(CHECK, error.to_string())],
    };
    let before = SystemClock.now();
    let read = store.now().await;
    let after = SystemClock.now();
    match (read, store.organisation().await) {
        (Ok(now), Ok(organisation)) => {
            let holds = organisation.map_or("no organisation yet".to_owned(), |organisation| {
                organisation.to_string()
            });
            let found = format!("{}, holds {holds}", store.place());
            vec![Finding::ok(CHECK, found), clock(before, now, after)]
        }
        (Err(error), _) | (_, Err(error)) => vec![Finding::failed(CHECK, error.to_string())],
    }
}

/// Compares what the database said the time is with what this machine's clock showed before and after.
fn clock(before: Millis, database: Millis, after: Millis) -> Finding {
    const CHECK: &str = "clock";
    let (ahead, behind) = (database.0 - after.0, before.0 - database.0);
    let off = ahead.max(behind);
    if off <= TOLERANCE_MILLIS {
        return Finding::ok(CHECK, "the database's clock agrees with this machine's");
    }
    let side = if ahead > behind { "ahead of" } else { "behind" };
    Finding::warning(
        CHECK,
        format!(
            "the database's clock is {} s {side} this machine's; set both by one time service, since leases and the end of an approval are counted by the database's",
            off / 1_000
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::{Finding, Millis, clock};

    #[test]
    fn clocks_may_differ_by_five_seconds_and_by_the_time_of_the_question() {
        let read = |database| {
            let Finding { state, found, .. } =
                clock(Millis(100_000), Millis(database), Millis(102_000));
            (state == State::Ok, found)
        };
        assert!(read(95_000).0 && read(101_000).0 && read(107_000).0);
        let (agrees, found) = read(94_999);
        assert!(!agrees && found.contains("5 s behind"), "{found}");
        let (agrees, found) = read(172_000);
        assert!(!agrees && found.contains("70 s ahead of"), "{found}");
    }
}
