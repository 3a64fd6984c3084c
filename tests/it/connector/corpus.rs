//! GitHub's own examples: everything that the connector reads can be read from them.

use caretaker::connector::Connector as _;
use serde_json::{Value, json};

use super::provider::{Provider, Reply, json, with_headers};
use crate::support::corpus;

fn document(name: &str) -> Option<Value> {
    corpus(name).map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

/// A provider that gives one of the examples to every question.
async fn saying(status: u16, body: Value) -> Provider {
    Provider::start(move |_| json(status, &body)).await
}

#[tokio::test]
async fn every_example_that_is_read_can_be_read() {
    let Some(description) = document("github/openapi-subset.json") else {
        return;
    };
    let example = |name: &str| description["components"]["examples"][name]["value"].clone();

    let provider = saying(200, example("full-repository-default-response")).await;
    let own = Some("1296269");
    let repository = provider.connector_of(own).repository().await.unwrap();
    assert_eq!(repository.full_name, "octocat/Hello-World");
    assert_eq!(repository.id, "1296269");

    let provider = saying(200, example("workflow-run-paginated")).await;
    let runs = provider.connector_of(own).runs(1).await.unwrap().runs;
    assert_eq!((runs[0].id, runs[0].own_repository), (30_433_642, false));

    let provider = saying(200, example("job-paginated")).await;
    let jobs = provider.connector().jobs(1, 1).await.unwrap();
    assert!(!jobs.is_empty() && jobs[0].steps > 0);

    let provider = saying(200, example("pull-request-simple-items")).await;
    let found = provider.connector().find_pull("new-topic").await.unwrap();
    assert_eq!(found.unwrap().number, 1347);

    let provider = saying(200, example("pull-request")).await;
    let pull = provider.connector().pull(1347).await.unwrap();
    assert!(pull.open && !pull.merged);

    let provider = saying(200, example("git-ref")).await;
    let branch = provider.connector().branch("featureA").await.unwrap();
    assert!(branch.is_some());
}

/// The whole view from the examples, as far as they fit each other; what does not fit is put right, member by member.
#[tokio::test]
async fn a_view_can_be_read_from_the_examples() {
    let Some(description) = document("github/openapi-subset.json") else {
        return;
    };
    let example = move |name: &str| description["components"]["examples"][name]["value"].clone();
    let world = super::world::World::new(
        &super::world::files(&[("a", 0o100_644, "a")]),
        &super::world::files(&[("a", 0o100_644, "b")]),
    );
    let binding = world.binding(caretaker::approve::MergeMethod::Squash);
    world.answer_instead(move |world, asked| {
        let facts = world.facts();
        let value = match asked.tail() {
            "" => put(
                example("full-repository-default-response"),
                &[("/id", json!(42))],
            ),
            "/pulls/7" => put(
                example("pull-request"),
                &[
                    ("/number", json!(7)),
                    ("/base/repo/id", json!(42)),
                    ("/head/sha", json!(facts.head.to_string())),
                ],
            ),
            "/pulls/7/files" => example("diff-entry-items"),
            "/rules/branches/main" => example("repository-rule-items"),
            tail if tail.starts_with("/compare/") => put(
                example("commit-comparison"),
                &[("/merge_base_commit/sha", json!(facts.base.to_string()))],
            ),
            tail if tail.ends_with("/check-runs") => example("check-run-paginated"),
            tail if tail.ends_with("/status") => example("combined-commit-status"),
            _ => return None,
        };
        Some(json(200, &value))
    });
    let view = world
        .serve()
        .await
        .connector()
        .live(&binding)
        .await
        .unwrap();
    assert_eq!((view.pull.commits, view.pull.changed_files), (3, 5));
    assert_eq!(view.files[0].path, "file1.txt");
    assert_eq!(view.checks.len(), 3);
    assert_eq!(view.checks[0].app.as_deref(), Some("octoapp"));
    assert_eq!(view.allowed_methods, ["merge", "squash", "rebase"]);
    assert!(view.pull.auto_merge || !view.pull.stacked);
}

fn put(mut value: Value, members: &[(&str, Value)]) -> Value {
    for (pointer, member) in members {
        *value.pointer_mut(pointer).unwrap() = member.clone();
    }
    value
}

#[tokio::test]
async fn the_recorded_rename_is_followed_for_reading_alone() {
    let Some(recorded) = document("github/recorded-fixtures.json") else {
        return;
    };
    let steps = recorded["scenarios"]["rename-repository"]
        .as_array()
        .unwrap()
        .clone();
    let renamed = steps
        .iter()
        .find(|step| step["status"] == 301)
        .unwrap()
        .clone();
    let found = steps
        .iter()
        .find(|step| step["path"] == "/repositories/1000" && step["method"] == "get");
    let found = found.unwrap()["response"].clone();
    let provider = Provider::start(move |asked| {
        match asked.target.as_str() {
            "/api/v3/repositories/1000" => return json(200, &found),
            target if target.contains("/git/ref/") => return json(404, &json!({})),
            _ => {}
        }
        // The recorded address with this provider's own origin.
        let location = renamed["headers"]["location"].as_str().unwrap();
        let location = location.replace("https://api.github.com", "/api/v3");
        with_headers(
            301,
            &[("location", location.as_str())],
            &renamed["response"],
        )
    })
    .await;
    let connector = provider.connector_of(Some("1000"));
    // That a branch is not there is believed once the repository is seen, which moved.
    assert_eq!(connector.branch("gone").await.unwrap(), None);
    assert_eq!(provider.count("GET"), 3);
    let repository = connector.repository().await.unwrap();
    assert_eq!(repository.id, "1000");
    assert!(
        repository.full_name.ends_with("rename-repository-newname"),
        "{repository:?}"
    );
}

#[tokio::test]
async fn a_recorded_refusal_keeps_its_words() {
    let Some(recorded) = document("github/recorded-fixtures.json") else {
        return;
    };
    let refusal = recorded["scenarios"]["errors"]
        .pointer("/0/response")
        .unwrap()
        .clone();
    let error = saying(422, refusal)
        .await
        .connector()
        .repository()
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("Validation Failed; color invalid"),
        "{error}"
    );
}

