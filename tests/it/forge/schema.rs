//! Every answer of the forge against GitHub's own description of its API.

use std::collections::BTreeSet;

use caretaker::forge::{FileEdit, NewCheckRun};
use reqwest::Method;
use serde_json::{Value, json};

use super::bench::{Answer, Bench, file};
use super::description::Description;
use super::runs::{job, run};

/// A forge in which every object of interest exists, and the description that its answers must fit.
struct Inspection {
    bench: Bench,
    description: Description,
    seen: BTreeSet<String>,
}

impl Inspection {
    async fn call(&mut self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let answer = self.bench.call(method.clone(), path, body).await;
        self.seen.insert(self.description.check(
            &method,
            &format!("/repos/{{owner}}/{{repo}}{path}"),
            &answer,
        ));
        answer
    }

    async fn get(&mut self, path: &str, status: u16) -> Answer {
        let answer = self.call(Method::GET, path, None).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        answer
    }
}

async fn prepared() -> Option<Inspection> {
    let description = Description::read()?;
    let bench = Bench::with(&[
        ("README.md", file("# widget\n")),
        ("run.sh", file("true\n")),
        ("gone.txt", file("gone\n")),
        (
            "vendor",
            FileEdit::Write {
                mode: 0o160_000,
                content: "1".repeat(40).into(),
            },
        ),
    ])
    .await;
    let head = bench.branch(
        "fix",
        &[
            (
                "run.sh",
                FileEdit::Write {
                    mode: 0o100_755,
                    content: "true\n".into(),
                },
            ),
            ("gone.txt", FileEdit::Remove),
            ("new.txt", file("new\n")),
            (
                "vendor",
                FileEdit::Write {
                    mode: 0o160_000,
                    content: "2".repeat(40).into(),
                },
            ),
        ],
    );
    let check = |sha, conclusion: Option<&str>| NewCheckRun {
        sha,
        name: "test".to_owned(),
        app_id: 15_368,
        app_slug: "github-actions".to_owned(),
        status: if conclusion.is_some() {
            "completed"
        } else {
            "queued"
        }
        .to_owned(),
        conclusion: conclusion.map(str::to_owned),
    };
    bench
        .repository
        .add_check_run(check(head.clone(), Some("success")))
        .unwrap();
    bench.repository.add_check_run(check(head, None)).unwrap();
    Some(Inspection {
        bench,
        description,
        seen: BTreeSet::new(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_about_git_fits() {
    let Some(mut inspection) = prepared().await else {
        return;
    };
    let main = inspection.bench.repository.tip("main").unwrap();
    let tree = inspection.bench.bare(&["rev-parse", "main^{tree}"]);
    let blob = inspection.bench.bare(&["rev-parse", "main:README.md"]);
    for path in [
        String::new(),
        "/branches/main".to_owned(),
        "/rules/branches/main".to_owned(),
        "/git/matching-refs/heads".to_owned(),
        format!("/git/trees/{tree}"),
        format!("/git/trees/{tree}?recursive=1"),
        format!("/git/blobs/{blob}"),
        format!("/git/commits/{main}"),
        "/commits/main".to_owned(),
        "/compare/main...fix".to_owned(),
    ] {
        inspection.get(&path, 200).await;
    }
    inspection.get("/branches/gone", 404).await;
    inspection.get("/git/trees/gone", 404).await;
    inspection.get("/git/commits/gone", 404).await;
    inspection.get("/commits/gone", 422).await;
    inspection.get("/compare/main...gone", 404).await;
    inspection.get(&format!("/git/blobs/{tree}"), 404).await;
    let make = json!({"ref": "refs/heads/made", "sha": main.as_str()});
    assert_eq!(
        inspection
            .call(Method::POST, "/git/refs", Some(make.clone()))
            .await
            .status,
        201
    );
    assert_eq!(
        inspection
            .call(Method::POST, "/git/refs", Some(make))
            .await
            .status,
        422
    );
    inspect_reference(&mut inspection, main.as_str()).await;
}

/// References have slashes, which the description's templates do not show; so they are looked up by a stand-in.
async fn inspect_reference(inspection: &mut Inspection, main: &str) {
    let one = "/repos/{owner}/{repo}/git/ref/made";
    let many = "/repos/{owner}/{repo}/git/refs/made";
    let answer = inspection.bench.get("/git/ref/heads/made").await;
    inspection.description.check(&Method::GET, one, &answer);
    let answer = inspection.bench.get("/git/ref/heads/gone").await;
    inspection.description.check(&Method::GET, one, &answer);
    for (method, status) in [
        (Method::PATCH, 200),
        (Method::DELETE, 204),
        (Method::DELETE, 422),
        (Method::PATCH, 422),
    ] {
        let body = (method == Method::PATCH).then(|| json!({"sha": main}));
        let answer = inspection
            .bench
            .call(method.clone(), "/git/refs/heads/made", body)
            .await;
        assert_eq!(answer.status, status);
        inspection.description.check(&method, many, &answer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_about_pull_requests_fits() {
    let Some(mut inspection) = prepared().await else {
        return;
    };
    let new = json!({"title": "Fix", "head": "fix", "base": "main"});
    assert_eq!(
        inspection
            .call(Method::POST, "/pulls", Some(new.clone()))
            .await
            .status,
        201
    );
    assert_eq!(
        inspection
            .call(Method::POST, "/pulls", Some(new))
            .await
            .status,
        422
    );
    inspection.bench.repository.enable_auto_merge(1).unwrap();
    // Not known, then known.
    inspection.get("/pulls/1", 200).await;
    inspection.get("/pulls/1", 200).await;
    for path in ["/pulls", "/pulls/1/files", "/pulls/1/commits"] {
        inspection.get(path, 200).await;
    }
    inspection.get("/pulls/9", 404).await;
    inspection.get("/pulls?state=odd", 422).await;
    inspection.get("/pulls/1/merge", 404).await;
    inspection
        .call(Method::PATCH, "/pulls/1", Some(json!({"title": "Other"})))
        .await;
    inspection
        .call(Method::PATCH, "/pulls/1", Some(json!({"state": "odd"})))
        .await;
    assert_eq!(
        inspection
            .call(
                Method::POST,
                "/issues/1/comments",
                Some(json!({"body": "Hi"}))
            )
            .await
            .status,
        201
    );
    inspection.get("/issues/1/comments", 200).await;
    inspection.get("/issues/9/comments", 404).await;
    let merge = |body: Value| (Method::PUT, "/pulls/1/merge", Some(body));
    for (body, status) in [
        (json!({"sha": "1".repeat(40)}), 409),
        (json!({"merge_method": "odd"}), 422),
        (json!({}), 200),
        (json!({}), 405),
    ] {
        let (method, path, body) = merge(body);
        assert_eq!(inspection.call(method, path, body).await.status, status);
    }
    inspection.get("/pulls/1", 200).await;
    inspection.get("/pulls/1/merge", 204).await;
    inspection.get("/pulls?state=all", 200).await;
    assert!(inspection.seen.len() >= 19, "{:?}", inspection.seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_about_runs_and_checks_fits() {
    let Some(mut inspection) = prepared().await else {
        return;
    };
    let main = inspection.bench.repository.tip("main").unwrap();
    let jobs = vec![
        job("test", Some("failure"), Some("log\n")),
        job("wait", None, None),
    ];
    let id = inspection
        .bench
        .repository
        .add_run(run(main.clone(), None, Some("failure"), jobs))
        .unwrap();
    inspection.get("/actions/runs", 200).await;
    inspection.get("/actions/workflows/501/runs", 200).await;
    inspection.get(&format!("/actions/runs/{id}"), 200).await;
    inspection
        .get(&format!("/actions/runs/{id}/attempts/1"), 200)
        .await;
    inspection
        .get(&format!("/actions/runs/{id}/attempts/9/jobs"), 404)
        .await;
    let jobs = inspection
        .get(&format!("/actions/runs/{id}/jobs"), 200)
        .await
        .body;
    inspection
        .get(&format!("/actions/jobs/{}", jobs["jobs"][0]["id"]), 200)
        .await;
    inspection
        .get(
            &format!("/actions/jobs/{}/logs", jobs["jobs"][0]["id"]),
            302,
        )
        .await;
    let rerun = format!("/actions/runs/{id}/rerun-failed-jobs");
    assert_eq!(
        inspection.call(Method::POST, &rerun, None).await.status,
        201
    );
    inspection
        .get(&format!("/actions/runs/{id}/attempts/2/jobs"), 200)
        .await;
    inspection.get(&format!("/actions/runs/{id}"), 200).await;
    let checks = inspection.get("/commits/fix/check-runs", 200).await.body;
    inspection
        .get(
            &format!("/check-runs/{}", checks["check_runs"][1]["id"]),
            200,
        )
        .await;
    inspection.get("/commits/fix/status", 200).await;
    let status = json!({"state": "success", "context": "ci", "target_url": "https://ci.example/1"});
    assert_eq!(
        inspection
            .call(Method::POST, &format!("/statuses/{main}"), Some(status))
            .await
            .status,
        201
    );
    inspection.get("/commits/main/status", 200).await;
    inspection.get("/commits/main/check-runs", 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_about_accounts_and_errors_fits() {
    let Some(inspection) = prepared().await else {
        return;
    };
    let Inspection {
        bench, description, ..
    } = inspection;
    for path in ["/user", "/rate_limit", "/meta"] {
        let answer = bench.send(Method::GET, path, None).await;
        assert_eq!(answer.status, 200);
        description.check(&Method::GET, path, &answer);
    }
    let stranger = bench
        .client
        .get(format!("{}/user", bench.forge.url()))
        .send()
        .await
        .unwrap();
    description.check(&Method::GET, "/user", &super::bench::read(stranger).await);
    let here = "/repos/{owner}/{repo}";
    bench.repository.rename("gadget").unwrap();
    let moved = bench.get("").await;
    assert_eq!(moved.status, 301);
    description.check(&Method::GET, here, &moved);
    let by_id = bench
        .send(
            Method::GET,
            &format!("/repositories/{}", bench.repository.id()),
            None,
        )
        .await;
    description.check(&Method::GET, here, &by_id);
    let absent = bench.send(Method::GET, "/repos/acme/nothing", None).await;
    description.check(&Method::GET, here, &absent);
}

/// The oracle itself: it must be able to say no.
#[tokio::test(flavor = "multi_thread")]
async fn the_description_refuses_a_wrong_answer() {
    let Some(description) = Description::read() else {
        return;
    };
    let schema = json!({"$ref": "#/components/schemas/pull-request"});
    let validator = description.validator(&schema);
    assert!(!validator.is_valid(&json!({"number": 1})));
    let entry = description.validator(&json!({"$ref": "#/components/schemas/diff-entry"}));
    let row = |status: &str| {
        json!({"sha": null, "filename": "a", "status": status, "additions": 0, "deletions": 0, "changes": 0,
        "blob_url": null, "raw_url": null, "contents_url": "https://example.org/a"})
    };
    assert!(entry.is_valid(&row("removed")) && !entry.is_valid(&row("deleted")));
}
