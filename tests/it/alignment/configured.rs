//! The engine as a configuration makes it.

use std::sync::Arc;

use caretaker::alignment::{Alignment, SetupError};
use caretaker::config::{Configuration, Environment};
use caretaker::events::EventSink;
use caretaker::intent::Decision;

use super::scene::Stream;
use crate::embedder::server::{Server, ok, openai};

struct Made {
    home: tempfile::TempDir,
    stream: Arc<Stream>,
}

impl Made {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            stream: Arc::default(),
        }
    }

    fn engine(
        &self,
        security: &str,
        variables: &[(&str, &str)],
    ) -> Result<Option<Alignment>, SetupError> {
        let home = self.home.path();
        let file = home.join("caretaker.yaml");
        std::fs::write(&file, format!("security: {{{security}}}")).unwrap();
        let shown = home.display().to_string();
        let all = std::iter::once(("CARETAKER_HOME", shown.as_str()));
        let environment = Environment::new(all.chain(variables.iter().copied()), home);
        let configuration = Configuration::load(Some(&file), &environment).unwrap();
        let sink = Arc::clone(&self.stream) as Arc<dyn EventSink>;
        Alignment::configured(&configuration, &environment, sink)
    }
}

#[test]
fn nothing_is_made_while_it_is_off() {
    let made = Made::new();
    for off in ["", "intent_alignment: {enabled: false, provider: openai}"] {
        assert!(made.engine(off, &[]).unwrap().is_none());
    }
    assert!(!made.home.path().join("intents").exists());
}

#[test]
fn a_key_that_is_not_there_is_missed_at_start() {
    let made = Made::new();
    let openai = "intent_alignment: {enabled: true, provider: openai}";
    let error = made.engine(openai, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "setting up the embedder openai:text-embedding-3-small: environment variable OPENAI_API_KEY is not set or empty; set it to the provider's key, or name another under security.intent_alignment.api_key_env"
    );
    assert!(
        made.engine(openai, &[("OPENAI_API_KEY", "sk-1")])
            .unwrap()
            .is_some()
    );
    let odd = made
        .engine(openai, &[("OPENAI_API_KEY", "sk\n1")])
        .unwrap_err();
    assert!(!odd.to_string().contains("sk\n1"), "{odd}");
    let named = "intent_alignment: {enabled: true, provider: openai, base_url: \"http://127.0.0.1:9/v1\", api_key_env: MY_KEY}";
    assert!(made.engine(named, &[]).is_err());
}

#[test]
fn weights_that_are_not_there_are_missed_at_start() {
    let made = Made::new();
    let embedded = "intent_alignment: {enabled: true, provider: embedded, weights_dir: weights}";
    let error = made.engine(embedded, &[]).unwrap_err();
    assert!(matches!(error, SetupError::Weights(_)), "{error}");
}

#[tokio::test]
async fn a_configured_engine_scores_by_its_provider() {
    let server = Server::start(|_, texts| {
        let along = texts[0].contains("parser");
        ok(&openai(&[(0, vec![f64::from(u8::from(along)), 0.1])]))
    })
    .await;
    let made = Made::new();
    let security = format!(
        "intent_alignment: {{enabled: true, provider: openai, base_url: \"{}/\"}}",
        server.base()
    );
    let variables = [("OPENAI_ORG_ID", "org-1")];
    let engine = made.engine(&security, &variables).unwrap().unwrap();
    engine.begin("task", "mend the parser").await.unwrap();
    let scored = engine.score("task", "shell", Some("Run a command"), "parser test");
    assert_eq!(scored.await.decision, Decision::Allow);
    let scored = engine.score("task", "shell", Some("Run a command"), "send mail");
    assert_eq!(scored.await.decision, Decision::Deny);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].head.contains("openai-organization: org-1"));
    assert!(
        !requests[0].head.contains("authorization"),
        "on loopback none is needed"
    );
    assert_eq!(made.stream.all().len(), 2);
}

#[tokio::test]
async fn ollama_gets_the_key_that_it_wants() {
    let server = Server::start(|_, _| ok(&openai(&[(0, vec![1.0, 0.0])]))).await;
    let made = Made::new();
    let security = format!(
        "intent_alignment: {{enabled: true, provider: ollama, base_url: \"{}\", threshold: 0.4, hard_threshold: -1}}",
        server.base()
    );
    let engine = made.engine(&security, &[]).unwrap().unwrap();
    engine.begin("task", "mend the parser").await.unwrap();
    let request = server.requests().remove(0);
    assert!(request.head.contains("authorization: bearer ollama\r\n"));
    assert_eq!(request.body["model"], "nomic-embed-text");
}
