//! From the command line to the message, with the built program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};

use super::server::{Server, answer};
use crate::serve::inbox::Inbox;
use crate::serve::place::{EXECUTOR, POLICY, Place, RULES, configuration, start_forge};
use crate::serve::process::{Ended, Process};

/// An installation with a forge, that allows endpoints on this machine.
struct Desk {
    place: Place,
    forge: Process,
    planted: Value,
    inbox: Inbox,
}

impl Desk {
    async fn new(more: &str) -> Self {
        let inbox = Inbox::open().await;
        let place = Place::with("{}");
        place.write("coder.py", "");
        place.write("rules.yaml", RULES);
        place.write("policy.secret", POLICY);
        place.write("executor.secret", EXECUTOR);
        let (forge, planted) = start_forge(&place).await;
        let base = configuration(planted["url"].as_str().unwrap(), &inbox.url);
        place.write("caretaker.yaml", &format!("{base}{more}"));
        let made = place.run(&["keys", "init"]).await;
        assert_eq!(made.code, Some(0), "{}", made.error);
        Self {
            place,
            forge,
            planted,
            inbox,
        }
    }

    async fn register(&self, arguments: &[&str]) -> Ended {
        let repository = self.planted["repository"].as_str().unwrap();
        let mut register = self.place.command(&["project", "register", repository]);
        register
            .args([
                "--token-env",
                "FORGE_TOKEN",
                "--rules",
                "rules.yaml",
                "--json",
            ])
            .args(["--owner", "mailto:owner@example.org"])
            .args(arguments)
            .env("FORGE_TOKEN", self.planted["token"].as_str().unwrap());
        Ended::of(register).await
    }

