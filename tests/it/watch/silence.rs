//! Workflows that no longer run.

use caretaker::clock::Millis;
use caretaker::connector::{Condition, WorkflowView};
use caretaker::forge::{Fault, FaultAction, NewRun, NewWorkflow};
use caretaker::watch::{Finding, WorkflowFacts, judge};

use super::scene::{NOON, Scene, job};

const NIGHTLY: &str = "name: nightly\non:\n  schedule:\n    - cron: '30 * * * *'\n";
const PATH: &str = ".github/workflows/nightly.yml";

async fn nightly() -> Scene {
    let scene = Scene::with(&[("README.md", "x\n"), (PATH, NIGHTLY)]).await;
    add_nightly(&scene);
    scene
}

fn add_nightly(scene: &Scene) {
    scene
        .repository
        .add_workflow(NewWorkflow {
            id: 40,
            name: "nightly".to_owned(),
            path: PATH.to_owned(),
            state: "active".to_owned(),
        })
        .unwrap();
}

fn scheduled(scene: &Scene) -> NewRun {
    NewRun {
        workflow: "nightly".to_owned(),
        workflow_id: 40,
        workflow_path: PATH.to_owned(),
        event: "schedule".to_owned(),
        ..scene.run("success", vec![job("test", "success")])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_run_that_does_not_come_is_said_once_and_the_next_one_ends_it() {
    let mut scene = nightly().await;
    scene.look().await.unwrap();
    // 12:30 passes without a run; at 13:20 that may still be the provider's delay.
    for _ in 0..4 {
        scene.pass(20 * 60);
        scene.look().await.unwrap();
    }
    assert_eq!(scene.kinds().await, [""; 0]);
    for _ in 0..3 {
        scene.pass(20 * 60);
        scene.look().await.unwrap();
    }
    assert_eq!(scene.kinds().await, ["silent-workflow -"]);
    let told = scene.messages().await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("nightly") && told[0].contains("2026-11-30T12:30:00Z"),
        "{told:?}"
    );

    // A restart does not say it again.
    scene.restart();
    scene.pass(20 * 60);
    scene.look().await.unwrap();
    assert_eq!(scene.kinds().await.len(), 1);

    scene.repository.add_run(scheduled(&scene)).unwrap();
    scene.pass(20 * 60);
    scene.look().await.unwrap();
    let incident = &scene.incidents().await[0];
    let scope = scene.store.within(&scene.project.organisation);
    let snapshot = scope
        .snapshot(&incident.id, scene_now(&scene))
        .await
        .unwrap()
        .unwrap();
    assert!(snapshot.recovered().is_some());
}

fn scene_now(scene: &Scene) -> caretaker::clock::Millis {
    use caretaker::clock::Clock as _;
    scene.clock.now()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_come_keep_it_quiet() {
    let mut scene = nightly().await;
    for _ in 0..6 {
        scene.look().await.unwrap();
        scene.pass(30 * 60);
        scene.repository.add_run(scheduled(&scene)).unwrap();
        scene.look().await.unwrap();
        scene.pass(30 * 60);
    }
    assert_eq!(scene.kinds().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_that_is_disabled_meanwhile_is_silent_until_it_is_active_again() {
    let mut scene = Scene::new().await;
    scene
        .repository
        .add_workflow(NewWorkflow {
            id: 9,
            name: "ci".to_owned(),
            path: ".github/workflows/ci.yml".to_owned(),
            state: "active".to_owned(),
        })
        .unwrap();
    scene.add("success", vec![job("test", "success")]);
    scene.look().await.unwrap();
    scene
        .repository
        .set_workflow_state(9, "disabled_manually")
        .unwrap();
    for _ in 0..3 {
        scene.pass(1000);
        scene.look().await.unwrap();
    }
    assert_eq!(scene.kinds().await, ["silent-workflow -"]);
    scene.repository.set_workflow_state(9, "active").unwrap();
    scene.pass(1000);
    scene.look().await.unwrap();
    let incident = &scene.incidents().await[0];
    let scope = scene.store.within(&scene.project.organisation);
    let snapshot = scope
        .snapshot(&incident.id, scene_now(&scene))
        .await
        .unwrap()
        .unwrap();
    assert!(
        snapshot.recovered().is_some(),
        "no run came, and yet it is heard of again"
    );
    scene
        .repository
        .set_workflow_state(9, "disabled_inactivity")
        .unwrap();
    scene.pass(1000);
    scene.look().await.unwrap();
    let told = scene.messages().await;
    assert!(
        !told.is_empty() && told[0].contains("disabled manually"),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_disabled_before_is_a_persons_choice_but_inactivity_is_nobodys() {
    for (word, expected) in [
        ("disabled_manually", 0),
        ("disabled_inactivity", 1),
        ("deleted", 0),
        ("disabled_fork", 0),
    ] {
        let mut scene = Scene::new().await;
        scene
            .repository
            .add_workflow(NewWorkflow {
                id: 9,
                name: "ci".to_owned(),
                path: ".github/workflows/ci.yml".to_owned(),
                state: word.to_owned(),
            })
            .unwrap();
        scene.look().await.unwrap();
        assert_eq!(scene.kinds().await.len(), expected, "{word}");
    }
}

impl Scene {
    /// The next so many reads of files are answered like this.
    fn answer_files(&self, times: usize, code: u16, body: &str) {
        for nth in 1..=times {
            self.forge.fault(Fault {
                method: "GET".to_owned(),
                path: "/contents/".to_owned(),
                nth,
                action: FaultAction::Status {
                    code,
                    body: body.to_owned(),
                    headers: Vec::new(),
                },
            });
        }
    }

    async fn condition(&self) -> Condition {
        let scope = self.store.within(&self.project.organisation);
        scope.watch_states().await.unwrap().remove(0).condition
    }

    async fn recovered(&self) -> bool {
        let incident = &self.incidents().await[0];
        let scope = self.store.within(&self.project.organisation);
        let snapshot = scope.snapshot(&incident.id, scene_now(self)).await.unwrap();
        snapshot.unwrap().recovered().is_some()
    }
}

/// Break it: take a file that cannot be read for one without a schedule.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_read_ends_no_silence() {
    for (code, body, condition) in [
        (200, "nonsense", Condition::Fine),
        (
            403,
            "{\"message\":\"Resource not accessible\"}",
            Condition::PermissionMissing,
        ),
        (
            401,
            "{\"message\":\"Bad credentials\"}",
            Condition::CredentialRefused,
        ),
    ] {
        let mut scene = nightly().await;
        for _ in 0..8 {
            scene.look().await.unwrap();
            scene.pass(20 * 60);
        }
        assert_eq!(scene.kinds().await, ["silent-workflow -"]);
        scene.answer_files(1, code, body);
        scene.look().await;
        assert_eq!(scene.condition().await, condition, "{code}");
        assert!(!scene.recovered().await, "{code}: no run came");
        // Nor is it said twice once the file can be read again.
        for _ in 0..2 {
            scene.pass(20 * 60);
            scene.look().await.unwrap();
        }
        assert_eq!(scene.kinds().await, ["silent-workflow -"], "{code}");
        assert!(!scene.recovered().await, "{code}");
    }
}

/// Break it: keep what is known of workflows only when all of them were read.
#[tokio::test(flavor = "multi_thread")]
async fn while_one_file_does_not_come_another_silence_is_told_once() {
    let mut scene = Scene::with(&[("README.md", "x\n"), (PATH, NIGHTLY)]).await;
    let ci = NewWorkflow {
        id: 9,
        name: "ci".to_owned(),
        path: ".github/workflows/ci.yml".to_owned(),
        state: "active".to_owned(),
    };
    scene.repository.add_workflow(ci).unwrap();
    add_nightly(&scene);
    scene.look().await.unwrap();
    let disabled = scene.repository.set_workflow_state(9, "disabled_manually");
    disabled.unwrap();
    for _ in 0..3 {
        scene.pass(16 * 60);
        // Each read is repeated twice.
        scene.answer_files(3, 502, "{}");
        scene.look().await;
    }
    scene.pass(16 * 60);
    scene.look().await.unwrap();
    assert_eq!(scene.kinds().await, ["silent-workflow -"]);
    let incident = &scene.incidents().await[0];
    let scope = scene.store.within(&scene.project.organisation);
    let events = scope.audit_events(&incident.id).await.unwrap();
    assert_eq!(events.len(), 0, "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_that_cannot_be_numbered_is_said_once() {
    let mut scene = nightly().await;
    let huge = NewWorkflow {
        id: u64::MAX,
        name: "huge".to_owned(),
        path: ".github/workflows/huge.yml".to_owned(),
        state: "active".to_owned(),
    };
    scene.repository.add_workflow(huge).unwrap();
    assert_eq!(scene.look().await.unwrap().remarks.len(), 1);
    let told = scene.messages().await;
    for word in [
        "18446744073709551615",
        "huge.yml",
        "falls silent is not watched",
    ] {
        assert!(told[0].contains(word), "{told:?}");
    }
    // The other one is watched all the same.
    for _ in 0..7 {
        scene.pass(20 * 60);
        assert_eq!(scene.look().await.unwrap().remarks, [""; 0]);
    }
    assert_eq!(scene.kinds().await, ["silent-workflow -"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_says_it_comes_from_the_future_counts_once() {
    let mut scene = nightly().await;
    let years = 10 * 365 * 24 * 3600;
    scene.pass(years);
    scene.repository.add_run(scheduled(&scene)).unwrap();
    scene.pass(-years);
    // The same process looks all the time: what it remembers must not hide that no run comes any more.
    for _ in 0..8 {
        scene.look().await.unwrap();
        scene.pass(20 * 60);
    }
    assert_eq!(scene.kinds().await, ["silent-workflow -"]);
}

#[test]
fn a_run_that_begins_in_the_far_future_hides_no_absence() {
    let view = WorkflowView {
        id: 40,
        name: None,
        path: PATH.to_owned(),
        state: "active".to_owned(),
    };
    let hourly = || vec!["30 * * * *".to_owned()];
    let far = Some(Millis(253_370_764_800_000));
    let (facts, finding) = judge(None, &view, hourly(), far, NOON);
    assert_eq!((facts.scheduled_at, finding), (Some(NOON.0), None));
    let known = WorkflowFacts {
        scheduled_at: far.map(|at| at.0),
        ..facts
    };
    let (facts, _) = judge(Some(&known), &view, hourly(), None, NOON);
    let later = NOON.plus_seconds(2 * 3600);
    let (_, finding) = judge(Some(&facts), &view, hourly(), None, later);
    assert!(matches!(finding, Some(Finding::Silent(_))), "{finding:?}");
}
