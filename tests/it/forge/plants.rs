//! The planted repositories: their tests really fail, the log tells the truth about it, and the mend is one piece.

use std::path::Path;
use std::process::Command;

use caretaker::forge::{Plant, Planted};

use super::bench::{client, file, forge, git};

/// Runs the crate's own tests offline; what they printed.
fn tested(folder: &Path) -> (bool, String) {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--locked", "--offline"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("RUST_BACKTRACE", "0")
        .env_remove("CARGO_BUILD_TARGET")
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.success(), text)
}

/// The job's log as it is downloaded.
async fn log_of(forge: &caretaker::forge::Forge, planted: &Planted) -> String {
    let client = client();
    let get = async |url: String| {
        client
            .get(url)
            .bearer_auth(forge.token())
            .send()
            .await
            .unwrap()
    };
    let root = format!("{}/repos/{}", forge.url(), planted.repository.full_name());
    let jobs = super::bench::read(get(format!("{root}/actions/runs/{}/jobs", planted.run)).await)
        .await
        .body;
    assert_eq!(jobs["jobs"][0]["name"], "test");
    let redirect = get(format!(
        "{root}/actions/jobs/{}/logs",
        jobs["jobs"][0]["id"]
    ))
    .await;
    let link = redirect.headers()["location"].to_str().unwrap().to_owned();
    client.get(link).send().await.unwrap().text().await.unwrap()
}

/// The lines of a test run that say what failed, where and why, without what differs from machine to machine.
fn facts(text: &str) -> Vec<String> {
    let without_stamp = |line: &str| {
        line.split_once("Z ")
            .filter(|(stamp, _)| stamp.contains('T'))
            .map_or(line, |(_, rest)| rest)
            .to_owned()
    };
    let is_fact = |line: &String| {
        line.contains("panicked at")
            || line.contains("FAILED")
            || line.starts_with("  left")
            || line.starts_with(" right")
            || line.starts_with("a token")
    };
    // The number of the thread and the time are this run's own.
    let stable = |line: String| {
        let line = line.split("; finished in").next().unwrap().to_owned();
        match (line.find(" ("), line.find(") panicked")) {
            (Some(start), Some(end)) => format!("{}{}", &line[..start], &line[end + 1..]),
            _ => line,
        }
    };
    text.lines()
        .map(without_stamp)
        .filter(is_fact)
        .map(stable)
        .collect()
}

async fn the_plant_is_true(plant: Plant) {
    let folder = tempfile::tempdir().unwrap();
    let forge = forge(folder.path()).await;
    let planted = forge.plant(plant).unwrap();
    let url = planted
        .repository
        .clone_url()
        .replace("http://", &format!("http://x:{}@", forge.token()));
    assert!(
        git(folder.path(), &["clone", "--quiet", &url, "work"])
            .status
            .success()
    );
    let work = folder.path().join("work");

    let (green, printed) = tested(&work);
    assert!(!green, "{printed}");
    let log = log_of(&forge, &planted).await;
    assert!(log.starts_with("\u{feff}2026-01-05T08:00:30.0000000Z "));
    assert_eq!(facts(&log), facts(&printed));
    assert!(
        log.contains(&format!("panicked at {}:", planted.file))
            && log.contains("##[error]Process completed with exit code 101.")
    );

    let source = std::fs::read_to_string(work.join(planted.file)).unwrap();
    assert_eq!(source.matches(planted.wrong).count(), 1);
    let mended = source.replace(planted.wrong, planted.right);
    std::fs::write(work.join(planted.file), &mended).unwrap();
    let (green, printed) = tested(&work);
    assert!(green, "{printed}");

    // A fix gets its check by itself.
    planted
        .repository
        .create_branch("fix", &planted.repository.tip("main").unwrap())
        .unwrap();
    planted
        .repository
        .commit("fix", &[(planted.file, file(&mended))], "Mend")
        .unwrap();
    assert!(planted.repository.reference_changes().unwrap().len() == 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn red_test_is_red_and_can_be_mended() {
    the_plant_is_true(Plant::RedTest).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_path_is_red_in_a_place_of_its_own() {
    the_plant_is_true(Plant::DeniedPath).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flaky_test_passes_when_it_is_tried_again_and_its_log_names_a_test_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let forge = forge(folder.path()).await;
    let planted = forge.plant(Plant::FlakyTest).unwrap();
    let url = planted
        .repository
        .clone_url()
        .replace("http://", &format!("http://x:{}@", forge.token()));
    let cloned = git(folder.path(), &["clone", "--quiet", &url, "work"]);
    assert!(cloned.status.success());
    let work = folder.path().join("work");
    let (green, printed) = tested(&work);
    assert!(green, "{printed}");
    assert!(printed.contains("test tests::a_receipt_comes_soon ... ok"));
    let log = log_of(&forge, &planted).await;
    assert!(log.contains("test tests::a_receipt_comes_soon ... FAILED"));
    let source = std::fs::read_to_string(work.join(planted.file)).unwrap();
    assert_eq!(source.matches(planted.wrong).count(), 1);
    let line = source.lines().position(|line| line.contains(planted.wrong));
    let place = format!("panicked at {}:{}:9:", planted.file, line.unwrap() + 1);
    assert!(log.contains(&place), "{place}");
}

#[test]
fn plants_have_names() {
    for plant in Plant::ALL {
        assert_eq!(Plant::from_name(plant.name()), Some(plant));
    }
    assert_eq!(Plant::from_name("red"), None);
}
