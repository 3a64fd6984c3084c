//! What the published format asks of a payload.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::recheck::recheck;
use super::{Fault, Receipt};
use crate::attest::json::Json;
use crate::attest::text::shown;
use crate::receipts::canonical::utf16_order;
use crate::receipts::intent::Intent;
use crate::receipts::key::PemKeyId;
use crate::receipts::name::TokenId;
use crate::receipts::receipt::{ReceiptHash, TYPE};

/// Members that the format defines besides those that begin with `x_`.
const KNOWN: [&str; 16] = [
    "agent_id",
    "agent_key_id",
    "corpus",
    "guardrail_verdict",
    "iat",
    "input_hash",
    "iss",
    "model",
    "operation",
    "output_hash",
    "parents",
    "ruleset_hash",
    "taint",
    "tenant",
    "tool",
    "typ",
];

/// What each kind of step must say, and how many parents it has at least.
const OPERATIONS: [(&str, &[&str], usize); 8] = [
    ("user_input", &["input_hash"], 0),
    ("model_call", &["input_hash", "output_hash", "model"], 1),
    ("tool_call", &["input_hash", "output_hash", "tool"], 1),
    ("retrieval", &["input_hash", "output_hash", "corpus"], 1),
    (
        "guardrail_scan",
        &["input_hash", "ruleset_hash", "guardrail_verdict"],
        0,
    ),
    ("agent_handoff", &["output_hash"], 1),
    (
        "sanitisation",
        &["input_hash", "output_hash", "tool", "corpus"],
        1,
    ),
    ("merge", &["output_hash"], 2),
];

/// The members of a payload.
pub(super) type Members<'a> = BTreeMap<Cow<'a, str>, Json<'a>>;

/// A member that is not as it must be.
pub(super) fn wrong(member: &str, problem: &'static str) -> Fault {
    Fault::Member {
        member: shown(member),
        problem,
    }
}

/// Reads the payload of a receipt that this key signed.
pub(super) fn read(
    json: &Json<'_>,
    key: &PemKeyId,
    hash: ReceiptHash,
    tokens: &BTreeMap<TokenId, Option<Arc<Intent>>>,
) -> Result<Receipt, Fault> {
    let Json::Members(payload) = json else {
        return Err(wrong("document", "is not an object"));
    };
    let defined = |name: &str| name.starts_with("x_") || KNOWN.contains(&name);
    if let Some(other) = payload.keys().find(|name| !defined(name)) {
        return Err(wrong(other, "is not defined; extensions begin with x_"));
    }
    if text(payload, "typ")? != TYPE {
        return Err(wrong("typ", "is not provenance-receipt/v1"));
    }
    text(payload, "iss")?;
    text(payload, "agent_id")?;
    // Break it: leave this out; `receipts::forging::the_header_and_the_payload_name_the_same_key` fails.
    if text(payload, "agent_key_id")? != key.as_str() {
        return Err(wrong("agent_key_id", "is not the key of the header"));
    }
    if !matches!(payload.get("iat"), Some(Json::Integer(_))) {
        return Err(wrong("iat", "is not a number of seconds"));
    }
    let parents = sorted(payload, "parents")?;
    let operation = operation(payload, parents.len())?;
    recheck(payload, tokens)?;
    Ok(Receipt {
        hash,
        parents: hashes(&parents)?,
        taint: owned(&sorted(payload, "taint")?),
        removed: (operation == "sanitisation").then(|| removed(payload)),
        place: place(payload, operation)?,
    })
}

/// A string that is not empty.
fn text<'a>(payload: &'a Members<'_>, member: &str) -> Result<&'a str, Fault> {
    match payload.get(member) {
        Some(Json::Text(text)) if !text.is_empty() => Ok(text),
        _ => Err(wrong(member, "is not a string, or empty")),
    }
}

/// The kind of step, once what it must say is there.
fn operation<'a>(payload: &'a Members<'_>, parents: usize) -> Result<&'a str, Fault> {
    let operation = text(payload, "operation")?;
    let known = OPERATIONS.iter().find(|(name, ..)| *name == operation);
    let Some((name, required, least)) = known else {
        return Err(wrong("operation", "is none that is known"));
    };
    for member in *required {
        text(payload, member)?;
    }
    if parents < *least {
        return Err(wrong("parents", "are fewer than this operation has"));
    }
    if *name == "user_input" && parents > 0 {
        return Err(wrong("parents", "are there, and a user_input has none"));
    }
    Ok(operation)
}

/// A list of strings in the format's order, none twice. Absent is empty.
fn sorted<'a>(payload: &'a Members<'_>, member: &str) -> Result<Vec<&'a str>, Fault> {
    let items = match payload.get(member) {
        None => return Ok(Vec::new()),
        Some(Json::List(items)) => items,
        Some(_) => return Err(wrong(member, "is not a list")),
    };
    let texts = items.iter().map(|item| match item {
        Json::Text(text) => Ok(text.as_ref()),
        _ => Err(wrong(member, "does not hold strings only")),
    });
    let texts = texts.collect::<Result<Vec<&str>, _>>()?;
    let rising = |pair: &[&str]| utf16_order(pair[0], pair[1]).is_lt();
    if texts.windows(2).all(rising) {
        Ok(texts)
    } else {
        Err(wrong(
            member,
            "is not sorted by UTF-16 code unit without repetitions",
        ))
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn hashes(parents: &[&str]) -> Result<Vec<ReceiptHash>, Fault> {
    let hashes = parents.iter().map(|parent| parent.parse());
    hashes
        .collect::<Result<_, _>>()
        .map_err(|_| wrong("parents", "are not names of receipts"))
}

/// What a sanitising step claims to have taken away.
fn removed(payload: &Members<'_>) -> Vec<String> {
    let Some(Json::Text(corpus)) = payload.get("corpus") else {
        return Vec::new();
    };
    let claim = corpus.strip_prefix("removed:").unwrap_or_default();
    let tags = claim.split(',').filter(|tag| !tag.is_empty());
    tags.map(str::to_owned).collect()
}

/// Its place in a linear chain, if it has one.
fn place(payload: &Members<'_>, operation: &str) -> Result<Option<(String, u64)>, Fault> {
    let Some(Json::Members(gate)) = payload.get("x_gate") else {
        return Ok(None);
    };
    let (seq, session) = match (gate.get("seq"), gate.get("session")) {
        (None, None) => return Ok(None),
        (Some(Json::Integer(seq)), Some(Json::Text(session))) => (*seq, session),
        _ => return Err(wrong("x_gate", "has a seq or a session, and not both")),
    };
    let seq = u64::try_from(seq).map_err(|_| wrong("x_gate", "has a negative seq"))?;
    if (seq == 0) != (operation == "user_input") {
        return Err(wrong(
            "x_gate",
            "has a seq that does not fit: the root is 0 and no other is",
        ));
    }
    Ok(Some((session.to_string(), seq)))
}
