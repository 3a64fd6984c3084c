//! What was read before and is asked about instead of asked for.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use caretaker::connector::github::GithubConnector;
use caretaker::connector::{Connector as _, ConnectorError};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::credentials::Numbered;
use super::provider::{Asked, Provider, Reply, json, with_headers};

fn run(id: u32) -> Value {
    json!({"id": id, "workflow_id": 7, "head_sha": "a".repeat(40), "status": "completed"})
}

fn runs(version: u32) -> Value {
    json!({"workflow_runs": [run(version)]})
}

/// How the provider answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Honest,
    /// The body breaks off, with the tag of the whole.
    BreaksOff,
    /// The body ends early in a way that only its reader can see.
    EndsEarly,
    Garbage,
    /// A refusal with a tag of its own.
    Absent,
    Failing,
    /// "Not modified", whatever was asked.
    AlwaysNotModified,
}

const MANNERS: [Manner; 7] = [
    Manner::Honest,
    Manner::BreaksOff,
    Manner::EndsEarly,
    Manner::Garbage,
    Manner::Absent,
    Manner::Failing,
    Manner::AlwaysNotModified,
];

/// The tag of a version, which differs from token to token.
fn tag(asked: &Asked, version: u32) -> String {
    format!("W/\"{version}-{}\"", asked.all("authorization").join(","))
}

fn answer(asked: &Asked, version: u32, manner: Manner) -> Reply {
    let tag = tag(asked, version);
    let tagged = [("etag", tag.as_str())];
    let known = asked.all("if-none-match") == [tag.as_str()];
    let body = runs(version);
    match manner {
        Manner::Honest if known => with_headers(304, &tagged, &json!("")),
        Manner::AlwaysNotModified => with_headers(304, &tagged, &json!("")),
        Manner::Honest => with_headers(200, &tagged, &body),
        Manner::BreaksOff => {
            let head = format!("HTTP/1.1 200 OK\r\netag: {tag}\r\ncontent-length: 4000\r\n\r\n");
            Reply::Raw(format!("{head}{body}").into_bytes())
        }
        Manner::EndsEarly => {
            let text = body.to_string();
            let head = format!("HTTP/1.1 200 OK\r\netag: {tag}\r\nconnection: close\r\n\r\n");
            Reply::Raw(format!("{head}{}", &text[..text.len() - 2]).into_bytes())
        }
        Manner::Garbage => with_headers(200, &tagged, &json!({"message": "not a list"})),
        Manner::Absent => with_headers(404, &tagged, &runs(99)),
        Manner::Failing => with_headers(502, &tagged, &runs(99)),
    }
}

/// A provider whose version and manners change, and a connector with changing tokens.
struct Stage {
    provider: Provider,
    connector: GithubConnector,
    credential: Arc<Numbered>,
    now: Arc<Mutex<(u32, Manner)>>,
}

impl Stage {
    async fn new() -> Self {
        let now = Arc::new(Mutex::new((1, Manner::Honest)));
        let shown = Arc::clone(&now);
        let provider = Provider::start(move |asked| {
            let (version, manner) = *shown.lock().unwrap();
            answer(asked, version, manner)
        })
        .await;
        let credential = Arc::new(Numbered::new(false));
        let connector = provider.connector_with(credential.clone());
        Self {
            provider,
            connector,
            credential,
            now,
        }
    }

    fn set(&self, version: u32, manner: Manner) {
        *self.now.lock().unwrap() = (version, manner);
    }

    /// The run that is listed, and whether it was said to be unchanged.
    async fn look(&self) -> Result<(u64, bool), ConnectorError> {
        let before = self.connector.usage().unchanged;
        let page = self.connector.runs(1).await?;
        let unchanged = self.connector.usage().unchanged > before;
        Ok((page.runs[0].id, unchanged))
    }
}

#[tokio::test]
async fn an_unchanged_page_costs_nothing_and_is_the_same() {
    let stage = Stage::new().await;
    assert_eq!(stage.look().await.unwrap(), (1, false));
    let first = stage.connector.runs(1).await.unwrap();
    let second = stage.connector.runs(1).await.unwrap();
    assert!(Arc::ptr_eq(&first.runs, &second.runs), "kept once");
    stage.set(2, Manner::Honest);
    assert_eq!(stage.look().await.unwrap(), (2, false));
    let usage = stage.connector.usage();
    assert_eq!((usage.requests, usage.unchanged, usage.repeated), (4, 2, 0));
    // Another page is another question.
    stage.connector.runs(2).await.unwrap();
    let asked = stage.provider.asked().pop().unwrap();
    assert!(asked.all("if-none-match").is_empty(), "{asked:?}");
}

/// Report 18: tags are bound to the token, and tokens of installations change every hour.
#[tokio::test]
async fn another_token_costs_one_answer_and_no_more() {
    let stage = Stage::new().await;
    for hour in 0..3 {
        for minute in 0..10 {
            let (id, unchanged) = stage.look().await.unwrap();
            assert_eq!((id, unchanged), (1, minute > 0), "hour {hour}");
        }
        stage.credential.rotate();
    }
    let usage = stage.connector.usage();
    assert_eq!((usage.requests, usage.unchanged), (30, 27));
    // No token was ever asked about with the tag of another.
    for asked in stage.provider.asked() {
        let token = asked.all("authorization").join(",");
        assert!(
            asked
                .all("if-none-match")
                .iter()
                .all(|tag| tag.contains(&token))
        );
    }
}

