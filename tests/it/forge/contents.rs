//! Workflows, and files read over the API.

use caretaker::forge::{FileEdit, NewWorkflow};
use reqwest::Method;
use serde_json::json;

use super::bench::{Bench, file, read};
use super::description::Description;
use super::runs::run;

#[tokio::test(flavor = "multi_thread")]
async fn workflows_come_up_and_are_disabled() {
    let bench = Bench::new().await;
    let repository = &bench.repository;
    repository
        .add_workflow(NewWorkflow {
            id: 77,
            name: "Nightly".to_owned(),
            path: ".github/workflows/nightly.yml".to_owned(),
            state: "active".to_owned(),
        })
        .unwrap();
    let tip = repository.tip("main").unwrap();
    repository
        .add_run(run(tip, None, Some("success"), vec![]))
        .unwrap();
    let description = Description::read();
    let states = || async {
        let answer = bench.get("/actions/workflows").await;
        if let Some(description) = &description {
            let path = "/repos/acme/widget/actions/workflows";
            description.check(&Method::GET, path, &answer);
        }
        let rows = answer.body["workflows"].as_array().unwrap().clone();
        let words = rows
            .iter()
            .map(|row| row["state"].as_str().unwrap().to_owned());
        words.collect::<Vec<_>>()
    };
    assert_eq!(states().await, ["active", "active"]);
    for word in ["disabled_inactivity", "disabled_manually", "deleted"] {
        repository.set_workflow_state(77, word).unwrap();
        assert_eq!(states().await, [word, "active"]);
    }
    let one = bench.get("/actions/workflows/nightly.yml").await;
    assert_eq!((one.status, &one.body["id"]), (200, &json!(77)));
    assert!(one.body["deleted_at"].is_string());
    assert_eq!(bench.get("/actions/workflows/9").await.status, 404);
    assert!(repository.set_workflow_state(9, "active").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_folders_are_read() {
    let entry = |mode: u32, content: &str| FileEdit::Write {
        mode,
        content: content.into(),
    };
    let bench = Bench::with(&[
        (
            ".github/workflows/ci.yml",
            file("on:\n  schedule:\n    - cron: '5 4 * * *'\n"),
        ),
        ("docs/a b#.md", file("text\n")),
        ("docs/link", entry(0o120_000, "../.github/workflows/ci.yml")),
        ("docs/out", entry(0o120_000, "/etc/passwd")),
        ("docs/up", entry(0o120_000, "../../etc/passwd")),
        ("vendor", entry(0o160_000, &"1".repeat(40))),
        ("big", file(&"x".repeat(1_000_001))),
    ])
    .await;
    let description = Description::read();
    let get = |path: &'static str| {
        let (bench, description) = (&bench, &description);
        async move {
            let answer = bench.get(&format!("/contents/{path}")).await;
            // The description has no template for a path with slashes.
            if let Some(description) = description {
                description.check(&Method::GET, "/repos/acme/widget/contents/x", &answer);
            }
            answer
        }
    };
    let workflow = get(".github/workflows/ci.yml").await;
    assert_eq!(workflow.body["type"], "file");
    assert_eq!(workflow.body["encoding"], "base64");
    assert_eq!(get("docs/a%20b%23.md").await.body["path"], "docs/a b#.md");
    let link = get("docs/link").await;
    assert_eq!(link.body["type"], "file");
    assert_eq!(link.body["content"], workflow.body["content"]);
    for path in ["docs/out", "docs/up"] {
        assert_eq!(get(path).await.body["type"], "symlink");
    }
    assert_eq!(get("vendor").await.body["type"], "submodule");
    let big = get("big").await;
    assert_eq!(
        (&big.body["encoding"], &big.body["content"]),
        (&json!("none"), &json!(""))
    );
    let folder = get("docs").await;
    let kinds: Vec<&str> = folder
        .body
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["file", "symlink", "symlink", "symlink"]);
    assert_eq!(get("gone").await.status, 404);
    assert_eq!(get("README?ref=gone").await.status, 404);
    let raw = bench
        .client
        .get(format!(
            "{}/repos/acme/widget/contents/.github/workflows/ci.yml?ref=main",
            bench.forge.url()
        ))
        .bearer_auth(bench.forge.token())
        .header("accept", "application/vnd.github.raw+json");
    let raw = read(raw.send().await.unwrap()).await;
    assert!(raw.body.as_str().unwrap().starts_with("on:\n  schedule:"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_moves_and_goes() {
    let bench = Bench::new().await;
    let by_id = format!("/repositories/{}", bench.repository.id());
    bench.repository.transfer("umbrella").unwrap();
    let moved = bench.get("").await;
    assert_eq!(moved.status, 301);
    assert!(moved.header("location").ends_with(&by_id));
    let written = bench.post("/pulls", json!({})).await;
    assert_eq!(written.status, 307);
    let there = bench
        .send(Method::GET, "/repos/umbrella/widget", None)
        .await;
    assert_eq!(there.body["owner"]["login"], "umbrella");
    bench.repository.archive().unwrap();
    let there = bench.send(Method::GET, &by_id, None).await;
    assert_eq!(there.body["archived"], true);
    bench.repository.delete();
    for path in ["/repos/acme/widget", "/repos/umbrella/widget", &by_id] {
        let answer = bench.send(Method::GET, path, None).await;
        assert_eq!(
            (answer.status, answer.message()),
            (404, "Not Found"),
            "{path}"
        );
    }
    // The name is free again.
    bench
        .forge
        .create_repository("umbrella", "widget", &[])
        .unwrap();
}
