//! Drift: when a task enters it and leaves it again, and that nothing else is told.

use caretaker::intent::{
    DEFAULT_DRIFT_FLOOR, DriftRing, DriftRule, Score, Severity, Transition, TransitionKind,
};
use proptest::prelude::*;

fn refusal(window: i64, floor: f64, run: i64) -> String {
    DriftRule::new(window, floor, run).unwrap_err().to_string()
}

fn score(cosine: f64) -> Option<Score> {
    // NaN stands for a call that was denied without a score.
    Score::from_cosine(cosine)
}

/// The calls, counted from 1, at which something was told.
fn told(rule: &DriftRule, cosines: &[f64]) -> Vec<(usize, Transition)> {
    let mut ring = DriftRing::default();
    let all = cosines.iter().enumerate();
    all.filter_map(|(place, cosine)| Some((place + 1, ring.observe(rule, score(*cosine))?)))
        .collect()
}

fn kinds(rule: &DriftRule, cosines: &[f64]) -> Vec<(usize, &'static str, &'static str)> {
    told(rule, cosines)
        .into_iter()
        .map(|(call, turn)| (call, turn.kind.as_str(), turn.severity.as_str()))
        .collect()
}

#[test]
fn rules_that_could_tell_nothing_are_refused_in_known_words() {
    let messages = [
        refusal(1, 0.35, 0),
        refusal(5, 1.5, 0),
        refusal(5, f64::NAN, 0),
        refusal(5, 0.35, 1),
        refusal(5, 0.35, -1),
        refusal(3, 0.35, 5),
        refusal(1001, 0.35, 0),
    ];
    assert_eq!(
        messages,
        [
            "intent_drift: window 1 < 2 (one score has no trend)",
            "intent_drift: drift_threshold 1.500 outside [-1,1]",
            "intent_drift: drift_threshold NaN outside [-1,1]",
            "intent_drift: monotone_n 1 invalid (must be 0 or ≥ 2)",
            "intent_drift: monotone_n -1 invalid (must be 0 or ≥ 2)",
            "intent_drift: monotone_n 5 > window 3 (only window scores are kept, so it would never fire)",
            "intent_drift: window 1001 > 1000 (no more scores of a task are kept)",
        ]
    );
    assert!(DriftRule::new(3, 0.35, 3).is_ok());
    assert!(DriftRule::new(DriftRule::DEFAULT_WINDOW, DEFAULT_DRIFT_FLOOR, 0).is_ok());
}

#[test]
fn aligned_work_is_silent() {
    let rule = DriftRule::new(3, 0.35, 0).unwrap();
    assert_eq!(told(&rule, &[1.0; 4]), []);
}

#[test]
fn a_mean_below_the_floor_is_told_once_the_window_is_full() {
    let rule = DriftRule::new(3, 0.35, 0).unwrap();
    let told = told(&rule, &[1.0, 0.6, 0.3, 0.1]);
    let entered = Transition {
        kind: TransitionKind::Entered,
        severity: Severity::Mean,
        mean: Score::from_micro(333_333).unwrap(),
        window: 3,
    };
    assert_eq!(told, [(4, entered)]);
    assert_eq!(kinds(&rule, &[-1.0, -1.0]), [], "the window is not full");
}

#[test]
fn a_long_drift_is_told_once_and_its_end_once() {
    let rule = DriftRule::new(2, 0.5, 0).unwrap();
    assert_eq!(
        kinds(&rule, &[1.0, 0.0, 0.0, 0.0, 0.0]),
        [(3, "entered", "mean_below_threshold")]
    );
    // A mean of exactly the floor is not below it.
    assert_eq!(
        kinds(&rule, &[1.0, 0.0, 0.0, 1.0]),
        [
            (3, "entered", "mean_below_threshold"),
            (4, "recovered", "recovered")
        ]
    );
}

#[test]
fn scores_that_fall_one_after_another_are_told_though_each_is_high() {
    let rule = DriftRule::new(5, 0.35, 3).unwrap();
    let falling = [0.9, 0.8, 0.7, 0.6, 0.5];
    assert_eq!(
        kinds(&rule, &falling),
        [(5, "entered", "monotone_decrease")]
    );
    let off = DriftRule::new(5, 0.35, 0).unwrap();
    assert_eq!(kinds(&off, &falling), []);
    // An equal pair, or a call without a score, interrupts the run.
    assert_eq!(kinds(&rule, &[0.9, 0.9, 0.7, 0.6, 0.6]), []);
    assert_eq!(kinds(&rule, &[1.0, 1.0, 0.9, f64::NAN, 0.8]), []);
    let both = DriftRule::new(3, 0.9, 3).unwrap();
    assert_eq!(kinds(&both, &[0.9, 0.8, 0.7]), [(3, "entered", "both")]);
}

#[test]
fn calls_without_a_score_count_as_the_worst_one() {
    let rule = DriftRule::new(3, 0.35, 0).unwrap();
    let told = told(&rule, &[f64::NAN; 3]);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1.mean, Score::LEAST);
}

#[test]
fn a_floor_of_zero_is_kept() {
    let rule = DriftRule::new(2, 0.0, 0).unwrap();
    assert_eq!(kinds(&rule, &[0.0, 0.0]), []);
    assert_eq!(
        kinds(&rule, &[0.0, -0.1]),
        [(2, "entered", "mean_below_threshold")]
    );
}

#[test]
fn a_turn_that_could_not_be_recorded_is_told_again() {
    let rule = DriftRule::new(2, 0.5, 0).unwrap();
    let mut ring = DriftRing::default();
    ring.observe(&rule, score(0.0));
    assert!(ring.observe(&rule, score(0.0)).is_some());
    ring.untold();
    let again = ring.observe(&rule, score(0.0)).unwrap();
    assert_eq!(again.kind, TransitionKind::Entered);
}

fn rules() -> impl Strategy<Value = DriftRule> {
    (2_i64..8, -1.0..=1.0_f64, prop_oneof![Just(0_i64), 2_i64..8])
        .prop_filter_map("a rule", |(window, floor, run)| {
            DriftRule::new(window, floor, run).ok()
        })
}

fn cosines() -> impl Strategy<Value = Vec<f64>> {
    let one = prop_oneof![8 => -1.0..=1.0_f64, 1 => Just(f64::NAN)];
    prop::collection::vec(one, 0..60)
}

proptest! {
    #[test]
    fn events_alternate_whatever_the_scores_are(rule in rules(), cosines in cosines()) {
        let told = told(&rule, &cosines);
        for (place, (call, turn)) in told.iter().enumerate() {
            let expected = if place % 2 == 0 { TransitionKind::Entered } else { TransitionKind::Recovered };
            prop_assert_eq!(turn.kind, expected);
            prop_assert_eq!(turn.severity == Severity::Recovered, expected == TransitionKind::Recovered);
            prop_assert!(*call >= rule.window());
        }
    }

    /// The ring holds nothing that the last `window` scores do not say.
    #[test]
    fn only_the_last_scores_count(rule in rules(), before in cosines(), last in prop::collection::vec(-1.0..=1.0_f64, 8)) {
        let drifts = |cosines: &[f64]| {
            let told = told(&rule, cosines);
            told.last().is_some_and(|(_, turn)| turn.kind == TransitionKind::Entered)
        };
        let all: Vec<f64> = before.into_iter().chain(last.iter().copied()).collect();
        prop_assert_eq!(drifts(&all), drifts(&last));
    }
}
