//! The forms of GitHub: two API versions, and the Enterprise Server.

use caretaker::forge::{Profile, Sources};
use reqwest::Method;
use serde_json::{Value, json};

use super::bench::{Answer, Bench, file, read};
use super::description::Description;
use super::runs::run;

async fn versioned(bench: &Bench, path: &str, version: &str) -> Answer {
    let request = bench
        .client
        .get(format!("{}{path}", bench.forge.api_url()))
        .bearer_auth(bench.forge.token())
        .header("x-github-api-version", version);
    read(request.send().await.unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newer_version_lacks_what_github_dropped() {
    for (profile, usual) in [
        (Profile::Github20221128, "2022-11-28"),
        (Profile::Github20260310, "2026-03-10"),
    ] {
        let bench = Bench::in_form(profile, Sources::default()).await;
        bench.branch("fix", &[("new.txt", file("new\n"))]);
        bench.pull("fix").await;
        let selected = bench.get("").await;
        assert_eq!(selected.header("x-github-api-version-selected"), usual);
        for (version, has) in [("2022-11-28", true), ("2026-03-10", false)] {
            let one = versioned(&bench, "/repos/acme/widget/pulls/1", version).await;
            assert_eq!(one.header("x-github-api-version-selected"), version);
            let many = versioned(&bench, "/repos/acme/widget/pulls", version).await;
            for pull in [&one.body, &many.body[0]] {
                assert_eq!(pull.get("merge_commit_sha").is_some(), has);
                assert_eq!(pull.get("assignee").is_some(), has);
                assert!(pull.get("assignees").is_some());
            }
            let limits = versioned(&bench, "/rate_limit", version).await;
            assert_eq!(limits.body.get("rate").is_some(), has);
        }
        let odd = versioned(&bench, "/repos/acme/widget", "2020-01-01").await;
        assert_eq!(odd.status, 400);
        assert!(odd.message().contains("2022-11-28"), "{}", odd.message());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enterprise_server_has_its_api_below_a_path() {
    let bench = Bench::in_form(Profile::EnterpriseServer, Sources::default()).await;
    let tip = bench.repository.tip("main").unwrap();
    for _ in 0..3 {
        let new = run(tip.clone(), None, Some("success"), vec![]);
        bench.repository.add_run(new).unwrap();
    }
    let root = bench.forge.url().to_owned();
    assert_eq!(bench.forge.api_url(), format!("{root}/api/v3"));
    let page = bench.get("/actions/runs?per_page=1").await;
    assert_eq!(page.status, 200, "{}", page.body);
    let next = format!(
        "<{root}/api/v3/repositories/{}/actions/runs?per_page=1&page=2>; rel=\"next\"",
        bench.repository.id()
    );
    assert!(
        page.header("link").contains(&next),
        "{}",
        page.header("link")
    );
    let one = &page.body["workflow_runs"][0];
    let address = one["jobs_url"].as_str().unwrap();
    assert!(
        address.starts_with(&format!("{root}/api/v3/repos/acme/widget/")),
        "{address}"
    );
    let html = one["html_url"].as_str().unwrap();
    assert!(html.starts_with(&format!("{root}/acme/widget/")), "{html}");
    if let Some(description) = Description::read() {
        description.check(&Method::GET, "/repos/acme/widget/actions/runs", &page);
    }
    // No limits, no newer version, nothing at the root.
    assert_eq!(page.header("x-ratelimit-limit"), "");
    assert_eq!(page.header("x-github-enterprise-version"), "3.19.0");
    assert_eq!(
        versioned(&bench, "/rate_limit", "2022-11-28").await.status,
        404
    );
    assert_eq!(versioned(&bench, "/user", "2026-03-10").await.status, 400);
    let meta = versioned(&bench, "/meta", "2022-11-28").await;
    assert_eq!(meta.body["installed_version"], json!("3.19.0"));
    let bare = bench
        .client
        .get(format!("{root}/repos/acme/widget"))
        .bearer_auth(bench.forge.token());
    assert_eq!(read(bare.send().await.unwrap()).await.status, 404);
    let page = bench.client.get(format!("{root}/acme/widget")).send().await;
    assert_eq!(page.unwrap().status(), 200);
    let listed = bench.git("client", &["ls-remote", &bench.git_url()]);
    assert!(listed.status.success());
    bench.repository.rename("gadget").unwrap();
    let moved = bench.get("").await;
    assert_eq!(moved.status, 301);
    assert_eq!(
        moved.header("location"),
        format!("{root}/api/v3/repositories/{}", bench.repository.id())
    );
    assert_eq!(moved.body["url"], Value::from(moved.header("location")));
}
