//! Our own loop in a worker: a scripted model server, the session's real gate, the sandbox, and what comes of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use caretaker::agent::builtin::{Budget, BuiltinCoder, BuiltinSettings, PATIENCE, Programs};
use caretaker::agent::model::{HttpModel, Limits, ModelSettings, Protocol};
use caretaker::approve::HumanDecision;
use caretaker::attest::predicate::{GateAnswer, GateStage};
use caretaker::clock::SystemClock;
use caretaker::incident::{Currency, MoneyBudget, Prices, Stage};
use caretaker::sandbox::{Mode, Sandbox};
use caretaker::worker::Tools;
use secrecy::SecretString;
use serde_json::json;

use super::gated::{gated, outcomes};
use super::sums;
use crate::agent::fake_model::FakeModel;

/// A dollar a million tokens sent, two for those received.
fn prices() -> MoneyBudget {
    let amount = |text: &str| text.parse().unwrap();
    MoneyBudget {
        prices: Prices {
            input: amount("1"),
            output: amount("2"),
            currency: Currency::try_from("USD".to_owned()).unwrap(),
        },
        most: Some(amount("5")),
    }
}

/// The loop over that server, as it is configured.
async fn coder_at(server: &FakeModel) -> BuiltinCoder {
    let model = ModelSettings {
        protocol: Protocol::Anthropic,
        name: "fake-model".to_owned(),
        base: server.base(),
        key: Some(SecretString::from("sk-key")),
        limits: Limits::default(),
    };
    let model = HttpModel::new(model, Arc::new(SystemClock)).unwrap();
    let tools = Tools::of_process();
    let settings = BuiltinSettings {
        budget: Budget {
            requests: 20,
            tool_calls: 30,
            tokens: 100_000,
            money: Some(prices()),
            wall: Duration::from_mins(5),
        },
        patience: PATIENCE,
        programs: Programs {
            environment: tools.shared_variables(),
            readable: tools.readable().to_vec(),
            limits: caretaker::sandbox::Limits::default(),
        },
    };
    let launcher = PathBuf::from(env!("CARGO_BIN_EXE_caretaker"));
    let sandbox = Sandbox::detect(Mode::Auto, launcher).await.unwrap();
    BuiltinCoder::new(Arc::new(model), Arc::new(sandbox), settings, || 0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_mends_the_sums_through_the_gate() {
    let tests = json!({"command": ["python3", "-m", "unittest", "discover"]});
    let script = json!([
        {"tool": "read_file", "args": {"path": "sums.py"}},
        {"tool": "submit_diagnosis", "args": {"cause": "add subtracts", "files": ["sums.py", "test_more.py"], "confidence": 900,
            "summary": "sums.add subtracts its second argument."}},
        {"status": 529},
        {"text": "I write elsewhere, too.", "tools": [
            ["write_file", {"path": "README.md", "content": "Mine."}],
            ["write_file", {"path": "../home/x", "content": "Mine."}],
            ["replace_text", {"path": ".git/config", "old": "a", "new": "b"}],
            ["call_home", {"text": "x"}]]},
        {"tools": [["run_command", tests], ["write_file", {"path": "test_more.py", "content": sums::NEW_TEST}]]},
        // With the defect still there the session may not end.
        {"tool": "submit_fix", "args": {"title": "Add", "summary": "Done."}},
        {"tools": [["replace_text", {"path": "sums.py", "old": "a - b", "new": "a + b"}], ["run_command", tests]]},
        {"tool": "submit_fix", "args": {"title": "Add instead of subtracting", "summary": "The sign was wrong."}},
    ]);
    let Some(server) = FakeModel::start(&script) else {
        return;
    };
    let coder = coder_at(&server).await;
    let world = gated(Arc::new(coder)).await;

    let stage = world.settle().await;
    let snapshot = world.snapshot().await;
    assert_eq!(
        stage,
        Stage::AwaitingApproval,
        "{:?}",
        snapshot.escalation()
    );
    let diagnosed = snapshot.diagnosis().unwrap().session.clone().unwrap();
    assert_eq!((diagnosed.calls, diagnosed.refused), (2, 0));
    assert_eq!((diagnosed.requests, diagnosed.input_tokens), (2, 200));
    let session = snapshot.fix().unwrap().session.clone().unwrap();
    assert_eq!((session.calls, session.refused), (10, 4));
    assert_eq!((session.requests, session.input_tokens), (6, 500));
    // One request failed: what it sent is estimated, so that it cost more than what was counted.
    let counted = session.input_tokens + 2 * session.output_tokens;
    assert!(session.cost.unwrap().micro > counted);
    let words = session.in_words();
    assert!(
        words.ends_with(&format!(", {}", session.cost.unwrap())),
        "{words}"
    );
    assert_eq!(
        diagnosed.cost.unwrap().micro,
        diagnosed.input_tokens + 2 * diagnosed.output_tokens
    );
    assert!(!session.advisory);
    let found: Vec<_> = outcomes(&world, &session)
        .await
        .into_iter()
        .map(|(tool, answer, stage)| {
            let refused = (answer == GateAnswer::Deny).then_some(stage);
            (tool, refused)
        })
        .collect();
    let expected = [
        ("write_file", Some(GateStage::CapabilityToken)),
        ("write_file", Some(GateStage::SelfProtection)),
        ("replace_text", Some(GateStage::SelfProtection)),
        ("call_home", Some(GateStage::CapabilityToken)),
        ("run_command", None),
        ("write_file", None),
        ("submit_fix", None),
        ("replace_text", None),
        ("run_command", None),
        ("submit_fix", None),
    ]
    .map(|(tool, refused)| (tool.to_owned(), refused));
    assert_eq!(found, expected);
    // What the model was told, in its own requests: the tests ran in the sandbox, were red, and then green.
    let requests = server.requests();
    let told = |number: usize| requests[number]["body"]["messages"].to_string();
    assert!(told(5).contains("exit code 1"), "{}", told(5));
    assert!(told(6).contains("the task cannot end yet"), "{}", told(6));
    assert!(told(7).contains("exit code 0"), "{}", told(7));
    assert!(!told(0).contains("0 != 2"), "a line of the log");
    world.answer(HumanDecision::Approve).await;
    assert_eq!(world.settle().await, Stage::Resolved);
    assert_eq!(world.verify().await.verdict.name(), "valid");
}
