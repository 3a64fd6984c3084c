//! `caretaker intent score`, `caretaker intent calibrate`, `caretaker embedder verify`, with the built program.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::embedder::peers::weights;
use crate::embedder::server::{Server, ok, openai, status};

struct Desk(tempfile::TempDir);

impl Desk {
    fn new(configuration: &str) -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        desk.write("caretaker.yaml", configuration);
        desk
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path().join(name), content).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_caretaker"))
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("CARETAKER_HOME", self.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        told(&output)
    }

    /// The same, without standing in the way of a server of this test.
    async fn run_beside(
        self: &std::sync::Arc<Self>,
        arguments: &[&str],
    ) -> (Option<i32>, String, String) {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let desk = std::sync::Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            desk.run(&arguments)
        })
        .await
        .unwrap()
    }
}

fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn score(more: &[&str]) -> (Option<i32>, Value) {
    let mut arguments = vec!["intent", "score", "--json"];
    arguments.extend(more);
    let (code, out, error) = Desk::new("{}").run(&arguments);
    let document = serde_json::from_str(&out);
    (
        code,
        document.unwrap_or_else(|_| panic!("{code:?} {out} {error}")),
    )
}

fn of_vectors(intent: &str, action: &str) -> (Option<i32>, Value) {
    score(&["--intent-vector", intent, "--action-vector", action])
}

#[test]
fn vectors_are_scored_without_any_configuration() {
    let (code, document) = of_vectors("[1, 0]", "[0.6, 0.8]");
    assert_eq!(code, Some(0));
    assert_eq!(
        document,
        json!({"score_micro": 600_000, "decision": "allow", "reason": "score 0.600 above threshold 0.500", "code": "above-threshold"})
    );
    let (code, document) = of_vectors("[1, 1, 1]", "[1, 0, 0]");
    assert_eq!((code, &document["score_micro"]), (Some(0), &json!(577_350)));
    let (code, document) = of_vectors("[1, 0]", "[-1, 0]");
    assert_eq!((code, &document["decision"]), (Some(1), &json!("deny")));
}

#[test]
fn vectors_that_say_nothing_are_denied_whatever_the_thresholds() {
    for (intent, action, code) in [
        ("[1, 0]", "[0, 0]", "vector-zero"),
        ("[1, 0]", "[]", "vector-empty"),
        ("[1, 0]", "[1, 0, 0]", "vector-length"),
        ("[1, NaN]", "[1, 0]", "vector-non-finite"),
        ("[1, 0]", "[1, Infinity]", "vector-non-finite"),
        ("[1, 0]", "[1, null]", "vector-non-finite"),
        ("[1, 0]", "[1, 1e39]", "vector-non-finite"),
    ] {
        let arguments = [
            "--intent-vector",
            intent,
            "--action-vector",
            action,
            "--threshold",
            "-1",
            "--hard-threshold",
            "-1",
        ];
        let (exit, document) = score(&arguments);
        assert_eq!(exit, Some(1), "{intent} {action}");
        assert_eq!(document["decision"], "deny");
        assert_eq!(document["score_micro"], Value::Null);
        assert_eq!(document["code"], code);
    }
}

#[test]
fn thresholds_can_be_given() {
    let vectors = ["--intent-vector", "[1, 0]", "--action-vector", "[0.6, 0.8]"];
    let with = |more: &[&str]| {
        let (code, document) = score(&[&vectors, more].concat());
        (code, document["decision"].as_str().unwrap().to_owned())
    };
    assert_eq!(with(&["--threshold", "0.7"]), (Some(0), "warn".to_owned()));
    assert_eq!(
        with(&["--hard-threshold", "0.7"]),
        (Some(1), "deny".to_owned())
    );
    assert_eq!(with(&["--threshold", "0.2"]), (Some(0), "allow".to_owned()));
    let desk = Desk::new("{}");
    let refused = |more: &[&str]| {
        let arguments = [&["intent", "score"], &vectors[..], more].concat();
        let (code, out, error) = desk.run(&arguments);
        assert_eq!(out, "");
        (code, error)
    };
    let (code, error) = refused(&["--threshold", "1.5"]);
    assert_eq!(code, Some(1));
    assert_eq!(
        error,
        "caretaker: reading the thresholds: intent_alignment: threshold 1.500 outside [-1,1]\n"
    );
    assert_eq!(refused(&["--threshold", "NaN"]).0, Some(1));
}

