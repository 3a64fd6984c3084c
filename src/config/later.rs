//! Keys that are known but not available in this version. They are read, so that a configuration for a later version is not a
//! misspelling; asking for what they enable is refused, because a configured protection that is silently absent is worse than
//! a start that fails.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::alignment::{AlignmentSection, DenyPrompts, DriftSection};
use super::document::{Document, IdentityMethod};
use crate::tool_gate::Posture;

/// `security`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Security {
    pub(super) failure_posture: Posture,
    pub(super) intent_alignment: AlignmentSection,
    pub(super) intent_drift: DriftSection,
    pub(super) deny_prompts: DenyPrompts,
}

/// A section whose own keys this version does not know.
pub(super) type Opaque = BTreeMap<String, Value>;

/// Whether a section asks for nothing: it is empty, or says `enabled: false`.
fn asks_for_nothing(section: &Opaque) -> bool {
    section.is_empty() || section.get("enabled") == Some(&Value::Bool(false))
}

/// The first key that asks for something this version does not have.
pub(super) fn refuse_unavailable(document: &Document) -> Result<(), (&'static str, String)> {
    let asked = [
        (
            "identity.require",
            document.identity.require != IdentityMethod::Link,
        ),
        (
            "identity.per_class",
            !document.identity.per_class.is_empty(),
        ),
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
