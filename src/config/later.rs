//! Keys that are known but not available in this version. They are read, so that a configuration for a later version is not a
//! misspelling; asking for what they enable is refused, because a configured protection that is silently absent is worse than
//! a start that fails.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::{Document, IdentityMethod};
use crate::tool_gate::Posture;

/// `security`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Security {
    pub(super) failure_posture: Posture,
    pub(super) intent_alignment: IntentAlignment,
    pub(super) intent_drift: IntentDrift,
    pub(super) deny_prompts: Vec<Value>,
}

/// `security.intent_alignment`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct IntentAlignment {
    enabled: bool,
    provider: Value,
    model: Value,
    base_url: Value,
    weights_dir: Value,
    api_key_env: Value,
    threshold: Value,
    hard_threshold: Value,
    thresholds: Value,
    cache_size: Value,
    exempt: Value,
}

/// `security.intent_drift`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct IntentDrift {
    enabled: bool,
    window: Value,
    drift_threshold: Value,
    monotone_n: Value,
}

/// A section whose own keys this version does not know.
pub(super) type Opaque = BTreeMap<String, Value>;

/// Whether a section asks for nothing: it is empty, or says `enabled: false`.
fn asks_for_nothing(section: &Opaque) -> bool {
    section.is_empty() || section.get("enabled") == Some(&Value::Bool(false))
}

/// The first key that asks for something this version does not have.
pub(super) fn refuse_unavailable(document: &Document) -> Result<(), (&'static str, String)> {
    let security = &document.security;
    let asked = [
        (
            "security.intent_alignment",
            security.intent_alignment.enabled,
        ),
        ("security.intent_drift", security.intent_drift.enabled),
        ("security.deny_prompts", !security.deny_prompts.is_empty()),
        (
            "approvals.profiles",
            !document.approvals.profiles.is_empty(),
        ),
        (
            "identity.require",
            document.identity.require != IdentityMethod::Link,
        ),
        (
            "identity.per_class",
            !document.identity.per_class.is_empty(),
        ),
        ("agent.model", !asks_for_nothing(&document.agent.model)),
        ("agent.budget", !asks_for_nothing(&document.agent.budget)),
        ("telemetry", !asks_for_nothing(&document.telemetry)),
    ];
    match asked.into_iter().find(|(_, asked)| *asked) {
        Some((key, _)) => Err((
            key,
            "not available in this version; remove it, or use a version that has it".to_owned(),
        )),
        None => Ok(()),
    }
}
