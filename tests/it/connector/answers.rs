//! One answer at a time: what each status, header and malformation means.

use caretaker::clock::Millis;
use caretaker::connector::{Connector as _, ConnectorError};
use serde_json::{Value, json};

use super::provider::{NOW, Provider, Reply, json, with_headers};

async fn failure(reply: Reply) -> ConnectorError {
    let provider = Provider::start(move |_| reply.clone()).await;
    let error = provider.connector().repository().await.unwrap_err();
    // What came to nothing may come to something when it is asked again.
    let nothing = matches!(error, ConnectorError::Unreachable { .. });
    assert_eq!(
        provider.count("GET"),
        if nothing { 3 } else { 1 },
        "{error}"
    );
    assert_eq!(
        provider.connector().usage().requests,
        0,
        "counted by connector"
    );
    error
}

fn seconds(later: i64) -> Millis {
    NOW.plus_seconds(later)
}

#[tokio::test]
async fn each_status_has_its_meaning() {
    let body =
        json!({"message": "Said\u{1b}[2J so", "errors": [{"field": "base", "code": "invalid"}]});
    let said = |status| failure(json(status, &body));
    assert!(matches!(
        said(401).await,
        ConnectorError::Unauthorised { .. }
    ));
    assert!(matches!(said(403).await, ConnectorError::Forbidden { .. }));
    assert!(matches!(said(404).await, ConnectorError::Absent { .. }));
    assert!(matches!(said(410).await, ConnectorError::Refused { .. }));
    assert!(matches!(
        said(500).await,
        ConnectorError::Unreachable { .. }
    ));
    assert!(matches!(
        said(503).await,
        ConnectorError::Unreachable { .. }
    ));
    assert!(matches!(said(204).await, ConnectorError::Refused { .. }));
    let words = said(422).await.to_string();
    assert!(words.contains("422: Said [2J so; base invalid"), "{words}");
    let page = Reply::Plain(502, Vec::new(), b"<html>Bad Gateway</html>".to_vec());
    let words = failure(page).await.to_string();
    assert!(!words.contains("<html>"), "{words}");
}

#[tokio::test]
async fn a_limit_says_when_to_come_back_and_a_plain_403_is_no_limit() {
    let nothing = json!({"message": "Forbidden"});
    let until = |status, headers: &'static [(&'static str, &'static str)], body: Value| async move {
        match failure(with_headers(status, headers, &body)).await {
            ConnectorError::Limited { until, .. } => Some(until),
            ConnectorError::Forbidden { .. } => None,
            other => panic!("{other}"),
        }
    };
    let found = until(403, &[("retry-after", "30")], nothing.clone()).await;
    assert_eq!(found, Some(seconds(30)));
    let found = until(429, &[], nothing.clone()).await;
    assert_eq!(found, Some(seconds(60)));
    let spent = &[
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1800000120"),
    ];
    assert_eq!(until(403, spent, nothing.clone()).await, Some(seconds(120)));
    let secondary = json!({"message": "You have exceeded a secondary rate limit."});
    let left = &[("x-ratelimit-remaining", "4000")];
    assert_eq!(until(403, left, secondary).await, Some(seconds(60)));
    assert_eq!(until(403, left, nothing.clone()).await, None);
    // Neither a past nor an absurd moment is believed: clocks differ, and some servers send milliseconds.
    let past = &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "5")];
    assert_eq!(until(403, past, nothing.clone()).await, Some(seconds(60)));
    let absurd = &[
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1800000120000"),
    ];
    assert_eq!(
        until(429, absurd, nothing.clone()).await,
        Some(seconds(3_600))
    );
    let garbage = &[("retry-after", "Fri, 31 Dec 1999 23:59:59 GMT")];
    assert_eq!(until(429, garbage, nothing).await, Some(seconds(60)));
}

#[tokio::test]
async fn garbage_is_an_error_that_says_so() {
    let garbage: [&[u8]; 5] = [b"", b"<html>", b"[[[[", b"\xff\xfe{}", b"{\"id\": \"x\"}"];
    for body in garbage {
        let error = failure(Reply::Plain(200, Vec::new(), body.to_vec())).await;
        assert!(!error.is_transient());
        assert!(error.to_string().contains("makes no sense"), "{error}");
    }
    let deep = "[".repeat(2_000_000).into_bytes();
    assert!(matches!(
        failure(Reply::Plain(200, Vec::new(), deep)).await,
        ConnectorError::Refused { .. }
    ));
}

