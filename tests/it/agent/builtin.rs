//! The loop at work: what is judged, what is done, and how it ends.

use std::path::PathBuf;
use std::sync::Arc;

use caretaker::agent::model::{Class, Finish, HttpModel, Limits, ModelSettings, Protocol, Turn};
use caretaker::agent::{Coder as _, CoderError, Governance, SessionReport, ToolAccess};
use caretaker::clock::SystemClock;
use caretaker::tool_gate::tool_class;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::builtin_scene::{
    Gate, SaidModel, Scene, answer, fix_task, status, submit_diagnosis, submit_fix,
};
use super::fake_model::FakeModel;
use super::task;

const PROTOCOLS: [Protocol; 4] = [
    Protocol::Anthropic,
    Protocol::Openai,
    Protocol::Gemini,
    Protocol::Ollama,
];

fn model_at(server: &FakeModel, protocol: Protocol) -> Arc<HttpModel> {
    let settings = ModelSettings {
        protocol,
        name: "fake-model".to_owned(),
        base: server.base(),
        key: Some(SecretString::from("sk-key")),
        limits: Limits::default(),
    };
    Arc::new(HttpModel::new(settings, Arc::new(SystemClock)).unwrap())
}

/// The server was written for other clients, which speak with it too.
#[tokio::test]
async fn in_every_protocol_a_file_is_read_mended_and_the_fix_submitted() {
    for protocol in PROTOCOLS {
        let script = json!([
            {"text": "Let me look.", "tools": [["read_file", {"path": "src/lib.rs"}], ["list_files", {}]]},
            {"status": 529, "body": {"type": "error", "error": {"type": "overloaded_error", "message": "secret words"}}},
            {"tool": "replace_text", "args": {"path": "src/lib.rs", "old": " + 1", "new": ""}},
            {"tool": "submit_fix", "args": {"title": "Add up", "summary": "Removed the one."}},
        ]);
        let Some(server) = FakeModel::start(&script) else {
            return;
        };
        let scene = Scene::new();
        let fix = scene.fix(model_at(&server, protocol)).await.unwrap();
        assert_eq!(
            (fix.title.as_str(), fix.summary.as_str()),
            ("Add up", "Removed the one.")
        );
        assert_eq!(scene.read("src/lib.rs"), "a + b\n");
        assert_eq!(
            scene.gate.tools(),
            ["read_file", "list_files", "replace_text", "submit_fix"]
        );
        let expected = SessionReport {
            calls: 4,
            // The one that failed is counted, its tokens are not known.
            requests: 4,
            input_tokens: 300,
            output_tokens: 30,
            cost: None,
        };
        assert_eq!(scene.report(), expected, "{protocol:?}");
        let requests = server.requests();
        assert_eq!(requests.len(), 4, "{protocol:?}");
        let last = requests[3]["body"].to_string();
        assert!(last.contains("a + b + 1"), "{protocol:?}: {last}");
        let first = requests[0]["body"].to_string();
        assert!(first.contains(task().incident.as_str()), "{first}");
        let all = requests.iter().map(ToString::to_string).collect::<String>();
        assert!(
            !all.contains("sk-key"),
            "the server's log shows lengths only"
        );
    }
}

#[tokio::test]
async fn a_cause_is_found_and_submitted() {
    let scene = Scene::new();
    let model = SaidModel::calling(&[
        ("search_text", json!({"text": "a + b"})),
        submit_diagnosis(),
    ]);
    let told = Arc::clone(&model);
    let diagnosis = scene.diagnose(model).await.unwrap();
    assert_eq!(
        (diagnosis.cause.as_str(), diagnosis.confidence),
        ("off by one", 800)
    );
    assert_eq!(told.results(1)[0].text, "src/lib.rs:1: a + b + 1\n");
    assert_eq!(*scene.gate.ends_asked.lock().unwrap(), 0);
    // The task is data in the first message; the system text is ours alone.
    let conversation = told.told.lock().unwrap()[0].clone();
    let Turn::Ours(first) = &conversation.turns[0] else {
        panic!("{conversation:?}")
    };
    let first: Value = serde_json::from_str(first).unwrap();
    assert_eq!(first, serde_json::to_value(task()).unwrap());
    assert!(!conversation.system.contains("src/lib.rs"));
    insta::assert_snapshot!("builtin_system_diagnose", conversation.system);
}

#[tokio::test]
async fn a_diagnosis_has_no_tool_that_changes_anything() {
    let scene = Scene::new();
    let model = SaidModel::new(vec![
        Ok(answer(&[
            ("write_file", json!({"path": "x", "content": "x"})),
            (
                "replace_text",
                json!({"path": "src/lib.rs", "old": "1", "new": "2"}),
            ),
            ("delete_file", json!({"path": "src/lib.rs"})),
            ("run_command", json!({"command": ["touch", "x"]})),
            ("submit_fix", submit_fix().1),
        ])),
        Ok(answer(&[submit_diagnosis()])),
    ]);
    let told = Arc::clone(&model);
    scene.diagnose(model).await.unwrap();
    let results = told.results(1);
    assert!(results.iter().all(|result| result.failed), "{results:?}");
    assert_eq!(scene.read("src/lib.rs"), "a + b + 1\n");
    assert!(!scene.tree().join("x").exists());
    let names: Vec<&str> = told.told.lock().unwrap()[0]
        .tools
        .iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(
        names,
        ["list_files", "read_file", "search_text", "submit_diagnosis"]
    );
    // They were judged all the same.
    assert_eq!(scene.gate.tools().len(), 6);
}

