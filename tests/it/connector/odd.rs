//! Odd items: one of them never hides the others, and never vanishes without a word.

use caretaker::connector::{Connector as _, ConnectorError, RunsPage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::provider::{Provider, Reply, json};

fn run(id: u64) -> Value {
    json!({
        "id": id, "run_attempt": 2, "workflow_id": 7, "name": "ci", "event": "push",
        "head_branch": "main", "head_sha": "a".repeat(40), "status": "completed",
        "conclusion": "failure", "html_url": "https://github.example/r/1",
        "repository": {"id": 42}, "head_repository": {"id": 42},
    })
}

fn without(id: u64, member: &str, value: Value) -> Value {
    let mut run = run(id);
    run[member] = value;
    run
}

async fn page(list: Value) -> Result<RunsPage, ConnectorError> {
    let body = json!({"total_count": 1, "workflow_runs": list});
    let provider = Provider::start(move |_| json(200, &body)).await;
    provider.connector().runs(1).await
}

#[tokio::test]
async fn what_cannot_be_judged_is_named() {
    let list = json!([
        run(1),
        without(2, "head_sha", Value::Null),
        without(3, "head_sha", json!("abcdef1")),
        without(4, "workflow_id", json!("x")),
        null,
        [],
        without(6, "repository", Value::Null),
        run(5),
    ]);
    let page = page(list).await.unwrap();
    let ids: Vec<_> = page.runs.iter().map(|run| run.id).collect();
    assert_eq!(ids, [1, 5]);
    let named = [
        ("run 2: ", "head_sha is missing"),
        ("run 3: ", "40 or 64"),
        ("run 4: ", "workflow_id is missing"),
        ("run without a number: ", "null"),
        ("run without a number: ", "id is missing"),
        ("run 6: ", "repository is missing"),
    ];
    assert_eq!(page.left_out.len(), named.len());
    for (words, (number, fault)) in page.left_out.iter().zip(named) {
        assert!(
            words.starts_with(number) && words.contains(fault),
            "{words}"
        );
    }
}

#[tokio::test]
async fn a_run_of_another_repository_is_never_ours() {
    let page = page(json!([
        run(1),
        without(2, "repository", json!({"id": 43})),
        without(3, "repository", Value::Null),
        without(4, "head_repository", json!({"id": 43})),
    ]))
    .await
    .unwrap();
    let ours: Vec<_> = page
        .runs
        .iter()
        .map(|run| (run.id, run.own_repository))
        .collect();
    assert_eq!(ours, [(1, true), (4, false)]);
    assert!(page.left_out[0].contains("repository number 43, not to 42"));
    assert!(page.left_out[1].contains("repository is missing"));
}

#[tokio::test]
async fn a_run_that_is_listed_twice_is_listed_in_its_newest_attempt() {
    let page = page(json!([
        run(9),
        run(8),
        without(9, "run_attempt", json!(3)),
        without(9, "run_attempt", json!(1)),
        run(8),
    ]))
    .await
    .unwrap();
    let attempts: Vec<_> = page.runs.iter().map(|run| (run.id, run.attempt)).collect();
    assert_eq!(attempts, [(9, 3), (8, 2)]);
    assert!(page.left_out.is_empty());
}

#[tokio::test]
async fn members_of_the_wrong_kind_are_as_good_as_missing() {
    let mut odd = run(1);
    for (member, value) in [
        ("name", json!(7)),
        ("event", json!({})),
        ("head_branch", json!([])),
        ("conclusion", json!(false)),
        ("run_attempt", json!(-1)),
        ("html_url", json!(1.5)),
        ("created_at", json!("yesterday")),
        ("head_repository", json!("octo/widget")),
    ] {
        odd[member] = value;
    }
    let page = page(json!([odd])).await.unwrap();
    let run = &page.runs[0];
    assert_eq!((run.id, run.attempt, run.event.as_str()), (1, 1, ""));
    assert_eq!(
        (&run.workflow, &run.branch, &run.conclusion),
        (&None, &None, &None)
    );
    assert!(!run.own_repository && run.started_at.is_none());
}

#[tokio::test]
async fn an_odd_job_is_one_of_unknown_conclusion() {
    let jobs = json!({"jobs": [
        {"id": 1, "name": "build", "conclusion": "success", "steps": [{"status": "completed"}, 7]},
        {"id": 5, "conclusion": "success"},
        {"name": "nameless number", "conclusion": "success"},
        null,
        {"id": 5_000_000_000_u64, "name": "huge", "conclusion": "startup_failure", "runner_id": 5e40},
        {"id": 6, "name": "odd steps", "conclusion": "failure", "steps": "none"},
    ]});
    let provider = Provider::start(move |_| json(200, &jobs)).await;
    let jobs = provider.connector().jobs(9, 1).await.unwrap();
    let seen: Vec<_> = jobs
        .iter()
        .map(|job| {
            (
                job.id,
                job.name.as_str(),
                job.conclusion.as_deref(),
                job.steps,
            )
        })
        .collect();
    let expected = [
        (1, "build", Some("success"), 2),
        (5, "(unreadable job)", None, 0),
        (0, "nameless number", None, 0),
        (0, "(unreadable job)", None, 0),
        (5_000_000_000, "huge", Some("startup_failure"), 0),
        (6, "odd steps", Some("failure"), 0),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn odd_workflows_do_not_hide_the_others() {
    let list = json!({"workflows": [
        {"id": 1, "name": null, "path": ".github/workflows/ci.yml", "state": "disabled_fork"},
        null, {"name": "no number"}, {"id": "x"},
        {"id": 2, "path": 7, "state": "a_word_of_next_year"},
        {"id": u64::MAX, "path": ".github/workflows/x.yml", "state": "active"},
    ]});
    let provider = Provider::start(move |_| json(200, &list)).await;
    let list = provider.connector().workflows().await.unwrap();
    let seen: Vec<_> = list
        .workflows
        .iter()
        .map(|it| (it.id, it.path.as_str(), it.state.as_str()))
        .collect();
    let expected = [
        (1, ".github/workflows/ci.yml", "disabled_fork"),
        (2, "", "a_word_of_next_year"),
    ];
    assert_eq!(seen, expected);
    let named = [
        "a workflow without a number cannot be read (",
        "a workflow without a number",
        "a workflow without a number",
        "workflow 18446744073709551615 (.github/workflows/x.yml): no provider counts so far",
    ];
    assert_eq!(list.left_out.len(), named.len(), "{:?}", list.left_out);
    for (words, named) in list.left_out.iter().zip(named) {
        assert!(words.starts_with(named), "{words}");
    }
}

#[tokio::test]
async fn a_directory_or_a_link_is_no_file() {
    for body in [
        json!([{"type": "file"}]),
        json!({"type": "symlink", "target": "/etc/passwd"}),
    ] {
        let provider = Provider::start(move |_| json(200, &body)).await;
        let file = provider.connector().file("main", "x", 10).await.unwrap();
        assert_eq!(file, None);
    }
    for body in [
        json!({"type": "file", "encoding": "none", "content": ""}),
        json!({"type": "file", "encoding": "base64", "content": "%%"}),
        json!({"type": "file", "encoding": "base64"}),
        json!(7),
    ] {
        let provider = Provider::start(move |_| json(200, &body)).await;
        provider
            .connector()
            .file("main", "x", 10)
            .await
            .unwrap_err();
    }
}

#[tokio::test]
async fn what_only_spoils_itself_when_taken_as_text_hides_no_other() {
    let deep = format!("{}{}", "[".repeat(400), "]".repeat(400));
    // The text that stands for `HERE`, and whether the run is still understood.
    for (member, text, understood) in [
        ("id", b"1e400".as_slice(), false),
        ("run_attempt", b"-1e999", true),
        ("display_title", b"\"\\ud800\"", true),
        ("name", b"\"half \\udfff\"", true),
        ("display_title", b"\"\xff\xfe\"", true),
        ("name", b"\"\xf0\x9f\"", true),
        ("extra", deep.as_bytes(), true),
        ("repository", deep.as_bytes(), false),
        ("id", b"3, \"id\": 4", false),
    ] {
        let mut odd = run(3);
        odd[member] = json!("HERE");
        let list = json!({"workflow_runs": [run(1), odd, run(2)]}).to_string();
        let (before, after) = list.split_once("\"HERE\"").unwrap();
        let body = [before.as_bytes(), text, after.as_bytes()].concat();
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
        let whole = [head.as_bytes(), &body].concat();
        let provider = Provider::start(move |_| Reply::Raw(whole.clone())).await;
        let page = provider.connector().runs(1).await.unwrap();
        let ids: Vec<_> = page.runs.iter().map(|run| run.id).collect();
        let words = String::from_utf8_lossy(&text[..text.len().min(20)]).into_owned();
        let expected: &[u64] = if understood { &[1, 3, 2] } else { &[1, 2] };
        assert_eq!(ids, expected, "{member} {words}");
        assert_eq!(page.left_out.len(), 3 - ids.len(), "{member} {words}");
    }
}

#[tokio::test]
async fn words_of_the_provider_are_kept_no_longer_than_they_can_be() {
    let long = "x".repeat(1_000_000);
    let mut odd = run(1);
    for member in ["name", "conclusion", "status", "html_url"] {
        odd[member] = json!(format!("https://{long}"));
    }
    let page = page(json!([odd, long])).await.unwrap();
    let run = &page.runs[0];
    let texts = [&run.workflow, &run.conclusion, &run.url];
    let kept: usize = texts.into_iter().flatten().map(String::len).sum();
    let left_out: usize = page.left_out.iter().map(String::len).sum();
    assert!(kept + run.status.len() + left_out < 6_000);
    assert_eq!(run.url, None);
    let repository = json!({"id": 42, "full_name": long, "default_branch": "main"});
    let provider = Provider::start(move |_| json(200, &repository)).await;
    let view = provider.connector().repository().await.unwrap();
    assert!(view.full_name.len() < 400);
}

fn odd_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!({"id": 43})),
        Just(json!("9".repeat(200))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Any members may be anything: the plain runs around are all there, and the odd one is there, or named.
    #[test]
    fn one_odd_run_never_loses_the_page(
        changes in proptest::collection::vec((0_usize..16, odd_value()), 0..6),
        whole in proptest::option::of(odd_value()),
    ) {
        let members = [
            "id", "run_attempt", "workflow_id", "name", "event", "head_branch", "head_sha", "status",
            "conclusion", "created_at", "run_started_at", "updated_at", "html_url", "repository",
            "head_repository", "pull_requests",
        ];
        let mut odd = run(3);
        for (member, value) in changes {
            odd[members[member]] = value;
        }
        let odd = whole.unwrap_or(odd);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let page = runtime.block_on(page(json!([run(1), &odd, run(2)]))).unwrap();
        let ids: Vec<_> = page.runs.iter().map(|run| run.id).collect();
        prop_assert!(ids.contains(&1) && ids.contains(&2));
        let listed_twice = ids.len() == 2 && page.left_out.is_empty();
        let is_twin = odd["id"] == json!(1) || odd["id"] == json!(2);
        prop_assert!(page.runs.len() + page.left_out.len() == 3 || listed_twice && is_twin);
    }
}
