//! Allow, warn, deny, and the words for it.

use caretaker::intent::{
    Decision, Outage, PromptPlace, Reason, Score, Thresholds, VectorFault, decide,
};
use proptest::prelude::*;

fn verdict(micro: i32, soft: f64, hard: f64) -> (Decision, String) {
    let score = Score::from_micro(micro).unwrap();
    let verdict = decide(Ok(score), Thresholds::new(soft, hard).unwrap());
    (verdict.decision, verdict.reason.to_string())
}

#[test]
fn three_tiers_with_reasons_of_three_decimals() {
    assert_eq!(
        verdict(847_000, 0.5, 0.3),
        (
            Decision::Allow,
            "score 0.847 above threshold 0.500".to_owned()
        )
    );
    assert_eq!(
        verdict(577_350, 0.7, 0.3),
        (
            Decision::Warn,
            "score 0.577 below threshold 0.700".to_owned()
        )
    );
    assert_eq!(
        verdict(0, 0.5, 0.3),
        (
            Decision::Deny,
            "score 0.000 below hard_threshold 0.300".to_owned()
        )
    );
}

#[test]
fn what_is_exactly_at_a_threshold_is_above_it() {
    assert_eq!(verdict(500_000, 0.5, 0.3).0, Decision::Allow);
    assert_eq!(verdict(499_999, 0.5, 0.3).0, Decision::Warn);
    assert_eq!(verdict(300_000, 0.5, 0.3).0, Decision::Warn);
    assert_eq!(verdict(299_999, 0.5, 0.3).0, Decision::Deny);
    assert_eq!(verdict(-1_000_000, 0.5, -1.0).0, Decision::Warn);
    assert_eq!(verdict(0, 0.0, 0.0).0, Decision::Allow);
    assert_eq!(verdict(-1, 0.0, 0.0).0, Decision::Deny);
}

#[test]
fn reasons_hold_no_word_of_a_model_a_user_or_a_provider() {
    let words = |reason: Reason| reason.to_string();
    assert_eq!(
        words(Reason::NoIntent),
        "no stated_intent registered for task (fail-closed)"
    );
    assert_eq!(
        words(Reason::Unavailable(Outage::RateLimited)),
        "embedder unavailable (fail-closed): status 429"
    );
    assert_eq!(
        words(Reason::Vector(VectorFault::Zero)),
        "the embedding is zero (fail-closed)"
    );
    assert_eq!(
        words(Reason::DenyPrompt {
            place: PromptPlace::Intent,
            pattern: 2
        }),
        "stated_intent matches deny_prompts pattern 2"
    );
    assert_eq!(words(Reason::Disabled), "intent_alignment disabled");
}

#[test]
fn every_outage_has_a_code_of_its_own() {
    let all = [
        Outage::Unreachable,
        Outage::Deadline,
        Outage::RateLimited,
        Outage::Refused,
        Outage::Failing,
        Outage::Redirected,
        Outage::Oversized,
        Outage::Malformed,
        Outage::Count,
        Outage::Dimension,
        Outage::NonFinite,
        Outage::Weights,
    ];
    let codes: std::collections::BTreeSet<&str> = all.iter().map(|outage| outage.code()).collect();
    assert_eq!(codes.len(), all.len());
    for outage in all {
        let words = Reason::Unavailable(outage).to_string();
        assert!(
            words.starts_with("embedder unavailable (fail-closed): "),
            "{words}"
        );
    }
}

fn no_score() -> impl Strategy<Value = Reason> {
    prop_oneof![
        Just(Reason::NoIntent),
        Just(Reason::Unavailable(Outage::Unreachable)),
        Just(Reason::Unavailable(Outage::NonFinite)),
        Just(Reason::Vector(VectorFault::Empty)),
        Just(Reason::Vector(VectorFault::Zero)),
        Just(Reason::Vector(VectorFault::NonFinite)),
        (0_usize..9, 0_usize..9)
            .prop_map(|(intent, action)| Reason::Vector(VectorFault::Length { intent, action })),
    ]
}

fn floors() -> impl Strategy<Value = Thresholds> {
    (-1.0..=1.0_f64, -1.0..=1.0_f64).prop_map(|(a, b)| Thresholds::new(a.max(b), a.min(b)).unwrap())
}

proptest! {
    #[test]
    fn whatever_has_no_score_is_denied(reason in no_score(), floors in floors()) {
        let verdict = decide(Err(reason), floors);
        prop_assert_eq!(verdict.decision, Decision::Deny);
        prop_assert_eq!(verdict.score, None);
        prop_assert_eq!(verdict.reason, reason);
    }

    #[test]
    fn a_higher_score_is_never_treated_worse(
        one in -1_000_000..=1_000_000_i32,
        other in -1_000_000..=1_000_000_i32,
        floors in floors(),
    ) {
        let rank = |micro| match decide(Ok(Score::from_micro(micro).unwrap()), floors).decision {
            Decision::Deny => 0,
            Decision::Warn => 1,
            Decision::Allow => 2,
        };
        let (low, high) = (one.min(other), one.max(other));
        prop_assert!(rank(low) <= rank(high));
    }
}
