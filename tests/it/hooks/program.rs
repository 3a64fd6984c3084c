//! The whole program: `web` and `serve` take deliveries when a secret is configured, and `doctor` says whether any came.

use super::{guid, signed};
use crate::serve::place::Place;
use crate::serve::process::Ended;

const SECRET: &str = "0f2c7a1be94d4c58a1d30b6f9d31e8a7";

async fn deliver(pages: &str, id: &str, signature: &str, body: &str) -> (u16, String) {
    let sent = crate::serve::inbox::browser()
        .post(format!("{pages}/webhooks/github"))
        .header("Content-Type", "application/json")
        .header("X-GitHub-Event", "ping")
        .header("X-GitHub-Delivery", id)
        .header("X-Hub-Signature-256", signature)
        .body(body.to_owned())
        .send();
    let answer = sent.await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn configured() -> Place {
    let place = Place::with_keys().await;
    place.write("hook.secret", SECRET);
    let file = std::fs::read_to_string(place.path("caretaker.yaml")).unwrap();
    let hooks = "github: {webhook_secret: 'file:hook.secret'}\n";
    place.write("caretaker.yaml", &(file + hooks));
    place
}

/// What doctor says of webhooks.
async fn doctor(place: &Place) -> Option<(String, String)> {
    let ran = place.run(&["doctor", "--json", "--offline"]).await;
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let checks = document["checks"].as_array().unwrap();
    let one = checks.iter().find(|one| one["check"] == "webhooks")?;
    let text = |member: &str| one[member].as_str().unwrap().to_owned();
    Some((text("state"), text("found")))
}

#[tokio::test]
async fn web_and_serve_take_signed_deliveries_and_doctor_tells_of_them() {
    let place = configured().await;
    let (state, found) = doctor(&place).await.unwrap();
    assert_eq!(state, "warning");
    assert!(found.contains("no delivery has come yet"), "{found}");
    let body = "{\"zen\": \"Design for failure.\", \"hook_id\": 1}";
    let signature = signed(SECRET, body.as_bytes());
    for (command, first) in [("web", "noted"), ("serve", "known")] {
        let (_process, pages) = place.start(place.command(&[command])).await;
        let (status, _) = deliver(&pages, &guid(9), &signed("guess", body.as_bytes()), body).await;
        assert_eq!(status, 401, "{command}");
        let (status, text) = deliver(&pages, &guid(1), &signature, body).await;
        assert_eq!(status, 202, "{command}: {text}");
        assert!(text.contains(first), "{command}: {text}");
    }
    let (state, found) = doctor(&place).await.unwrap();
    assert_eq!(state, "ok", "{found}");
    assert!(found.contains("the last delivery came"), "{found}");
    assert!(found.ends_with(" s ago"), "{found}");
}

#[tokio::test]
async fn without_a_secret_there_is_no_address_for_deliveries() {
    let place = Place::with_keys().await;
    assert_eq!(doctor(&place).await, None);
    let (_process, pages) = place.start(place.command(&["web"])).await;
    let body = "{}";
    for secret in ["", "guess"] {
        let (status, _) = deliver(&pages, &guid(1), &signed(secret, body.as_bytes()), body).await;
        assert_eq!(status, 404);
    }
}

/// A protection that is configured and missing must not look as if webhooks were merely off.
#[tokio::test]
async fn a_secret_that_is_not_there_ends_the_start_with_the_mend() {
    let place = configured().await;
    std::fs::remove_file(place.path("hook.secret")).unwrap();
    for command in ["web", "serve"] {
        let refused: Ended = place.run(&[command]).await;
        refused.refuses(&["webhooks", "hook.secret", "github.webhook_secret"]);
    }
    let (state, _) = doctor(&place).await.unwrap();
    assert_eq!(state, "failed");
    place.write("hook.secret", "short");
    let (state, found) = doctor(&place).await.unwrap();
    assert_eq!(state, "warning");
    assert!(found.contains("shorter than 20 bytes"), "{found}");
}
