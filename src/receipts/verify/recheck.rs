//! Whether what a gate allowed under an intent is what was approved: from what the receipt discloses alone. Denials are exempt, since
//! a denial of what was not approved is the gate at work.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Fault;
use super::payload::{Members, wrong};
use crate::attest::json::Json;
use crate::attest::text::shown;
use crate::receipts::arguments::{Arguments, kept};
use crate::receipts::intent::Intent;
use crate::receipts::name::TokenId;

/// Judges the gate's extension of a payload.
pub(super) fn recheck(
    payload: &Members<'_>,
    tokens: &BTreeMap<TokenId, Option<Arc<Intent>>>,
) -> Result<(), Fault> {
    let gate = match payload.get("x_gate") {
        None => return Ok(()),
        Some(Json::Members(gate)) => gate,
        Some(_) => return Err(wrong("x_gate", "is not an object")),
    };
    let denied = decision(payload, gate)?;
    held_against_token(gate, tokens)?;
    match gate.get("intent") {
        None if gate.contains_key("intent_check") => {
            Err(wrong("x_gate", "has an intent_check and no intent"))
        }
        None => Ok(()),
        Some(json) => {
            let intent = Intent::from_json(json)
                .map_err(|error| Fault::Intent(format!("the approved intent: {error}")))?;
            if intent.to_json() != *json {
                return Err(Fault::Intent(
                    "the approved intent is not in normal form".to_owned(),
                ));
            }
            // Break it: exempt what is allowed too; `receipts::fixtures::calendar_versus_archive` fails.
            if denied { Ok(()) } else { judge(gate, &intent) }
        }
    }
}

/// Whether it is a denial: by both words there are for it, which must agree. What is no denial counts as allowed.
fn decision(payload: &Members<'_>, gate: &Members<'_>) -> Result<bool, Fault> {
    let denied = matches!(gate.get("decision"), Some(Json::Text(word)) if word == "DENY");
    let verdict = match payload.get("guardrail_verdict") {
        Some(Json::Text(verdict)) => verdict.as_ref(),
        _ => return Ok(denied),
    };
    // Break it: leave this out; `receipts::forging::a_denial_that_is_clean_is_none` fails.
    let clean = match verdict {
        "CLEAN" | "ALLOW" | "allow" => true,
        "SUSPICIOUS" | "MALICIOUS" | "DENY" | "deny" => false,
        _ => return Ok(denied),
    };
    if denied == clean {
        return Err(wrong(
            "guardrail_verdict",
            "says the opposite of x_gate.decision",
        ));
    }
    Ok(denied)
}

/// Where the token is at hand, the recorded intent is its intent.
fn held_against_token(
    gate: &Members<'_>,
    tokens: &BTreeMap<TokenId, Option<Arc<Intent>>>,
) -> Result<(), Fault> {
    let Some(Json::Text(id)) = gate.get("token_id") else {
        return Ok(());
    };
    let Some(intent) = TokenId::parse(id).ok().and_then(|id| tokens.get(&id)) else {
        return Ok(());
    };
    let approved = intent.as_ref().map(|intent| intent.to_json());
    // Break it: leave this out; `receipts::forging::the_recorded_intent_is_the_tokens` fails.
    if gate.get("intent") != approved.as_ref() {
        let reason = format!("the recorded intent is not that of the token {}", shown(id));
        return Err(Fault::Intent(reason));
    }
    Ok(())
}

fn judge(gate: &Members<'_>, intent: &Intent) -> Result<(), Fault> {
    let refused = |reason: String| Err(Fault::Intent(reason));
    let Some(Json::Members(check)) = gate.get("intent_check") else {
        return refused("the receipt allows under an intent and has no intent_check".to_owned());
    };
    let (Some(Json::Text(tool)), Some(Json::Text(recorded))) =
        (gate.get("tool"), check.get("tool"))
    else {
        return refused("the receipt does not record the tool twice".to_owned());
    };
    if tool != recorded {
        return refused("x_gate.tool and intent_check.tool do not agree".to_owned());
    }
    if !intent.covers(tool) {
        let tool = shown(tool);
        return refused(format!(
            "the tool {tool} is outside intent scope, but was allowed"
        ));
    }
    let Some(fields @ Json::Members(disclosed)) = check.get("satisfied_fields") else {
        return refused("intent_check has no satisfied_fields".to_owned());
    };
    let arguments =
        Arguments::new(kept(fields)).map_err(|error| Fault::Intent(error.to_string()))?;
    let constraints = intent.constraints();
    let constrained = constraints.map(|constraints| arguments.among(constraints.fields()));
    let expected = match &constrained {
        Some(Json::Members(members)) => members.len(),
        _ => 0,
    };
    if expected != disclosed.len() {
        return refused("satisfied_fields discloses what the intent does not constrain".to_owned());
    }
    match constraints.map_or(Ok(()), |constraints| constraints.check(&arguments)) {
        Ok(()) => Ok(()),
        Err(violation) => refused(format!(
            "the disclosed arguments are outside intent scope, but were allowed: {violation}"
        )),
    }
}
