//! `caretaker doctor` over many projects of one provider.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use caretaker::forge::{Plant, Protection};
use serde_json::{Value, json};

use super::command::{command, output};
use crate::connector::provider::{Asked, Provider, Reply, json as answered, with_headers};
use crate::forge::bench::forge;

/// How many projects are asked about side by side.
const AT_ONCE: usize = 8;

/// Questions that wait for each other.
#[derive(Default)]
struct Crowd {
    gathering: AtomicBool,
    /// How many wait now, and how many ever did at the same time.
    waiting: Mutex<(usize, usize)>,
    came: Condvar,
}

impl Crowd {
    /// Waits until as many wait as may, or until it is clear that no more come.
    fn join(&self) {
        let mut waiting = self.waiting.lock().unwrap();
        waiting.0 += 1;
        waiting.1 = waiting.1.max(waiting.0);
        self.came.notify_all();
        let few = |(_, most): &mut (usize, usize)| *most < AT_ONCE;
        let limit = Duration::from_secs(10);
        let (mut waiting, _) = self.came.wait_timeout_while(waiting, limit, few).unwrap();
        waiting.0 -= 1;
    }

    fn answer(&self, asked: &Asked) -> Reply {
        let path = asked.target.split('?').next().unwrap_or_default();
        let repository = |number: u64| {
            let name = format!("octo/widget-{number}");
            let body =
                json!({"id": number, "full_name": name, "default_branch": "main", "private": true});
            answered(200, &body)
        };
        let number = |prefix: &str| path.strip_prefix(prefix)?.parse().ok();
        if path == "/api/v3/rate_limit" {
            if self.gathering.load(Ordering::SeqCst) {
                tokio::task::block_in_place(|| self.join());
            }
            return with_headers(200, &[("x-oauth-scopes", "repo")], &json!({}));
        }
        if path.contains("/branches/main") || path.contains("/git/ref/heads/main") {
            let commit = "1".repeat(40);
            let body = json!({
                "name": "main", "ref": "refs/heads/main", "commit": {"sha": commit},
                "object": {"type": "commit", "sha": commit},
            });
            return answered(200, &body);
        }
        let named =
            number("/api/v3/repos/octo/widget-").or_else(|| number("/api/v3/repositories/"));
        named.map_or_else(
            || answered(404, &json!({"message": "Not Found"})),
            repository,
        )
    }
}

async fn done(home: &Path, arguments: &[&str]) -> Value {
    let mut command = command(home, arguments);
    command.env("FORGE_TOKEN", "ghp_of-many-projects");
    let ran = tokio::task::spawn_blocking(move || output(command));
    let (_, out, error) = ran.await.unwrap();
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{error}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn projects_are_asked_about_side_by_side_and_shown_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let crowd = Arc::new(Crowd::default());
    let answering = Arc::clone(&crowd);
    let provider = Provider::start(move |asked| answering.answer(asked)).await;
    let (api, web) = (format!("{}/api/v3", provider.origin), &provider.origin);
    let configuration = json!({"github": {"api_url": api, "web_url": web, "git_url": web}});
    std::fs::write(home.join("caretaker.yaml"), configuration.to_string()).unwrap();
    assert_eq!(output(command(home, &["keys", "init"])).0, Some(0));
    for number in 1..=AT_ONCE + 3 {
        let url = format!("{web}/octo/widget-{number}");
        let register = [
            "project",
            "register",
            &url,
            "--token-env",
            "FORGE_TOKEN",
            "--json",
        ];
        assert!(done(home, &register).await["id"].is_string());
    }
    let listed = done(home, &["project", "list", "--json"]).await;
    let ids = |projects: &Value| -> Vec<Value> {
        let projects = projects.as_array().unwrap().iter();
        projects.map(|project| project["id"].clone()).collect()
    };
    crowd.gathering.store(true, Ordering::SeqCst);
    let doctor = done(home, &["doctor", "--json"]).await;
    assert_eq!(crowd.waiting.lock().unwrap().1, AT_ONCE);
    assert_eq!(ids(&doctor["projects"]), ids(&listed["projects"]));
    for project in doctor["projects"].as_array().unwrap() {
        assert_eq!(project["credential"]["kind"], "classic token", "{project}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whether_the_branch_that_holds_the_log_is_protected_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let forge = forge(&home.join("forge")).await;
    let repository = forge.plant(Plant::RedTest).unwrap().repository;
    let url = forge.url();
    let configuration = json!({
        "github": {"api_url": url, "web_url": url, "git_url": url},
        "anchor": {"branch": {"name": "caretaker-log"}},
    });
    std::fs::write(home.join("caretaker.yaml"), configuration.to_string()).unwrap();
    std::fs::write(home.join("rules.yaml"), "anchors: {required: [branch]}\n").unwrap();
    assert_eq!(output(command(home, &["keys", "init"])).0, Some(0));
    let token = forge.token().to_owned();
    let ran = async |arguments: &[&str]| {
        let mut command = command(home, arguments);
        command.env("FORGE_TOKEN", &token);
        let ran = tokio::task::spawn_blocking(move || output(command));
        let (_, out, error) = ran.await.unwrap();
        serde_json::from_str::<Value>(&out).unwrap_or_else(|_| panic!("{out}{error}"))
    };
    let (full_name, owner) = (repository.full_name(), "mailto:owner@example.org");
    let project = format!("{url}/{full_name}");
    let mut register = vec![
        "project",
        "register",
        &project,
        "--token-env",
        "FORGE_TOKEN",
    ];
    register.extend(["--rules", "rules.yaml", "--owner", owner, "--json"]);
    assert!(ran(&register).await["id"].is_string());
    let said = async || {
        let doctor = ran(&["doctor", "--json"]).await;
        let checks = doctor["projects"][0]["checks"].as_array().unwrap().clone();
        let found = checks.iter().find(|it| it["check"] == "log branch");
        found.unwrap_or_else(|| panic!("{doctor}"))["found"]
            .as_str()
            .unwrap()
            .to_owned()
    };

    let words = said().await;
    assert!(words.contains("is not there yet"), "{words}");
    let tip = repository.tip("main").unwrap();
    repository.create_branch("caretaker-log", &tip).unwrap();
    let words = said().await;
    // Break it: say nothing (`cli::doctor::projects::one`).
    assert!(words.contains("can be pushed over or deleted"), "{words}");
    assert!(words.contains("add a ruleset"), "{words}");
    repository
        .protect("caretaker-log", Protection::default())
        .unwrap();
    let words = said().await;
    assert!(words.contains("refuses to push over"), "{words}");
}