#[tokio::test]
async fn a_call_that_is_refused_is_told_and_not_made() {
    let scene = Scene::with(Gate {
        refused: vec!["write_file", "run_command"],
        ..Gate::default()
    });
    let model = SaidModel::new(vec![
        Ok(answer(&[
            ("write_file", json!({"path": "x", "content": "x"})),
            ("run_command", json!({"command": ["touch", "y"]})),
        ])),
        Ok(answer(&[submit_fix()])),
    ]);
    let told = Arc::clone(&model);
    scene.fix(model).await.unwrap();
    for result in told.results(1) {
        assert_eq!(
            (result.text.as_str(), result.failed),
            (
                "Not done: refused: outside of what this session may do",
                true
            )
        );
    }
    assert!(!scene.tree().join("x").exists());
    assert!(!scene.tree().join("y").exists());
    assert_eq!(scene.report().calls, 3);
}

#[tokio::test]
async fn the_end_is_a_call_that_can_be_refused_too() {
    let scene = Scene::with(Gate {
        refused: vec!["submit_fix"],
        ..Gate::default()
    });
    let ended = scene.fix(SaidModel::calling(&[submit_fix()])).await;
    assert!(status(&ended.unwrap_err()).contains("requests"));
    assert_eq!(*scene.gate.ends_asked.lock().unwrap(), 0);
}

#[tokio::test]
async fn what_cannot_be_made_is_asked_about_too() {
    let scene = Scene::new();
    let odd = [
        ("format_disk", json!({"path": "/"}), "no such tool"),
        ("read_file", json!("{\"path\": "), "not one JSON object"),
        ("read_file", json!(["src/lib.rs"]), "not one JSON object"),
        ("read_file", json!({}), "missing field"),
        (
            "read_file",
            json!({"path": "src/lib.rs", "file": "y"}),
            "unknown field",
        ),
        ("read_file", json!({"path": 7}), "do not fit"),
        ("run_command", json!({"command": "ls"}), "do not fit"),
        ("run_command", json!({"command": []}), "empty"),
        ("submit_fix", json!({"title": "x"}), "missing field"),
        (
            "submit_fix",
            json!({"title": "a\nb", "summary": "s"}),
            "line break",
        ),
    ];
    let calls: Vec<(&str, Value)> = odd
        .iter()
        .map(|(tool, arguments, _)| (*tool, arguments.clone()))
        .collect();
    let model = SaidModel::new(vec![Ok(answer(&calls)), Ok(answer(&[submit_fix()]))]);
    let told = Arc::clone(&model);
    scene.fix(model).await.unwrap();
    let results = told.results(1);
    for ((tool, _, expected), result) in odd.iter().zip(&results) {
        assert!(
            result.failed && result.text.contains(expected),
            "{tool}: {}",
            result.text
        );
    }
    let asked = scene.gate.asked.lock().unwrap().clone();
    for ((tool, arguments, _), (asked_tool, asked_arguments)) in odd.iter().zip(&asked) {
        assert_eq!((*tool, arguments), (asked_tool.as_str(), asked_arguments));
    }
    assert_eq!(scene.report().calls, 11);
}

#[tokio::test]
async fn the_gate_can_refuse_the_end_and_is_believed_three_times() {
    let scene = Scene::with(Gate {
        refused_ends: 2,
        ..Gate::default()
    });
    let model = SaidModel::calling(&[submit_fix()]);
    let told = Arc::clone(&model);
    scene.fix(model).await.unwrap();
    assert_eq!(
        told.results(1)[0].text,
        "Not done: the task cannot end yet: the check unit is red"
    );
    assert_eq!(*scene.gate.ends_asked.lock().unwrap(), 3);

    let scene = Scene::with(Gate {
        refused_ends: 3,
        ..Gate::default()
    });
    let ended = scene.fix(SaidModel::calling(&[submit_fix()])).await;
    assert!(status(&ended.unwrap_err()).contains("the gate did not let end"));
    assert_eq!(*scene.gate.ends_asked.lock().unwrap(), 3);
    assert_eq!(scene.report().calls, 3);
}

