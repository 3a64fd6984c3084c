//! Looking at questions, and having links sent anew.

use caretaker::approve::HumanDecision;
use caretaker::incident::{Step, next};
use caretaker::store::{ApprovalState, Consumed};

use super::*;

#[tokio::test]
async fn what_waits_for_an_answer_is_listed_and_shown() {
    let desk = Desk::new().await;
    insta::assert_snapshot!(desk.run(&["approval", "list"]).shown(), @r"
    [0]
    nothing waits for an answer
    ");
    desk.story("lint").await.close().await;
    let asked = Asked::about(&desk, "test").await;
    insta::assert_snapshot!(desk.run(&["approval", "list"]).shown(), @r"
    [0]
    inc-…  local:ada is asked, until [time]  The difference is a difference
    ");
    insta::assert_snapshot!(desk.run(&["approval", "show", asked.id()]).shown(), @r"
    [0]
    incident     inc-…
    asked        local:ada is asked, until [time]
    link         sent, works until [time]
    title        The difference is a difference
    body         It was a sum.
    pull request 7, https://github.example/acme/difference/pull/7
    repository   number 4711 at github.example
    base         main from [object]
    head         caretaker/fix-1 at [object]
    tree         [object]
    merge        squash
    change       1 path
                 ~ 100644 [object] difference.rs
    digest       [digest]
    binding      [digest]
    request      [digest]
    ");
}

#[tokio::test]
async fn the_question_in_json_holds_the_exact_binding() {
    let desk = Desk::new().await;
    let asked = Asked::about(&desk, "test").await;
    let list = desk.run(&["approval", "list", "--json"]).json();
    assert_eq!(list["approvals"][0]["incident"], asked.id());
    let document = desk.run(&["approval", "show", asked.id(), "--json"]).json();
    let snapshot = desk.snapshot(&asked.incident).await;
    let request = snapshot.request().unwrap();
    let binding: Binding = serde_json::from_value(document["binding"].clone()).unwrap();
    assert_eq!(binding, request.binding);
    assert_eq!(document["binding_digest"], binding.digest().to_string());
    assert_eq!(document["digest"], binding.change_digest().to_string());
    assert_eq!(document["request"], request.digest().to_string());
    assert_eq!(document["expires_at"], binding.expires_at.to_string());
    assert_eq!(document["state"], "waiting");
    assert_eq!(document["link"]["state"], "live");
    for absent in ["decision", "answered_at", "comment"] {
        assert!(document[absent].is_null(), "{absent}");
    }
}

/// Break it: leave the revocation out of `Store::renew_link`.
#[tokio::test]
async fn a_link_that_is_sent_anew_ends_the_older_one() {
    let desk = Desk::new().await;
    let asked = Asked::about(&desk, "test").await;
    let before = desk.snapshot(&asked.incident).await;
    insta::assert_snapshot!(desk.run(&["approval", "resend", asked.id()]).shown(), @r"
    [0]
    the older link of inc-… no longer works; a running worker sends a new one to local:ada
    note: no notifier is configured, so it will reach nobody; add one under notify
    ");

    let now = SystemClock.now();
    let consume = desk
        .store
        .consume(&asked.token, HumanDecision::Approve, None, now);
    assert_eq!(consume.await.unwrap(), Consumed::Gone);
    let view = desk.store.approval_by_token(&asked.token.hash(), now).await;
    assert_eq!(view.unwrap().unwrap().state, ApprovalState::Revoked);
    let after = desk.snapshot(&asked.incident).await;
    assert_eq!(after.version, before.version + 1);
    // A worker takes it up at once and makes the new link.
    assert_eq!(next(&after, now), Step::MintLink);
    let claim = desk.store.claim("other", now, LEASE).await.unwrap();
    assert_eq!(claim.unwrap().incident, asked.incident);
}

/// Break it: leave `version = version + 1` out of `by_hand::FENCE`.
#[tokio::test]
async fn a_worker_that_did_not_see_the_older_link_end_loses_its_commit() {
    let desk = Desk::new().await;
    let asked = Asked::about(&desk, "test").await;
    let until = desk.snapshot(&asked.incident).await;
    let until = until.request().unwrap().binding.expires_at;
    let claim = desk.store.claim("other", until, LEASE).await.unwrap();
    let (claim, seen) = (claim.unwrap(), desk.snapshot(&asked.incident).await);
    assert_eq!(desk.run(&["approval", "resend", asked.id()]).code, Some(0));
    let outcome = Outcome::fact(Fact::CleanedUp);
    let commit = desk.store.commit(&claim, &seen, &outcome, until, LEASE);
    assert_eq!(commit.await.unwrap(), Commit::Lost);
}
