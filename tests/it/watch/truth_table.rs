//! Every row of the truth table of `docs/watching.md`, as a story at a real forge.

use caretaker::forge::{Fault, FaultAction, NewJob, NewRun};
use caretaker::incident::Fact;
use caretaker::watch::truth_table;

use super::scene::{LOG, Scene, job, never_started};

/// The page shows the table that the code uses. To bring it up to date: `CARETAKER_WRITE_DOCS=1`.
#[test]
fn the_page_shows_the_table_that_the_code_uses() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/watching.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (begin, end) = ("<!-- truth table -->\n", "<!-- end of the truth table -->");
    let (before, rest) = page.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let renewed = format!("{before}{begin}{}{end}{after}", truth_table());
    if std::env::var_os("CARETAKER_WRITE_DOCS").is_some() {
        std::fs::write(path, &renewed).unwrap();
    }
    assert!(
        page == renewed,
        "docs/watching.md is out of date: run this test with CARETAKER_WRITE_DOCS=1"
    );
}

/// A first, good run, so that what follows is news; then the run in question. What becomes of it: incidents and messages.
async fn follows(conclusion: &str, jobs: Vec<NewJob>) -> (Vec<String>, Vec<String>) {
    let mut scene = Scene::new().await;
    scene.add("success", vec![job("test", "success")]);
    assert_eq!(scene.look().await.unwrap().opened, []);
    scene.pass(60);
    scene.add(conclusion, jobs);
    for _ in 0..4 {
        scene.pass(60);
        scene.look().await.unwrap();
    }
    (scene.kinds().await, scene.messages().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_conclusion_has_its_consequence() {
    let rows: [(&str, Vec<NewJob>, &[&str], usize); 16] = [
        ("failure", vec![job("test", "failure")], &["code test"], 1),
        (
            "failure",
            vec![never_started("test", "failure")],
            &["never-started test"],
            1,
        ),
        ("failure", vec![], &["never-started -"], 1),
        (
            "failure",
            vec![
                job("test (1)", "failure"),
                job("test (2)", "success"),
                job("test (3)", "failure"),
            ],
            &["code test (1)", "code test (3)"],
            2,
        ),
        (
            "timed_out",
            vec![job("test", "timed_out")],
            &["timeout test"],
            1,
        ),
        ("timed_out", vec![], &["timeout -"], 1),
        ("startup_failure", vec![], &["workflow-invalid -"], 1),
        ("action_required", vec![], &[], 1),
        ("cancelled", vec![job("test", "cancelled")], &[], 0),
        ("skipped", vec![job("test", "skipped")], &[], 0),
        ("neutral", vec![job("test", "neutral")], &[], 0),
        // Reported once when it is read for the third time, and once as an incident.
        ("stale", vec![], &["unknown -"], 2),
        ("an_unheard_of_word", vec![], &["unknown -"], 2),
        (
            "failure",
            vec![job("test", "an_unheard_of_word")],
            &["unknown test"],
            2,
        ),
        ("success", vec![job("test", "success")], &[], 0),
        (
            "failure",
            vec![job("test", "success"), job("cleanup", "cancelled")],
            &["unknown -"],
            2,
        ),
    ];
    for (conclusion, jobs, incidents, messages) in rows {
        let (found, told) = follows(conclusion, jobs).await;
        assert_eq!(found, incidents, "{conclusion}");
        assert_eq!(told.len(), messages, "{conclusion}: {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_completed_without_a_conclusion_is_unknown() {
    let mut scene = Scene::new().await;
    let run = scene.run("success", vec![]);
    let run = NewRun {
        conclusion: None,
        ..run
    };
    scene.repository.add_run(run).unwrap();
    for _ in 0..3 {
        scene.look().await.unwrap();
    }
    assert_eq!(scene.kinds().await, ["unknown -"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ours_to_watch_is_left_alone() {
    let mut scene = Scene::new().await;
    scene.add("success", vec![job("test", "success")]);
    scene.look().await.unwrap();
    let failing = |scene: &Scene| scene.run("failure", vec![job("test", "failure")]);
    let others = [
        NewRun {
            event: "pull_request".to_owned(),
            ..failing(&scene)
        },
        NewRun {
            branch: Some("topic".to_owned()),
            ..failing(&scene)
        },
        NewRun {
            branch: None,
            ..failing(&scene)
        },
        NewRun {
            event: "workflow_dispatch".to_owned(),
            ..failing(&scene)
        },
    ];
    for other in others {
        scene.repository.add_run(other).unwrap();
    }
    scene.look().await.unwrap();
    assert_eq!(scene.kinds().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_a_fork_is_left_alone() {
    let mut scene = Scene::new().await;
    scene.add("success", vec![job("test", "success")]);
    scene.look().await.unwrap();
    scene.add("failure", vec![job("test", "failure")]);
    // The forge's own page, in which the newest run has its head in another repository.
    let address = format!(
        "{}/repos/acme/widget/actions/runs?per_page=100&page=1",
        scene.forge.url()
    );
    let asked = crate::serve::inbox::browser();
    let asked = asked.get(address).bearer_auth(scene.forge.token());
    let page = asked.send().await.unwrap().bytes().await.unwrap();
    let mut page: serde_json::Value = serde_json::from_slice(&page).unwrap();
    let newest = &mut page["workflow_runs"][0];
    assert_eq!(newest["conclusion"], "failure");
    newest["head_repository"]["id"] = 999.into();
    scene.forge.fault(Fault {
        method: "GET".to_owned(),
        path: "/actions/runs".to_owned(),
        nth: 1,
        action: FaultAction::Status {
            code: 200,
            body: page.to_string(),
            headers: Vec::new(),
        },
    });
    scene.pass(60);
    let report = scene.look().await.unwrap();
    assert_eq!((report.opened.len(), report.remarks.len()), (0, 0));
    assert_eq!(scene.kinds().await, [""; 0]);
    assert_eq!(scene.messages().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_attempt_attaches_and_a_restart_raises_nothing_twice() {
    let mut scene = Scene::new().await;
    let run = scene.add("failure", vec![job("test", "failure")]);
    let first = scene.look().await.unwrap();
    assert_eq!(first.opened.len(), 1);
    scene.restart();
    assert_eq!(scene.look().await.unwrap().opened, []);
    scene.pass(60);
    scene.repository.rerun(run).unwrap();
    assert_eq!(scene.look().await.unwrap().attached, [], "it has not ended");
    scene.pass(30);
    let again = vec![job("test", "failure")];
    scene
        .repository
        .complete_run(run, "failure", again)
        .unwrap();
    scene.pass(20);
    let report = scene.look().await.unwrap();
    assert_eq!(report.attached, first.opened);
    assert_eq!(report.lag, Some(20_000));
    scene.restart();
    let report = scene.look().await.unwrap();
    assert_eq!((report.attached, report.opened), (vec![], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_success_recovers_what_failed_and_an_older_run_that_ends_late_is_refused() {
    let mut scene = Scene::new().await;
    let slow = scene.run("success", vec![]);
    let slow = NewRun {
        status: "in_progress".to_owned(),
        conclusion: None,
        ..slow
    };
    let slow = scene.repository.add_run(slow).unwrap();
    scene.pass(5);
    scene.add("failure", vec![job("test", "failure")]);
    let opened = scene.look().await.unwrap().opened;
    assert_eq!(opened.len(), 1);

    // The older one ends well, too late to mean anything.
    scene.pass(60);
    scene
        .repository
        .complete_run(slow, "success", vec![job("test", "success")])
        .unwrap();
    scene.look().await.unwrap();
    assert!(!recovered(&scene, &opened[0]).await);

    scene.pass(60);
    scene.add("success", vec![job("test", "success")]);
    scene.look().await.unwrap();
    assert!(recovered(&scene, &opened[0]).await);

    // And an older one that ends badly after the newer success opens nothing.
    scene.pass(60);
    scene.look().await.unwrap();
    assert_eq!(scene.kinds().await.len(), 1);
}

async fn recovered(scene: &Scene, incident: &caretaker::id::IncidentId) -> bool {
    let scope = scene.store.within(&scene.project.organisation);
    let snapshot = scope
        .snapshot(incident, super::scene::NOON)
        .await
        .unwrap()
        .unwrap();
    let facts = snapshot.facts.iter();
    facts
        .map(|fact| &fact.fact)
        .any(|fact| matches!(fact, Fact::Recovered { .. }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_much_faster_than_usual_is_reported_and_ends_nothing() {
    let mut scene = Scene::new().await;
    for _ in 0..6 {
        let started = NewRun {
            status: "in_progress".to_owned(),
            conclusion: None,
            ..scene.run("success", vec![])
        };
        let run = scene.repository.add_run(started).unwrap();
        scene.pass(300);
        scene
            .repository
            .complete_run(run, "success", vec![job("test", "success")])
            .unwrap();
    }
    scene.add("failure", vec![job("test", "failure")]);
    let opened = scene.look().await.unwrap().opened;
    scene.messages().await;
    scene.pass(60);
    scene.add("success", vec![job("test", "success")]);
    scene.look().await.unwrap();
    assert!(!recovered(&scene, &opened[0]).await);
    let told = scene.messages().await;
    assert!(
        told.len() == 1 && told[0].contains("much faster"),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_a_failure_is_read_from_its_log_and_line_numbers_do_not_matter() {
    let mut scene = Scene::new().await;
    scene.add("failure", vec![job("test", "failure")]);
    assert_eq!(scene.look().await.unwrap().opened.len(), 1);
    let moved = LOG.replace("12:00:01", "12:30:59");
    let elsewhere = NewJob {
        log: Some(moved.into_bytes()),
        ..job("test", "failure")
    };
    scene.add("failure", vec![elsewhere]);
    assert_eq!(scene.look().await.unwrap().attached.len(), 1);
    let lost = NewJob {
        log: None,
        ..job("test", "failure")
    };
    scene.add("failure", vec![lost]);
    assert_eq!(
        scene.look().await.unwrap().attached.len(),
        1,
        "a lost log is no other error"
    );
}
