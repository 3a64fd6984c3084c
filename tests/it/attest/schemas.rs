//! `docs/schemas/`: made from the types, and never stricter than they are nor about something else.

use std::path::PathBuf;

use caretaker::attest::schema::{schema_files, schema_id};
use caretaker::attest::{Statement, TrustRootDocument, json};
use jsonschema::{Registry, Validator};
use serde_json::{Value, json};

use super::examples::examples;
use super::ledger::{Ledger, root_document, trust_root};
use crate::twin;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/schemas"))
}

/// To bring the files up to date: `CARETAKER_WRITE_DOCS=1`.
#[test]
fn the_files_are_what_the_types_say() {
    let write = std::env::var_os("CARETAKER_WRITE_DOCS").is_some();
    let mut expected = Vec::new();
    for file in schema_files() {
        let path = folder().join(format!("{}.json", file.name));
        let text = serde_json::to_string_pretty(&file.schema).unwrap() + "\n";
        if write {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        assert!(
            std::fs::read_to_string(&path).is_ok_and(|found| found == text),
            "{} is out of date: run this test with CARETAKER_WRITE_DOCS=1",
            path.display()
        );
        expected.push(path);
    }
    let found = std::fs::read_dir(folder()).unwrap();
    let mut found: Vec<PathBuf> = found.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "a file that no type makes");
}

fn read(name: &str) -> Value {
    let bytes = std::fs::read(folder().join(format!("{name}.json"))).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// The validator of a file, as a stranger would make it: from the files alone.
fn validator(name: &str) -> Validator {
    let mut registry = Registry::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let schema: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let id = schema["$id"].as_str().unwrap().to_owned();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert_eq!(id, schema_id(stem));
        assert!(jsonschema::meta::is_valid(&schema), "{stem}");
        registry = registry.add(id, schema).unwrap();
    }
    let registry = registry.prepare().unwrap();
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_registry(&registry)
        .build(&read(name))
        .unwrap()
}

#[track_caller]
fn assert_fits(validator: &Validator, value: &Value, what: &str) {
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}");
}

#[test]
fn every_example_fits_its_schema() {
    let statements = validator("statement");
    for statement in examples() {
        let kind = statement.predicate_type().name();
        let value: Value = serde_json::from_slice(&statement.draft().unwrap()).unwrap();
        assert_fits(&statements, &value, kind);
        assert_fits(&validator(kind), &value["predicate"], kind);
    }
    let envelopes = validator("envelope");
    let ledger = Ledger::merged();
    for stored in ledger.envelopes.iter().chain(&ledger.documents[..3]) {
        assert_fits(
            &envelopes,
            &serde_json::from_slice(stored).unwrap(),
            "envelope",
        );
    }
    let root: Value = serde_json::from_slice(&trust_root().to_bytes().unwrap()).unwrap();
    assert_fits(&envelopes, &root, "signed trust root");
    let document = serde_json::to_value(root_document()).unwrap();
    assert_fits(&validator("trust-root"), &document, "trust root");
}

/// Every value in a document, by the way to it.
fn ways(value: &Value, way: &str, found: &mut Vec<String>) {
    found.push(way.to_owned());
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                ways(member, &format!("{way}/{}", name.replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                ways(item, &format!("{way}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// Whatever is done to one value: an unknown member, another type, null, a float, too long, too large, negative.
fn bent(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(members) => {
            let mut unknown = members.clone();
            unknown.insert("unknown".to_owned(), json!(1));
            vec![
                Value::Object(unknown),
                json!([]),
                json!("text"),
                Value::Null,
            ]
        }
        Value::Array(items) => {
            let first = items.first().cloned().unwrap_or(json!("x"));
            vec![
                Value::Array(vec![first; 21]),
                json!({}),
                json!("text"),
                Value::Null,
            ]
        }
        Value::String(_) => vec![
            json!("x".repeat(501)),
            json!("nul \u{0}"),
            json!(7),
            json!({"sha256": "0"}),
            Value::Null,
        ],
        Value::Number(_) => vec![
            json!(1.5),
            json!("1"),
            json!(9_007_199_254_740_992_u64),
            json!(true),
            Value::Null,
        ],
        Value::Bool(_) => vec![json!(1), json!("true"), Value::Null],
        Value::Null => vec![json!("text"), json!(0), json!({})],
    }
}

/// A schema that refuses what the reader takes would make a stranger's reader refuse good ledgers; one that takes what the
/// reader refuses lets them read what nobody wrote. Every place of every example is bent, and members are left out.
#[test]
fn schema_and_reader_refuse_the_same() {
    let statements = validator("statement");
    let mut counted = (0, 0);
    for statement in examples() {
        let value: Value = serde_json::from_slice(&statement.draft().unwrap()).unwrap();
        let mut places = Vec::new();
        ways(&value, "", &mut places);
        let mut cases = Vec::new();
        for place in places {
            for replaced in bent(value.pointer(&place).unwrap()) {
                let mut case = value.clone();
                *case.pointer_mut(&place).unwrap() = replaced.clone();
                cases.push((format!("{place} = {replaced}"), case));
            }
            let Some((parent, name)) = place.rsplit_once('/') else {
                continue;
            };
            let mut case = value.clone();
            if let Some(members) = case.pointer_mut(parent).and_then(Value::as_object_mut) {
                members.remove(&name.replace("~1", "/"));
                cases.push((format!("without {place}"), case));
            }
        }
        for (what, case) in cases {
            let read = twin::statement(&serde_json::to_vec(&case).unwrap());
            let fits = statements.is_valid(&case);
            let kind = statement.predicate_type();
            if read.is_ok() {
                counted.0 += 1;
                assert!(fits, "{kind}: the schema refuses what is read: {what}");
            } else if shape_alone(&read) {
                counted.1 += 1;
                assert!(
                    !fits,
                    "{kind}: the schema takes what is refused: {what}: {read:?}"
                );
            }
        }
    }
    // What was bent and is still right: optional members, labels and texts that say something else.
    assert!(counted.0 > 10 && counted.1 > 2_000, "{counted:?}");
}

/// Whether the reader refused a document for its shape alone, not for what its parts say together.
fn shape_alone(read: &Result<Statement, caretaker::attest::StatementError>) -> bool {
    use caretaker::attest::StatementError;
    !matches!(
        read,
        Err(StatementError::Subjects { .. } | StatementError::Predicate { .. })
    )
}

#[test]
fn trust_roots_are_bent_the_same_way() {
    let validator = validator("trust-root");
    let value = serde_json::to_value(root_document()).unwrap();
    let mut places = Vec::new();
    ways(&value, "", &mut places);
    for place in places {
        for replaced in bent(value.pointer(&place).unwrap()) {
            let mut case = value.clone();
            *case.pointer_mut(&place).unwrap() = replaced.clone();
            let bytes = serde_json::to_vec(&case).unwrap();
            let read = json::parse::<TrustRootDocument>(&bytes, bytes.len());
            assert_eq!(
                read.is_ok(),
                validator.is_valid(&case),
                "{place} = {replaced}: {read:?}"
            );
        }
    }
}
