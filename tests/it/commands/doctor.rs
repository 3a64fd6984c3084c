//! `caretaker doctor` looks at the database that is there.

use caretaker::attest::keys::FillError;
use caretaker::config::{Configuration, Environment};
use caretaker::connector::{Condition, Usage};
use caretaker::signer;
use caretaker::store::Looked;
use sqlx::{AnyConnection, Connection as _};

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

/// What doctor says of one check of the project, with its state.
fn found_of_project(desk: &Desk, check: &str) -> Option<(String, String)> {
    let ran = desk.run(&["doctor", "--json", "--offline"]);
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let checks = document["projects"][0]["checks"].as_array().unwrap();
    let one = checks.iter().find(|one| one["check"] == check)?;
    let text = |member: &str| one[member].as_str().unwrap().to_owned();
    Some((text("state"), text("found")))
}

#[tokio::test]
async fn a_look_that_is_still_to_come_is_said_to_be_the_clocks_fault() {
    let desk = Desk::new().await;
    let now = desk.store.now().await.unwrap();
    // Clocks of machines differ by some seconds; by a day, one was moved.
    for (seconds, told) in [(20, false), (86_400, true)] {
        let looks = desk.store.take_looks("watch", now.plus_seconds(2), 9).await;
        let looks = looks.unwrap();
        let at = now.plus_seconds(seconds);
        let looked = Looked {
            began: at,
            now: at,
            next_at: now,
            answered: true,
            condition: Condition::Fine,
            detail: None,
            mend: None,
            lag: None,
            requests: 1,
            unchanged: 0,
            budget: Usage::default(),
        };
        let looked = [(looks[0].clone(), looked)];
        desk.store.looked("watch", &looked).await.unwrap();
        let found = found_of_project(&desk, "clock");
        assert_eq!(found.is_some(), told, "{seconds}: {found:?}");
        if let Some((state, text)) = found {
            assert_eq!(state, "warning");
            assert!(
                text.contains(&at.to_string()) && text.contains("clock was moved back"),
                "{text}"
            );
        }
        desk.store.look_at_all(now).await.unwrap();
    }
}

#[tokio::test]
async fn a_schedule_that_has_passed_is_said() {
    let desk = Desk::new().await;
    assert_eq!(found_of_project(&desk, "schedule"), None);
    let url = format!("sqlite://{}", desk.home().join("caretaker.db").display());
    let mut raw = AnyConnection::connect(&url).await.unwrap();
    let passed = "UPDATE project SET schedule = '0 0 3 * * * 2020'";
    sqlx::raw_sql(passed).execute(&mut raw).await.unwrap();
    let (state, text) = found_of_project(&desk, "schedule").unwrap();
    assert_eq!(state, "failed");
    assert!(
        text.contains("0 0 3 * * * 2020") && text.contains("check its year"),
        "{text}"
    );
    let remove = format!("caretaker project remove {}", desk.project.id);
    assert!(text.contains(&remove), "{text}");
}
