//! The life of pull requests, references and comments.

use reqwest::Method;
use serde_json::json;

use super::bench::{Bench, file};

#[tokio::test(flavor = "multi_thread")]
async fn mergeable_is_unknown_first_and_again_after_every_move() {
    let bench = Bench::new().await;
    bench.branch("fix", &[("src/b.txt", file("fixed\n"))]);
    let number = bench.pull("fix").await;
    let path = format!("/pulls/{number}");
    let first = bench.get(&path).await.body;
    assert_eq!(
        (&first["mergeable"], &first["mergeable_state"]),
        (&json!(null), &json!("unknown"))
    );
    assert_eq!(first["merge_commit_sha"], json!(null));
    let second = bench.get(&path).await.body;
    assert_eq!(
        (&second["mergeable"], &second["mergeable_state"]),
        (&json!(true), &json!("clean"))
    );
    // Before the merge this is the trial merge, of both sides.
    let trial = second["merge_commit_sha"].as_str().unwrap();
    assert_eq!(
        bench.bare(&["rev-parse", &format!("{trial}^2")]),
        second["head"]["sha"].as_str().unwrap()
    );
    assert_eq!(
        (
            &second["commits"],
            &second["changed_files"],
            &second["additions"]
        ),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(second["head"]["repo"]["id"], bench.repository.id());

    // The base moves: unknown again, and base.sha stays what it was.
    let stale = second["base"]["sha"].clone();
    bench
        .repository
        .commit("main", &[("src/b.txt", file("other\n"))], "Elsewhere")
        .unwrap();
    assert_eq!(bench.get(&path).await.body["mergeable"], json!(null));
    let conflicting = bench.get(&path).await.body;
    assert_eq!(
        (&conflicting["mergeable"], &conflicting["mergeable_state"]),
        (&json!(false), &json!("dirty"))
    );
    assert_eq!(conflicting["base"]["sha"], stale);
    // The head moves: base.sha catches up.
    bench
        .repository
        .commit("fix", &[("c.txt", file("c\n"))], "More")
        .unwrap();
    let moved = bench.get(&path).await.body;
    assert_eq!(
        moved["base"]["sha"],
        bench.repository.tip("main").unwrap().as_str()
    );
    assert_eq!(
        (&moved["mergeable"], &moved["commits"]),
        (&json!(null), &json!(2))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn github_refuses_some_pull_requests() {
    let bench = Bench::new().await;
    bench.branch("fix", &[("c.txt", file("c\n"))]);
    bench.pull("acme:fix").await;
    let refused = async |body: serde_json::Value| {
        let answer = bench.post("/pulls", body).await;
        assert_eq!(answer.status, 422, "{}", answer.body);
        answer.body
    };
    let twice = refused(json!({"title": "t", "head": "fix", "base": "main"})).await;
    assert_eq!(
        twice["errors"][0]["message"],
        "A pull request already exists for acme:fix."
    );
    let nothing = refused(json!({"title": "t", "head": "main", "base": "fix"})).await;
    assert_eq!(
        nothing["errors"][0]["message"],
        "No commits between fix and main"
    );
    let headless = refused(json!({"title": "t", "head": "gone", "base": "main"})).await;
    assert_eq!(
        (
            &headless["errors"][0]["field"],
            &headless["errors"][0]["code"]
        ),
        (&json!("head"), &json!("invalid"))
    );
    let baseless = refused(json!({"title": "t", "head": "fix", "base": "gone"})).await;
    assert_eq!(baseless["errors"][0]["field"], "base");
    refused(json!({"head": "fix", "base": "main"})).await;
    refused(json!({"title": 7, "head": "fix", "base": "main"})).await;
    refused(json!({"title": "t", "head": "somebody:fix", "base": "main"})).await;
    refused(json!({"title": "t".repeat(257), "head": "fix", "base": "main"})).await;
    refused(json!({"title": "t", "head": "fix", "base": "main", "body": "b".repeat(65_537)})).await;
    assert_eq!(bench.repository.pulls().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_filter_and_page() {
    let bench = Bench::new().await;
    for name in ["one", "two", "three"] {
        bench.branch(name, &[(name, file("x\n"))]);
        bench.pull(name).await;
    }
    bench.repository.close_pull(2).unwrap();
    let numbers = async |query: &str| {
        let body = bench.get(&format!("/pulls?{query}")).await.body;
        body.as_array()
            .unwrap()
            .iter()
            .map(|pull| pull["number"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers("").await, [3, 1]);
    assert_eq!(numbers("state=all").await, [3, 2, 1]);
    assert_eq!(numbers("state=closed").await, [2]);
    assert_eq!(numbers("state=all&head=acme:two").await, [2]);
    assert_eq!(numbers("state=all&head=other:two").await, [0_u64; 0]);
    assert_eq!(numbers("base=elsewhere").await, [0_u64; 0]);
    assert_eq!(numbers("state=all&direction=asc").await, [1, 2, 3]);
    let page = bench.get("/pulls?state=all&per_page=1&page=2").await;
    let base = format!(
        "<{}/repositories/{}/pulls?state=all&per_page=1&page=",
        bench.forge.url(),
        bench.repository.id()
    );
    let link = page.header("link");
    assert_eq!(
        link,
        format!(
            "{base}1>; rel=\"prev\", {base}3>; rel=\"next\", {base}3>; rel=\"last\", {base}1>; rel=\"first\""
        )
    );
    // The link works as it stands.
    let next = link
        .split(", ")
        .nth(1)
        .unwrap()
        .split('>')
        .next()
        .unwrap()
        .trim_start_matches('<');
    let next = bench
        .send(
            Method::GET,
            next.strip_prefix(bench.forge.url()).unwrap(),
            None,
        )
        .await;
    assert_eq!(next.body[0]["number"], 1);
    // A row does not say what only git can compute.
    assert!(page.body[0].get("mergeable").is_none() && page.body[0].get("changed_files").is_none());
    assert_eq!(bench.get("/pulls?state=odd").await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_is_changed_closed_and_reopened() {
    let bench = Bench::new().await;
    bench.branch("fix", &[("c.txt", file("c\n"))]);
    let path = format!("/pulls/{}", bench.pull("fix").await);
    let patch = async |body: serde_json::Value| bench.call(Method::PATCH, &path, Some(body)).await;
    assert_eq!(
        patch(json!({"title": "Other words"})).await.body["title"],
        "Other words"
    );
    assert_eq!(patch(json!({"body": null})).await.body["body"], json!(null));
    let closed = patch(json!({"state": "closed"})).await;
    assert_eq!(
        (&closed.body["state"], &closed.body["merged"]),
        (&json!("closed"), &json!(false))
    );
    // While it is closed its head stands still.
    let head = closed.body["head"]["sha"].clone();
    bench
        .repository
        .commit("fix", &[("d.txt", file("d\n"))], "Later")
        .unwrap();
    assert_eq!(bench.get(&path).await.body["head"]["sha"], head);
    let open = patch(json!({"state": "open"})).await;
    assert_eq!(
        open.body["head"]["sha"],
        bench.repository.tip("fix").unwrap().as_str()
    );
    bench
        .repository
        .create_branch("release", &bench.repository.tip("main").unwrap())
        .unwrap();
    assert_eq!(
        patch(json!({"base": "release"})).await.body["base"]["ref"],
        "release"
    );
    assert_eq!(patch(json!({"base": "gone"})).await.status, 422);
    assert_eq!(patch(json!({"state": "merged"})).await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_are_added_and_listed() {
    let bench = Bench::new().await;
    bench.branch("fix", &[("c.txt", file("c\n"))]);
    let path = format!("/issues/{}/comments", bench.pull("fix").await);
    let added = bench.post(&path, json!({"body": "Hello <b>"})).await;
    assert_eq!(added.status, 201);
    assert_eq!(bench.get(&path).await.body[0]["id"], added.body["id"]);
    assert_eq!(bench.post(&path, json!({})).await.status, 422);
    assert_eq!(
        bench
            .post("/issues/99/comments", json!({"body": "x"}))
            .await
            .status,
        404
    );
    assert_eq!(bench.repository.pull(1).unwrap().comments, ["Hello <b>"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn references_are_made_under_proper_names_only() {
    let bench = Bench::new().await;
    let first = bench.repository.tip("main").unwrap();
    let create = async |name: &str, sha: &str| {
        bench
            .post("/git/refs", json!({"ref": name, "sha": sha}))
            .await
    };
    let made = create("refs/heads/fix/a#1", first.as_str()).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(
        create("refs/heads/fix/a#1", first.as_str()).await.message(),
        "Reference already exists"
    );
    for bad in [
        "fix",
        "refs/heads",
        "refs/heads/a..b",
        "refs/heads/a b",
        "refs/heads/.a",
        "refs/heads/a.lock",
        "refs/pull/1/head",
        "refs/heads/@{1",
    ] {
        assert_eq!(create(bad, first.as_str()).await.status, 422, "{bad}");
    }
    assert_eq!(
        create("refs/heads/x", &"1".repeat(40)).await.message(),
        "Object does not exist"
    );
    assert_eq!(create("refs/heads/x", "abc").await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn references_are_moved_forward_or_by_force_and_removed() {
    let bench = Bench::new().await;
    let first = bench.repository.tip("main").unwrap();
    let second = bench
        .repository
        .commit("main", &[("c.txt", file("c\n"))], "Second")
        .unwrap();
    bench.repository.create_branch("fix/a#1", &first).unwrap();
    let path = "/git/refs/heads/fix/a%231";
    let patch = async |body: serde_json::Value| bench.call(Method::PATCH, path, Some(body)).await;
    assert_eq!(patch(json!({"sha": second.as_str()})).await.status, 200);
    let back = json!({"sha": first.as_str(), "force": false});
    assert_eq!(patch(back).await.message(), "Update is not a fast forward");
    assert_eq!(
        patch(json!({"sha": first.as_str(), "force": true}))
            .await
            .body["object"]["sha"],
        first.as_str()
    );
    assert_eq!(
        bench.get("/git/ref/heads/fix/a%231").await.body["ref"],
        "refs/heads/fix/a#1"
    );
    assert_eq!(bench.get("/git/ref/heads/fix").await.status, 404);
    assert_eq!(
        bench
            .get("/git/matching-refs/heads/fi")
            .await
            .body
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        bench.get("/git/matching-refs/heads/zz").await.body,
        json!([])
    );
    assert_eq!(bench.call(Method::DELETE, path, None).await.status, 204);
    assert_eq!(
        bench.call(Method::DELETE, path, None).await.message(),
        "Reference does not exist"
    );
    assert_eq!(
        bench
            .call(Method::DELETE, "/git/refs/heads/main", None)
            .await
            .status,
        422
    );
    let names: Vec<String> = bench
        .repository
        .reference_changes()
        .unwrap()
        .into_iter()
        .map(|change| change.name)
        .collect();
    assert_eq!(names.iter().filter(|name| name.contains("fix")).count(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn renamed_branches_and_repositories_redirect() {
    let bench = Bench::new().await;
    let id = bench.repository.id();
    bench.repository.rename_branch("main", "trunk").unwrap();
    let moved = bench.get("/branches/main").await;
    assert_eq!(moved.status, 301);
    assert_eq!(
        moved.header("location"),
        format!("{}/repositories/{id}/branches/trunk", bench.forge.url())
    );
    bench.repository.rename("gadget").unwrap();
    let read = bench.get("/branches/trunk").await;
    assert_eq!(
        (read.status, read.header("location")),
        (301, moved.header("location"))
    );
    let write = bench.post("/git/refs", json!({})).await;
    assert_eq!(
        (write.status, write.header("location")),
        (
            307,
            format!("{}/repositories/{id}/git/refs", bench.forge.url()).as_str()
        )
    );
    let whole = bench
        .send(Method::GET, &format!("/repositories/{id}"), None)
        .await;
    assert_eq!(
        (&whole.body["full_name"], &whole.body["default_branch"]),
        (&json!("acme/gadget"), &json!("trunk"))
    );
}