    async fn confirmed(&self, arguments: &[&str]) -> String {
        let draft = self.register(arguments).await.json();
        let id = draft["id"].as_str().unwrap().to_owned();
        let confirmed = self.place.run(&["project", "confirm", &id]).await;
        assert_eq!(confirmed.code, Some(0), "{}", confirmed.error);
        id
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_goes_down_is_one_incident_that_closes_when_it_is_back() {
    let mut desk = Desk::new("health_addresses: {loopback: allow}\n").await;
    let status = Arc::new(AtomicU16::new(200));
    let seen = Arc::clone(&status);
    let site = Server::start(move |_| {
        answer(
            &format!("{} Whatever", seen.load(Ordering::SeqCst)),
            "",
            r#"{"state": "ok"}"#,
        )
    })
    .await;
    let checks = json!([{"name": "site", "url": site.url("/health?key=hunter2"), "interval": "1s",
        "expect": {"json": [{"path": "$.state", "equals": "ok"}]}, "failures_to_open": 2, "successes_to_close": 1}]);
    let id = desk
        .confirmed(&["--watch", "health", "--health", &checks.to_string()])
        .await;
    let before = desk.place.run(&["project", "show", &id]).await;
    assert!(
        before.out.contains("not asked yet") && !before.out.contains("hunter2"),
        "{}",
        before.out
    );

    status.store(503, Ordering::SeqCst);
    let (serving, _) = desk.place.start(desk.place.command(&["serve"])).await;
    let opened = desk.inbox.wait_for("incident-opened", &serving).await;
    let text = opened["text"].as_str().unwrap();
    assert!(
        text.contains("site: status 503, expected 200-299 (health)") && !text.contains("hunter2"),
        "{text}"
    );
    let incident = opened["incident"].as_str().unwrap();
    let shown = desk.place.run(&["incident", "show", incident]).await;
    assert!(
        shown
            .out
            .contains("reported, not fixed; it waits for recovery or a person"),
        "{}",
        shown.out
    );
    let down = desk
        .place
        .run(&["project", "show", &id, "--json"])
        .await
        .json();
    let state = &down["health"][0]["state"];
    assert_eq!(
        (&state["phase"], &state["last"]["reason"]),
        (&json!("down"), &json!("status 503, expected 200-299"))
    );
    let woken = desk.place.run(&["incident", "retry", incident]).await;
    assert_ne!(woken.code, Some(0), "{}", woken.out);

    // Killed and started again while it is down: nobody hears of it twice.
    serving.kill().await;
    let (serving, _) = desk.place.start(desk.place.command(&["serve"])).await;
    status.store(200, Ordering::SeqCst);
    let closed = desk.inbox.wait_for("incident-closed", &serving).await;
    assert_eq!(closed["incident"], incident);
    assert_eq!(
        closed["text"],
        "recovered: the endpoint answers as expected again"
    );
    let rest: Vec<_> = desk.inbox.left();
    assert_eq!(rest, Vec::<Value>::new());
    let up = desk.place.run(&["project", "show", &id]).await;
    assert!(
        up.out.contains("\n  up since ") && up.out.contains(" passed in "),
        "{}",
        up.out
    );
    assert!(!serving.log().contains("hunter2"), "{}", serving.log());
    assert_eq!(serving.terminate().await, Some(0));
    assert_eq!(desk.forge.terminate().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_come_from_the_command_line_a_file_or_the_configuration() {
    let more = "health: [{name: configured, url: 'https://site.example/'}]\n";
    let desk = Desk::new(more).await;
    let name = async |arguments: &[&str]| {
        let mut all = vec!["--watch", "health"];
        all.extend(arguments);
        let draft = desk.register(&all).await.json();
        let id = draft["id"].as_str().unwrap();
        let shown = desk.place.run(&["project", "show", id, "--json"]).await;
        let name = shown.json()["health"][0]["name"].clone();
        name.as_str().unwrap().to_owned()
    };
    assert_eq!(name(&[]).await, "configured");
    desk.place.write(
        "checks.yaml",
        "- name: filed\n  url: https://site.example/\n",
    );
    assert_eq!(name(&["--health-file", "checks.yaml"]).await, "filed");
    let given = r#"[{"name": "given", "url": "https://site.example/"}]"#;
    assert_eq!(name(&["--health", given]).await, "given");

    let refused = async |arguments: &[&str], pieces: &[&str]| {
        desk.register(arguments).await.refuses(pieces);
    };
    refused(&["--health", given], &["--watch health"]).await;
    refused(
        &["--watch", "health", "--health", "[]"],
        &["at least one check"],
    )
    .await;
    let wrong = r#"[{"name": "a", "ulr": "https://site.example/"}]"#;
    refused(
        &["--watch", "health", "--health", wrong],
        &["--health:1:", "did you mean url?"],
    )
    .await;
    for (address, kind) in [
        ("http://127.0.0.1/", "an address of this machine"),
        ("http://10.1.2.3/", "a private address"),
        ("http://169.254.169.254/", "a link-local address"),
        ("http://[::ffff:127.0.0.1]/", "an address of this machine"),
    ] {
        let check = json!([{"name": "a", "url": address}]).to_string();
        refused(
            &["--watch", "health", "--health", &check],
            &[kind, "health_addresses"],
        )
        .await;
    }
    let listed = desk.place.run(&["project", "list", "--json"]).await.json();
    assert_eq!(listed["projects"].as_array().unwrap().len(), 3);
    assert_eq!(desk.forge.terminate().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_whether_the_targets_of_the_self_check_answer() {
    let there = Server::start(|_| answer("200 OK", "", "")).await;
    let gone = Server::start(|_| super::server::Reply::Bytes(Vec::new())).await;
    let base = there.url("");
    let said = async |targets: &[String]| {
        let provider = json!({"api_url": base, "web_url": base, "git_url": base});
        let configuration = json!({"github": provider, "health_self_check": targets}).to_string();
        let place = Place::with(&configuration);
        let ran = place.run(&["doctor", "--json"]).await;
        let document: Value = serde_json::from_str(&ran.out).unwrap();
        let checks = document["checks"].as_array().unwrap().clone();
        let found = checks.iter().find(|check| check["check"] == "self-check");
        found.map(|found| {
            format!(
                "{}: {}",
                found["state"].as_str().unwrap(),
                found["found"].as_str().unwrap()
            )
        })
    };
    let (there, gone) = (there.url("/"), gone.url("/"));
    assert_eq!(said(&[]).await, None);
    assert_eq!(
        said(&[there.clone(), there.clone()]).await.unwrap(),
        "ok: all 2 targets answer"
    );
    let one = said(std::slice::from_ref(&there)).await.unwrap();
    assert!(one.starts_with("warning: the one target answers"), "{one}");
    let half = said(&[there, gone.clone()]).await.unwrap();
    assert!(
        half.starts_with(&format!("warning: no answer from {gone}")),
        "{half}"
    );
    let none = said(&[gone.clone(), gone]).await.unwrap();
    assert!(none.starts_with("warning: no target answers"), "{none}");
}