/// Every recorded answer of a route that the connector uses, with its recorded headers.
#[tokio::test]
async fn every_recorded_answer_of_a_route_of_ours_is_understood() {
    let Some(recorded) = document("github/recorded-fixtures.json") else {
        return;
    };
    let scenarios = recorded["scenarios"].as_object().unwrap();
    let (mut repositories, mut branches, mut folders, mut refusals) = (0, 0, 0, 0);
    for step in scenarios
        .values()
        .flat_map(|steps| steps.as_array().unwrap())
    {
        let (method, path) = (
            step["method"].as_str().unwrap(),
            step["path"].as_str().unwrap(),
        );
        let status = u16::try_from(step["status"].as_u64().unwrap()).unwrap();
        let body = step["response"].clone();
        let number = body["id"].as_u64().map(|id| id.to_string());
        let parts = path.trim_matches('/').split('/').count();
        // What a change was answered with has the form of what a read is answered with.
        let form = if status == 201 { 200 } else { status };
        let provider = replaying(form, step).await;
        let connector = provider.connector_of(number.as_deref());
        match (method, status) {
            ("get", 200)
                if parts == 3 && path.starts_with("/repos/") || path == "/repositories/1000" =>
            {
                let repository = connector.repository().await.unwrap();
                assert_eq!(Some(repository.id), number, "{path}");
                repositories += 1;
            }
            ("post" | "patch", 200 | 201) if path.contains("/git/refs") => {
                let branch = connector.branch("test").await.unwrap();
                assert!(branch.is_some(), "{path}");
                branches += 1;
            }
            ("get", 200) if path.ends_with("/contents/") => {
                assert_eq!(connector.file("main", "x", 9).await.unwrap(), None);
                folders += 1;
            }
            (_, 400..) => {
                let error = connector.run(1).await.unwrap_err().to_string();
                let words = body["message"].as_str().unwrap();
                assert!(status == 404 || error.contains(words), "{path}: {error}");
                refusals += 1;
            }
            _ => {}
        }
        // The recorded moments are milliseconds where the interface has seconds.
        let usage = connector.usage();
        assert!(
            usage
                .resets_at
                .is_none_or(|at| at <= super::provider::NOW.plus_seconds(3_600))
        );
    }
    assert_eq!((repositories, branches, folders, refusals), (2, 2, 1, 3));
}

/// A provider that answers as it was recorded, without what belongs to the connection of then.
async fn replaying(status: u16, step: &Value) -> Provider {
    let headers: Vec<(&'static str, String)> = [
        "etag",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ]
    .into_iter()
    .filter_map(|name| Some((name, step["headers"][name].as_str()?.to_owned())))
    .collect();
    let body = match &step["response"] {
        Value::String(text) => text.clone().into_bytes(),
        value => value.to_string().into_bytes(),
    };
    Provider::start(move |_| Reply::Plain(status, headers.clone(), body.clone())).await
}