#[tokio::test]
async fn an_answer_cut_short_or_reset_is_unreachable() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n{\"id\": 42".to_vec();
    for raw in [half, b"HTTP/1.1 200 OK\r\ncont".to_vec(), Vec::new()] {
        let error = failure(Reply::Raw(raw)).await;
        assert!(error.is_transient(), "{error}");
    }
}

#[tokio::test]
async fn a_silent_provider_is_left_at_the_deadline() {
    let provider = Provider::start(|_| Reply::Silence).await;
    let error = provider
        .impatient_connector()
        .repository()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("within 150 ms"), "{error}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn an_endless_answer_ends_at_the_size_limit() {
    let error = failure(Reply::Endless).await;
    assert!(error.to_string().contains("larger than"), "{error}");
    assert!(!error.is_transient());
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let provider = Provider::start(|_| Reply::Silence).await;
    let mut options = provider.options();
    // Port 9 on loopback refuses connections.
    options.api_url = "http://127.0.0.1:9".to_owned();
    let error = provider.made(options).repository().await.unwrap_err();
    assert!(error.is_transient(), "{error}");
}

fn repository() -> Value {
    json!({"id": 42, "full_name": "octo/gadget", "default_branch": "main", "archived": null})
}

#[tokio::test]
async fn a_renamed_repository_is_found_and_read_by_its_number() {
    let provider = Provider::start(|asked| match asked.target.as_str() {
        "/api/v3/repositories/42" => json(200, &repository()),
        "/api/v3/repositories/42/actions/runs/9?x=1" => json(200, &run(9)),
        _ => with_headers(
            301,
            &[("location", "/api/v3/repositories/42/actions/runs/9?x=1")],
            &json!({}),
        ),
    })
    .await;
    let found = provider.connector().repository().await.unwrap();
    assert_eq!(found.full_name, "octo/gadget");
    assert_eq!(provider.connector().run(9).await.unwrap().id, 9);
    assert_eq!(provider.count("GET"), 3);
}

#[tokio::test]
async fn an_answer_about_another_run_is_refused() {
    let provider = Provider::start(|_| json(200, &run(8))).await;
    let error = provider.connector().run(9).await.unwrap_err();
    assert!(error.to_string().contains("another run"), "{error}");
}

