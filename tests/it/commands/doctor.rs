//! `caretaker doctor` looks at the database that is there.

use caretaker::attest::keys::FillError;
use caretaker::config::{Configuration, Environment};
use caretaker::signer;

use super::*;

/// What doctor says of one check, with its state.
fn found(desk: &Desk, check: &str) -> Option<(String, String)> {
    let ran = desk.run(&["doctor", "--json", "--offline"]);
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let checks = document["checks"].as_array().unwrap();
    let one = checks.iter().find(|one| one["check"] == check)?;
    let text = |member: &str| one[member].as_str().unwrap().to_owned();
    Some((text("state"), text("found")))
}

fn create_keys(desk: &Desk) {
    let home = desk.home().display().to_string();
    let environment = Environment::new([("CARETAKER_HOME", home)], desk.folder.path());
    let configuration = Configuration::load(None, &environment).unwrap();
    let mut count = 0_u8;
    let mut fill = |buffer: &mut [u8]| -> Result<(), FillError> {
        count += 1;
        buffer.fill(count);
        Ok(())
    };
    let now = SystemClock.now();
    signer::create(&configuration, &environment, None, now, &mut fill).unwrap();
}

#[tokio::test]
async fn a_database_that_can_be_used_is_fine_and_so_is_its_clock() {
    let desk = Desk::new().await;
    create_keys(&desk);
    let (state, text) = found(&desk, "database").unwrap();
    let organisation = desk.project.organisation.as_str();
    assert_eq!(state, "ok");
    assert!(
        text.contains("caretaker.db") && text.ends_with(organisation),
        "{text}"
    );
    assert_eq!(found(&desk, "clock").unwrap().0, "ok");
}

#[tokio::test]
async fn a_file_that_is_no_database_fails_with_the_mend() {
    let desk = Desk::new().await;
    desk.store.close().await;
    std::fs::write(desk.home().join("caretaker.db"), "not a database at all").unwrap();
    let (state, text) = found(&desk, "database").unwrap();
    assert_eq!(state, "failed");
    assert!(text.contains("restore it from a backup"), "{text}");
    assert_eq!(found(&desk, "clock"), None);
    assert_eq!(desk.run(&["doctor", "--offline"]).code, Some(1));
}
