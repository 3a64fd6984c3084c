//! Projects are looked at beside each other: none waits for another one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use caretaker::clock::Clock;
use caretaker::config::Poll;
use caretaker::connector::Connector;
use caretaker::id::ProjectId;
use caretaker::signer::system_randomness;
use caretaker::store::{Project, ProjectState};
use caretaker::watch::{Watch, run};
use caretaker::worker::{Connectors, Time};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::scene::{NOON, Scene};

/// What becomes of looks at a project.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The look never ends.
    Hangs,
    /// The first one ends the task that it runs in; the others hang.
    Panics,
}

/// Says of every look that it begins.
struct Fates {
    of: Mutex<BTreeMap<ProjectId, Fate>>,
    began: mpsc::UnboundedSender<ProjectId>,
}

#[async_trait]
impl Connectors for Fates {
    async fn of(&self, project: &Project) -> Result<Arc<dyn Connector>, String> {
        self.began.send(project.id.clone()).unwrap();
        let fate = self.of.lock().unwrap().remove(&project.id);
        assert!(fate != Some(Fate::Panics), "as it was meant to");
        std::future::pending().await
    }
}

/// A watch over two projects that is told to stop in the end.
struct Pair {
    scene: Scene,
    second: Project,
    began: mpsc::UnboundedReceiver<ProjectId>,
    stop: CancellationToken,
    watching: tokio::task::JoinHandle<()>,
}

impl Pair {
    /// The first project is due now and its look hangs; the second is due a minute later.
    async fn watched(second_fate: Fate) -> Self {
        let scene = Scene::new().await;
        let second = Project {
            id: ProjectId::new(NOON, [3; 10]),
            repository_id: "987".to_owned(),
            full_name: "acme/gadget".to_owned(),
            state: ProjectState::Draft,
            ..scene.project.clone()
        };
        let (store, later) = (&scene.store, NOON.plus_seconds(60));
        store.insert_project(&second, b"sealed").await.unwrap();
        store.confirm_project(&second, None, later).await.unwrap();
        let (tell, began) = mpsc::unbounded_channel();
        let fates = Fates {
            of: Mutex::new(BTreeMap::from([(second.id.clone(), second_fate)])),
            began: tell,
        };
        let clock: Arc<dyn Clock> = Arc::clone(&scene.clock) as Arc<_>;
        let watch = Watch::new(
            scene.store.clone(),
            Arc::new(fates),
            system_randomness,
            Poll::default(),
            "first".to_owned(),
        );
        let stop = CancellationToken::new();
        let watching = tokio::spawn(run(watch.by(Time::Clock(clock)), stop.clone()));
        Self {
            scene,
            second,
            began,
            stop,
            watching,
        }
    }

    /// The project whose look begins next.
    async fn next(&mut self) -> ProjectId {
        let next = tokio::time::timeout(Duration::from_secs(20), self.began.recv()).await;
        next.expect("a look begins").unwrap()
    }

    async fn end(self) {
        self.stop.cancel();
        self.watching.await.unwrap();
    }
}

/// Break it: wait for the end of a look before looking for what is due.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_does_not_end_keeps_no_other_project_waiting() {
    let mut pair = Pair::watched(Fate::Hangs).await;
    assert_eq!(pair.next().await, pair.scene.project.id);
    pair.scene.pass(59);
    assert!(pair.began.try_recv().is_err(), "it is not due");
    pair.scene.pass(1);
    assert_eq!(pair.next().await, pair.second.id);
    pair.end().await;
}

/// Break it: forget what was taken only when no look is under way.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_broke_off_is_made_again_while_another_goes_on() {
    let mut pair = Pair::watched(Fate::Panics).await;
    assert_eq!(pair.next().await, pair.scene.project.id);
    // The first one is said to be due again when its time is over, which changes nothing: it is being looked at.
    for _ in 0..2 {
        pair.scene.pass(60);
        assert_eq!(pair.next().await, pair.second.id);
    }
    pair.end().await;
}