#[tokio::test]
async fn only_a_complete_200_is_ever_replayed() {
    for manner in MANNERS.into_iter().skip(1) {
        let stage = Stage::new().await;
        stage.set(1, manner);
        stage.look().await.unwrap_err();
        // The tag of what was not kept is not asked about.
        stage.set(1, Manner::Honest);
        assert_eq!(stage.look().await.unwrap(), (1, false), "{manner:?}");
        let asked = stage.provider.asked().pop().unwrap();
        assert!(asked.all("if-none-match").is_empty(), "{manner:?}");
    }
}

#[tokio::test]
async fn not_modified_since_nothing_makes_one_more_request_and_then_an_error() {
    let stage = Stage::new().await;
    stage.set(1, Manner::AlwaysNotModified);
    let error = stage.look().await.unwrap_err();
    assert!(error.to_string().contains("never asked about"), "{error}");
    assert_eq!(stage.provider.count("GET"), 2);
    let first = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&first);
    let provider = Provider::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => json(304, &json!("")),
        _ => json(200, &runs(5)),
    })
    .await;
    let page = provider.connector().runs(1).await.unwrap();
    assert_eq!(page.runs[0].id, 5);
}

/// Everything that watching reads again and again is conditional; everything that a merge rests on is not.
#[tokio::test]
async fn what_is_watched_is_conditional_and_what_a_merge_rests_on_is_read_afresh() {
    let tagged = |body: &Value| with_headers(200, &[("etag", "\"1\"")], body);
    let provider = Provider::start(move |asked| match asked.tail() {
        "" => tagged(&json!({"id": 42, "full_name": "octo/widget", "default_branch": "main"})),
        "/actions/runs" => tagged(&runs(1)),
        "/actions/runs/9" => tagged(&run(9)),
        "/actions/workflows" => tagged(&json!({"workflows": [{"id": 7, "path": "ci.yml"}]})),
        "/actions/runs/9/attempts/1/jobs" => tagged(&json!({"jobs": [{"id": 1, "name": "a"}]})),
        "/contents/rules.yml" => {
            tagged(&json!({"type": "file", "encoding": "base64", "content": "aGk="}))
        }
        "/git/ref/heads/main" => tagged(&json!({"ref": "refs/heads/main",
            "object": {"type": "commit", "sha": "a".repeat(40)}})),
        "/pulls/7" => {
            tagged(&json!({"number": 7, "state": "open", "head": {"sha": "a".repeat(40)}}))
        }
        other => panic!("{other}"),
    })
    .await;
    let connector = provider.connector();
    for _ in 0..2 {
        connector.repository().await.unwrap();
        connector.runs(1).await.unwrap();
        connector.workflows().await.unwrap();
        connector.jobs(9, 1).await.unwrap();
        connector.branch("main").await.unwrap();
        let file = connector.file("main", "rules.yml", 2).await.unwrap();
        assert_eq!(file.as_deref(), Some(b"hi".as_slice()));
        connector.file("main", "rules.yml", 1).await.unwrap_err();
        connector.run(9).await.unwrap();
        connector.pull(7).await.unwrap();
    }
    for asked in provider.asked() {
        let conditional = !asked.all("if-none-match").is_empty();
        let fresh = ["/actions/runs/9", "/pulls/7"].contains(&asked.tail());
        assert!(!(conditional && fresh), "{asked:?}");
    }
    let conditional = provider.asked();
    let conditional = conditional
        .iter()
        .filter(|asked| !asked.all("if-none-match").is_empty());
    // The second time of each, and the file with its smaller cap twice more.
    assert_eq!(conditional.count(), 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever the provider does: what is read is what it has now, or an error; and an honest one gives each version once
    /// for each token.
    #[test]
    fn nothing_old_broken_or_of_another_token_is_replayed(
        steps in proptest::collection::vec((0_u32..3, 0_usize..10, any::<bool>()), 1..20),
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let stage = Stage::new().await;
            // What the connector holds for the token that it has.
            let mut held = None;
            for (version, manner, rotate) in steps {
                if rotate {
                    stage.credential.rotate();
                    held = None;
                }
                let manner = MANNERS.get(manner).copied().unwrap_or(Manner::Honest);
                stage.set(version + 1, manner);
                let id = u64::from(version) + 1;
                match (manner, stage.look().await) {
                    (Manner::Honest, found) => {
                        assert_eq!(found.unwrap(), (id, held == Some(id)));
                        held = Some(id);
                    }
                    // A provider that lies about it is believed as far as what it was asked about.
                    (Manner::AlwaysNotModified, Ok(found)) => assert_eq!(Some(found.0), held),
                    (_, found) => assert!(found.is_err(), "{manner:?} {found:?}"),
                }
            }
        });
    }
}

#[tokio::test]
async fn a_tag_that_the_server_does_not_take_back_is_left_out() {
    for status in [400, 412, 413, 431] {
        let provider = Provider::start(move |asked| {
            if asked.all("if-none-match").is_empty() {
                with_headers(200, &[("etag", "\"one\"")], &runs(1))
            } else {
                json(status, &json!({"message": "too large"}))
            }
        })
        .await;
        let connector = provider.connector();
        for _ in 0..2 {
            assert_eq!(connector.runs(1).await.unwrap().runs[0].id, 1, "{status}");
        }
    }
}

#[tokio::test]
async fn a_tag_that_is_longer_than_headers_may_be_is_not_kept() {
    let tag = format!("\"{}\"", "e".repeat(60_000));
    let provider = Provider::start(move |asked| {
        assert!(asked.all("if-none-match").is_empty());
        with_headers(200, &[("etag", tag.as_str())], &runs(1))
    })
    .await;
    let connector = provider.connector();
    for _ in 0..2 {
        assert_eq!(connector.runs(1).await.unwrap().runs[0].id, 1);
    }
}
