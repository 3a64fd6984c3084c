//! What a log becomes, what a diagnosis was fed, and the coders behind the port.

mod builtin;
mod builtin_budget;
mod builtin_scene;
mod builtin_tree;
mod client;
mod command;
mod demo;
pub(crate) mod fake_model;
mod model_asking;
mod model_forms;
mod provenance;
mod reader;
mod reader_properties;
mod scripted;

use caretaker::agent::{CoderTask, ExtractedFact, FailureBrief};
use caretaker::clock::Millis;
use caretaker::id::IncidentId;

/// A failing test of a small crate, as a coder is told of it.
fn task() -> CoderTask {
    CoderTask {
        incident: IncidentId::new(Millis(1_784_000_000_000), [7; 10]),
        failure: FailureBrief {
            kind: "code".to_owned(),
            workflow: Some("CI".to_owned()),
            job: None,
            commit: "a".repeat(40),
            url: Some("http://127.0.0.1/runs/1".to_owned()),
        },
        extraction: vec![ExtractedFact {
            tool: "cargo-test".to_owned(),
            kind: "panic".to_owned(),
            test_name: Some("tests::eq".to_owned()),
            file: Some("src/lib.rs".to_owned()),
            line: Some(2),
            code: None,
            exception: None,
        }],
        intent: "A small crate.".to_owned(),
        files: vec!["src/lib.rs".to_owned()],
        diagnosis: None,
    }
}