#[test]
fn wrong_words_are_told_apart_from_what_is_denied() {
    let desk = Desk::new("{}");
    for arguments in [
        &["intent", "score"][..],
        &["intent", "score", "--intent", "a"],
        &["intent", "score", "--intent-vector", "[1]"],
        &[
            "intent",
            "score",
            "--intent-vector",
            "1",
            "--action-vector",
            "[1]",
        ],
        &[
            "intent",
            "score",
            "--intent-vector",
            "[a]",
            "--action-vector",
            "[1]",
        ],
        &[
            "intent",
            "score",
            "--intent",
            "a",
            "--action",
            "b",
            "--intent-vector",
            "[1]",
            "--action-vector",
            "[1]",
        ],
        &["intent", "calibrate"],
    ] {
        assert_eq!(desk.run(arguments).0, Some(2), "{arguments:?}");
    }
    let (code, _, error) = desk.run(&["intent", "score", "--intent", "a", "--action", "b"]);
    assert_eq!(code, Some(1));
    assert!(
        error.contains("security.intent_alignment is off"),
        "{error}"
    );
}

fn configured(server: &Server) -> String {
    format!(
        "security: {{intent_alignment: {{enabled: true, provider: openai-compatible, model: small, base_url: \"{}\", threshold: 0.5, hard_threshold: 0.3}}, deny_prompts: [forbidden]}}",
        server.base()
    )
}

#[tokio::test]
async fn texts_are_scored_by_the_configured_embedder() {
    let server = Server::start(|_, texts| {
        if texts[1].contains("fail") {
            return status("401 Unauthorized", "", "SECRET");
        }
        ok(&openai(&[(1, vec![0.6, 0.8]), (0, vec![1.0, 0.0])]))
    })
    .await;
    let desk = std::sync::Arc::new(Desk::new(&configured(&server)));
    let score = |action: &'static str| {
        let desk = std::sync::Arc::clone(&desk);
        async move {
            desk.run_beside(&["intent", "score", "--intent", "mend", "--action", action])
                .await
        }
    };
    assert_eq!(
        score("run tests").await,
        (
            Some(0),
            "allow: score 0.600 above threshold 0.500\n".to_owned(),
            String::new()
        )
    );
    let (code, out, error) = score("fail").await;
    assert_eq!(
        (code, out.as_str()),
        (
            Some(1),
            "deny: embedder unavailable (fail-closed): status 4xx\n"
        )
    );
    assert!(
        error.contains("status 401") && !error.contains("SECRET"),
        "{error}"
    );
    let before = server.requests().len();
    let (code, out, _) = score("FORBIDDEN").await;
    assert_eq!(
        (code, out.as_str()),
        (Some(1), "deny: action matches deny_prompts pattern 1\n")
    );
    assert_eq!(server.requests().len(), before);
}

fn stream(desk: &Desk) {
    let mut lines = Vec::new();
    for number in 0..240_i32 {
        // Most of it around 0.6, a few far below.
        let score = if number % 40 == 0 {
            0.08
        } else {
            0.45 + f64::from(number % 31) * 0.01
        };
        let decision = if score < 0.3 { "deny" } else { "allow" };
        lines.push(
            json!({"event": "intent_alignment", "ts": "2027-01-15T08:00:00Z", "task_id": "t", "fields": {"tool": "shell", "score": score, "decision": decision, "reason": "r"}})
                .to_string(),
        );
    }
    lines.push(json!({"event": "gate_decision", "task_id": "t", "fields": {}}).to_string());
    lines.push(json!({"event": "intent_alignment", "task_id": "t", "fields": {"tool": "shell", "score": "NaN", "decision": "deny", "reason": "r"}}).to_string());
    lines.push("{broken".to_owned());
    desk.write("audit.ndjson", &lines.join("\n"));
}

