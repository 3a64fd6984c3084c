//! An order can only be made with a verified ledger, which knows no provider; the one request is therefore tested from here.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::super::api::Api;
use super::super::client::GithubClient;
use super::super::credential::{
    CredentialIdentity, IssuedToken, PersonalToken, TokenError, TokenSource, Use,
};
use super::super::options::GithubOptions;
use super::ask;
use crate::clock::{FixedClock, Millis};
use crate::execute::MergeAnswer;

const NOW: Millis = Millis(1_800_000_000_000);
const LANDED: &str = "6dcb09b5b57875f334f61aebed695e2e4193db5e";

/// How a request was answered, and every request that arrived.
struct Asked {
    answer: MergeAnswer,
    requests: Vec<String>,
}

/// Asks a server that gives each connection these bytes and then closes it; without bytes it never answers.
async fn asked(reply: Option<String>) -> Asked {
    asked_with(Arc::new(PersonalToken::new("token".into())), reply).await
}

async fn asked_with(credential: Arc<dyn TokenSource>, reply: Option<String>) -> Asked {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&requests);
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let mut bytes = Vec::new();
            let mut chunk = [0; 4096];
            while !bytes.ends_with(b"}") {
                match stream.read(&mut chunk) {
                    Ok(count) if count > 0 => bytes.extend_from_slice(&chunk[..count]),
                    _ => break,
                }
            }
            record
                .lock()
                .unwrap()
                .push(String::from_utf8_lossy(&bytes).into_owned());
            match &reply {
                Some(reply) => drop(stream.write_all(reply.as_bytes())),
                None => held.push(stream),
            }
        }
    });
    let client = GithubClient::new(Arc::new(FixedClock::at(NOW)), || 0);
    let options = GithubOptions {
        api_url: origin.clone(),
        web_url: origin.clone(),
        git_url: origin,
        owner: "octo".to_owned(),
        name: "widget".to_owned(),
        credential,
        expected_repository_id: Some("42".to_owned()),
        deadline: Duration::from_millis(500),
    };
    let api = Api::new(&client, options).unwrap();
    let answer = ask(&api, 7, &json!({"sha": LANDED})).await;
    let requests = requests.lock().unwrap().clone();
    Asked { answer, requests }
}

fn reply(status: u16, headers: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "HTTP/1.1 {status} Said\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

async fn answer(status: u16, headers: &str, body: Value) -> MergeAnswer {
    let asked = asked(Some(reply(status, headers, &body))).await;
    assert_eq!(asked.requests.len(), 1);
    asked.answer
}

#[tokio::test]
async fn each_answer_has_its_meaning() {
    let said = |text: &str| json!({"message": text});
    let merged = json!({"sha": LANDED, "merged": true, "message": "merged"});
    assert_eq!(
        answer(200, "", merged).await,
        MergeAnswer::Merged(LANDED.parse().unwrap())
    );
    assert_eq!(
        answer(409, "", said("Head branch was modified")).await,
        MergeAnswer::HeadMoved("Head branch was modified".to_owned())
    );
    assert_eq!(
        answer(405, "", said("Base branch was modified")).await,
        MergeAnswer::NotAllowed("Base branch was modified".to_owned())
    );
    let expired = answer(401, "", said("Bad credentials")).await;
    assert!(matches!(expired, MergeAnswer::CredentialExpired(_)));
    for status in [403, 404, 410, 422, 301, 307] {
        let refused = answer(status, "", said("no")).await;
        assert!(matches!(refused, MergeAnswer::Refused(_)), "{refused:?}");
    }
}

#[tokio::test]
async fn a_limit_is_told_from_a_missing_permission() {
    let no = || json!({"message": "no"});
    assert_eq!(
        answer(403, "retry-after: 7\r\n", no()).await,
        MergeAnswer::Limited(NOW.plus_seconds(7))
    );
    let spent = "x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 1800000090\r\n";
    for status in [403, 429] {
        assert_eq!(
            answer(status, spent, no()).await,
            MergeAnswer::Limited(NOW.plus_seconds(90))
        );
    }
}

#[tokio::test]
async fn success_without_the_complete_id_of_a_commit_is_ambiguous() {
    for body in [
        json!({}),
        json!({"sha": &LANDED[..7], "merged": true}),
        json!({"sha": LANDED, "merged": false}),
        json!({"sha": null}),
        json!(null),
    ] {
        let found = answer(200, "", body).await;
        assert!(matches!(found, MergeAnswer::Ambiguous(_)), "{found:?}");
    }
}

#[tokio::test]
async fn a_merge_is_sent_once_whatever_is_answered() {
    let elsewhere = "location: /repositories/42/pulls/7/merge\r\n";
    let cut = format!("HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n{{\"sha\": \"{LANDED}\"");
    let ambiguous = [
        Some(reply(500, "", &json!({}))),
        Some(reply(502, "", &json!({}))),
        Some(reply(503, "retry-after: 1\r\n", &json!({}))),
        Some(reply(202, "", &json!({}))),
        Some(cut),
        Some("HTTP/1.1 200 O".to_owned()),
        Some(String::new()),
        None,
    ];
    for reply in ambiguous {
        let asked = asked(reply).await;
        assert!(
            matches!(asked.answer, MergeAnswer::Ambiguous(_)),
            "{:?}",
            asked.answer
        );
        assert_eq!(asked.requests.len(), 1, "{:?}", asked.requests);
    }
    let moved = asked(Some(reply(307, elsewhere, &json!({})))).await;
    assert!(matches!(moved.answer, MergeAnswer::Refused(_)));
    assert_eq!(moved.requests.len(), 1);
    let sent = &moved.requests[0];
    assert!(sent.starts_with("PUT /repos/octo/widget/pulls/7/merge HTTP/1.1\r\n"));
    assert!(
        sent.ends_with(&format!("{{\"sha\":\"{LANDED}\"}}")),
        "{sent}"
    );
}

#[tokio::test]
async fn nobody_there_is_ambiguous_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = GithubClient::new(Arc::new(FixedClock::at(NOW)), || 0);
    let options = GithubOptions {
        api_url: origin.clone(),
        web_url: origin.clone(),
        git_url: origin,
        owner: "octo".to_owned(),
        name: "widget".to_owned(),
        credential: Arc::new(PersonalToken::new("token".into())),
        expected_repository_id: None,
        deadline: Duration::from_secs(5),
    };
    let api = Api::new(&client, options).unwrap();
    let found = ask(&api, 7, &json!({})).await;
    assert!(matches!(found, MergeAnswer::Ambiguous(_)), "{found:?}");
}

/// Always has another token.
struct Inexhaustible;

#[async_trait]
impl TokenSource for Inexhaustible {
    async fn token(&self, task: Use, _: Duration) -> Result<IssuedToken, TokenError> {
        assert_eq!(task, Use::Execute, "a merge is the executor's");
        Ok(IssuedToken::new("token".into(), None))
    }

    async fn refused(&self, _: &IssuedToken) -> bool {
        true
    }

    fn identity(&self) -> CredentialIdentity {
        CredentialIdentity::Installation(1)
    }
}

#[tokio::test]
async fn a_merge_is_not_sent_again_even_with_another_token() {
    let refused = reply(401, "", &json!({"message": "Bad credentials"}));
    let asked = asked_with(Arc::new(Inexhaustible), Some(refused)).await;
    assert_eq!(asked.requests.len(), 1);
    assert!(matches!(asked.answer, MergeAnswer::CredentialExpired(_)));
}
