//! The table of what a run means.

use caretaker::connector::{JobView, RunView};
use caretaker::incident::FailureKind;
use caretaker::watch::{Observation, Reading, classify, counts};
use proptest::prelude::*;

use super::provider::{job, project, run};

/// Observations in short: the job (`-` for the run) and the cause, or `ok`.
fn short(observations: &[Observation]) -> Vec<String> {
    let short = |observation: &Observation| match observation {
        Observation::Failed(failure) => {
            format!("{} {}", failure.job.as_deref().unwrap_or("-"), failure.kind)
        }
        Observation::Succeeded(success) => {
            format!("{} ok", success.job.as_deref().unwrap_or("-"))
        }
    };
    observations.iter().map(short).collect()
}

fn clear(reading: &Reading) -> Vec<String> {
    match reading {
        Reading::Clear(observations) => short(observations),
        other => panic!("not clear: {other:?}"),
    }
}

fn unclear(reading: &Reading) -> Vec<String> {
    match reading {
        Reading::Unclear(observations) => short(observations),
        other => panic!("not unclear: {other:?}"),
    }
}

#[test]
fn every_conclusion_has_its_row() {
    let failing = [job("test", "failure", 4), job("lint", "success", 3)];
    let rows: &[(&str, &[JobView], &[&str])] = &[
        ("failure", &failing, &["test code", "lint ok"]),
        (
            "failure",
            &[job("test", "failure", 0)],
            &["test never-started"],
        ),
        ("failure", &[], &["- never-started"]),
        (
            "timed_out",
            &[job("test", "timed_out", 4)],
            &["test timeout"],
        ),
        ("timed_out", &[job("test", "cancelled", 4)], &["- timeout"]),
        ("timed_out", &[], &["- timeout"]),
        ("startup_failure", &[], &["- workflow-invalid"]),
        ("cancelled", &failing, &[]),
        ("skipped", &failing, &[]),
        ("neutral", &failing, &[]),
        (
            "success",
            &[job("test", "success", 4)],
            &["- ok", "test ok"],
        ),
        // It was allowed to fail.
        ("success", &[job("test", "failure", 4)], &["- ok"]),
        ("success", &[job("test", "skipped", 0)], &["- ok"]),
    ];
    for (conclusion, jobs, expected) in rows {
        let reading = classify(&run(1, conclusion), jobs, "main");
        assert_eq!(clear(&reading), *expected, "{conclusion} {jobs:?}");
    }
}

#[test]
fn a_run_that_waits_for_a_person_is_no_failure() {
    let reading = classify(&run(1, "action_required"), &[], "main");
    assert_eq!(reading, Reading::AwaitsPerson);
}

#[test]
fn words_that_are_missing_or_unknown_are_unclear_and_never_green() {
    let null = RunView {
        conclusion: None,
        ..run(1, "")
    };
    for run in [null, run(1, "stale"), run(1, "SUCCESS"), run(1, "exploded")] {
        let jobs = [job("test", "success", 3)];
        assert_eq!(unclear(&classify(&run, &jobs, "main")), ["- unknown"]);
    }
    let odd_job = [job("test", "exploded", 3), job("lint", "failure", 3)];
    let reading = classify(&run(1, "failure"), &odd_job, "main");
    assert_eq!(unclear(&reading), ["test unknown", "lint code"]);
    // The run failed, and none of its jobs did.
    let none_failed = [job("test", "success", 3)];
    let reading = classify(&run(1, "failure"), &none_failed, "main");
    assert_eq!(unclear(&reading), ["test ok", "- unknown"]);
}

#[test]
fn only_pushes_and_schedules_of_the_base_branch_of_the_own_repository_count() {
    let of_fork = RunView {
        own_repository: false,
        ..run(1, "failure")
    };
    let of_branch = RunView {
        branch: Some("feature".to_owned()),
        ..run(1, "failure")
    };
    let detached = RunView {
        branch: None,
        ..run(1, "failure")
    };
    let of_pull = RunView {
        event: "pull_request".to_owned(),
        ..run(1, "failure")
    };
    for run in [of_fork, of_branch, detached, of_pull] {
        assert!(!counts(&run, "main"));
        let reading = classify(&run, &[job("test", "failure", 3)], "main");
        assert_eq!(clear(&reading), Vec::<String>::new());
    }
    let scheduled = RunView {
        event: "schedule".to_owned(),
        ..run(1, "failure")
    };
    assert!(counts(&scheduled, "main") && counts(&run(1, "failure"), "main"));
}

#[test]
fn a_failure_carries_what_an_incident_needs() {
    let Reading::Clear(observations) =
        classify(&run(41, "failure"), &[job("test", "failure", 3)], "main")
    else {
        panic!("unclear")
    };
    let [Observation::Failed(failure)] = observations.as_slice() else {
        panic!("{observations:?}")
    };
    assert_eq!(failure.kind, FailureKind::Code);
    assert_eq!((failure.run_id, failure.attempt), (41, 1));
    assert_eq!(failure.job_id, Some(900));
    assert_eq!(
        failure.key(&project()),
        format!("{}/5/push/main/test", project())
    );
}

#[test]
fn names_that_a_database_cannot_keep_are_mended_and_stay_different() {
    let name = |job_name: &str| {
        let jobs = [job(job_name, "failure", 3)];
        match classify(&run(1, "failure"), &jobs, "main") {
            Reading::Clear(observations) => short(&observations)[0].clone(),
            other => panic!("not clear: {other:?}"),
        }
    };
    assert_eq!(name("a\0b"), "a\u{fffd}b code");
    let (first, second) = ("é".repeat(5000) + "1", "é".repeat(5000) + "2");
    assert!(name(&first).len() < 420);
    assert_ne!(name(&first), name(&second));
}

proptest! {
    /// Whatever the provider says: only the word `success` makes anything green, and a failure and a success of the same job
    /// share their key.
    #[test]
    fn nothing_but_success_is_green(conclusion in "[a-z_]{0,12}|success|failure", jobs in proptest::collection::vec(("[a-c]", "[a-z_]{0,12}|success|failure|timed_out", 0_u64..3), 0..4)) {
        let jobs: Vec<JobView> = jobs.iter().map(|(name, word, steps)| job(name, word, *steps)).collect();
        let observations = match classify(&run(1, &conclusion), &jobs, "main") {
            Reading::Clear(observations) | Reading::Unclear(observations) => observations,
            Reading::AwaitsPerson => Vec::new(),
        };
        for observation in &observations {
            let (name, key) = match observation {
                Observation::Failed(failure) => (&failure.job, failure.key(&project())),
                Observation::Succeeded(success) => {
                    let green = match &success.job {
                        None => conclusion == "success",
                        Some(name) => jobs.iter().any(|job| job.name == *name && job.conclusion.as_deref() == Some("success")),
                    };
                    prop_assert!(green);
                    (&success.job, success.key(&project()))
                }
            };
            let ending = format!("/main/{}", name.as_deref().unwrap_or("-"));
            prop_assert!(key.ends_with(&ending));
        }
        if conclusion == "failure" {
            prop_assert!(observations.iter().any(|observation| matches!(observation, Observation::Failed(_))));
        }
    }
}
