//! A session's budget of calls: the gate refuses those beyond it, and each refusal is on record.

use caretaker::events::{Event, EventSink, SinkError};
use caretaker::hook_gate::{CallBudget, HookEvent, HookGate, Question, Surroundings, receipts};
use caretaker::receipts::Door;

use super::Desk;
use super::tokens::{NOW, held};

struct Unheard;

impl EventSink for Unheard {
    fn record(&self, _: &Event) -> Result<(), SinkError> {
        Ok(())
    }
}

#[test]
fn a_call_beyond_the_budget_is_refused_with_its_receipt() {
    let desk = Desk::empty();
    let work = desk.work();
    let home = held(&desk, &work);
    let surroundings = Surroundings {
        calls: Some(CallBudget::new(2)),
        ..Surroundings::default()
    };
    let gate = HookGate {
        surroundings: &surroundings,
        ..HookGate::plain(&home, &Unheard)
    };
    let ask = |tool: &str| {
        let input = format!(r#"{{"tool_name":"{tool}","tool_input":{{"file_path":"src/a"}}}}"#);
        gate.before_tool(&Question {
            session: "S2",
            event: HookEvent::PreToolUse,
            input: input.as_bytes(),
            folder: &work,
            compatible: false,
            role: "worker",
            door: Door::HookGate,
            now: NOW,
        })
    };
    assert!(!ask("Read").blocked);
    // A call that is refused counts too.
    assert!(ask("Bash").blocked);
    let beyond = ask("Read");
    assert!(beyond.blocked);
    assert!(
        beyond
            .reason
            .contains("used up its budget of 2 calls of tools (agent.budget.tool_calls)"),
        "{}",
        beyond.reason
    );
    let kept = receipts(&desk.home().join("hook-gate/S2")).unwrap();
    assert_eq!(kept.len(), 4, "the root and three calls");
    let last = &kept[3].payload["x_gate"];
    assert_eq!(
        (&last["decision"], &last["stage"]),
        (&"DENY".into(), &"session".into())
    );
}