#[tokio::test]
async fn without_a_session_nothing_is_asked() {
    let scene = Scene::new();
    let model = SaidModel::calling(&[submit_fix()]);
    let told = Arc::clone(&model);
    let coder = scene.coder(model).await;
    let fixed = coder.fix(&fix_task(), &scene.tree(), None).await;
    assert!(matches!(fixed, Err(CoderError::Unavailable { .. })));
    let diagnosed = coder.diagnose(&task(), &scene.tree(), None).await;
    assert!(matches!(diagnosed, Err(CoderError::Unavailable { .. })));
    assert!(told.told.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_program_runs_in_the_sandbox_and_its_end_is_shown() {
    let scene = Scene::new();
    let words = "echo out; echo err >&2; cat ../outside/secret; echo made > made; exit 3";
    let (text, failed) = scene
        .one("run_command", json!({"command": ["sh", "-c", words]}))
        .await;
    assert!(text.starts_with("exit code 3\n"), "{text}");
    assert!(text.contains("standard output:\nout\n"), "{text}");
    assert!(
        text.contains("err\n") && !text.contains("the secret"),
        "{text}"
    );
    assert!(!failed, "that a program fails is an answer");
    assert_eq!(scene.read("made"), "made\n");
    let scene = Scene::new();
    let (text, failed) = scene
        .one("run_command", json!({"command": ["no-such-program"]}))
        .await;
    assert!(failed && text.contains("no-such-program"), "{text}");
    let scene = Scene::new();
    let (text, _) = scene
        .one(
            "run_command",
            json!({"command": ["sh", "-c", "seq 100000"]}),
        )
        .await;
    assert!(
        text.contains("cut: the last 24576 of 588895 bytes"),
        "{}",
        &text[..200]
    );
    assert!(text.contains("\n100000\n") && text.len() < 30_000);
}

#[tokio::test]
async fn a_model_that_calls_nothing_is_reminded_and_then_given_up() {
    let scene = Scene::new();
    let mut silent = answer(&[]);
    silent.turn.text = "It is the sum.".to_owned();
    let model = SaidModel::new(vec![
        Ok(silent.clone()),
        Ok(answer(&[])),
        Ok(answer(&[submit_fix()])),
    ]);
    let told = Arc::clone(&model);
    scene.fix(model).await.unwrap();
    let turns = told.told.lock().unwrap()[2].turns.clone();
    // What was empty is not said again: providers take no empty turns.
    assert_eq!(turns.len(), 4, "{turns:?}");
    let Some(Turn::Ours(reminder)) = turns.last() else {
        panic!("{turns:?}")
    };
    assert!(reminder.contains("submit_fix"), "{reminder}");

    let scene = Scene::new();
    let ended = scene.fix(SaidModel::new(vec![Ok(silent.clone())])).await;
    assert!(status(&ended.unwrap_err()).contains("called no tool"));
    assert_eq!(scene.report().requests, 4);

    let mut declined = answer(&[]);
    declined.finish = Finish::Declined;
    let scene = Scene::new();
    let ended = scene.fix(SaidModel::new(vec![Ok(declined)])).await;
    assert!(status(&ended.unwrap_err()).contains("refusal"));
    assert_eq!(scene.report().requests, 1);
}

#[tokio::test]
async fn a_call_that_may_be_half_is_not_made() {
    let scene = Scene::new();
    let mut cut = answer(&[("write_file", json!({"path": "x", "content": "hal"}))]);
    cut.finish = Finish::Cut;
    let model = SaidModel::new(vec![Ok(cut), Ok(answer(&[submit_fix()]))]);
    let told = Arc::clone(&model);
    scene.fix(model).await.unwrap();
    assert!(told.results(1)[0].text.contains("may be half"));
    assert!(!scene.tree().join("x").exists());
}

#[tokio::test]
async fn a_model_that_cannot_be_asked_makes_the_coder_unavailable() {
    let scene = Scene::new();
    let ended = scene.fix(SaidModel::new(vec![Err(Class::Permanent)])).await;
    let Err(CoderError::Unavailable { reason, .. }) = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(reason, "asking the model said:model: it is failing");
    assert_eq!(scene.report().requests, 1);
    let gone = PathBuf::from("/no/such/tree");
    let coder = scene.coder(SaidModel::calling(&[submit_fix()])).await;
    let ended = coder.fix(&fix_task(), &gone, Some(&scene.session)).await;
    assert!(matches!(ended, Err(CoderError::Unavailable { .. })));
}

/// What a session's token grants must be what the gate takes each tool for.
#[tokio::test]
async fn the_gate_knows_every_tool_for_what_it_is() {
    let scene = Scene::new();
    let coder = scene.coder(SaidModel::calling(&[submit_fix()])).await;
    let Governance::Gated(tools) = coder.governance() else {
        panic!("not gated")
    };
    for tool in &tools {
        let expected = match tool.access {
            ToolAccess::Reads => "read",
            ToolAccess::Writes { path } => {
                assert_eq!(path, Some("path"));
                "write"
            }
            ToolAccess::Executes => "execute",
        };
        assert_eq!(tool_class(&tool.name).name(), expected, "{}", tool.name);
    }
    assert_eq!(tools.len(), 9);
}