#[tokio::test]
async fn a_redirect_to_another_repository_is_not_followed() {
    for target in [
        "/api/v3/repositories/43",
        "/api/v3/repositories/421",
        "/api/v3/repos/other/widget",
        "/repositories/42",
        "not an address at all",
    ] {
        let error = failure(with_headers(301, &[("location", target)], &json!({}))).await;
        assert!(error.to_string().contains("not followed"), "{error}");
    }
    for status in [302, 307, 308] {
        let here = &[("location", "/api/v3/repositories/42")];
        let error = failure(with_headers(status, here, &json!({}))).await;
        assert!(error.to_string().contains("not followed"), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let other = Provider::start(|_| json(200, &repository())).await;
    let location = format!("{}/api/v3/repositories/42", other.origin);
    let provider =
        Provider::start(move |_| with_headers(301, &[("location", location.as_str())], &json!({})))
            .await;
    let error = provider.connector().repository().await.unwrap_err();
    assert!(matches!(error, ConnectorError::Refused { .. }), "{error}");
    assert_eq!((provider.count("GET"), other.count("GET")), (1, 0));
}

#[tokio::test]
async fn without_a_registered_number_no_redirect_is_followed() {
    let here = &[("location", "/api/v3/repositories/42")];
    let provider = Provider::start(move |_| with_headers(301, here, &json!({}))).await;
    let connector = provider.connector_of(None);
    connector.repository().await.unwrap_err();
    assert_eq!(provider.count("GET"), 1);
}

fn run(id: u64) -> Value {
    json!({
        "id": id, "run_attempt": 2, "workflow_id": 7, "name": "ci", "event": "push",
        "head_branch": "main", "head_sha": "a".repeat(40), "status": "completed",
        "conclusion": "failure", "html_url": "https://github.example/r/1",
        "repository": {"id": 42}, "head_repository": {"id": 42},
    })
}

async fn runs(list: Value) -> Result<Vec<caretaker::connector::RunView>, ConnectorError> {
    let provider =
        Provider::start(move |_| json(200, &json!({"total_count": 1, "workflow_runs": list})))
            .await;
    let page = provider.connector().runs(1).await?;
    Ok(page.runs.to_vec())
}

#[tokio::test]
async fn one_odd_run_does_not_hide_the_others() {
    let mut abbreviated = run(2);
    abbreviated["head_sha"] = json!("abcdef1");
    let mut sparse = run(3);
    for member in [
        "name",
        "head_branch",
        "html_url",
        "conclusion",
        "run_attempt",
        "head_repository",
    ] {
        sparse[member] = Value::Null;
    }
    let mut novel = run(4);
    novel["conclusion"] = json!("eaten_by_a_grue");
    novel["html_url"] = json!("javascript:alert(1)");
    novel["head_repository"]["id"] = json!(43);
    let mut huge = run(5);
    huge["id"] = json!(1e30);
    let mut nowhere = run(6);
    (nowhere["repository"], nowhere["head_repository"]) = (Value::Null, Value::Null);
    nowhere["event"] = json!("merge_group");
    let list = json!([
        run(1),
        abbreviated,
        null,
        7,
        sparse,
        novel,
        huge,
        nowhere,
        run(u64::MAX)
    ]);
    let found = runs(list).await.unwrap();
    let ids: Vec<_> = found.iter().map(|run| run.id).collect();
    assert_eq!(ids, [1, 3, 4, 6, u64::MAX]);
    assert!(
        !found[3].own_repository,
        "two unknown ones are not the same"
    );
    assert!(found[0].own_repository && found[0].attempt == 2);
    assert!(
        !found[1].own_repository,
        "an unknown head repository is not ours"
    );
    assert_eq!((found[1].attempt, &found[1].branch), (1, &None));
    assert_eq!(found[2].conclusion.as_deref(), Some("eaten_by_a_grue"));
    assert!(!found[2].own_repository && found[2].url.is_none());
}

#[tokio::test]
async fn a_page_of_odd_runs_alone_is_not_taken_for_the_end() {
    let error = runs(json!([{}, {"id": 1}])).await.unwrap_err();
    assert!(error.to_string().contains("none of its 2 items"), "{error}");
    assert!(runs(json!([])).await.unwrap().is_empty());
    assert!(runs(json!({"not": "a list"})).await.is_err());
}

#[tokio::test]
async fn jobs_are_read_page_by_page_and_unknown_words_kept() {
    let provider = Provider::start(|asked| {
        let page: u64 = asked.query("page").unwrap().parse().unwrap();
        let count = if page < 3 { 100 } else { 1 };
        let jobs: Vec<_> = (0..count)
            .map(|n| {
                json!({"id": page * 1000 + n, "name": "test", "conclusion": "stale",
                "runner_id": 5_000_000_000_u64,
                "steps": [{"status": "completed", "conclusion": "success"},
                          {"status": "completed", "conclusion": "skipped"},
                          {"status": "queued", "conclusion": null}]})
            })
            .collect();
        json(200, &json!({"jobs": jobs}))
    })
    .await;
    let jobs = provider.connector().jobs(9, 2).await.unwrap();
    assert_eq!((jobs.len(), provider.count("GET")), (201, 3));
    assert_eq!(
        provider.asked()[0].tail(),
        "/actions/runs/9/attempts/2/jobs"
    );
    assert_eq!(jobs[0].conclusion.as_deref(), Some("stale"));
    assert_eq!(jobs[0].steps, 1, "only what ran counts");
}

#[tokio::test]
async fn a_list_that_never_ends_is_left() {
    let provider = Provider::start(|_| {
        let jobs = json!({"jobs": [{"id": 1, "name": "test"}]});
        with_headers(200, &[("link", "<x>; rel=\"next\"")], &jobs)
    })
    .await;
    let error = provider.connector().jobs(9, 2).await.unwrap_err();
    assert!(error.to_string().contains("has not ended"), "{error}");
    assert_eq!(provider.count("GET"), 30);
}
