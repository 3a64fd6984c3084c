//! Branch protection and rules.

use caretaker::forge::{NewCheckRun, ObjectId, Protection};
use reqwest::Method;
use serde_json::{Value, json};

use super::bench::{Bench, file};
use super::description::Description;

fn check(sha: &ObjectId, name: &str, app: u64) -> NewCheckRun {
    NewCheckRun {
        sha: sha.clone(),
        name: name.to_owned(),
        app_id: app,
        app_slug: "some-app".to_owned(),
        status: "completed".to_owned(),
        conclusion: Some("success".to_owned()),
    }
}

fn rule_with_checks(app: u64) -> Value {
    json!({
        "strict_required_status_checks_policy": false,
        "required_status_checks": [{"context": "test", "integration_id": app}],
    })
}

fn pull_request_rule(methods: &[&str]) -> Value {
    json!({
        "allowed_merge_methods": methods,
        "dismiss_stale_reviews_on_push": false,
        "require_code_owner_review": false,
        "require_last_push_approval": false,
        "required_approving_review_count": 0,
        "required_review_thread_resolution": false,
    })
}

fn queue_rule() -> Value {
    json!({
        "check_response_timeout_minutes": 60,
        "grouping_strategy": "ALLGREEN",
        "max_entries_to_build": 5,
        "max_entries_to_merge": 5,
        "merge_method": "MERGE",
        "min_entries_to_merge": 1,
        "min_entries_to_merge_wait_minutes": 5,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_obeys_protection_and_rules() {
    let bench = Bench::new().await;
    let head = bench.branch("fix", &[("new.txt", file("new\n"))]);
    bench.pull("fix").await;
    let merge = |method: &'static str| bench.put("/pulls/1/merge", json!({"merge_method": method}));
    let refused = |words: &'static str| async move {
        let answer = merge("merge").await;
        assert_eq!(answer.status, 405, "{}", answer.body);
        assert_eq!(answer.message(), words);
    };
    let repository = &bench.repository;
    for (protection, words) in [
        (
            Protection {
                required_reviews: Some(1),
                ..Protection::default()
            },
            "At least 1 approving review is required by reviewers with write access.",
        ),
        (
            Protection {
                required_signatures: true,
                ..Protection::default()
            },
            "Commits must have verified signatures.",
        ),
        (
            Protection {
                linear_history: true,
                ..Protection::default()
            },
            "This branch must not contain merge commits.",
        ),
        (
            Protection {
                locked: true,
                ..Protection::default()
            },
            "Cannot change this locked branch",
        ),
        (
            Protection {
                required_checks: vec!["test".to_owned()],
                ..Protection::default()
            },
            "Required status check \"test\" is expected.",
        ),
    ] {
        repository.protect("main", protection).unwrap();
        refused(words).await;
    }
    repository.unprotect("main").unwrap();
    repository
        .add_rule("main", "merge_queue", queue_rule())
        .unwrap();
    refused("Changes must be made through the merge queue").await;
    repository.unprotect("main").unwrap();
    repository
        .add_rule("main", "pull_request", pull_request_rule(&["squash"]))
        .unwrap();
    refused("This merge method is not allowed on this branch.").await;
    // A check of the wrong App does not count.
    repository
        .add_rule("main", "required_status_checks", rule_with_checks(15_368))
        .unwrap();
    repository.add_check_run(check(&head, "test", 7)).unwrap();
    let answer = merge("squash").await;
    assert_eq!(
        answer.message(),
        "Required status check \"test\" is expected."
    );
    repository
        .add_check_run(check(&head, "test", 15_368))
        .unwrap();
    assert_eq!(merge("squash").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_branch_wants_the_newest_base() {
    let bench = Bench::new().await;
    let head = bench.branch("fix", &[("new.txt", file("new\n"))]);
    bench.pull("fix").await;
    bench
        .repository
        .commit("main", &[("other.txt", file("other\n"))], "Other")
        .unwrap();
    let protection = Protection {
        required_checks: vec!["test".to_owned()],
        strict: true,
        ..Protection::default()
    };
    bench.repository.protect("main", protection).unwrap();
    bench
        .repository
        .add_check_run(check(&head, "test", 1))
        .unwrap();
    let answer = bench.put("/pulls/1/merge", json!({})).await;
    assert_eq!(answer.status, 405);
    assert!(answer.message().starts_with("Head branch is out of date"));
}

#[tokio::test(flavor = "multi_thread")]
async fn references_of_a_guarded_branch_stay() {
    let bench = Bench::new().await;
    let main = bench.repository.tip("main").unwrap();
    let next = bench
        .repository
        .commit_object(std::slice::from_ref(&main), &[("x", file("x"))], "Next")
        .unwrap();
    let beside = bench
        .repository
        .commit_object(&[], &[("y", file("y"))], "Beside")
        .unwrap();
    bench.repository.create_branch("kept", &main).unwrap();
    bench
        .repository
        .protect("kept", Protection::default())
        .unwrap();
    let patch = |sha: &ObjectId| {
        let body = json!({"sha": sha.as_str(), "force": true});
        bench.call(Method::PATCH, "/git/refs/heads/kept", Some(body))
    };
    assert_eq!(
        patch(&beside).await.message(),
        "Cannot force-push to this branch"
    );
    assert_eq!(patch(&next).await.status, 200);
    let deleted = bench
        .call(Method::DELETE, "/git/refs/heads/kept", None)
        .await;
    assert_eq!(deleted.message(), "Cannot delete this protected branch");
    let reviewed = Protection {
        required_reviews: Some(0),
        ..Protection::default()
    };
    bench.repository.protect("kept", reviewed).unwrap();
    let refused = patch(&main).await;
    assert_eq!(refused.status, 422);
    assert_eq!(
        refused.message(),
        "Changes must be made through a pull request."
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_are_held_to_the_same_rules() {
    let bench = Bench::new().await;
    let url = bench.git_url();
    bench.git(".", &["clone", "--quiet", &url, "work"]);
    std::fs::write(bench.folder.path().join("work/new.txt"), "new\n").unwrap();
    bench.git("work", &["add", "."]);
    bench.git("work", &["commit", "--quiet", "-m", "New"]);
    let push = |arguments: &[&str]| {
        let mut all = vec!["push", &url];
        all.extend(arguments);
        let output = bench.git("work", &all);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let main = bench.repository.tip("main").unwrap();
    bench
        .repository
        .protect(
            "main",
            Protection {
                required_reviews: Some(0),
                ..Protection::default()
            },
        )
        .unwrap();
    let text = push(&["HEAD:main"]);
    assert!(
        text.contains("GH006: Protected branch update failed for refs/heads/main."),
        "{text}"
    );
    assert!(text.contains("(protected branch hook declined)"), "{text}");
    bench
        .repository
        .protect(
            "main",
            Protection {
                required_checks: vec!["test".to_owned()],
                ..Protection::default()
            },
        )
        .unwrap();
    assert!(push(&["HEAD:main"]).contains("Required status checks are expected."));
    assert_eq!(bench.repository.tip("main").unwrap(), main);
    push(&["HEAD:topic"]);
    let topic = bench.repository.tip("topic").unwrap();
    bench
        .repository
        .add_check_run(check(&topic, "test", 1))
        .unwrap();
    push(&["HEAD:main"]);
    assert_eq!(bench.repository.tip("main").unwrap(), topic);
    // The old commit is green as well, but the branch does not go back.
    bench
        .repository
        .add_check_run(check(&main, "test", 1))
        .unwrap();
    let back = format!("+{main}:main");
    assert!(push(&[&back]).contains("Cannot force-push to this branch"));
    bench
        .repository
        .protect("topic", Protection::default())
        .unwrap();
    assert!(push(&[":topic"]).contains("Cannot delete this protected branch"));
    assert_eq!(bench.repository.tip("main").unwrap(), topic);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_about_guards_and_workflows_fits() {
    let Some(description) = Description::read() else {
        return;
    };
    let bench = Bench::new().await;
    let repository = &bench.repository;
    repository
        .protect(
            "main",
            Protection {
                required_checks: vec!["test".to_owned()],
                strict: true,
                required_reviews: Some(2),
                required_signatures: true,
                linear_history: true,
                allow_force_pushes: false,
                allow_deletions: false,
                locked: false,
            },
        )
        .unwrap();
    let id = repository
        .add_rule("main", "merge_queue", queue_rule())
        .unwrap();
    for (kind, parameters) in [
        ("pull_request", pull_request_rule(&["merge"])),
        ("required_status_checks", rule_with_checks(1)),
        ("required_signatures", Value::Null),
        ("deletion", Value::Null),
        ("non_fast_forward", Value::Null),
        ("update", Value::Null),
        ("required_linear_history", Value::Null),
    ] {
        repository.add_rule("main", kind, parameters).unwrap();
    }
    repository
        .create_branch("free", &repository.tip("main").unwrap())
        .unwrap();
    for (path, status) in [
        ("/branches/main".to_owned(), 200),
        ("/branches/main/protection".to_owned(), 200),
        ("/branches/free/protection".to_owned(), 404),
        ("/branches/gone/protection".to_owned(), 404),
        ("/rules/branches/main".to_owned(), 200),
        ("/rulesets".to_owned(), 200),
        (format!("/rulesets/{id}"), 200),
        ("/rulesets/1".to_owned(), 404),
    ] {
        let answer = bench.get(&path).await;
        assert_eq!(answer.status, status, "{path}");
        description.check(&Method::GET, &format!("/repos/acme/widget{path}"), &answer);
    }
    assert_eq!(bench.get("/branches/main").await.body["protected"], true);
    assert_eq!(bench.get("/branches/free").await.body["protected"], false);
}
