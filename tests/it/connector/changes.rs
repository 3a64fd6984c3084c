//! What the connector changes at the provider, how often it asks, and what it refuses to ask.

use caretaker::connector::{Connector as _, ConnectorError, NewPull};
use serde_json::{Value, json};

use super::provider::{Asked, Provider, Reply, json};

fn pull(number: u64, branch: &str, head_repository: u64) -> Value {
    json!({"number": number, "state": "closed", "merged_at": "2027-01-01T00:00:00Z",
        "html_url": format!("https://github.example/octo/widget/pull/{number}"),
        "head": {"ref": branch, "sha": "a".repeat(40), "repo": {"id": head_repository}},
        "base": {"ref": "main", "sha": "b".repeat(40), "repo": {"id": 42}}})
}

/// A provider whose repository is there and which answers the rest as given.
async fn besides(answers: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Provider {
    Provider::start(move |asked| match (asked.method.as_str(), asked.tail()) {
        ("GET", "") => json(200, &json!({"id": 42})),
        _ => answers(asked),
    })
    .await
}

fn new_pull() -> NewPull {
    NewPull {
        head_ref: "caretaker/inc/1".to_owned(),
        base_ref: "main".to_owned(),
        title: "Fix \"it\"".to_owned(),
        body: "ä\n<!-- x -->".to_owned(),
    }
}

#[tokio::test]
async fn a_pull_request_is_found_by_its_encoded_branch() {
    let provider = besides(|_| json(200, &json!([pull(7, "caretaker/inc/1&x=#", 42)]))).await;
    let connector = provider.connector();
    let found = connector
        .find_pull("caretaker/inc/1&x=#")
        .await
        .unwrap()
        .unwrap();
    assert_eq!((found.number, found.open, found.merged), (7, false, true));
    assert_eq!(found.url, "https://github.example/octo/widget/pull/7");
    let asked = provider.asked().remove(0);
    assert!(
        asked
            .target
            .contains("head=octo%3Acaretaker%2Finc%2F1%26x%3D%23&"),
        "{asked:?}"
    );
    assert_eq!(asked.query("state").as_deref(), Some("all"));
}

#[tokio::test]
async fn a_server_that_ignores_the_filter_does_not_mislead() {
    let list = json!([
        pull(9, "other", 42),
        pull(8, "caretaker/inc/1", 43),
        pull(7, "caretaker/inc/1", 42),
        pull(6, "caretaker/inc/1", 42),
    ]);
    let provider = besides(move |_| json(200, &list)).await;
    let found = provider
        .connector()
        .find_pull("caretaker/inc/1")
        .await
        .unwrap();
    assert_eq!(
        found.unwrap().number,
        7,
        "the newest one from our own repository"
    );
    let none = provider
        .connector()
        .find_pull("caretaker/inc/2")
        .await
        .unwrap();
    assert_eq!(none, None);
}

#[tokio::test]
async fn a_pull_request_is_opened_with_one_request() {
    let provider = besides(|_| json(201, &pull(7, "caretaker/inc/1", 42))).await;
    let opened = provider.connector().open_pull(&new_pull()).await.unwrap();
    assert_eq!(opened.number, 7);
    let asked = provider.asked().pop().unwrap();
    assert_eq!((asked.method.as_str(), asked.tail()), ("POST", "/pulls"));
    assert_eq!(asked.all("content-length"), [asked.body.len().to_string()]);
    assert_eq!(asked.all("content-type"), ["application/json"]);
    assert!(asked.all("transfer-encoding").is_empty());
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    let expected = json!({"title": "Fix \"it\"", "body": "ä\n<!-- x -->", "draft": false,
        "head": "caretaker/inc/1", "base": "main"});
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_change_is_sent_once_whatever_is_answered() {
    let moved = Reply::Plain(
        307,
        vec![("location", "/api/v3/repositories/42/pulls".to_owned())],
        Vec::new(),
    );
    let answers = [
        (json(502, &json!({})), true),
        (json(429, &json!({})), true),
        (json(200, &json!({})), false),
        (
            json(201, &json!({"number": 7, "head": {"sha": "abcdef1"}})),
            false,
        ),
        (
            json(422, &json!({"message": "A pull request already exists"})),
            false,
        ),
        (moved, false),
        (
            Reply::Raw(b"HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\n{".to_vec()),
            true,
        ),
        (Reply::Raw(Vec::new()), true),
    ];
    for (reply, transient) in answers {
        let provider = besides(move |_| reply.clone()).await;
        let error = provider
            .connector()
            .open_pull(&new_pull())
            .await
            .unwrap_err();
        assert_eq!(error.is_transient(), transient, "{error}");
        assert_eq!(provider.count("POST"), 1);
    }
}

#[tokio::test]
async fn nothing_is_changed_in_another_repository_under_the_same_name() {
    let provider = Provider::start(|_| json(200, &json!({"id": 43}))).await;
    let connector = provider.connector();
    // Break it: drop `confirm_repository` from one of these; this then fails.
    let errors = [
        connector.open_pull(&new_pull()).await.err(),
        connector.close_pull(7, "closed").await.err(),
        connector.delete_branch("caretaker/inc/1").await.err(),
    ];
    for error in errors {
        let words = error.unwrap().to_string();
        assert!(
            words.contains("number 43, but 42 was registered"),
            "{words}"
        );
    }
    assert!(provider.asked().iter().all(|asked| asked.method == "GET"));
}

fn open(number: u64) -> Value {
    let mut open = pull(number, "caretaker/inc/1", 42);
    open["state"] = json!("open");
    open["merged_at"] = Value::Null;
    open
}

#[tokio::test]
async fn closing_comments_once_and_closes() {
    let provider = besides(|asked| match (asked.method.as_str(), asked.tail()) {
        ("GET", "/pulls/7") | ("PATCH", _) => json(200, &open(7)),
        ("GET", _) => json(200, &json!([{"body": null}, {"body": "a word"}, 5])),
        _ => json(201, &json!({})),
    })
    .await;
    provider
        .connector()
        .close_pull(7, "It recovered.")
        .await
        .unwrap();
    let changes: Vec<_> = provider
        .asked()
        .into_iter()
        .filter(|it| it.method != "GET")
        .collect();
    assert_eq!(changes.len(), 2);
    assert_eq!(changes[0].tail(), "/issues/7/comments");
    let body: Value = serde_json::from_str(&changes[0].body).unwrap();
    assert_eq!(
        body,
        json!({"body": "It recovered.\n\n<!-- caretaker:closing -->"})
    );
    assert_eq!(
        (changes[1].method.as_str(), changes[1].tail()),
        ("PATCH", "/pulls/7")
    );
    assert_eq!(changes[1].body, "{\"state\":\"closed\"}");
}

#[tokio::test]
async fn closing_again_after_a_stop_in_between_does_not_comment_again() {
    let provider = besides(|asked| match (asked.method.as_str(), asked.tail()) {
        ("GET", "/pulls/7") | ("PATCH", _) => json(200, &open(7)),
        ("GET", _) if asked.query("page").as_deref() == Some("1") => {
            json(200, &json!(vec![json!({"body": "noise"}); 100]))
        }
        _ => json(200, &json!([{"body": "x\n\n<!-- caretaker:closing -->"}])),
    })
    .await;
    provider
        .connector()
        .close_pull(7, "It recovered.")
        .await
        .unwrap();
    assert_eq!((provider.count("POST"), provider.count("PATCH")), (0, 1));
}

#[tokio::test]
async fn a_closed_pull_request_is_left_alone_and_a_refused_comment_stops() {
    let provider = besides(|_| json(200, &pull(7, "caretaker/inc/1", 42))).await;
    provider.connector().close_pull(7, "x").await.unwrap();
    assert!(provider.asked().iter().all(|asked| asked.method == "GET"));
    let provider = besides(|asked| match (asked.method.as_str(), asked.tail()) {
        ("GET", "/pulls/7") => json(200, &open(7)),
        ("GET", _) => json(200, &json!([])),
        _ => json(403, &json!({"message": "no"})),
    })
    .await;
    provider.connector().close_pull(7, "x").await.unwrap_err();
    assert_eq!((provider.count("POST"), provider.count("PATCH")), (1, 0));
}

#[tokio::test]
async fn only_our_own_branches_are_deleted() {
    let provider = besides(|_| Reply::Plain(204, Vec::new(), Vec::new())).await;
    let connector = provider.connector();
    for name in [
        "main",
        "caretaker",
        "caretaker/",
        "caretaker/../main",
        "xcaretaker/a",
        "release/1",
    ] {
        let error = connector.delete_branch(name).await.unwrap_err();
        assert!(matches!(error, ConnectorError::Refused { .. }), "{error}");
    }
    assert_eq!(provider.count("DELETE"), 0);
    connector.delete_branch("caretaker/inc/1").await.unwrap();
    let asked = provider.asked().pop().unwrap();
    assert_eq!(asked.tail(), "/git/refs/heads/caretaker/inc/1");
    assert!(asked.body.is_empty());
}

#[tokio::test]
async fn a_branch_that_is_gone_is_fine_and_one_that_stays_is_not() {
    let deleting = |status: u16, message: &'static str, reference: Reply| async move {
        let provider = besides(move |asked| match asked.method.as_str() {
            "DELETE" => json(status, &json!({"message": message})),
            _ => reference.clone(),
        })
        .await;
        let deleted = provider.connector().delete_branch("caretaker/a").await;
        assert_eq!(provider.count("DELETE"), 1);
        deleted
    };
    let gone = || json(404, &json!({"message": "Not Found"}));
    let there = json(
        200,
        &json!({"ref": "refs/heads/caretaker/a", "object": {"type": "commit", "sha": "a".repeat(40)}}),
    );
    deleting(422, "Reference does not exist", gone())
        .await
        .unwrap();
    deleting(404, "Not Found", gone()).await.unwrap();
    let hidden = deleting(404, "Not Found", there.clone()).await;
    assert!(matches!(hidden, Err(ConnectorError::Absent { .. })));
    deleting(422, "Cannot delete protected branch", there.clone())
        .await
        .unwrap_err();
    let lost = deleting(500, "", there).await.unwrap_err();
    assert!(lost.is_transient());
}

#[tokio::test]
async fn a_branch_is_there_absent_or_not_to_be_seen() {
    let reference = |name: &str, kind: &str, sha: &str| {
        json(
            200,
            &json!({"ref": name, "object": {"type": kind, "sha": sha}}),
        )
    };
    let read = |reply: Reply, repository: u16| async move {
        let provider = Provider::start(move |asked| match asked.tail() {
            "" => json(repository, &json!({"id": 42})),
            _ => reply.clone(),
        })
        .await;
        provider.connector().branch("a/b").await
    };
    let id = "c".repeat(40);
    let found = read(reference("refs/heads/a/b", "commit", &id), 200)
        .await
        .unwrap();
    assert_eq!(found.unwrap().to_string(), id);
    let absent = json(404, &json!({}));
    assert_eq!(read(absent.clone(), 200).await.unwrap(), None);
    read(absent, 404).await.unwrap_err();
    // Break it: drop the comparison of names in refs.rs; the first of these then fails.
    read(reference("refs/heads/a/bc", "commit", &id), 200)
        .await
        .unwrap_err();
    read(reference("refs/heads/a/b", "tag", &id), 200)
        .await
        .unwrap_err();
    let short = read(reference("refs/heads/a/b", "commit", "c3d4e5f"), 200)
        .await
        .unwrap_err();
    assert!(short.to_string().contains("40 or 64"), "{short}");
}
