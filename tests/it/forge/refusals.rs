//! What the forge refuses before it looks at anything, and what it says of itself.

use caretaker::forge::{ForgeError, ForgeOptions, Origin, start};
use reqwest::Method;
use serde_json::json;

use super::bench::{Bench, file, read};

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_taken_in_three_forms_and_checked() {
    // Break `credentials::of` in server/credentials.rs (answer `Right`) to see this fail.
    let bench = Bench::new().await;
    let url = format!("{}/repos/acme/widget", bench.forge.url());
    let status = async |authorization: Option<&str>| {
        let request = bench.client.get(&url);
        let request = match authorization {
            Some(value) => request.header("authorization", value),
            None => request,
        };
        let answer = read(request.send().await.unwrap()).await;
        (answer.status, answer.message().to_owned())
    };
    let token = bench.forge.token();
    assert_eq!(status(Some(&format!("Bearer {token}"))).await.0, 200);
    assert_eq!(status(Some(&format!("token {token}"))).await.0, 200);
    assert_eq!(
        status(Some("Basic eC1hY2Nlc3MtdG9rZW46bm8=")).await,
        (401, "Bad credentials".to_owned())
    );
    assert_eq!(
        status(Some("Bearer wrong")).await,
        (401, "Bad credentials".to_owned())
    );
    assert_eq!(status(Some(token)).await.0, 401);
    // A private repository looks absent to strangers.
    assert_eq!(status(None).await, (404, "Not Found".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_and_broken_bodies_are_githubs_errors() {
    let bench = Bench::new().await;
    let nowhere = bench
        .send(Method::GET, "/unknown/route/of/mine", None)
        .await;
    assert_eq!(nowhere.status, 404);
    assert_eq!(
        nowhere.body,
        json!({"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"})
    );
    for path in [
        "/gists",
        "/branches",
        "/pulls/x",
        "/pulls/1/files",
        "/actions/runs/1",
        "/actions/jobs/1/logs",
        "/%2e%2e/other",
    ] {
        assert_eq!(bench.get(path).await.status, 404, "{path}");
    }
    assert_eq!(bench.call(Method::DELETE, "", None).await.status, 404);
    let post = async |body: Vec<u8>| {
        let url = format!("{}/repos/acme/widget/git/refs", bench.forge.url());
        read(
            bench
                .client
                .post(url)
                .bearer_auth(bench.forge.token())
                .body(body)
                .send()
                .await
                .unwrap(),
        )
        .await
    };
    assert_eq!(post(b"{".to_vec()).await.message(), "Problems parsing JSON");
    assert_eq!(
        post(b"[]".to_vec()).await.message(),
        "Body should be a JSON object"
    );
    assert_eq!(post(vec![0xff, 0xfe]).await.status, 400);
    assert_eq!(
        post(b"{\"ref\": \"refs/heads/a\\u0000b\", \"sha\": \"x\"}".to_vec())
            .await
            .status,
        422
    );
    assert_eq!(post(vec![b' '; 10_000_001]).await.status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_without_a_name_and_other_versions_are_refused() {
    let bench = Bench::new().await;
    let url = format!("{}/rate_limit", bench.forge.url());
    let version = bench
        .client
        .get(&url)
        .header("x-github-api-version", "2099-01-01")
        .send()
        .await
        .unwrap();
    assert_eq!(version.status(), 400);
    let right = bench
        .client
        .get(&url)
        .header("x-github-api-version", "2022-11-28")
        .send()
        .await
        .unwrap();
    assert_eq!(right.status(), 200);
    let nameless = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .get(&url)
        .send()
        .await
        .unwrap();
    assert_eq!(nameless.status(), 403);
    assert_eq!(
        bench
            .client
            .get(format!("{}/user", bench.forge.url()))
            .send()
            .await
            .unwrap()
            .status(),
        401
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_cost_and_an_unchanged_answer_is_free() {
    let bench = Bench::new().await;
    let first = bench.get("").await;
    let again = bench.get("").await;
    let used =
        |answer: &super::bench::Answer| answer.header("x-ratelimit-used").parse::<u64>().unwrap();
    assert_eq!(used(&again), used(&first) + 1);
    assert_eq!(first.header("x-ratelimit-limit"), "5000");
    assert_eq!(
        first.header("content-type"),
        "application/json; charset=utf-8"
    );
    let url = format!("{}/repos/acme/widget", bench.forge.url());
    let conditional = bench
        .client
        .get(url)
        .bearer_auth(bench.forge.token())
        .header("if-none-match", again.header("etag"));
    let unchanged = read(conditional.send().await.unwrap()).await;
    assert_eq!(
        (unchanged.status, &unchanged.body, used(&unchanged)),
        (304, &json!(null), used(&again))
    );
    bench.repository.set_archived(true).unwrap();
    assert_ne!(bench.get("").await.header("etag"), again.header("etag"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_on_record() {
    let bench = Bench::new().await;
    bench.get("/pulls?state=all").await;
    let head = bench
        .client
        .head(format!("{}/meta", bench.forge.url()))
        .send()
        .await
        .unwrap();
    assert_eq!(head.status(), 200);
    let records = bench.forge.requests();
    let seen: Vec<_> = records
        .iter()
        .map(|record| (record.method.as_str(), record.path.as_str(), record.status))
        .collect();
    assert_eq!(
        seen,
        [
            ("GET", "/repos/acme/widget/pulls", Some(200)),
            ("HEAD", "/meta", Some(200))
        ]
    );
    assert_eq!(
        (
            records[0].query.as_str(),
            records[0].authorized,
            records[0].origin
        ),
        ("state=all", true, Origin::Main)
    );
    assert!(!records[1].authorized);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_open_in_a_browser_and_escape_what_people_wrote() {
    // Break `html_escaped` in encoding.rs to see this fail.
    let bench = Bench::new().await;
    bench.branch("fix", &[("c.txt", file("<script>alert(1)</script>\n"))]);
    let body = json!({"title": "<img src=x onerror=alert(1)>", "head": "fix", "base": "main", "body": "</pre><script>"});
    let page = bench.post("/pulls", body).await.body["html_url"]
        .as_str()
        .unwrap()
        .to_owned();
    let response = bench.client.get(&page).send().await.unwrap();
    assert_eq!(
        (
            response.status().as_u16(),
            response.headers()["content-type"].to_str().unwrap()
        ),
        (200, "text/html; charset=utf-8")
    );
    let text = response.text().await.unwrap();
    assert!(
        text.contains("&lt;img src=x") && !text.contains("<img") && !text.contains("<script"),
        "{text}"
    );
    let overview = bench
        .client
        .get(bench.forge.url())
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(overview.contains("href=\"/acme/widget\""));
    assert_eq!(
        bench
            .client
            .get(bench.repository.url())
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forge_starts_only_where_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let at = |directory: &str, listen: &str| {
        ForgeOptions::new(folder.path().join(directory), listen.parse().unwrap())
    };
    let first = start(at("one", "127.0.0.1:0")).await.unwrap();
    let taken = first.url().trim_start_matches("http://").to_owned();
    let error = start(at("two", &taken)).await.unwrap_err();
    assert!(error.to_string().contains("choose a free port"), "{error}");
    let filled = folder.path().join("three");
    std::fs::create_dir(&filled).unwrap();
    std::fs::write(filled.join("something"), "").unwrap();
    assert!(matches!(
        start(at("three", "127.0.0.1:0")).await.unwrap_err(),
        ForgeError::FolderNotEmpty { .. }
    ));
    assert!(matches!(
        start(at("three/something", "127.0.0.1:0"))
            .await
            .unwrap_err(),
        ForgeError::Folder { .. }
    ));
    // Security: break the loopback check in `start_with` to see this fail.
    assert!(matches!(
        start(at("four", "0.0.0.0:0")).await.unwrap_err(),
        ForgeError::PublishedToken { .. }
    ));
    // Once stopped, the address is free again.
    first.stop().await;
    start(at("five", &taken)).await.unwrap().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acts_of_people_are_refused_with_a_reason() {
    let bench = Bench::new().await;
    let says = |error: ForgeError| error.to_string();
    assert!(
        says(
            bench
                .forge
                .create_repository("acme", "WIDGET", &[])
                .unwrap_err()
        )
        .contains("exists already")
    );
    for name in ["", "../x", "a/b", ".git", "a b"] {
        assert!(
            matches!(
                bench
                    .forge
                    .create_repository("acme", name, &[])
                    .unwrap_err(),
                ForgeError::Refused { .. }
            ),
            "{name}"
        );
    }
    assert!(
        says(
            bench
                .repository
                .commit("gone", &[("x", file("x"))], "m")
                .unwrap_err()
        )
        .contains("branch gone")
    );
    for path in ["", "/x", "x/", "a\0b"] {
        assert!(
            bench
                .repository
                .commit("main", &[(path, file("x"))], "m")
                .is_err(),
            "{path:?}"
        );
    }
    assert!(
        says(bench.repository.merge_by_person(9, "merge").unwrap_err()).contains("404 Not Found")
    );
    assert!(
        bench.repository.rerun(1).is_err()
            && bench.repository.complete_run(1, "success", vec![]).is_err()
    );
    assert!(bench.repository.reference_changes().unwrap().is_empty());
}
