//! Narrower tokens from wider ones. What is wider is refused, by the issuer and again at the gate.

use caretaker::receipts::{IssueError, Narrowing, Stage, Token};
use serde_json::{Value, json};

use super::desk::{
    ISSUER, NOON, STRANGER, agent, asked, asked_by, at, constraints, gate, intent, issuer, said,
    token, trusting,
};
use super::forging::signed_token;

const LIMITS: &str = r#"{"allowed_values":{"to":["ada","bob"]},"forbidden_values":{"cc":["eve"]},"max_value":{"amount":10},"min_value":{"amount":1},"starts_with":{"path":"src/"},"required_present":["subject"],"forbidden_field_combinations":[["bcc","to"]]}"#;
const PURPOSE: &str = r#"{"statement":"Mend the parser","tools":["Edit","Write"],"constraints":{"starts_with":{"path":"src/"}}}"#;

fn parent() -> Token {
    token("Edit", LIMITS, Some(PURPOSE))
}

fn narrowed(parent: &Token, narrowing: &Narrowing) -> Result<Token, IssueError> {
    issuer(ISSUER).attenuate(parent, &trusting(&[]), narrowing, at(NOON + 10))
}

fn limited(extra: &str) -> Narrowing {
    Narrowing {
        constraints: constraints(extra),
        ..Narrowing::default()
    }
}

fn purposed(text: &str) -> Narrowing {
    Narrowing {
        intent: Some(intent(text)),
        ..Narrowing::default()
    }
}

#[test]
fn a_child_may_do_less_and_its_parent_is_its_proof() {
    let parent = parent();
    let narrowing = Narrowing {
        agent: Some(agent("agent:fixer.tests")),
        constraints: constraints(
            r#"{"allowed_values":{"to":["ada"]},"max_value":{"amount":5},"starts_with":{"path":"src/parser/"}}"#,
        ),
        ttl_seconds: Some(60),
        intent: Some(intent(
            r#"{"statement":"Mend the parser's tests","tools":["Edit"],"constraints":{"starts_with":{"path":"src/parser/"},"max_value":{"amount":3}}}"#,
        )),
    };
    let child = narrowed(&parent, &narrowing).unwrap();
    assert_eq!(child.claims().expires_at, NOON + 70);
    let call = r#"{"to":"ada","amount":3,"path":"src/parser/a.rs","subject":"x"}"#;
    let gate = gate();
    let chain = [parent.clone()];
    assert_eq!(said(&asked(&gate, &child, &chain, "Edit", call)), "ALLOW");
    let more = call.replace('3', "5");
    assert!(said(&asked(&gate, &child, &chain, "Edit", &more)).starts_with("intent: "));
    assert_eq!(said(&asked(&gate, &parent, &[], "Edit", &more)), "ALLOW");
}

