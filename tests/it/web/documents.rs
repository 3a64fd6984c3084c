//! Incidents as JSON.

use super::answers::token;
use super::http::get;
use super::scene::Scene;
use super::story::{Story, Words};

#[tokio::test]
async fn absent_parts_are_null_and_known_parts_have_their_stable_members() {
    let scene = Scene::new().await;
    let mut story = Story::begin(&scene, Words::default()).await;
    let path = format!("/api/v1/incidents/{}", story.incident);
    let router = scene.router();
    let early = get(&router, &path).await.json();
    for absent in [
        "closed_reason",
        "class",
        "diagnosis",
        "change",
        "decision",
        "approval",
        "execution",
    ] {
        assert!(early[absent].is_null(), "{absent}");
    }
    assert_eq!(
        (&early["stage"], &early["failure"]["kind"]),
        (&"detected".into(), &"code".into())
    );

    story.investigate().await;
    story.fix().await;
    story.ask(token(1).hash(), 3_600).await;
    let late = get(&router, &path).await.json();
    let known = [
        ("/id", story.incident.as_str()),
        ("/project", scene.project.id.as_str()),
        ("/stage", "awaiting-approval"),
        ("/class", "functional"),
        ("/diagnosis/files/0", "src/deadline.rs"),
        ("/decision/verdict", "approve"),
        ("/approval/principal", "mailto:owner@example.org"),
        ("/timeline/0/kind", "opened"),
        ("/timeline/0/at", "2027-01-15T08:00:00Z"),
    ];
    for (pointer, expected) in known {
        assert_eq!(late.pointer(pointer), Some(&expected.into()), "{pointer}");
    }
    assert_eq!(late["change"]["count"], 2);
    assert_eq!(late["execution"]["pull_request"], 7);
    assert!(late["execution"]["merge_commit"].is_null());
    assert!(late["approval"]["decision"].is_null());

    let list = get(&router, "/api/v1/incidents").await.json();
    assert_eq!(list["incidents"][0]["id"], story.incident.as_str());
}

#[tokio::test]
async fn a_ledger_document_is_the_report_and_what_it_is_about() {
    let scene = Scene::new().await;
    let mut story = Story::begin(&scene, Words::default()).await;
    story.investigate().await;
    story.fix().await;
    let path = format!("/api/v1/incidents/{}/ledger", story.incident);
    let ledger = get(&scene.router(), &path).await.json();
    assert_eq!(ledger["verdict"], "valid");
    assert_eq!(ledger["events"][1]["type"], "policy-decision");
    assert_eq!(ledger["failures"], serde_json::json!([]));
    assert!(ledger["checkpoint"].is_null());
    assert!(ledger["envelopes"][0]["payload"].is_string());
}
