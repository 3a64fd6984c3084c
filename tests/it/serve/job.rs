//! The main job with a coder of one's own, against a forge that is another process.

use super::inbox::{hidden_fields, look, press};
use super::place::{CODER, SECRETS, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_fixed_approved_merged_and_proven_through_command_line_and_http_alone() {
    let mut world = World::new(CODER).await;
    let (serving, pages) = world.serve().await;
    let asked = world.inbox.wait_for("approval-requested", &serving).await;
    let incident = asked["incident"].as_str().unwrap();
    let link = asked["approval_url"].as_str().unwrap();
    assert!(link.starts_with(&format!("{pages}/a/")), "{link}");
    assert!(asked["digest"].is_string() && asked["expires_at"].is_string());

    // Looking changes nothing, whoever looks and however often.
    let (_, page) = look(&world.browser, link).await;
    let fields = hidden_fields(&page);
    assert!(!fields.is_empty(), "{page}");
    for _ in 0..3 {
        assert_eq!(world.browser.head(link).send().await.unwrap().status(), 200);
        let (status, again) = look(&world.browser, link).await;
        assert_eq!(
            (status.as_u16(), hidden_fields(&again)),
            (200, fields.clone())
        );
    }
    let waiting = world.incident(&pages, incident, "awaiting-approval").await;
    assert_eq!(waiting["approval"]["decision"], serde_json::Value::Null);
    assert_eq!(waiting["approval"]["principal"], "mailto:owner@example.org");

    let answered = press(&world.browser, link, fields.clone(), "approve").await;
    assert_eq!(answered, 303);
    assert_eq!(press(&world.browser, link, fields, "reject").await, 410);
    let resolved = world.inbox.wait_for("incident-resolved", &serving).await;
    assert_eq!(resolved["incident"], incident);

    let document = world.incident(&pages, incident, "resolved").await;
    assert_eq!(document["approval"]["decision"], "approve");
    assert_eq!(document["change"]["digest"], asked["digest"]);
    assert_eq!(document["execution"]["by_us"], true);
    let events = world.verified(incident).await;
    assert_eq!(
        events,
        ["proposal", "policy-decision", "approval", "execution"]
    );
    let shown = world.place.run(&["ledger", "show", incident]).await;
    assert_eq!(shown.code, Some(0), "{}", shown.error);
    assert!(
        shown.out.contains("execution") && shown.out.contains("ledger: valid"),
        "{}",
        shown.out
    );
    let merge_commit = &document["execution"]["merge_commit"];
    world.exactly_one_is_merged(merge_commit).await;

    let log = serving.log();
    assert!(log.contains("a failure became an incident"), "{log}");
    let token = link.rsplit('/').next().unwrap();
    // Break it: log the address of the link in `worker::steps::links`.
    for secret in SECRETS.into_iter().chain([token, world.token()]) {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    assert_eq!(serving.terminate().await, Some(0));
    assert_eq!(world.forge.terminate().await, Some(0));
    let rest: Vec<_> = world.inbox.left();
    assert!(
        rest.iter()
            .all(|message| message["event"] == "incident-opened"),
        "{rest:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coder_that_answers_garbage_is_a_clear_hand_over_and_nothing_reaches_the_forge() {
    let mut world = World::new("print('I think it is the digit f, or perhaps not')\n").await;
    let (serving, pages) = world.serve().await;
    let told = world.inbox.wait_for("incident-escalated", &serving).await;
    let incident = told["incident"].as_str().unwrap();
    let text = told["text"].as_str().unwrap();
    assert!(text.starts_with("coder-failed: "), "{text}");
    let reason = "the coder command answered to diagnose with something unusable: it is not the one JSON document";
    assert!(text.contains(reason), "{text}");
    let document = world.incident(&pages, incident, "escalated").await;
    assert_eq!(document["escalation"]["reason"], "coder-failed");
    let detail = document["escalation"]["detail"].as_str().unwrap();
    assert!(detail.contains(reason), "{detail}");
    assert_eq!(world.verified(incident).await, ["escalation"]);
    let pulls = world.forge_says("/pulls?state=all").await;
    assert_eq!(pulls, serde_json::json!([]));
    let branches = world.forge_says("/git/matching-refs/heads/").await;
    assert_eq!(branches.as_array().unwrap().len(), 1, "{branches}");
    assert_eq!(serving.terminate().await, Some(0));
    assert_eq!(world.forge.terminate().await, Some(0));
}