#[test]
fn a_person_sees_the_distribution_and_what_it_suggests() {
    let desk = Desk::new("{}");
    stream(&desk);
    let (code, out, error) = desk.run(&[
        "intent",
        "calibrate",
        "audit.ndjson",
        "--plot",
        "scores.svg",
    ]);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    insta::assert_snapshot!("a_person_sees_the_distribution", out);
    let picture = std::fs::read_to_string(desk.path().join("scores.svg")).unwrap();
    insta::assert_snapshot!("the_distribution_as_a_picture", picture);
}

#[test]
fn scripts_get_the_same_as_numbers() {
    let desk = Desk::new("{}");
    stream(&desk);
    let (code, out, _) = desk.run(&[
        "intent",
        "calibrate",
        "--json",
        "audit.ndjson",
        "audit.ndjson",
    ]);
    assert_eq!(code, Some(0));
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["scores"], 480);
    assert_eq!(
        document["decisions"],
        json!({"allow": 468, "warn": 0, "deny": 14})
    );
    assert_eq!(document["unreadable_lines"], 2);
    let histogram = document["histogram"].as_array().unwrap();
    let sum: u64 = histogram
        .iter()
        .map(|part| part["count"].as_u64().unwrap())
        .sum();
    assert_eq!((histogram.len(), sum), (40, 480));
    assert_eq!(document["suggested"]["threshold_micro"], 590_000);
}

#[test]
fn a_stream_without_scores_cannot_tell() {
    let desk = Desk::new("{}");
    desk.write("audit.ndjson", "");
    let (code, out, _) = desk.run(&["intent", "calibrate", "audit.ndjson"]);
    assert_eq!(code, Some(3));
    assert!(out.contains("there are no scores"), "{out}");
    let (code, _, error) = desk.run(&["intent", "calibrate", "nowhere.ndjson"]);
    assert_eq!(code, Some(1));
    assert!(
        error.contains("reading the audit stream nowhere.ndjson"),
        "{error}"
    );
}

#[tokio::test]
async fn an_embedder_is_verified_by_asking_it() {
    let server = Server::start(|_, _| ok(&openai(&[(0, vec![0.6, 0.8])]))).await;
    let desk = std::sync::Arc::new(Desk::new(&configured(&server)));
    let (code, out, error) = desk.run_beside(&["embedder", "verify", "--json"]).await;
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let mut document: Value = serde_json::from_str(&out).unwrap();
    assert!(document["elapsed_ms"].take().is_u64());
    assert_eq!(
        document,
        json!({"valid": true, "embedder": "openai-compatible:small", "files": [], "dimension": 2, "usual_dimension": null, "elapsed_ms": null, "reason": null})
    );

    let odd = Server::start(|_, _| ok(&openai(&[(0, vec![0.0, 0.0])]))).await;
    let desk = std::sync::Arc::new(Desk::new(&configured(&odd)));
    let (code, out, _) = desk.run_beside(&["embedder", "verify"]).await;
    assert_eq!(
        (code, out.as_str()),
        (Some(1), "failed  the embedding is zero\n")
    );
}

#[test]
fn weights_that_are_missing_or_wrong_are_listed() {
    let desk = Desk::new("{}");
    desk.write("vocab.txt", "not it");
    let (code, out, _) = desk.run(&["embedder", "verify", "--weights-dir", "."]);
    assert_eq!(code, Some(1));
    insta::assert_snapshot!("a_person_sees_which_weights_are_wrong", out);
    let (code, _, error) = desk.run(&["embedder", "verify"]);
    assert_eq!(code, Some(1));
    assert!(
        error.contains("security.intent_alignment is off"),
        "{error}"
    );
}

#[test]
fn weights_that_are_there_are_verified() {
    let Some(folder) = weights() else {
        return;
    };
    let desk = Desk::new("{}");
    let folder = folder.display().to_string();
    let (code, out, error) = desk.run(&["embedder", "verify", "--weights-dir", &folder]);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let last = out.lines().last().unwrap();
    assert!(
        last.starts_with("ok      embedded:all-MiniLM-L6-v2@53aa51172d14: 384 numbers in "),
        "{out}"
    );
}
