//! Cosines, and vectors that have none.

use caretaker::intent::{
    EMBEDDED_BYTES, Embedding, Score, VectorFault, action_text, embedded_part, similarity,
};
use proptest::prelude::*;

fn vector(values: &[f32]) -> Embedding {
    Embedding::new(values.to_vec()).unwrap()
}

fn score(left: &[f32], right: &[f32]) -> i32 {
    similarity(&vector(left), &vector(right)).unwrap().micro()
}

#[test]
fn directions_are_compared_and_lengths_are_not() {
    assert_eq!(score(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), 1_000_000);
    assert_eq!(score(&[1.0, 0.0], &[0.0, 1.0]), 0);
    assert_eq!(score(&[1.0, -2.0], &[-1.0, 2.0]), -1_000_000);
    assert_eq!(score(&[1.0, 2.0, 3.0], &[100.0, 200.0, 300.0]), 1_000_000);
    // One axis against the diagonal of a cube: 0.57735…
    assert_eq!(score(&[1.0, 0.0, 0.0], &[1.0, 1.0, 1.0]), 577_350);
    // As large and as small as the numbers get.
    assert_eq!(
        score(&[f32::MAX, f32::MAX], &[f32::MAX, f32::MAX]),
        1_000_000
    );
    let least = f32::from_bits(1);
    assert_eq!(score(&[least, 0.0], &[least, 0.0]), 1_000_000);
}

#[test]
fn each_fault_of_a_vector_is_a_denial_with_its_own_code() {
    let fault = |values: &[f32]| Embedding::new(values.to_vec()).unwrap_err();
    assert_eq!(fault(&[]), VectorFault::Empty);
    assert_eq!(fault(&[0.0, -0.0]), VectorFault::Zero);
    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(fault(&[1.0, odd]), VectorFault::NonFinite);
    }
    let length = similarity(&vector(&[1.0, 0.0]), &vector(&[1.0, 0.0, 0.0])).unwrap_err();
    assert_eq!(
        length,
        VectorFault::Length {
            intent: 2,
            action: 3
        }
    );
    let codes = [
        VectorFault::Empty,
        VectorFault::Zero,
        VectorFault::NonFinite,
        length,
    ]
    .map(VectorFault::code);
    assert_eq!(
        codes,
        [
            "vector-empty",
            "vector-zero",
            "vector-non-finite",
            "vector-length"
        ]
    );
}

#[test]
fn scores_are_millionths_with_halves_to_the_even_one_and_show_three_decimals() {
    let micro = |cosine| Score::from_cosine(cosine).map(Score::micro);
    assert_eq!(micro(0.000_000_5), Some(0));
    assert_eq!(micro(0.000_001_5), Some(2));
    assert_eq!(micro(1.000_000_9), Some(1_000_000));
    assert_eq!(micro(-1.1), Some(-1_000_000));
    assert_eq!(micro(f64::NAN), None);
    assert_eq!(micro(f64::INFINITY), None);
    let shown = |micro| Score::from_micro(micro).unwrap().to_string();
    assert_eq!(shown(847_123), "0.847");
    assert_eq!(shown(500_000), "0.500");
    assert_eq!(shown(499_500), "0.500");
    assert_eq!(shown(500_500), "0.500");
    assert_eq!(shown(501_500), "0.502");
    assert_eq!(shown(-1_000_000), "-1.000");
    assert_eq!(shown(-400), "0.000");
    assert_eq!(shown(-600), "-0.001");
    assert_eq!(Score::from_micro(1_000_001), None);
}

#[test]
fn an_action_is_its_description_and_its_arguments_as_they_came() {
    assert_eq!(
        action_text("fn_42", Some("Read a file"), "{ \"path\":\"a\" }"),
        "Read a file\n\nargs: { \"path\":\"a\" }"
    );
    assert_eq!(action_text("fn_42", None, "{}"), "fn_42\n\nargs: {}");
    assert_eq!(action_text("fn_42", Some(" \n"), ""), "fn_42\n\nargs: ");
}

#[test]
fn of_a_long_text_whole_characters_are_embedded() {
    assert_eq!(embedded_part("short"), "short");
    let long = format!("{}ä tail", "x".repeat(EMBEDDED_BYTES - 1));
    assert_eq!(embedded_part(&long).len(), EMBEDDED_BYTES - 1);
}

fn any_f32() -> impl Strategy<Value = f32> {
    prop_oneof![
        6 => -10.0_f32..10.0,
        1 => any::<u32>().prop_map(f32::from_bits),
        1 => prop_oneof![Just(0.0), Just(f32::NAN), Just(f32::INFINITY), Just(f32::MAX)],
    ]
}

proptest! {
    #[test]
    fn no_vector_that_is_not_finite_ever_has_a_score(
        mut values in prop::collection::vec(any_f32(), 1..40),
        place in any::<prop::sample::Index>(),
        odd in prop_oneof![Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY)],
    ) {
        let place = place.index(values.len());
        values[place] = odd;
        prop_assert_eq!(Embedding::new(values), Err(VectorFault::NonFinite));
        prop_assert_eq!(Score::from_cosine(f64::from(odd)), None);
    }

    #[test]
    fn scores_are_symmetric_bounded_and_those_of_a_plain_sum(
        pairs in prop::collection::vec((any_f32(), any_f32()), 1..80),
    ) {
        let (left, right): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let embeddings = (Embedding::new(left.clone()), Embedding::new(right.clone()));
        if let (Ok(one), Ok(other)) = embeddings {
            let score = similarity(&one, &other).unwrap();
            prop_assert_eq!(score, similarity(&other, &one).unwrap());
            prop_assert_eq!(similarity(&one, &one).unwrap(), Score::MOST);
            let sum = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            };
            let plain = sum(&left, &right) / (sum(&left, &left).sqrt() * sum(&right, &right).sqrt());
            prop_assert!((score.cosine() - plain).abs() < 1e-6 + 1e-9, "{} {}", score.cosine(), plain);
        }
    }
}
