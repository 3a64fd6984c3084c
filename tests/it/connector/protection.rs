//! What protects a branch, as a provider tells it to somebody who is no administrator, or in odd ways.

use caretaker::connector::{BranchProtection, Connector as _, Guarded};
use serde_json::{Value, json};

use super::comparison::{after, before};
use super::provider::json;
use super::world::World;

/// What is read when the branch says that it is protected and its protection is answered so.
async fn with(status: u16, body: Value) -> Result<Option<BranchProtection>, String> {
    let world = World::new(&before(), &after());
    world.answer_instead(move |_, asked| match asked.tail() {
        "/branches/log" => Some(json(200, &json!({"name": "log", "protected": true}))),
        "/branches/log/protection" => Some(json(status, &body)),
        _ => None,
    });
    let provider = world.serve().await;
    let read = provider.connector().protection("log").await;
    read.map_err(|error| error.to_string())
}

#[tokio::test]
async fn what_is_told_to_administrators_only_is_neither_taken_for_protection_nor_for_none() {
    let message = |words: &str| json!({ "message": words });
    let untold = Ok(Some(BranchProtection::UNTOLD));
    // Break it: take it for `NONE`, or for refused (`connector::github::protection::setting`).
    assert_eq!(with(404, message("Not Found")).await, untold);
    let forbidden = message("Resource not accessible by integration");
    assert_eq!(with(403, forbidden).await, untold);
    assert_eq!(with(200, json!({})).await, untold);
    assert_eq!(
        with(404, message("Branch not protected")).await,
        Ok(Some(BranchProtection::NONE))
    );
    let half = json!({"allow_force_pushes": {"enabled": false}, "allow_deletions": null});
    assert_eq!(
        with(200, half)
            .await
            .unwrap()
            .map(|it| (it.force_pushes, it.deletion)),
        Some((Guarded::Refused, Guarded::Untold))
    );
    with(500, message("")).await.unwrap_err();
    with(200, json!([1])).await.unwrap_err();
}

#[tokio::test]
async fn a_branch_without_a_word_on_protection_is_asked_about_further() {
    let world = World::new(&before(), &after());
    world.answer_instead(move |_, asked| match asked.tail() {
        "/branches/log" => Some(json(200, &json!({}))),
        _ => None,
    });
    let provider = world.serve().await;
    let read = provider.connector().protection("log").await.unwrap();
    assert_eq!(read, Some(BranchProtection::UNTOLD));
    let odd = provider.connector().protection("log/../main").await;
    odd.unwrap_err();
}
