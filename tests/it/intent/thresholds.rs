//! Floors: which numbers are some, whose they are.

use caretaker::intent::{EmbedderId, ThresholdTable, Thresholds};

fn refusal(soft: f64, hard: f64) -> String {
    Thresholds::new(soft, hard).unwrap_err().to_string()
}

#[test]
fn floors_outside_of_cosines_are_refused_in_known_words() {
    assert_eq!(
        refusal(1.5, 0.3),
        "intent_alignment: threshold 1.500 outside [-1,1]"
    );
    assert_eq!(
        refusal(0.5, -1.5),
        "intent_alignment: hard_threshold -1.500 outside [-1,1]"
    );
    assert_eq!(
        refusal(0.3, 0.5),
        "intent_alignment: hard_threshold 0.500 > threshold 0.300 (would starve WARN tier)"
    );
    assert_eq!(
        refusal(1.000_000_1, 0.3),
        "intent_alignment: threshold 1.000 outside [-1,1]"
    );
}

#[test]
fn nan_is_no_threshold() {
    assert_eq!(
        refusal(f64::NAN, 0.3),
        "intent_alignment: threshold NaN outside [-1,1]"
    );
    assert_eq!(
        refusal(0.5, f64::NAN),
        "intent_alignment: hard_threshold NaN outside [-1,1]"
    );
    assert!(Thresholds::new(0.5, f64::NEG_INFINITY).is_err());
}

#[test]
fn zero_and_minus_one_are_floors_like_any_other_and_equal_ones_are_legal() {
    let kept = |soft, hard| {
        let thresholds = Thresholds::new(soft, hard).unwrap();
        (thresholds.soft().micro(), thresholds.hard().micro())
    };
    assert_eq!(kept(0.5, 0.0), (500_000, 0));
    assert_eq!(kept(0.5, -1.0), (500_000, -1_000_000));
    assert_eq!(kept(0.0, 0.0), (0, 0));
    assert_eq!(kept(0.4, 0.4), (400_000, 400_000));
    let (soft, hard) = Thresholds::DEFAULT;
    assert_eq!(kept(soft, hard), (500_000, 300_000));
}

#[test]
fn thresholds_of_one_embedder_are_not_those_of_another() {
    let id = |text: &str| text.parse::<EmbedderId>().unwrap();
    let thresholds = Thresholds::new(0.4, 0.2).unwrap();
    let table = ThresholdTable::new([(id("ollama:nomic-embed-text"), thresholds)]);
    assert_eq!(table.of(&id("ollama:nomic-embed-text")), Ok(thresholds));
    assert_eq!(
        table.of(&id("ollama:other")).unwrap_err().to_string(),
        "intent_alignment: no thresholds for embedder ollama:other: scores of one embedder mean nothing to another; set threshold and hard_threshold, or an entry under thresholds (`caretaker intent calibrate` suggests them)"
    );
}

#[test]
fn ids_of_embedders_are_short_visible_words() {
    for odd in [
        "",
        "openai",
        ":x",
        "openai:",
        "openai:a b",
        "openai:\n",
        "ä:b",
    ] {
        assert!(odd.parse::<EmbedderId>().is_err(), "{odd}");
    }
    assert!(
        format!("a:{}", "x".repeat(199))
            .parse::<EmbedderId>()
            .is_err()
    );
}
