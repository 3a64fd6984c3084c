//! A process that is killed, and the one that comes after it.

use super::inbox::{hidden_fields, look, press};
use super::place::{CODER, World};

// Break it: make the repository at its own place in `workspace::repository::create`; killed while it does, a process leaves
// one that the next cannot use.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_began_the_next_one_finishes_with_one_pull_request() {
    let mut world = World::new(CODER).await;
    let (serving, _) = world.serve().await;
    // Told as soon as the failure is known, while the tests are being run in the sandbox.
    let opened = world.inbox.wait_for("incident-opened", &serving).await;
    let incident = opened["incident"].as_str().unwrap();
    serving.kill().await;

    let (serving, _) = world.serve().await;
    let asked = world.inbox.wait_for("approval-requested", &serving).await;
    assert_eq!(asked["incident"], incident);
    let link = asked["approval_url"].as_str().unwrap();
    let (_, page) = look(&world.browser, link).await;
    let answered = press(&world.browser, link, hidden_fields(&page), "approve").await;
    assert_eq!(answered, 303);
    // The answer is on record, and perhaps the merge was asked for, perhaps not.
    serving.kill().await;

    let (serving, pages) = world.serve().await;
    world.inbox.wait_for("incident-resolved", &serving).await;
    let document = world.incident(&pages, incident, "resolved").await;
    let events = world.verified(incident).await;
    assert_eq!(
        events,
        ["proposal", "policy-decision", "approval", "execution"]
    );
    let merge_commit = &document["execution"]["merge_commit"];
    world.exactly_one_is_merged(merge_commit).await;
    assert_eq!(serving.terminate().await, Some(0));
    assert_eq!(world.forge.terminate().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn told_to_end_in_the_middle_of_a_test_run_it_ends_in_time() {
    let mut world = World::new(CODER).await;
    let (serving, _) = world.serve().await;
    world.inbox.wait_for("incident-opened", &serving).await;
    assert_eq!(serving.terminate().await, Some(0));
    assert_eq!(world.forge.terminate().await, Some(0));
}
