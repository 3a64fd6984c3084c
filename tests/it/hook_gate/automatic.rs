//! What no person decided is told as the software's own decision.

use std::sync::Arc;

use caretaker::hook_gate::{HookEvent, HookGate, Question};
use caretaker::receipts::Door;
use caretaker::tool_gate::{Call, Classified, Stages};

use super::Desk;
use super::tokens::{NOW, held};
use crate::alignment::scene::Stream;

/// A classifier that has one answer.
struct Says(Classified);

impl Stages for Says {
    fn classifier(&self, _: &Call) -> Classified {
        self.0.clone()
    }

    fn smart_auto_approve(&self) -> bool {
        true
    }
}

fn told(says: Classified) -> Vec<(&'static str, String, String)> {
    let desk = Desk::empty();
    let work = desk.work();
    let home = held(&desk, &work);
    let stream = Arc::new(Stream::default());
    let gate = HookGate {
        stages: &Says(says),
        ..HookGate::plain(&home, stream.as_ref())
    };
    gate.before_tool(&Question {
        session: "S2",
        event: HookEvent::PreToolUse,
        input: br#"{"tool_name":"Read","tool_input":{"file_path":"src/a"}}"#,
        folder: &work,
        compatible: false,
        role: "worker",
        door: Door::HookGate,
        now: NOW,
    });
    let word = |value: Option<&serde_json::Value>| {
        let word = value.and_then(serde_json::Value::as_str);
        word.unwrap_or_default().to_owned()
    };
    let events = stream.all().into_iter();
    events
        .map(|event| {
            let field = |name: &str| word(event.fields.get(name));
            (event.event, field("actor"), field("decision"))
        })
        .collect()
}

// The line to break is named in `hook_gate::gate`.
#[test]
fn what_the_classifier_approves_is_told_as_the_softwares_own_decision() {
    let (own, allow) = ("system:classifier".to_owned(), "allow".to_owned());
    let decision = |decision: &str| ("gate_decision", String::new(), decision.to_owned());
    assert_eq!(
        told(Classified::Approved),
        [("auto_approve_decision", own, allow), decision("allow")]
    );
    // What nothing was said against, or what was refused, was not approved by it.
    assert_eq!(told(Classified::Undecided), [decision("allow")]);
    let denied = Classified::Denied("never".to_owned());
    assert_eq!(told(denied), [decision("deny")]);
}
