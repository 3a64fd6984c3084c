//! Failures that go away when the job runs again at the same commit: told from real ones before anything is diagnosed.

use std::path::PathBuf;
use std::sync::Arc;

use caretaker::clock::Clock as _;
use caretaker::forge::{Fault, FaultAction, NewJob, NewStep};
use caretaker::id::IncidentId;
use caretaker::incident::{ClosedReason, Failure, Reproduction, Rerun, Stage};
use caretaker::sandbox::{Mode, Sandbox};
use caretaker::watch::{Observation, Reading, classify};
use caretaker::worker::drain;

use super::crash::StopAfter;
use super::sums;
use super::world::{RULES, Seed, Setting, World};

/// Its tests pass here; the run failed all the same.
fn passes_here() -> Setting {
    Setting {
        seed: Seed::Python {
            module: sums::RIGHT_MODULE,
            test: sums::OLD_TEST,
        },
        ..Setting::sums()
    }
}

impl World {
    /// The watch looks at the run once.
    async fn look(&self) {
        let connector = self.engine.connectors.of(&self.project).await.unwrap();
        let run = connector.run(self.planted.run).await.unwrap();
        let jobs = connector.jobs(run.id, run.attempt).await.unwrap();
        let Reading::Clear(observations) = classify(&run, &jobs, "main") else {
            panic!("the run is not clear: {run:?}");
        };
        let (store, project, now) = (&self.engine.store, &self.project, self.clock.now());
        for observation in observations {
            match observation {
                Observation::Failed(failure) => {
                    let id = IncidentId::new(now, [7; 10]);
                    let observed = store.observe(project, &failure, None, &id, now).await;
                    observed.map(drop).unwrap();
                }
                Observation::Succeeded(success) => {
                    let key = success.key(&project.id);
                    let (run, attempt) = (success.run_id, success.attempt);
                    let observed = store.observe_success(project, &key, run, attempt, now);
                    observed.await.unwrap();
                }
            }
        }
    }

    /// The newest attempt of the run ends.
    fn ends(&self, conclusion: &str) {
        let step = NewStep {
            name: "Run python3 -m unittest".to_owned(),
            conclusion: Some(conclusion.to_owned()),
        };
        let job = NewJob {
            name: "test".to_owned(),
            conclusion: Some(conclusion.to_owned()),
            steps: vec![step],
            log: Some(b"Ran 1 test in 0.000s\n".to_vec()),
        };
        let repository = &self.planted.repository;
        repository
            .complete_run(self.planted.run, conclusion, vec![job])
            .unwrap();
    }

    /// How often the forge was asked to run it again.
    fn reruns(&self) -> usize {
        let requests = self.forge.requests();
        let asked = requests.iter().filter(|request| {
            request.method == "POST" && request.path.ends_with("/rerun-failed-jobs")
        });
        asked.count()
    }

    /// The newest attempt of the run.
    async fn attempt(&self) -> u64 {
        let connector = self.engine.connectors.of(&self.project).await.unwrap();
        connector.run(self.planted.run).await.unwrap().attempt
    }

    /// What the forge answers to the next request to run it again.
    fn answers(&self, action: FaultAction) {
        self.forge.fault(Fault {
            method: "POST".to_owned(),
            path: "/rerun-failed-jobs".to_owned(),
            nth: 1,
            action,
        });
    }

    /// Why it was closed, in words.
    async fn closed(&self) -> (ClosedReason, String) {
        assert_eq!(self.settle().await, Stage::Closed);
        let snapshot = self.snapshot().await;
        assert!(snapshot.diagnosis().is_none(), "it was diagnosed");
        let (reason, detail) = snapshot.closed().unwrap();
        (
            reason,
            detail.replace(&self.planted.run.to_string(), "[run]"),
        )
    }
}

const FLAKY: &str = "failed in attempt 1, passed in attempt 2 of run [run] at the same commit";

