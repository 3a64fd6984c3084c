//! Our own loop at work: a model that is told what failed calls tools through the gate until the fix is proposed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use caretaker::agent::builtin::{Budget, BuiltinCoder, BuiltinSettings, PATIENCE, Programs};
use caretaker::agent::model::{HttpModel, Limits as ModelLimits, ModelSettings, Protocol};
use caretaker::approve::HumanDecision;
use caretaker::attest::predicate::{GateAnswer, GateStage};
use caretaker::clock::SystemClock;
use caretaker::incident::Stage;
use caretaker::sandbox::{Limits, Mode, Sandbox};
use caretaker::worker::Tools;
use serde_json::{Value, json};

use super::gated;
use super::sums;
use super::world::{Setting, World};
use crate::agent::fake_model::FakeModel;

/// What the model says, step by step, in both tasks.
fn script() -> Value {
    let call = |tool: &str, arguments: Value| json!({"tool": tool, "args": arguments});
    json!([
        call("read_file", json!({"path": "sums.py"})),
        call("write_file", json!({"path": "sums.py", "content": "mine"})),
        call(
            "submit_diagnosis",
            json!({
                "cause": "add subtracts", "files": ["sums.py", "test_more.py"], "confidence": 900,
                "summary": "sums.add subtracts its second argument.",
            })
        ),
        call(
            "replace_text",
            json!({"path": "sums.py", "old": "a - b", "new": "a + b"})
        ),
        call(
            "write_file",
            json!({"path": "README.md", "content": "Mine.\n"})
        ),
        call(
            "run_command",
            json!({"argv": ["python3", "-m", "unittest", "-q"]})
        ),
        call(
            "write_file",
            json!({"path": "test_more.py", "content": sums::NEW_TEST})
        ),
        call(
            "submit_fix",
            json!({"title": "Add instead of subtracting", "summary": "The sign was wrong."})
        ),
    ])
}

async fn coder(model: &FakeModel) -> BuiltinCoder {
    let settings = ModelSettings {
        protocol: Protocol::Openai,
        name: "fake-model".to_owned(),
        base: model.base(),
        key: Some("sk-not-for-anybody".to_owned().into()),
        limits: ModelLimits::default(),
    };
    let tools = Tools::of_process();
    let settings_of_loop = BuiltinSettings {
        budget: Budget {
            requests: 20,
            tool_calls: 20,
            tokens: 1_000_000,
            wall: Duration::from_mins(2),
        },
        patience: PATIENCE,
        programs: Programs {
            environment: tools.variables(Path::new("/tmp")),
            readable: tools.readable().to_vec(),
            limits: Limits::default(),
        },
    };
    let launcher = env!("CARGO_BIN_EXE_caretaker").into();
    let sandbox = Sandbox::detect(Mode::Auto, launcher).await.unwrap();
    BuiltinCoder::new(
        Arc::new(HttpModel::new(settings, Arc::new(SystemClock)).unwrap()),
        Arc::new(sandbox),
        settings_of_loop,
        || 0,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_mends_the_sums_and_every_call_is_on_record() {
    let Some(model) = FakeModel::start(&script()) else {
        return;
    };
    let mut world = World::new(Setting {
        coder: Some(Arc::new(coder(&model).await)),
        ..Setting::sums()
    })
    .await;
    let events = Arc::clone(&world.engine.events);
    world.engine.gate = Some(Arc::new(gated::gate(&world, events)));
    assert_eq!(
        world.settle().await,
        Stage::AwaitingApproval,
        "{:#?}",
        world.snapshot().await.escalation()
    );
    let snapshot = world.snapshot().await;
    let diagnosis = snapshot.diagnosis().unwrap();
    let diagnosed = diagnosis.session.clone().unwrap();
    assert_eq!(diagnosis.agent, "builtin");
    assert_eq!(
        (diagnosed.calls, diagnosed.refused, diagnosed.requests),
        (3, 1, 3)
    );
    let session = snapshot.fix().unwrap().session.clone().unwrap();
    assert_eq!(
        (session.calls, session.refused, session.requests),
        (5, 1, 5)
    );
    assert!(session.input_tokens > 0);
    let on_record = gated::outcomes(&world, &session).await;
    let tools: Vec<&str> = on_record.iter().map(|(tool, _, _)| tool.as_str()).collect();
    assert_eq!(
        tools,
        [
            "replace_text",
            "write_file",
            "run_command",
            "write_file",
            "submit_fix"
        ]
    );
    assert_eq!(on_record[1].1, GateAnswer::Deny);
    assert_eq!(on_record[1].2, GateStage::CapabilityToken);

    // The model was told why, and no log text and no key of ours ever reached it.
    let requests = model.requests();
    let told = requests.last().unwrap()["body"].to_string();
    assert!(told.contains("capability token (constraints)"), "{told}");
    assert!(!told.contains("AssertionError: 0 != 2"));
    world.answer(HumanDecision::Approve).await;
    assert_eq!(world.settle().await, Stage::Resolved);
    assert_eq!(world.verify().await.verdict.name(), "valid");
}
