//! Repositories that cannot be watched as before: each becomes visible, with its mend, and none is a silent stop.

use std::sync::Arc;

use async_trait::async_trait;
use caretaker::clock::Clock;
use caretaker::config::Poll;
use caretaker::connector::github::app::{Level, Permissions};
use caretaker::connector::github::credential::TokenError;
use caretaker::connector::{Condition, Connector, ConnectorError};
use caretaker::forge::{Fault, FaultAction};
use caretaker::id::ProjectId;
use caretaker::signer::system_randomness;
use caretaker::store::{Project, ProjectState};
use caretaker::watch::{Watch, of_error};
use caretaker::worker::{Connectors, Time};
use serde_json::json;

use super::scene::{NOON, Scene, connector, job};

/// What the row of the project says: its condition, and the mend.
async fn shown(scene: &Scene) -> (String, String) {
    let scope = scene.store.within(&scene.project.organisation);
    let state = scope.watch_states().await.unwrap().remove(0);
    (
        state.condition.as_str().to_owned(),
        state.mend.unwrap_or_default(),
    )
}

async fn looks(scene: &mut Scene, count: usize) {
    for _ in 0..count {
        scene.pass(700);
        scene.look().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_is_said_once_and_a_new_one_goes_on_where_it_stopped() {
    let mut scene = Scene::new().await;
    scene.add("success", vec![job("test", "success")]);
    scene.look().await.unwrap();
    scene.use_token("ghp_revoked");
    scene.add("failure", vec![job("test", "failure")]);
    looks(&mut scene, 3).await;
    let (condition, mend) = shown(&scene).await;
    assert_eq!(condition, Condition::CredentialRefused.as_str());
    assert!(mend.contains("caretaker project credential"), "{mend}");
    let told = scene.messages().await;
    assert_eq!(told.len(), 1, "{told:?}");

    let token = scene.forge.token().to_owned();
    scene.use_token(&token);
    looks(&mut scene, 1).await;
    assert_eq!(scene.kinds().await, ["code test"], "nothing was missed");
    assert_eq!(shown(&scene).await.0, Condition::Fine.as_str());
    let told = scene.messages().await;
    assert!(
        told.iter()
            .any(|text| text.contains("can be watched again")),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_and_a_transferred_repository_are_watched_on_and_said_to_be_elsewhere() {
    let mut scene = Scene::new().await;
    scene.look().await.unwrap();
    scene.repository.rename("gadget").unwrap();
    scene.add("failure", vec![job("test", "failure")]);
    looks(&mut scene, 2).await;
    assert_eq!(scene.kinds().await, ["code test"]);
    let (condition, mend) = shown(&scene).await;
    assert_eq!(condition, Condition::Renamed.as_str());
    assert!(mend.contains("caretaker project rename"), "{mend}");

    scene.repository.transfer("other").unwrap();
    looks(&mut scene, 2).await;
    assert_eq!(shown(&scene).await.0, Condition::Transferred.as_str());
    let told = scene.messages().await;
    assert!(
        told.iter().any(|text| text.contains("other/gadget")),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_and_a_deleted_repository_say_so() {
    let mut scene = Scene::new().await;
    scene.look().await.unwrap();
    scene.repository.archive().unwrap();
    looks(&mut scene, 1).await;
    assert_eq!(shown(&scene).await.0, Condition::Archived.as_str());
    scene.repository.delete();
    looks(&mut scene, 2).await;
    let (condition, mend) = shown(&scene).await;
    assert_eq!(condition, Condition::Absent.as_str());
    assert!(mend.contains("caretaker project remove"), "{mend}");
    let told = scene.messages().await;
    assert_eq!(told.len(), 2, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_failed_look_is_not_an_alarm_and_three_are_one() {
    let mut scene = Scene::new().await;
    scene.look().await.unwrap();
    let (fine, unreachable) = (Condition::Fine.as_str(), Condition::Unreachable.as_str());
    // Nobody listens there.
    scene.use_address("http://127.0.0.1:9");
    for (look, condition) in [fine, fine, unreachable, unreachable]
        .into_iter()
        .enumerate()
    {
        scene.pass(5);
        scene.look().await;
        assert_eq!(shown(&scene).await.0, condition, "look {look}");
    }
    let url = scene.forge.url().to_owned();
    scene.use_address(&url);
    assert_eq!(scene.messages().await.len(), 1);
    scene.pass(60);
    scene.look().await.unwrap();
    assert_eq!(shown(&scene).await.0, Condition::Fine.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_waited_for_and_is_no_alarm() {
    let mut scene = Scene::new().await;
    scene.look().await.unwrap();
    scene.forge.fault(Fault {
        method: "GET".to_owned(),
        path: "/actions/runs".to_owned(),
        nth: 1,
        action: FaultAction::Status {
            code: 403,
            body: "{\"message\":\"You have exceeded a secondary rate limit\"}".to_owned(),
            headers: vec![("retry-after".to_owned(), "120".to_owned())],
        },
    });
    scene.pass(60);
    scene.look().await;
    assert_eq!(shown(&scene).await.0, Condition::Limited.as_str());
    assert_eq!(scene.messages().await, [""; 0]);
    scene.pass(200);
    scene.look().await.unwrap();
    assert_eq!(shown(&scene).await.0, Condition::Fine.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_whose_runs_are_hidden_is_not_said_to_be_gone() {
    let mut scene = Scene::new().await;
    scene.look().await.unwrap();
    scene.forge.fault(Fault {
        method: "GET".to_owned(),
        path: "/actions/runs".to_owned(),
        nth: 1,
        action: FaultAction::Status {
            code: 404,
            body: "{\"message\":\"Not Found\"}".to_owned(),
            headers: Vec::new(),
        },
    });
    scene.pass(60);
    scene.look().await;
    let (condition, mend) = shown(&scene).await;
    assert_eq!(condition, Condition::PermissionMissing.as_str());
    assert!(mend.contains("read Actions"), "{mend}");
}

/// Break it: let what lasts be a refusal like any other; people are then sent to the provider's status page.
#[tokio::test]
async fn what_keeps_the_app_from_a_token_is_said_with_its_own_mend() {
    let action = || "getting a token for the poller".to_owned();
    let installation = 77;
    let reason = || "422: no".to_owned();
    let scene = Scene::new().await;
    let lasting = [
        (
            TokenError::App {
                action: action(),
                reason: reason(),
            },
            "github.app.private_key_file",
        ),
        (
            TokenError::Absent {
                action: action(),
                what: "installation 77".to_owned(),
            },
            "install the App",
        ),
        (
            TokenError::Suspended {
                action: action(),
                installation,
            },
            "unsuspend",
        ),
        (
            TokenError::Ungranted {
                action: action(),
                installation,
                missing: Permissions::of(&[("actions", Level::Read)]),
                reason: reason(),
            },
            "let the owner accept",
        ),
        (
            TokenError::OutOfReach {
                action: action(),
                installation,
                repository: "repository number 42".to_owned(),
                reason: reason(),
            },
            "add the repository",
        ),
    ];
    for (error, mend) in lasting {
        let words = error.to_string();
        let standing = of_error(&scene.project, &ConnectorError::from(error));
        assert_eq!(standing.condition, Condition::CredentialRefused, "{words}");
        let shown = standing.mend.unwrap();
        assert!(shown.contains(mend), "{words}: {shown}");
        let detail = standing.detail.unwrap();
        assert!(!detail.contains(mend), "the mend once: {detail}");
        assert_eq!(format!("{detail}; {shown}"), words);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_runs_said_is_told_though_the_workflows_do_not_answer() {
    let mut scene = Scene::new().await;
    for nth in 1..=4 {
        scene.forge.fault(Fault {
            method: "GET".to_owned(),
            path: "/actions/workflows".to_owned(),
            nth,
            action: FaultAction::Status {
                code: 500,
                body: "{}".to_owned(),
                headers: vec![("retry-after".to_owned(), "1".to_owned())],
            },
        });
    }
    scene.add("action_required", Vec::new());
    let report = scene.look().await.unwrap();
    assert_eq!(report.remarks.len(), 1, "{:?}", report.remarks);
    let told = scene.messages().await;
    assert!(told[0].contains("waits for a person"), "{told:?}");
    // That the workflows do not answer is shown as well, after a while, and the runs are read at the usual pace.
    scene.add("failure", vec![job("test", "failure")]);
    looks(&mut scene, 3).await;
    assert_eq!(shown(&scene).await.0, Condition::Unreachable.as_str());
    assert_eq!(scene.kinds().await, ["code test"]);
    looks(&mut scene, 1).await;
    assert_eq!(shown(&scene).await.0, Condition::Fine.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_lasts_is_told_once_with_its_mend() {
    let mut scene = Scene::new().await;
    scene.look().await.unwrap();
    for nth in 1..=2 {
        scene.forge.fault(Fault {
            method: "GET".to_owned(),
            path: "/actions/runs".to_owned(),
            nth,
            action: FaultAction::Status {
                code: 429,
                body: "{}".to_owned(),
                headers: vec![("retry-after".to_owned(), "1000000000000".to_owned())],
            },
        });
    }
    scene.pass(60);
    scene.look().await;
    let (condition, mend) = shown(&scene).await;
    assert_eq!(condition, Condition::Limited.as_str());
    assert!(mend.contains("caretaker project credential"), "{mend}");
    let told = scene.messages().await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(&mend), "{told:?}");
    // Nobody is believed who asks for more than an hour.
    scene.add("failure", vec![job("test", "failure")]);
    scene.pass(3_700);
    scene.look().await;
    assert_eq!(scene.messages().await, [""; 0], "once");
    scene.pass(3_700);
    scene.look().await.unwrap();
    assert_eq!(scene.kinds().await, ["code test"]);
    let told = scene.messages().await;
    assert!(
        told.iter()
            .any(|text| text.contains("can be watched again")),
        "{told:?}"
    );
}

/// The next look at the repository finds it so.
fn describe(scene: &Scene, number: &str, disabled: bool) {
    let number: u64 = number.parse().unwrap();
    let found = json!({
        "id": number, "full_name": "acme/widget", "default_branch": "main", "disabled": disabled,
    });
    scene.forge.fault(Fault {
        method: "GET".to_owned(),
        path: "/repositories/".to_owned(),
        nth: 1,
        action: FaultAction::Status {
            code: 200,
            body: found.to_string(),
            headers: Vec::new(),
        },
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_the_provider_switched_off_says_so() {
    let mut scene = Scene::new().await;
    scene.look().await.unwrap();
    let number = scene.project.repository_id.clone();
    describe(&scene, &number, true);
    looks(&mut scene, 1).await;
    let (condition, mend) = shown(&scene).await;
    assert_eq!(condition, Condition::Disabled.as_str());
    assert!(mend.contains("provider's support"), "{mend}");
    assert_eq!(scene.messages().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_repository_behind_the_registered_number_is_said_with_its_mend() {
    let mut scene = Scene::new().await;
    scene.look().await.unwrap();
    describe(&scene, "999", false);
    looks(&mut scene, 1).await;
    let (condition, mend) = shown(&scene).await;
    assert_eq!(condition, Condition::Failing.as_str());
    let remove = format!("caretaker project remove {}", scene.project.id);
    assert!(
        mend.contains(&remove) && mend.contains("register it again"),
        "{mend}"
    );
    let told = scene.messages().await;
    assert_eq!(told.len(), 1, "{told:?}");
    let detail = format!("number 999 instead of {}", scene.project.repository_id);
    assert!(
        told[0].contains(&detail) && told[0].contains(&remove),
        "{told:?}"
    );
    looks(&mut scene, 1).await;
    assert_eq!(shown(&scene).await.0, Condition::Fine.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_now_and_then_is_asked_although_the_clock_was_moved_back() {
    let mut scene = Scene::new().await;
    scene.pass(24 * 3600);
    scene.look().await.unwrap();
    scene.pass(-24 * 3600);
    scene.repository.rename("gadget").unwrap();
    looks(&mut scene, 1).await;
    assert_eq!(shown(&scene).await.0, Condition::Renamed.as_str());
}

/// A connector of its own for each project, all with one token.
struct OneToken {
    url: String,
    token: String,
    clock: Arc<caretaker::clock::FixedClock>,
}

#[async_trait]
impl Connectors for OneToken {
    async fn of(&self, project: &Project) -> Result<Arc<dyn Connector>, String> {
        Ok(connector(&self.url, &self.token, project, &self.clock))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_limit_is_told_once_however_many_projects_it_stops() {
    let scene = Scene::new().await;
    let other = scene
        .forge
        .create_repository("acme", "gadget", &[])
        .unwrap();
    let second = Project {
        id: ProjectId::new(NOON, [3; 10]),
        repository_id: other.id().to_string(),
        full_name: "acme/gadget".to_owned(),
        state: ProjectState::Draft,
        ..scene.project.clone()
    };
    scene
        .store
        .insert_project(&second, b"sealed")
        .await
        .unwrap();
    scene
        .store
        .confirm_project(&second, None, NOON)
        .await
        .unwrap();
    let connectors = OneToken {
        url: scene.forge.url().to_owned(),
        token: scene.forge.token().to_owned(),
        clock: Arc::clone(&scene.clock),
    };
    let clock: Arc<dyn Clock> = Arc::clone(&scene.clock) as Arc<_>;
    let watch = Watch::new(
        scene.store.clone(),
        Arc::new(connectors),
        system_randomness,
        Poll::default(),
        "first".to_owned(),
    );
    let mut watch = watch.by(Time::Clock(clock));
    for limit in 1..=2 {
        for nth in 1..=2 {
            scene.forge.fault(Fault {
                method: "GET".to_owned(),
                path: "/repositories/".to_owned(),
                nth,
                action: FaultAction::Status {
                    code: 429,
                    body: "{}".to_owned(),
                    headers: vec![("retry-after".to_owned(), "1800".to_owned())],
                },
            });
        }
        watch.round().await.unwrap();
        let told = scene.messages().await;
        assert_eq!(told.len(), 1, "limit {limit}: {told:?}");
        assert!(
            told[0].contains("every other project with the same credential"),
            "{told:?}"
        );
        // It is over: whose people were told are told that, too.
        scene.pass(1_900);
        assert_eq!(watch.round().await.unwrap().len(), 2);
        let told = scene.messages().await;
        assert_eq!(told.len(), 1, "limit {limit}: {told:?}");
        assert!(told[0].contains("can be watched again"), "{told:?}");
        scene.pass(700);
    }
}
