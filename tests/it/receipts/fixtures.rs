//! The two fixtures of the published extension, each in its four legs: token, gate, receipt, verifier.

use caretaker::receipts::{IssueError, Stage};

use super::desk::{
    ISSUER, NOON, asked, at, gate, grant, issuer, last_payload, receipted, rewritten, said, token,
    verdict, verified,
};

const CALENDAR: &str = r#"{"statement":"Check today's calendar and report conflicts","tools":["calendar_read"],"constraints":{"allowed_values":{"window":["today"]}}}"#;
const RECIPIENTS: &str = r#"{"statement":"Send the minutes to those who were there","tools":["send_email"],"constraints":{"allowed_values":{"to":["alice@corp.example","bob@corp.example"]}}}"#;

/// An intent that approves `calendar_read` for today yields no receipt that allows a five-year `archive_export`.
#[test]
fn calendar_versus_archive() {
    // Token: it says what it is for, and none is minted for another tool.
    let token = token("calendar_read", "{}", Some(CALENDAR));
    let body = String::from_utf8(token.body().to_vec()).unwrap();
    assert!(body.contains(r#""intent":{"constraints":{"allowed_values":{"window":["today"]}},"statement":"Check today's calendar and report conflicts","tools":["calendar_read"]}"#));
    let archive = grant("archive_export", "{}", Some(CALENDAR));
    assert!(matches!(
        issuer(ISSUER).mint(&archive, at(NOON)),
        Err(IssueError::OutsideIntent { .. })
    ));

    // Gate: what was approved is allowed; another tool and another window are denied, and it is said why.
    let gate = gate();
    let today = r#"{"window":"today","detail":"all of it"}"#;
    assert_eq!(
        said(&asked(&gate, &token, &[], "calendar_read", today)),
        "ALLOW"
    );
    let years = r#"{"window":"5y"}"#;
    let other = asked(&gate, &token, &[], "archive_export", years);
    assert_eq!(
        said(&other),
        "tool: token bound to tool calendar_read, called archive_export, which is outside intent scope"
    );
    let wide = asked(&gate, &token, &[], "calendar_read", years);
    assert_eq!(
        said(&wide),
        "intent: arguments outside intent scope: allowed_values: window holds a value that is not allowed"
    );
    // Another program may have minted what we do not: then the gate denies by the intent.
    let foreign = super::forging::unchecked_token("archive_export", CALENDAR);
    let denied = asked(&gate, &foreign, &[], "archive_export", years);
    assert_eq!(
        said(&denied),
        "intent: tool archive_export outside intent scope"
    );
    assert_eq!(denied.denial.unwrap().stage, Stage::Intent);

    // Receipt: the intent as approved, and of the arguments only what it constrains.
    let good = receipted(&gate, &token, "calendar_read", today);
    let said = last_payload(&good);
    assert_eq!(
        said["x_gate"]["intent"],
        serde_json::from_str::<serde_json::Value>(CALENDAR).unwrap()
    );
    assert_eq!(
        said["x_gate"]["intent_check"],
        serde_json::json!({"tool": "calendar_read", "satisfied_fields": {"window": "today"}})
    );
    assert!(!said.to_string().contains("all of it"));

    // Verifier: the good one holds, so does a denial; an ALLOW for the archive does not, although the gate's key signed it.
    assert_eq!(verdict(&verified(&good)), "valid");
    assert_eq!(
        verdict(&verified(&receipted(
            &gate,
            &token,
            "archive_export",
            years
        ))),
        "valid"
    );
    let forged = rewritten(&good, |payload| {
        payload["x_gate"]["tool"] = "archive_export".into();
        payload["x_gate"]["intent_check"]["tool"] = "archive_export".into();
    });
    assert_eq!(
        verdict(&verified(&forged)),
        "line 2: the tool archive_export is outside intent scope, but was allowed"
    );
    let years = rewritten(&good, |payload| {
        payload["x_gate"]["intent_check"]["satisfied_fields"]["window"] = "5y".into();
    });
    assert_eq!(
        verdict(&verified(&years)),
        "line 2: the disclosed arguments are outside intent scope, but were allowed: allowed_values: window holds a value that is not allowed"
    );
}

/// An intent that names two recipients yields no receipt that allows a third.
#[test]
fn recipient_allowlist() {
    // Token.
    let token = token(
        "send_email",
        r#"{"required_present":["subject"]}"#,
        Some(RECIPIENTS),
    );
    assert!(token.claims().intent.is_some());

    // Gate: after the token's own constraints, by name.
    let gate = gate();
    let ask = |arguments: &str| said(&asked(&gate, &token, &[], "send_email", arguments));
    assert_eq!(
        ask(r#"{"to":"alice@corp.example","subject":"Minutes"}"#),
        "ALLOW"
    );
    assert_eq!(
        ask(r#"{"to":["alice@corp.example","bob@corp.example"],"subject":"Minutes"}"#),
        "ALLOW"
    );
    let refused = "intent: arguments outside intent scope: allowed_values: to holds a value that is not allowed";
    assert_eq!(
        ask(r#"{"to":"eve@evil.example","subject":"Minutes"}"#),
        refused
    );
    assert_eq!(
        ask(r#"{"to":["alice@corp.example","eve@evil.example"],"subject":"Minutes"}"#),
        refused
    );
    assert_eq!(
        ask(r#"{"subject":"Minutes"}"#),
        "intent: arguments outside intent scope: allowed_values: to is absent from the call"
    );
    assert_eq!(
        ask(r#"{"to":"eve@evil.example"}"#),
        "constraints: constraint violated: required_present: subject is absent from the call"
    );

    // Receipt: of an ALLOW and of a DENY.
    let good = receipted(
        &gate,
        &token,
        "send_email",
        r#"{"to":"bob@corp.example","subject":"Minutes","body":"long"}"#,
    );
    assert_eq!(
        last_payload(&good)["x_gate"]["intent_check"],
        serde_json::json!({"tool": "send_email", "satisfied_fields": {"to": "bob@corp.example"}})
    );
    let denied = receipted(
        &gate,
        &token,
        "send_email",
        r#"{"to":"eve@evil.example","subject":"Minutes"}"#,
    );
    let said = last_payload(&denied);
    assert_eq!(said["x_gate"]["decision"], "DENY");
    assert_eq!(said["x_gate"]["stage"], "intent");
    assert_eq!(
        said["x_gate"]["intent_check"]["satisfied_fields"]["to"],
        "eve@evil.example"
    );

    // Verifier: the denial is evidence that the gate worked; an ALLOW that discloses a third recipient is none.
    assert_eq!(verdict(&verified(&good)), "valid");
    assert_eq!(verdict(&verified(&denied)), "valid");
    let forged = rewritten(&good, |payload| {
        payload["x_gate"]["intent_check"]["satisfied_fields"]["to"] = "eve@evil.example".into();
    });
    assert_eq!(
        verdict(&verified(&forged)),
        "line 2: the disclosed arguments are outside intent scope, but were allowed: allowed_values: to holds a value that is not allowed"
    );
}
