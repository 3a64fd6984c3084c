//! What holds of all tokens and calls, not only of those somebody thought of.

use caretaker::receipts::{Decision, Grant, Intent, Narrowing, Token};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::desk::{
    GATE, ISSUER, NOON, agent, asked, at, constraints, gate, issuer, json as strict, last_payload,
    receipted, trusting, verdict, verified, verified_with,
};

const FIELDS: [&str; 3] = ["a", "b", "caf\u{e9}"];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..4_i64).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        prop_oneof![
            Just("src/"),
            Just("src/x"),
            Just("src/../x"),
            Just("x"),
            Just("")
        ]
        .prop_map(Value::from),
    ]
}

/// Constraints over few fields and values, so that calls meet them often.
fn limits() -> impl Strategy<Value = Value> {
    let field = prop::sample::select(&FIELDS[..]);
    let lists = prop::collection::vec(scalar(), 0..4);
    let rule = (0..7_u8, field.clone(), lists, 0..4_i64, field).prop_map(
        |(kind, field, list, bound, other)| match kind {
            0 => ("allowed_values", json!({field: list})),
            1 => ("forbidden_values", json!({field: list})),
            2 => ("max_value", json!({field: bound})),
            3 => ("min_value", json!({field: bound})),
            4 => {
                let prefix = ["", "src", "src/", "src/x"][usize::try_from(bound).unwrap()];
                ("starts_with", json!({field: prefix}))
            }
            5 => ("required_present", json!([field])),
            _ => ("forbidden_field_combinations", json!([[field, other]])),
        },
    );
    prop::collection::vec(rule, 0..3).prop_map(|rules| {
        let mut out = json!({});
        for (kind, value) in rules {
            out[kind] = value;
        }
        out
    })
}

fn purpose() -> impl Strategy<Value = Option<Value>> {
    let tools = prop::option::of(prop::sample::subsequence(vec!["Bash", "Edit"], 1..=2));
    let bound = (tools, prop::option::of(limits())).prop_map(|(tools, limits)| {
        let mut out = json!({"statement": "x"});
        if let Some(tools) = tools {
            out["tools"] = json!(tools);
        }
        if let Some(limits) = limits {
            out["constraints"] = limits;
        }
        out
    });
    prop::option::of(bound)
}

fn call() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        4 => scalar(),
        1 => prop::collection::vec(scalar(), 0..3).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => scalar().prop_map(|inner| json!({"a": inner})),
    ];
    // Also the other spelling of the same name.
    let name = prop::sample::select(vec!["a", "b", "caf\u{e9}", "cafe\u{301}", "z"]);
    prop::collection::btree_map(name, value, 0..4)
        .prop_map(|arguments| json!(arguments).to_string())
}

fn minted(limits: &Value, purpose: Option<&Value>) -> Option<Token> {
    let purpose = purpose.map(|purpose| Intent::from_json(&strict(&purpose.to_string())).unwrap());
    let grant = Grant {
        agent: agent("agent:fixer"),
        tool: caretaker::receipts::ToolName::parse("Edit").unwrap(),
        constraints: constraints(&limits.to_string()),
        intent: purpose,
        ttl_seconds: 3_600,
    };
    issuer(ISSUER).mint(&grant, at(NOON)).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    /// Attenuation never widens: what a child allows, each of its ancestors allows.
    #[test]
    fn whatever_a_child_allows_its_parents_allow(
        own in limits(), purposes in [purpose(), purpose(), purpose()], extras in [limits(), limits()], calls in prop::collection::vec(call(), 1..6)
    ) {
        let Some(root) = minted(&own, purposes[0].as_ref()) else { return Ok(()) };
        let mut line = vec![root];
        for (extra, purpose) in extras.iter().zip(&purposes[1..]) {
            let narrowing = Narrowing {
                constraints: constraints(&extra.to_string()),
                intent: purpose.as_ref().map(|purpose| Intent::from_json(&strict(&purpose.to_string())).unwrap()),
                ..Narrowing::default()
            };
            let child = issuer(ISSUER).attenuate(line.last().unwrap(), &trusting(&[]), &narrowing, at(NOON));
            // What would be wider is refused, and then there is no child.
            line.extend(child.ok());
        }
        let gate = gate();
        for call in &calls {
            let allows = |token: &Token| asked(&gate, token, &line, "Edit", call).decision() == Decision::Allow;
            let answers: Vec<bool> = line.iter().map(allows).collect();
            prop_assert!(answers.is_sorted_by(|wider, narrower| wider >= narrower), "{answers:?} for {call}");
            // What the issuer made, the gate takes for a narrowing.
            for token in &line {
                let checked = asked(&gate, token, &line, "Edit", call);
                let stage = checked.denial.map(|denial| denial.stage.word());
                prop_assert_ne!(stage, Some("chain"));
            }
        }
    }

    /// The verifier finds nothing wrong with what the gate wrote, and nothing right with its opposite.
    #[test]
    fn gate_and_verifier_agree(own in limits(), purpose in purpose(), tool in prop::sample::select(vec!["Edit", "Bash"]), call in call()) {
        let Some(token) = minted(&own, purpose.as_ref()) else { return Ok(()) };
        let gate = gate();
        let file = receipted(&gate, &token, tool, &call);
        prop_assert_eq!(verdict(&verified(&file)), "valid");
        let tokens = [token.clone()];
        let with_token = verified_with(&file, &trusting(&[GATE]), &tokens, &super::desk::Expectation::default());
        prop_assert_eq!(verdict(&with_token), "valid");

        // A gate that allows what this one denied by the intent alone is found out; and no other is.
        let said = last_payload(&file);
        if said["x_gate"]["decision"] == "DENY" {
            let turned = super::desk::rewritten(&file, |payload| {
                payload["x_gate"]["decision"] = "ALLOW".into();
                payload["guardrail_verdict"] = "CLEAN".into();
            });
            let found = !verified(&turned).valid();
            let by_intent = said["x_gate"]["stage"] == "intent";
            let outside = token.claims().intent.as_ref().is_some_and(|intent| {
                let given = caretaker::receipts::GivenArguments::read(call.as_bytes());
                let broken = |arguments: &caretaker::receipts::Arguments<'_>| {
                    intent.constraints().is_some_and(|limits| limits.check(arguments).is_err())
                };
                // What cannot be read discloses nothing.
                let nothing = caretaker::receipts::Arguments::default();
                !intent.covers(tool) || broken(given.judged.as_ref().unwrap_or(&nothing))
            });
            prop_assert!(!by_intent || found, "{turned}");
            prop_assert_eq!(found, outside);
        }
    }

    /// The narrower of two allows nothing that the wider does not.
    #[test]
    fn narrower_constraints_allow_less(own in limits(), other in limits(), call in call()) {
        let (own, other) = (constraints(&own.to_string()), constraints(&other.to_string()));
        let Ok(arguments) = caretaker::receipts::Arguments::new(strict(&call)) else { return Ok(()) };
        if own.narrows(&other).is_ok() && own.check(&arguments).is_ok() {
            prop_assert!(other.check(&arguments).is_ok());
        }
        if let Ok(both) = own.with(&other) {
            prop_assert!(both.narrows(&own).is_ok() && both.narrows(&other).is_ok());
            let each = own.check(&arguments).is_ok() && other.check(&arguments).is_ok();
            prop_assert_eq!(both.check(&arguments).is_ok(), each);
        }
    }
}
