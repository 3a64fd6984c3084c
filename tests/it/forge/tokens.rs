//! What a token may do and see.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use caretaker::forge::{ForgeOptions, NewToken, Sources, TokenKind, start_with};
use reqwest::Method;
use serde_json::{Value, json};

use super::bench::{Answer, Bench, client, file, read};
use super::runs::{job, run};

pub(crate) fn permissions(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter()
        .map(|(name, level)| ((*name).to_owned(), (*level).to_owned()))
        .collect()
}

fn fine_grained(list: &[(&str, &str)]) -> NewToken {
    NewToken {
        kind: TokenKind::FineGrained {
            permissions: permissions(list),
        },
        repositories: None,
        expires_at: None,
    }
}

fn classic(scopes: &[&str]) -> NewToken {
    NewToken {
        kind: TokenKind::Classic {
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        },
        repositories: None,
        expires_at: None,
    }
}

/// A request with a token of its own; `path` is the whole path.
pub(crate) async fn with(
    bench: &Bench,
    token: &str,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Answer {
    let request = bench
        .client
        .request(method, format!("{}{path}", bench.forge.url()))
        .bearer_auth(token);
    let request = match body {
        Some(body) => request.body(body.to_string()),
        None => request,
    };
    read(request.send().await.unwrap()).await
}

const HERE: &str = "/repos/acme/widget";

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_refused() {
    let bench = Bench::new().await;
    bench.branch("fix", &[("new.txt", file("new\n"))]);
    let token = bench.forge.issue_token(fine_grained(&[
        ("contents", "read"),
        ("pull_requests", "write"),
    ]));
    assert!(
        token.starts_with("github_pat_") && token.len() == 93,
        "{token}"
    );
    let allowed = with(
        &bench,
        &token,
        Method::GET,
        &format!("{HERE}/branches/main"),
        None,
    )
    .await;
    assert_eq!(allowed.status, 200);
    assert_eq!(
        allowed.header("x-accepted-github-permissions"),
        "contents=read"
    );
    assert_eq!(allowed.header("x-oauth-scopes"), "");
    // The repository itself needs no more than metadata, which everybody may read.
    assert_eq!(
        with(&bench, &token, Method::GET, HERE, None).await.status,
        200
    );
    let refused = with(
        &bench,
        &token,
        Method::GET,
        &format!("{HERE}/actions/runs"),
        None,
    )
    .await;
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.message(),
        "Resource not accessible by personal access token"
    );
    assert_eq!(
        refused.header("x-accepted-github-permissions"),
        "actions=read"
    );
    let new = json!({"title": "Fix", "head": "fix", "base": "main"});
    let opened = with(
        &bench,
        &token,
        Method::POST,
        &format!("{HERE}/pulls"),
        Some(new),
    )
    .await;
    assert_eq!(opened.status, 201);
    let merge = format!("{HERE}/pulls/1/merge");
    let merged = with(&bench, &token, Method::PUT, &merge, Some(json!({}))).await;
    assert_eq!(merged.status, 403);
    assert_eq!(
        merged.header("x-accepted-github-permissions"),
        "contents=write"
    );
    let comment = format!("{HERE}/issues/1/comments");
    let words = Some(json!({"body": "Hi"}));
    let commented = with(&bench, &token, Method::POST, &comment, words).await;
    assert_eq!(commented.status, 201);
    assert_eq!(
        commented.header("x-accepted-github-permissions"),
        "issues=write; pull_requests=write"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rerun_needs_permission_to_write_actions() {
    let bench = Bench::new().await;
    let main = bench.repository.tip("main").unwrap();
    let jobs = vec![job("test", Some("failure"), None)];
    let id = bench
        .repository
        .add_run(run(main, None, Some("failure"), jobs))
        .unwrap();
    let path = format!("{HERE}/actions/runs/{id}/rerun-failed-jobs");
    for (level, status) in [("read", 403), ("write", 201)] {
        let token = bench.forge.issue_token(fine_grained(&[("actions", level)]));
        let answer = with(&bench, &token, Method::POST, &path, None).await;
        assert_eq!(answer.status, status, "actions={level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_of_a_classic_token_are_told() {
    let bench = Bench::new().await;
    let usual = bench.get("").await;
    assert_eq!(usual.header("x-oauth-scopes"), "repo, workflow");
    assert_eq!(usual.header("x-accepted-oauth-scopes"), "repo");
    let token = bench.forge.issue_token(classic(&["read:user"]));
    assert!(token.starts_with("ghp_") && token.len() == 40, "{token}");
    let user = with(&bench, &token, Method::GET, "/user", None).await;
    assert_eq!(user.status, 200);
    assert_eq!(user.header("x-oauth-scopes"), "read:user");
    // A private repository looks absent to a token without the scope.
    let absent = with(&bench, &token, Method::GET, HERE, None).await;
    assert_eq!((absent.status, absent.message()), (404, "Not Found"));
    let statuses = bench.forge.issue_token(classic(&["repo:status"]));
    let status = format!("{HERE}/commits/main/status");
    let seen = with(&bench, &statuses, Method::GET, &status, None).await;
    assert_eq!(seen.status, 200);
    let pulls = format!("{HERE}/pulls");
    let unseen = with(&bench, &statuses, Method::GET, &pulls, None).await;
    assert_eq!(unseen.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_sees_its_repositories_only() {
    let bench = Bench::new().await;
    let other = bench.forge.create_repository("acme", "other", &[]).unwrap();
    let token = bench.forge.issue_token(NewToken {
        repositories: Some(vec![other.id()]),
        ..fine_grained(&[("contents", "read")])
    });
    for (path, status) in [
        ("/repos/acme/other".to_owned(), 200),
        (HERE.to_owned(), 404),
        (format!("/repositories/{}", bench.repository.id()), 404),
        (format!("{HERE}/branches/main"), 404),
    ] {
        let answer = with(&bench, &token, Method::GET, &path, None).await;
        assert_eq!(answer.status, status, "{path}");
    }
    bench.repository.rename("gadget").unwrap();
    // Not even that it was renamed is told.
    let answer = with(&bench, &token, Method::GET, HERE, None).await;
    assert_eq!(answer.status, 404);
    let url = bench.repository.clone_url();
    let url = url.replace("http://", &format!("http://x:{token}@"));
    let output = bench.git("client", &["ls-remote", &url]);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("not found"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_ends() {
    let folder = tempfile::tempdir().unwrap();
    let seconds = Arc::new(AtomicU64::new(1_767_600_000));
    let clock = Arc::clone(&seconds);
    let sources = Sources {
        now: Arc::new(move || clock.load(Ordering::SeqCst)),
        ..Sources::default()
    };
    let options = ForgeOptions::new(folder.path().join("forge"), "127.0.0.1:0".parse().unwrap());
    let forge = start_with(options, sources).await.unwrap();
    let repository = forge
        .create_repository("acme", "widget", &[("a", file("a"))])
        .unwrap();
    let bench = Bench {
        forge,
        repository,
        client: client(),
        folder,
    };
    let token = bench.forge.issue_token(NewToken {
        expires_at: Some(1_767_600_060),
        ..fine_grained(&[("contents", "read")])
    });
    let url = bench.git_url().replace(bench.forge.token(), &token);
    let answer = with(&bench, &token, Method::GET, HERE, None).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("github-authentication-token-expiration"),
        "2026-01-05 08:01:00 UTC"
    );
    assert!(bench.git("client", &["ls-remote", &url]).status.success());
    seconds.store(1_767_600_060, Ordering::SeqCst);
    let answer = with(&bench, &token, Method::GET, HERE, None).await;
    assert_eq!((answer.status, answer.message()), (401, "Bad credentials"));
    assert!(!bench.git("client", &["ls-remote", &url]).status.success());
    seconds.store(1_767_600_000, Ordering::SeqCst);
    bench.forge.revoke_token(&token);
    let answer = with(&bench, &token, Method::GET, HERE, None).await;
    assert_eq!((answer.status, answer.message()), (401, "Bad credentials"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_answer_has_another_tag_for_another_token() {
    let bench = Bench::new().await;
    let first = bench.forge.issue_token(classic(&["repo"]));
    let second = bench.forge.issue_token(classic(&["repo"]));
    let of_first = with(&bench, &first, Method::GET, HERE, None).await;
    let of_second = with(&bench, &second, Method::GET, HERE, None).await;
    assert_eq!(of_first.body, of_second.body);
    assert_ne!(of_first.header("etag"), of_second.header("etag"));
    let again = |token: String| {
        bench
            .client
            .get(format!("{}{HERE}", bench.forge.url()))
            .bearer_auth(token)
            .header("if-none-match", of_first.header("etag"))
            .send()
    };
    assert_eq!(again(first).await.unwrap().status(), 304);
    assert_eq!(again(second).await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn git_asks_for_permission_too() {
    let bench = Bench::new().await;
    let url = |token: &str| bench.git_url().replace(bench.forge.token(), token);
    let reader = bench
        .forge
        .issue_token(fine_grained(&[("contents", "read")]));
    let blind = bench
        .forge
        .issue_token(fine_grained(&[("actions", "write")]));
    let cloned = bench.git(".", &["clone", "--quiet", &url(&reader), "work"]);
    assert!(cloned.status.success(), "{cloned:?}");
    let refused = bench.git(".", &["clone", "--quiet", &url(&blind), "nothing"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("403"), "{text}");
    std::fs::write(bench.folder.path().join("work/new.txt"), "new\n").unwrap();
    bench.git("work", &["add", "."]);
    bench.git("work", &["commit", "--quiet", "-m", "New"]);
    let refused = bench.git("work", &["push", &url(&reader), "HEAD:refs/heads/new"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        text.contains("Permission to acme/widget.git denied to caretaker-bot"),
        "{text}"
    );
    assert_eq!(bench.repository.references().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn workflow_files_need_a_permission_of_their_own() {
    let bench = Bench::new().await;
    let url = |token: &str| bench.git_url().replace(bench.forge.token(), token);
    let writer = bench
        .forge
        .issue_token(fine_grained(&[("contents", "write")]));
    let plain = bench.forge.issue_token(classic(&["repo"]));
    let both = bench.forge.issue_token(fine_grained(&[
        ("contents", "write"),
        ("workflows", "write"),
    ]));
    bench.git(".", &["clone", "--quiet", &url(&writer), "work"]);
    let folder = bench.folder.path().join("work/.github/workflows");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("ci.yml"), "on: push\n").unwrap();
    bench.git("work", &["add", "."]);
    bench.git("work", &["commit", "--quiet", "-m", "Workflow"]);
    let push = |token: &str| {
        let refs = ["HEAD:refs/heads/ci", "origin/main:refs/heads/fine"];
        let output = bench.git("work", &["push", &url(token), refs[0], refs[1]]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (token, want) in [
        (&writer, "`workflows` permission"),
        (&plain, "`workflow` scope"),
    ] {
        let text = push(token);
        let words = format!(
            "(refusing to allow a Personal Access Token to create or update workflow `.github/workflows/ci.yml` without {want})"
        );
        assert!(text.contains(&words), "{text}");
    }
    let tips = bench.repository.references().unwrap();
    let names: Vec<&str> = tips.iter().map(|(name, _)| name.as_str()).collect();
    // Only the reference that carries the file is refused.
    assert_eq!(names, ["refs/heads/fine", "refs/heads/main"]);
    push(&both);
    assert!(bench.repository.tip("ci").is_ok());
    // What is on the server already needs no permission again.
    let output = bench.git("work", &["push", &url(&writer), "HEAD:refs/heads/again"]);
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_of_workflow_files_needs_that_permission() {
    let bench = Bench::new().await;
    bench.branch("ci", &[(".github/workflows/ci.yml", file("on: push\n"))]);
    bench.pull("ci").await;
    let writer = bench
        .forge
        .issue_token(fine_grained(&[("contents", "write")]));
    let path = format!("{HERE}/pulls/1/merge");
    let refused = with(&bench, &writer, Method::PUT, &path, Some(json!({}))).await;
    assert_eq!(refused.status, 403);
    assert!(refused.message().contains("`.github/workflows/ci.yml`"));
    assert_eq!(bench.put("/pulls/1/merge", json!({})).await.status, 200);
}
