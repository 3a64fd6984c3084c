//! JSON Schemas (draft 2020-12) of what is signed, made from the types that read it: `docs/schemas/`.
//!
//! They describe the shape and are for whoever writes a reader in another language. The strict reader refuses more: text that is
//! not in normal form C or longer than its *bytes* allow, integers written as `1.0`, repeated members, a predicate that
//! contradicts itself, subjects that do not follow from the predicate. What a schema refuses, the reader refuses.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::dsse::{IN_TOTO, TRUST_ROOT, Wire};
use super::json::MAX_INTEGER;
use super::keys::{KeyId, PublicKey};
use super::predicate::{
    Approval, BreakGlass, ContextManifest, Enrolment, Escalation, Execution, Gap, GateOutcome,
    IntentScore, PolicyDecision, PolicyVersion, Proposal, TestResult, Unfreeze,
};
use super::role::PredicateType;
use super::statement::{STATEMENT_TYPE, Subject};
use super::text::{Label, List, MAX_ITEMS, Text};
use super::trust_root::TrustRootDocument;
use crate::change::{Oid, Sha256Digest};
use crate::clock::Millis;
use crate::id::{EventId, ExecutionId, IncidentId};

/// A schema and the name of its file in `docs/schemas/`, without `.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaFile {
    /// The name.
    pub name: &'static str,
    /// The schema.
    pub schema: Value,
}

/// Every schema: one for each predicate, and those of the envelope, the statement and the trust root.
pub fn schema_files() -> Vec<SchemaFile> {
    let mut files: Vec<SchemaFile> = PredicateType::ALL
        .into_iter()
        .map(|kind| SchemaFile {
            name: kind.name(),
            schema: predicate(kind),
        })
        .collect();
    files.push(SchemaFile {
        name: "envelope",
        schema: envelope(),
    });
    files.push(SchemaFile {
        name: "statement",
        schema: statement(),
    });
    files.push(SchemaFile {
        name: "trust-root",
        schema: identified(
            generator().into_root_schema_for::<TrustRootDocument>(),
            "trust-root",
        ),
    });
    files
}

/// The `$id` of a schema.
pub fn schema_id(name: &str) -> String {
    format!("urn:caretaker:schema:{name}:v1")
}

/// What is *written* is what is described: the reader demands that what it read, written again, is the same document.
fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(exact))
        .into_generator()
}

/// Makes one schema as exact as the reader: closed objects, absent members instead of null ones, integers that a double holds.
fn exact(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    let required = object.get("required").cloned();
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        let needed = |name: &str| {
            let names = required.as_ref().and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|one| one == name))
        };
        for (name, property) in properties.iter_mut() {
            if !needed(name) {
                without_null(property);
            }
        }
        object.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    if is_integer(object.get("type")) {
        object.remove("format");
        object
            .entry("minimum")
            .or_insert_with(|| json!(-MAX_INTEGER));
        object
            .entry("maximum")
            .or_insert_with(|| json!(MAX_INTEGER));
    }
}

fn is_integer(kind: Option<&Value>) -> bool {
    match kind {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "integer"),
        Some(kind) => kind == "integer",
        None => false,
    }
}

/// A member that is left out is never written as null.
fn without_null(property: &mut Value) {
    let Value::Object(object) = property else {
        return;
    };
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| *choice != json!({"type": "null"}));
        if let [Value::Object(only)] = choices.as_slice() {
            let only: Map<String, Value> = only.clone();
            object.remove("anyOf");
            object.extend(only);
        }
    }
}

fn identified(schema: Schema, name: &str) -> Value {
    let mut schema = schema.to_value();
    if let Value::Object(object) = &mut schema {
        object.insert("$id".to_owned(), Value::String(schema_id(name)));
    }
    schema
}

fn predicate(kind: PredicateType) -> Value {
    let generator = generator();
    let schema = match kind {
        PredicateType::Proposal => generator.into_root_schema_for::<Proposal>(),
        PredicateType::ContextManifest => generator.into_root_schema_for::<ContextManifest>(),
        PredicateType::TestResult => generator.into_root_schema_for::<TestResult>(),
        PredicateType::PolicyDecision => generator.into_root_schema_for::<PolicyDecision>(),
        PredicateType::GateOutcome => generator.into_root_schema_for::<GateOutcome>(),
        PredicateType::IntentScore => generator.into_root_schema_for::<IntentScore>(),
        PredicateType::PolicyVersion => generator.into_root_schema_for::<PolicyVersion>(),
        PredicateType::Approval => generator.into_root_schema_for::<Approval>(),
        PredicateType::Unfreeze => generator.into_root_schema_for::<Unfreeze>(),
        PredicateType::BreakGlass => generator.into_root_schema_for::<BreakGlass>(),
        PredicateType::Enrolment => generator.into_root_schema_for::<Enrolment>(),
        PredicateType::Execution => generator.into_root_schema_for::<Execution>(),
        PredicateType::Escalation => generator.into_root_schema_for::<Escalation>(),
        PredicateType::Gap => generator.into_root_schema_for::<Gap>(),
    };
    let mut schema = identified(schema, kind.name());
    if let Value::Object(object) = &mut schema {
        let block = ["event", "document"].into_iter().find(|block| {
            let properties = object.get("properties");
            properties.is_some_and(|properties| properties.get(block).is_some())
        });
        if let Some(block) = block {
            // The one role whose signature counts on it.
            let role = json!({"properties": {"role": {"const": kind.role().name()}}});
            object.insert("allOf".to_owned(), json!([{"properties": {block: role}}]));
        }
    }
    schema
}

