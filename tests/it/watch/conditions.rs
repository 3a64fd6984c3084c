//! Repositories that cannot be watched as before: each becomes visible, with its mend, and none is a silent stop.

use caretaker::connector::github::app::{Level, Permissions};
use caretaker::connector::github::credential::TokenError;
use caretaker::connector::{Condition, ConnectorError};
use caretaker::forge::{Fault, FaultAction};
use caretaker::watch::of_error;

use super::scene::{Scene, job};

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