#[test]
fn a_child_that_asks_for_more_is_refused() {
    let parent = parent();
    let told: Vec<String> = [
        limited(r#"{"allowed_values":{"to":["ada","eve"]}}"#),
        limited(r#"{"allowed_values":{"to":["eve"]}}"#),
        limited(r#"{"max_value":{"amount":99}}"#),
        limited(r#"{"min_value":{"amount":0}}"#),
        limited(r#"{"starts_with":{"path":""}}"#),
        limited(r#"{"starts_with":{"path":"docs/"}}"#),
        purposed(r#"{"statement":"x"}"#),
        purposed(r#"{"statement":"x","tools":["Edit","Bash"],"constraints":{"starts_with":{"path":"src/"}}}"#),
        purposed(r#"{"statement":"x","tools":["Edit"]}"#),
        purposed(r#"{"statement":"x","tools":["Edit"],"constraints":{"starts_with":{"path":"s"}}}"#),
        purposed(r#"{"statement":"x","tools":["Write"],"constraints":{"starts_with":{"path":"src/"}}}"#),
        Narrowing { agent: Some(agent("agent:fixer-evil")), ..Narrowing::default() },
        Narrowing { agent: Some(agent("agent:fix")), ..Narrowing::default() },
        Narrowing { ttl_seconds: Some(3_600), ..Narrowing::default() },
        Narrowing { ttl_seconds: Some(0), ..Narrowing::default() },
        Narrowing { ttl_seconds: Some(-60), ..Narrowing::default() },
    ]
    .iter()
    .map(|narrowing| narrowed(&parent, narrowing).unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn what_is_added_does_not_take_away_what_is_there() {
    let child = narrowed(
        &parent(),
        &limited(r#"{"forbidden_values":{"cc":["mallory"]},"required_present":["body"],"forbidden_field_combinations":[["a","b"]],"max_value":{"size":1}}"#),
    )
    .unwrap();
    let written =
        caretaker::receipts::canonical::to_canonical(&child.claims().constraints.to_json());
    assert_eq!(
        String::from_utf8(written).unwrap(),
        r#"{"allowed_values":{"to":["ada","bob"]},"forbidden_field_combinations":[["a","b"],["bcc","to"]],"forbidden_values":{"cc":["eve","mallory"]},"max_value":{"amount":10,"size":1},"min_value":{"amount":1},"required_present":["body","subject"],"starts_with":{"path":"src/"}}"#
    );
}

#[test]
fn another_spelling_of_a_field_gets_round_nothing() {
    let parent = token(
        "Edit",
        "{\"max_value\":{\"caf\u{e9}\":1},\"required_present\":[\"caf\u{e9}\"]}",
        None,
    );
    assert!(narrowed(&parent, &limited("{\"max_value\":{\"cafe\u{301}\":9}}")).is_err());
    assert!(
        narrowed(
            &parent,
            &limited("{\"required_present\":[\"cafe\u{301}\"]}")
        )
        .is_err()
    );
}

#[test]
fn a_child_inherits_the_intent() {
    let parent = parent();
    let child = narrowed(&parent, &Narrowing::default()).unwrap();
    assert_eq!(child.claims().intent, parent.claims().intent);
    assert_eq!(child.claims().parent.as_ref(), Some(parent.id()));
}

#[test]
fn a_parent_without_an_intent_may_have_a_child_with_one() {
    let parent = token("Edit", "{}", None);
    let child = narrowed(&parent, &purposed(PURPOSE)).unwrap();
    assert!(child.claims().intent.is_some());
    // The tool is held against it as when minting.
    let other = purposed(r#"{"statement":"x","tools":["Bash"]}"#);
    assert!(matches!(
        narrowed(&parent, &other),
        Err(IssueError::OutsideIntent { .. })
    ));
}

/// A child that another program signed, as `change` makes it of the one we would sign.
fn hostile_child(parent: &Token, change: impl FnOnce(&mut Value)) -> Token {
    let child = narrowed(parent, &Narrowing::default()).unwrap();
    let mut body: Value = serde_json::from_slice(child.body()).unwrap();
    change(&mut body);
    signed_token(body, ISSUER)
}

#[test]
fn a_wider_child_is_denied_again_at_the_gate() {
    let parent = token(
        "Edit",
        r#"{"max_value":{"amount":10}}"#,
        Some(r#"{"statement":"x","tools":["Edit"],"constraints":{"max_value":{"amount":10}}}"#),
    );
    let changes: [fn(&mut Value); 8] = [
        |body| body["constraints"]["max_value"]["amount"] = 99.into(),
        |body| body["constraints"] = json!({}),
        |body| body["intent"]["constraints"]["max_value"]["amount"] = 99.into(),
        |body| body["intent"]["tools"] = json!(["Bash", "Edit"]),
        |body| {
            body["intent"].as_object_mut().unwrap().remove("tools");
        },
        |body| body["expires_at"] = (NOON + 9_999).into(),
        |body| body["not_before"] = (NOON - 1).into(),
        |body| body["agent_id"] = "agent:fix".into(),
    ];
    let gate = gate();
    let told: Vec<String> = changes
        .into_iter()
        .map(|change| {
            let child = hostile_child(&parent, change);
            let checked = asked(
                &gate,
                &child,
                std::slice::from_ref(&parent),
                "Edit",
                r#"{"amount":1}"#,
            );
            assert_eq!(checked.denial.as_ref().unwrap().stage, Stage::Chain);
            said(&checked).replace(parent.id().as_str(), "PARENT")
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_child_that_drops_a_constraint_is_wider() {
    let all = constraints(LIMITS);
    for kind in [
        "allowed_values",
        "forbidden_values",
        "max_value",
        "min_value",
        "starts_with",
        "required_present",
        "forbidden_field_combinations",
    ] {
        let mut fewer: Value = serde_json::from_str(LIMITS).unwrap();
        fewer.as_object_mut().unwrap().remove(kind);
        let fewer = constraints(&fewer.to_string());
        assert!(all.narrows(&fewer).is_ok(), "{kind}");
        let refused = fewer.narrows(&all).unwrap_err();
        assert_eq!(refused.kind.name(), kind);
    }
}

#[test]
fn a_child_never_drops_an_intent() {
    let parent = parent();
    let child = hostile_child(&parent, |body| {
        body.as_object_mut().unwrap().remove("intent");
    });
    let call = r#"{"to":"ada","amount":3,"path":"src/a","subject":"x"}"#;
    let told = said(&asked(
        &gate(),
        &child,
        std::slice::from_ref(&parent),
        "Edit",
        call,
    ));
    assert!(
        told.contains("the parent has an intent and the child has none"),
        "{told}"
    );
}

#[test]
fn a_parent_that_is_not_proven_has_no_children() {
    let parent = parent();
    let other = issuer(STRANGER);
    // Another issuer says whose signature it believes.
    assert!(matches!(
        other.attenuate(&parent, &trusting(&[]), &Narrowing::default(), at(NOON)),
        Err(IssueError::ParentUnproven { .. })
    ));
    let child = other
        .attenuate(
            &parent,
            &trusting(&[ISSUER]),
            &Narrowing::default(),
            at(NOON),
        )
        .unwrap();
    let both = caretaker::receipts::Gate::new(
        trusting(&[ISSUER, STRANGER]),
        caretaker::receipts::Revocations::default(),
    );
    let call = (
        None,
        "Edit",
        r#"{"to":"ada","amount":3,"path":"src/a","subject":"x"}"#,
    );
    assert_eq!(
        said(&asked_by(
            &both,
            &child,
            std::slice::from_ref(&parent),
            call,
            NOON
        )),
        "ALLOW"
    );

    let mut changed: Value = serde_json::from_str(&parent.to_text()).unwrap();
    changed["constraints"] = json!({});
    let changed = Token::parse(changed.to_string().as_bytes()).unwrap();
    assert!(matches!(
        narrowed(&changed, &Narrowing::default()),
        Err(IssueError::ParentUnproven { .. })
    ));
    let renamed = parent
        .to_text()
        .replace(parent.id().as_str(), "cap:0123456789abcdef01234567");
    let renamed = Token::parse(renamed.as_bytes()).unwrap();
    assert!(matches!(
        narrowed(&renamed, &Narrowing::default()),
        Err(IssueError::Parent { .. })
    ));
    let late = issuer(ISSUER).attenuate(
        &parent,
        &trusting(&[]),
        &Narrowing::default(),
        at(NOON + 3_600),
    );
    assert!(matches!(late, Err(IssueError::ParentExpired { .. })));
}
