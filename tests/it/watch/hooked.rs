//! Webhooks of a real forge, some lost, some twice, some in the wrong order: the project is looked at earlier where they arrive,
//! and in the end what is known is what polling alone finds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use caretaker::clock::Clock;
use caretaker::forge::{FileEdit, HookFaults, NewHook};
use caretaker::hook::{Delivery, Version};
use caretaker::web::{Now, WebState};

use super::scene::{Scene, job};
use crate::hooks::{SECRET, trust, webhooks_of};

/// Serves deliveries for the scene's organisation, and has the forge send them there.
async fn hook(scene: &Scene) {
    let organisation = scene.project.organisation.clone();
    let mut state = WebState::new(scene.store.clone(), organisation, trust());
    let clock: Arc<dyn Clock> = Arc::<caretaker::clock::FixedClock>::clone(&scene.clock);
    state.time = Now::Clock(clock);
    state.webhooks = Some(Arc::new(webhooks_of(&scene.project.host)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/webhooks/github", listener.local_addr().unwrap());
    tokio::spawn(caretaker::web::serve(
        listener,
        state,
        std::future::pending(),
    ));
    scene.forge.add_hook(NewHook {
        repository: Some(scene.repository.id()),
        url,
        secret: SECRET.to_owned(),
        events: vec!["*".to_owned()],
    });
}

/// What happens at the provider, step by step.
fn happens(scene: &Scene, step: u32, runs: &mut Vec<u64>) {
    let push = |text: &str| {
        let edits = [("README.md", FileEdit::file(text))];
        scene.repository.commit("main", &edits, text).unwrap();
    };
    match step {
        0 | 7 => runs.push(scene.add("success", vec![job("test", "success")])),
        1 => runs.push(scene.add("failure", vec![job("test", "failure")])),
        2 => push("one"),
        3 => drop(scene.repository.rerun(runs[1]).unwrap()),
        4 => {
            let jobs = vec![job("test", "failure")];
            scene
                .repository
                .complete_run(runs[1], "failure", jobs)
                .unwrap();
        }
        5 => runs.push(scene.add("failure", vec![job("lint", "failure")])),
        6 => push("two"),
        _ => runs.push(scene.add(
            "failure",
            vec![job("build", "failure"), job("test", "success")],
        )),
    }
}

const STEPS: u32 = 9;

/// Everything that is known in the end, without what differs from forge to forge.
async fn known(scene: &Scene, runs: &[u64]) -> Vec<String> {
    let place = |run: u64| runs.iter().position(|known| *known == run);
    let mut known = Vec::new();
    for incident in scene.incidents().await {
        let failure = &incident.failure;
        let (run, attempt) = (place(failure.run_id), failure.attempt);
        let job = failure.job.as_deref().unwrap_or("-");
        let (kind, stage) = (failure.kind, incident.stage);
        known.push(format!("{job} {kind} run {run:?}/{attempt} {stage}"));
    }
    let seen = scene.store.seen_runs(&scene.project.id, 0).await.unwrap();
    for run in runs {
        for attempt in 1..3 {
            let done = seen.contains(&(*run, attempt));
            known.push(format!("{:?}/{attempt}: {done}", place(*run)));
        }
    }
    for mut text in scene.messages().await {
        // Numbers of runs differ, since hooks and deliveries have numbers too.
        for (place, run) in runs.iter().enumerate() {
            text = text.replace(&run.to_string(), &format!("number {place}"));
        }
        known.push(text);
    }
    known
}

/// Polls after each step, and looks as soon as deliveries arrive when there are any. What is known in the end, and how many steps were
/// seen before the poll.
async fn story(faults: Option<HookFaults>) -> (Vec<String>, u32) {
    let mut scene = Scene::new().await;
    if let Some(faults) = faults {
        hook(&scene).await;
        scene.forge.hook_faults(faults);
    }
    scene.look().await.unwrap();
    let (mut runs, mut early) = (Vec::new(), 0);
    for step in 0..STEPS {
        scene.pass(10);
        happens(&scene, step, &mut runs);
        scene.forge.deliver().await.unwrap();
        let now = scene.clock.now();
        early += u32::from(!scene.watch.look_at_due(now).await.unwrap().is_empty());
        scene.pass(600);
        let now = scene.clock.now();
        assert_eq!(scene.watch.look_at_due(now).await.unwrap().len(), 1);
    }
    // What was lost arrives at last, all of it late.
    scene.forge.hook_faults(HookFaults::default());
    for delivery in scene.forge.deliveries() {
        scene.forge.redeliver(&delivery.guid).unwrap();
    }
    scene.forge.deliver().await.unwrap();
    let deliveries = scene.forge.deliveries();
    let arrived: BTreeSet<&str> = deliveries
        .iter()
        .filter(|one| one.status == Some(202))
        .map(|one| one.guid.as_str())
        .collect();
    assert!(
        deliveries
            .iter()
            .all(|one| arrived.contains(one.guid.as_str()))
    );
    scene.pass(5);
    let now = scene.clock.now();
    scene.watch.look_at_due(now).await.unwrap();
    (known(&scene, &runs).await, early)
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_doubled_and_reordered_deliveries_end_in_what_polling_finds() {
    let (polled, early) = story(None).await;
    assert_eq!(early, 0, "nobody looks before it is time");
    assert!(
        polled.iter().any(|line| line.starts_with("lint code")),
        "{polled:#?}"
    );
    let none: fn(u64) -> bool = |_| false;
    for (name, faults, expected) in [
        ("whole", HookFaults::default(), STEPS..=STEPS),
        (
            "lost",
            HookFaults {
                lose: |_| true,
                ..HookFaults::default()
            },
            0..=0,
        ),
        (
            "doubled",
            HookFaults {
                duplicate: |_| true,
                ..HookFaults::default()
            },
            STEPS..=STEPS,
        ),
        (
            "reversed",
            HookFaults {
                reverse: true,
                ..HookFaults::default()
            },
            STEPS..=STEPS,
        ),
        (
            "all of it",
            HookFaults {
                lose: |n| n % 2 == 0,
                duplicate: |n| n % 3 == 0,
                reverse: true,
            },
            1..=STEPS,
        ),
        (
            "mostly lost",
            HookFaults {
                lose: |n| n % 5 != 0,
                duplicate: none,
                reverse: false,
            },
            1..=STEPS,
        ),
    ] {
        let (known, early) = story(Some(faults)).await;
        assert_eq!(known, polled, "{name}");
        assert!(
            expected.contains(&early),
            "{name}: {early} steps were seen early"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_webhook_of_the_forge_is_read_and_names_its_repository() {
    let scene = Scene::new().await;
    hook(&scene).await;
    let mut runs = Vec::new();
    for step in 0..STEPS {
        happens(&scene, step, &mut runs);
    }
    scene.repository.rename("gadget").unwrap();
    scene.repository.transfer("umbrella").unwrap();
    scene.repository.archive().unwrap();
    let mut read: BTreeMap<String, u32> = BTreeMap::new();
    for delivery in scene.forge.deliveries() {
        let event = delivery.event.parse().unwrap();
        let found = Delivery::read(&event, delivery.body.as_bytes()).unwrap();
        assert_eq!(found.repositories, [scene.repository.id()], "{event}");
        let versioned = match found.object.map(|object| object.version) {
            Some(Version::Ordered { .. }) => "ordered",
            Some(Version::Commit(_)) => "a commit",
            None => "none",
        };
        *read.entry(format!("{event}: {versioned}")).or_default() += 1;
    }
    let words: Vec<&str> = read.keys().map(String::as_str).collect();
    assert_eq!(
        words,
        [
            "check_suite: ordered",
            "push: a commit",
            "repository: none",
            "workflow_run: ordered"
        ]
    );
    scene.forge.deliver().await.unwrap();
    let deliveries = scene.forge.deliveries();
    assert!(deliveries.iter().all(|one| one.status == Some(202)));
}
