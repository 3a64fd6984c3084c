//! A real coding client takes an incident to its proposal: worker, session, sandbox, proxy, hooks; only the model is scripted.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use caretaker::agent::client::proxy::{Protocol, Upstream};
use caretaker::agent::client::{Client, ClientBudget, ClientCoder, ClientSetup};
use caretaker::attest::predicate::GateAnswer;
use caretaker::hook_gate::CoderHooks;
use caretaker::incident::Stage;
use caretaker::sandbox::{Mode, Sandbox};
use serde_json::{Value, json};

use super::gated::{gate, outcomes};
use super::sums;
use super::world::{Setting, World};
use crate::agent::fake_model::FakeModel;

fn script() -> Value {
    let says = |answer: Value| json!({"text": answer.to_string()});
    let write = |path: &str, content: &str| json!({"text": "I write.", "tool": "write_file", "args": {"file_path": path, "content": content}});
    json!([
        {"text": "I look.", "tool": "read_file", "args": {"file_path": "sums.py"}},
        says(json!({"cause": "add subtracts", "files": ["sums.py", "test_more.py"], "confidence": 900, "summary": "It subtracts."})),
        write("README.md", "Mine.\n"),
        write("sums.py", sums::RIGHT_MODULE),
        write("test_more.py", sums::NEW_TEST),
        says(json!({"title": "Add instead of subtracting", "summary": "The sign was wrong."})),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini_mends_the_sums_in_the_workers_session() {
    let named = std::env::var("CARETAKER_PEER_GEMINI").ok();
    let Some(program) = named.filter(|path| PathBuf::from(path).is_file()) else {
        eprintln!("SKIPPED: CARETAKER_PEER_GEMINI names no client; tests/run --peers fetches one");
        return;
    };
    let Some(model) = FakeModel::start(&script()) else {
        return;
    };
    let mut world = World::new(Setting::sums()).await;
    let launcher = PathBuf::from(env!("CARGO_BIN_EXE_caretaker"));
    let sandbox = Sandbox::detect(Mode::Bubblewrap, launcher.clone()).await;
    let setup = ClientSetup {
        client: Client::Gemini,
        command: vec!["node".to_owned(), program],
        search: std::env::var_os("PATH"),
        model: "gemini-3-pro".to_owned(),
        upstream: Upstream {
            protocol: Protocol::Gemini,
            base: model.base(),
            key: Some("sk-not-for-anybody".to_owned().into()),
        },
        budget: ClientBudget {
            requests: 30,
            tool_calls: 30,
            money: None,
            tokens: 1_000_000,
            wall: Duration::from_mins(3),
        },
        home: world.home().to_owned(),
    };
    let hooks = CoderHooks {
        program: launcher,
        ttl: 60,
    };
    let coder = ClientCoder::new(setup, Arc::new(sandbox.unwrap()), Arc::new(hooks)).unwrap();
    world.engine.coder = Some(Arc::new(coder));
    let events = Arc::clone(&world.engine.events);
    world.engine.gate = Some(Arc::new(gate(&world, events)));
    let stage = world.settle().await;
    let snapshot = world.snapshot().await;
    assert_eq!(
        stage,
        Stage::AwaitingApproval,
        "{:?}",
        snapshot.escalation()
    );
    let session = snapshot.fix().unwrap().session.clone().unwrap();
    assert_eq!((session.calls, session.refused), (3, 1));
    let on_record = outcomes(&world, &session).await;
    let found: Vec<_> = on_record
        .iter()
        .map(|(tool, answer, _)| (tool.as_str(), *answer))
        .collect();
    assert_eq!(
        found,
        [
            ("write_file", GateAnswer::Deny),
            ("write_file", GateAnswer::Allow),
            ("write_file", GateAnswer::Allow),
        ]
    );
    assert!(!session.advisory);
}
