//! What is recorded: the members that readers of such streams know, and no others. Nothing of it is what a user or a model wrote, but
//! for the tool's name, made printable and short.

use serde_json::{Map, Value, json};

use super::Called;
use crate::attest::text::shown;
use crate::events::Event;
use crate::intent::{Transition, Verdict};

/// `intent_alignment`: one decision. A decision without a score has the text `NaN` in its place.
pub(super) fn alignment(called: Called<'_>, verdict: &Verdict) -> Event {
    let score = verdict.score.map(|score| Value::from(score.cosine()));
    let fields = [
        ("tool", Value::from(shown(called.tool))),
        ("score", score.unwrap_or_else(|| json!("NaN"))),
        ("decision", Value::from(verdict.decision.as_str())),
        ("reason", Value::from(verdict.reason.to_string())),
    ];
    event("intent_alignment", called, fields)
}

/// `intent_drift`: a task turned.
pub(super) fn drift(called: Called<'_>, turn: &Transition) -> Event {
    let fields = [
        ("tool", Value::from(shown(called.tool))),
        ("severity", Value::from(turn.severity.as_str())),
        ("transition", Value::from(turn.kind.as_str())),
        ("mean", Value::from(turn.mean.cosine())),
        ("window", Value::from(turn.window)),
    ];
    event("intent_drift", called, fields)
}

fn event<const N: usize>(
    name: &'static str,
    called: Called<'_>,
    fields: [(&'static str, Value); N],
) -> Event {
    let fields: Map<String, Value> = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let mut event = Event::new(name, called.task, fields);
    event.correlation_id = called.correlation.map(str::to_owned);
    event
}