#[tokio::test(flavor = "multi_thread")]
async fn a_rerun_that_passes_ends_it_as_flaky() {
    let world = World::new(passes_here()).await;
    drain(&world.engine, "worker").await.unwrap();
    let snapshot = world.snapshot().await;
    assert!(
        matches!(snapshot.rerun(), Rerun::Awaited { attempt: 2, .. }),
        "{:?}",
        snapshot.facts
    );
    world.ends("success");
    world.look().await;
    assert_eq!(
        world.closed().await,
        (ClosedReason::Flaky, FLAKY.to_owned())
    );
    assert_eq!((world.reruns(), world.attempt().await), (1, 2));
    assert_eq!(world.inbox.events(), ["incident-opened", "incident-closed"]);
    let scoped = world.engine.store.within(&world.project.organisation);
    let ledger = scoped.ledger(&world.incident).await.unwrap().unwrap();
    assert!(ledger.rows.is_empty(), "nothing had to be signed");
    assert_eq!(world.planted.repository.references().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rerun_that_fails_again_lets_it_go_on() {
    let world = World::new(passes_here()).await;
    drain(&world.engine, "worker").await.unwrap();
    world.ends("failure");
    world.look().await;
    let (reason, detail) = world.closed().await;
    assert_eq!(reason, ClosedReason::NotReproducible);
    assert!(
        detail.ends_with("; attempt 2 of run [run] failed at the provider again"),
        "{detail}"
    );
    // Whatever becomes of a third attempt, nobody asks for it here: it is an incident of its own.
    world.planted.repository.rerun(world.planted.run).unwrap();
    world.ends("failure");
    world.look().await;
    drain(&world.engine, "worker").await.unwrap();
    let scoped = world.engine.store.within(&world.project.organisation);
    let incidents = scoped.incidents().await.unwrap();
    assert_eq!(incidents.len(), 2);
    assert!(incidents.iter().all(|row| row.stage == Stage::Closed));
    assert_eq!(world.reruns(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_permission_to_run_it_again_it_goes_on_and_says_so() {
    let world = World::new(passes_here()).await;
    let body = serde_json::json!({"message": "Resource not accessible by personal access token"});
    world.answers(FaultAction::Status {
        code: 403,
        body: body.to_string(),
        headers: vec![],
    });
    let (reason, detail) = world.closed().await;
    assert_eq!(reason, ClosedReason::NotReproducible);
    assert!(
        detail.contains("; it was not run again at the provider: ")
            && detail.contains("Resource not accessible by personal access token"),
        "{detail}"
    );
    assert_eq!((world.reruns(), world.attempt().await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_leads_to_one_further_attempt() {
    for action in [
        FaultAction::CloseAfterEffect,
        FaultAction::CloseBeforeEffect,
    ] {
        let world = World::new(passes_here()).await;
        world.answers(action);
        for _ in 0..3 {
            drain(&world.engine, "worker").await.unwrap();
            world.clock.advance_millis(5_000);
        }
        assert_eq!(world.attempt().await, 2);
        world.ends("success");
        world.look().await;
        assert_eq!(world.closed().await.0, ClosedReason::Flaky);
        assert_eq!(world.attempt().await, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_somebody_else_asked_for_is_waited_for() {
    let world = World::new(passes_here()).await;
    world.planted.repository.rerun(world.planted.run).unwrap();
    drain(&world.engine, "worker").await.unwrap();
    world.ends("success");
    world.look().await;
    assert_eq!(world.closed().await.0, ClosedReason::Flaky);
    assert_eq!((world.reruns(), world.attempt().await), (0, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_jobs_of_one_run_share_one_rerun() {
    let world = World::new(passes_here()).await;
    let other = Failure {
        job: Some("lint".to_owned()),
        ..world.snapshot().await.failure
    };
    let id = IncidentId::new(world.clock.now(), [8; 10]);
    let observed = world
        .engine
        .store
        .observe(&world.project, &other, None, &id, world.clock.now());
    observed.await.map(drop).unwrap();
    drain(&world.engine, "worker").await.unwrap();
    assert_eq!((world.reruns(), world.attempt().await), (1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_that_cannot_be_run_here_are_run_again_there() {
    let rules = format!("{RULES}test: [no-such-program]\n");
    let world = World::new(Setting {
        rules,
        ..passes_here()
    })
    .await;
    drain(&world.engine, "worker").await.unwrap();
    assert_eq!(world.reruns(), 1, "{:?}", world.snapshot().await.facts);
    world.ends("success");
    world.look().await;
    assert_eq!(
        world.closed().await,
        (ClosedReason::Flaky, FLAKY.to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_want_none_get_none() {
    let rules = format!("{RULES}reruns: 0\n");
    let world = World::new(Setting {
        rules,
        ..passes_here()
    })
    .await;
    let (reason, detail) = world.closed().await;
    assert_eq!(reason, ClosedReason::NotReproducible);
    assert!(
        detail.ends_with("the project's rules say `reruns: 0`"),
        "{detail}"
    );
    assert_eq!(world.reruns(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_never_ends_is_not_waited_for_for_ever() {
    let world = World::new(passes_here()).await;
    drain(&world.engine, "worker").await.unwrap();
    world.clock.advance_millis(59 * 60 * 1_000);
    drain(&world.engine, "worker").await.unwrap();
    assert_eq!(world.stage().await, Stage::Detected);
    world.clock.advance_millis(60 * 1_000);
    let (reason, detail) = world.closed().await;
    assert_eq!(reason, ClosedReason::NotReproducible);
    assert!(
        detail.ends_with("; attempt 2 of run [run] did not end in time"),
        "{detail}"
    );
    assert_eq!(world.reruns(), 1);
}

/// A test that fails the first time and passes ever after.
fn fails_once(trace: &std::path::Path) -> Setting {
    let trace = trace.display();
    let test = format!(
        "import os\nimport unittest\n\n\nclass Sums(unittest.TestCase):\n    def test_once(self):\n        again = os.path.exists('{trace}')\n        open('{trace}', 'w').close()\n        self.assertTrue(again)\n"
    );
    Setting {
        seed: Seed::Python {
            module: sums::RIGHT_MODULE,
            test: test.leak(),
        },
        ..Setting::sums()
    }
}

/// Without a boundary, so that a test can leave a trace for its next run.
async fn unconfined(world: &mut World) {
    let launcher = PathBuf::from(env!("CARGO_BIN_EXE_caretaker"));
    let sandbox = Sandbox::detect(Mode::None, launcher).await.unwrap();
    world.engine.sandbox = Arc::new(sandbox);
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_that_fail_once_and_pass_then_are_flaky() {
    let place = tempfile::tempdir().unwrap();
    let mut world = World::new(fails_once(&place.path().join("trace"))).await;
    unconfined(&mut world).await;
    let (reason, detail) = world.closed().await;
    assert_eq!(reason, ClosedReason::Flaky);
    assert!(
        detail
            .ends_with("failed in 1 run and passed in 1 run at the failing commit in the sandbox"),
        "{detail}"
    );
    let snapshot = world.snapshot().await;
    let Some(Reproduction::Flaky { evidence, .. }) = snapshot.reproduction() else {
        panic!("{:?}", snapshot.facts);
    };
    let scoped = world.engine.store.within(&world.project.organisation);
    for digest in evidence {
        assert!(scoped.evidence(digest).await.unwrap().is_some());
    }
    assert_eq!((evidence.len(), world.reruns()), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_want_no_repetition_take_the_first_run_at_its_word() {
    let place = tempfile::tempdir().unwrap();
    let setting = fails_once(&place.path().join("trace"));
    let rules = format!("{RULES}reruns: 0\n");
    let mut world = World::new(Setting { rules, ..setting }).await;
    unconfined(&mut world).await;
    world.settle().await;
    let snapshot = world.snapshot().await;
    assert!(
        matches!(snapshot.reproduction(), Some(Reproduction::Red { repeated, .. }) if repeated.is_empty()),
        "{:?}",
        snapshot.facts
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_that_fail_twice_are_red_and_repaired() {
    let world = World::new(Setting::sums()).await;
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    let snapshot = world.snapshot().await;
    let Some(red @ Reproduction::Red { repeated, .. }) = snapshot.reproduction() else {
        panic!("{:?}", snapshot.facts);
    };
    assert_eq!(repeated.len(), 1);
    assert_eq!(red.tally().as_deref(), Some("in 2 of 2 runs"));
    assert_eq!(world.reruns(), 0);
}

/// Kills the first worker after effect `number` and lets the attempt end before the second one looks. False when there is no
/// such effect.
async fn killed_after(number: usize) -> bool {
    let mut world = World::new(passes_here()).await;
    let stop = StopAfter::effect(number);
    world.engine.failpoint = Some(stop.clone());
    let killed = tokio::select! {
        drained = drain(&world.engine, "first") => {
            drained.unwrap();
            false
        }
        () = stop.reached.notified() => true,
    };
    world.engine.failpoint = None;
    let mut ended = world.attempt().await == 2;
    if ended {
        world.ends("success");
    }
    world.clock.advance_millis(61_000);
    drain(&world.engine, "second").await.unwrap();
    if !ended {
        world.ends("success");
        ended = true;
    }
    assert!(ended);
    world.look().await;
    assert_eq!(
        world.closed().await,
        (ClosedReason::Flaky, FLAKY.to_owned()),
        "after {number}"
    );
    assert_eq!(
        (world.reruns(), world.attempt().await),
        (1, 2),
        "after {number}"
    );
    killed
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_any_effect_one_rerun_is_asked_for() {
    let mut number = 1;
    while killed_after(number).await {
        number += 1;
    }
    assert!(
        number >= 4,
        "tests, commit, rerun, commit; ended at {number}"
    );
}