fn envelope() -> Value {
    let mut schema = identified(generator().into_root_schema_for::<Wire>(), "envelope");
    if let Value::Object(object) = &mut schema {
        let kinds = json!({"properties": {"payloadType": {"enum": [IN_TOTO, TRUST_ROOT]}}});
        let event = json!({
            "if": {"properties": {"payloadType": {"const": IN_TOTO}}},
            "then": {"properties": {"signatures": {"maxItems": 1}}},
        });
        object.insert("allOf".to_owned(), json!([kinds, event]));
    }
    schema
}

/// A statement refers to the predicates' schemas by their `$id`.
fn statement() -> Value {
    let mut generator = generator();
    let subject = generator.subschema_for::<Subject>();
    let definitions = generator.take_definitions(true);
    let types: Vec<&str> = PredicateType::ALL.iter().map(|kind| kind.uri()).collect();
    let choices: Vec<Value> = PredicateType::ALL
        .into_iter()
        .map(|kind| {
            json!({
                "if": {"properties": {"predicateType": {"const": kind.uri()}}},
                "then": {"properties": {"predicate": {"$ref": schema_id(kind.name())}}},
            })
        })
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema_id("statement"),
        "title": "Statement",
        "description": "An in-toto Statement, version 1, with a predicate that this version knows.",
        "type": "object",
        "required": ["_type", "subject", "predicateType", "predicate"],
        "additionalProperties": false,
        "properties": {
            "_type": {"const": STATEMENT_TYPE},
            "subject": {"type": "array", "minItems": 1, "maxItems": MAX_ITEMS, "items": subject},
            "predicateType": {"enum": types},
            "predicate": {"type": "object"},
        },
        "allOf": choices,
        "$defs": definitions,
    })
}

/// Base64 of at most what an envelope may carry.
pub(super) fn payload_base64(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 61_336, "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"})
}

/// Base64 of 64 bytes.
pub(super) fn signature_base64(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[A-Za-z0-9+/]{86}==$"})
}

/// The digests that a subject may have.
pub(super) fn subject_digests(generator: &mut SchemaGenerator) -> Schema {
    let sha256 = generator.subschema_for::<Sha256Digest>();
    let oid = generator.subschema_for::<Oid>();
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "properties": {"sha256": sha256, "gitCommit": oid, "gitTree": oid},
    })
}

/// Schemas of strings that are more than strings.
macro_rules! strings {
    ($($type:ty, $name:literal, { $($member:tt)* };)*) => {$(
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", $($member)*})
            }
        }
    )*};
}

strings! {
    Text, "Text", {
        "description": "Free text: at most 500 bytes of UTF-8 in normal form C, without NUL.",
        "maxLength": 500, "pattern": "^[^\\u0000]*$"
    };
    Label, "Label", {
        "description": "A machine word: 1 to 200 visible ASCII characters.", "pattern": "^[!-~]{1,200}$"
    };
    Sha256Digest, "Sha256", {
        "description": "A SHA-256 digest in lower-case hexadecimal.", "pattern": "^[0-9a-f]{64}$"
    };
    Oid, "ObjectId", {
        "description": "A complete git object id in lower-case hexadecimal.", "pattern": "^([0-9a-f]{40}|[0-9a-f]{64})$"
    };
    KeyId, "KeyId", {
        "description": "SSH fingerprint of a public key.", "pattern": "^SHA256:[A-Za-z0-9+/]{43}$"
    };
    PublicKey, "PublicKey", {
        "description": "An Ed25519 public key: 32 bytes in padded base64.", "pattern": "^[A-Za-z0-9+/]{43}=$"
    };
    EventId, "EventId", {
        "description": "Id of an event or an evidence document.", "pattern": "^evt-[0-9a-v]{26}$"
    };
    IncidentId, "IncidentId", {
        "description": "Id of an incident.", "pattern": "^inc-[0-9a-v]{26}$"
    };
    ExecutionId, "ExecutionId", {
        "description": "Id of an attempt to merge.", "pattern": "^exe-[0-9a-v]{26}$"
    };
}

impl JsonSchema for Millis {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Millis")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "description": "A moment: milliseconds since 1970-01-01T00:00Z, UTC."})
    }
}

impl<T: JsonSchema> JsonSchema for List<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Owned(format!("List of {}", T::schema_name()))
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<T>();
        json_schema!({"type": "array", "maxItems": MAX_ITEMS, "items": items})
    }
}
