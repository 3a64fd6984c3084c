//! What is believed of an answer.

use caretaker::embedder::http::answer::{AnswerError, read};
use caretaker::embedder::{MOST_DIMENSIONS, MOST_TEXTS};
use caretaker::intent::Outage;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::server::openai;

fn refused(answer: &str, asked: usize) -> AnswerError {
    read(answer.as_bytes(), asked, None).unwrap_err()
}

fn taken(answer: &Value, asked: usize) -> Vec<Vec<f32>> {
    read(answer.to_string().as_bytes(), asked, None).unwrap()
}

#[test]
fn vectors_are_whose_index_they_carry() {
    let answer = openai(&[(1, vec![0.0, 1.0]), (0, vec![1.0, 0.0])]);
    assert_eq!(taken(&answer, 2), [[1.0, 0.0], [0.0, 1.0]]);
    // Where none carries any, the order counts.
    let plain = json!({"data": [{"embedding": [1]}, {"embedding": [2.5]}]});
    assert_eq!(taken(&plain, 2), [[1.0], [2.5]]);
}

#[test]
fn an_index_that_is_doubled_missing_or_beyond_is_refused() {
    for (first, second) in [
        ("0", "0"),
        ("0", "2"),
        ("0", "null"),
        ("1", "18446744073709551615"),
    ] {
        let answer = format!(
            r#"{{"data":[{{"index":{first},"embedding":[1]}},{{"index":{second},"embedding":[1]}}]}}"#
        );
        assert_eq!(
            refused(&answer, 2),
            AnswerError::Index(1),
            "{first} {second}"
        );
    }
    let negative = r#"{"data":[{"index":-1,"embedding":[1]}]}"#;
    assert_eq!(refused(negative, 1).outage(), Outage::Malformed);
}

#[test]
fn another_number_of_vectors_is_refused() {
    let one = openai(&[(0, vec![1.0])]).to_string();
    assert_eq!(refused(&one, 2), AnswerError::Count { asked: 2, found: 1 });
    let none = r#"{"data":[]}"#;
    assert_eq!(refused(none, 1).outage(), Outage::Count);
    let two = openai(&[(0, vec![1.0]), (1, vec![1.0])]).to_string();
    assert_eq!(refused(&two, 1), AnswerError::Count { asked: 1, found: 2 });
}

#[test]
fn another_dimension_is_refused() {
    let uneven = openai(&[(0, vec![1.0, 0.0]), (1, vec![1.0])]).to_string();
    let error = refused(&uneven, 2);
    assert_eq!(
        error,
        AnswerError::Dimension {
            expected: 2,
            found: 1
        }
    );
    let short = openai(&[(0, vec![1.0, 0.0])]).to_string();
    let error = read(short.as_bytes(), 1, Some(3)).unwrap_err();
    assert_eq!(error.outage(), Outage::Dimension);
    // An empty one would be the dimension of all that follow.
    let empty = openai(&[(0, vec![])]).to_string();
    assert_eq!(refused(&empty, 1), AnswerError::Empty);
}

#[test]
fn null_and_numbers_beyond_f32_are_refused() {
    for number in ["null", "1e39", "-3.5e38"] {
        let answer = format!(r#"{{"data":[{{"index":0,"embedding":[0.5,{number}]}}]}}"#);
        assert_eq!(refused(&answer, 1), AnswerError::NonFinite, "{number}");
    }
    // Words that JSON does not have, and numbers that it has and nobody holds.
    for number in ["NaN", "Infinity", "1e999", "\"0.5\"", "true", "[0.5]"] {
        let answer = format!(r#"{{"data":[{{"index":0,"embedding":[0.5,{number}]}}]}}"#);
        assert_eq!(refused(&answer, 1).outage(), Outage::Malformed, "{number}");
    }
}

#[test]
fn what_is_no_answer_is_refused_without_being_repeated() {
    for garbage in [
        "",
        "<html>secret",
        "{}",
        r#"{"data":{}}"#,
        r#"{"data":[1]}"#,
        r#"{"error":{"message":"secret"}}"#,
        r#"{"data":[],"data":[{"embedding":[1]}]}"#,
        "[[[[[[",
    ] {
        let error = refused(garbage, 1);
        assert_eq!(error.outage(), Outage::Malformed, "{garbage}");
        assert!(!error.to_string().contains("secret"));
    }
}

#[test]
fn no_more_is_read_than_was_asked_for() {
    let wide = format!("[{}1]", "1,".repeat(MOST_DIMENSIONS));
    let answer = format!(r#"{{"data":[{{"embedding":{wide}}}]}}"#);
    assert_eq!(refused(&answer, 1).outage(), Outage::Malformed);
    let item = r#"{"embedding":[1]}"#;
    let many = format!(
        r#"{{"data":[{}{item}]}}"#,
        format!("{item},").repeat(MOST_TEXTS)
    );
    assert_eq!(refused(&many, 1).outage(), Outage::Malformed);
}

proptest! {
    #[test]
    fn whatever_order_they_stand_in_each_text_gets_its_vector(
        order in (1_usize..20).prop_flat_map(|count| Just((0..count).collect::<Vec<_>>()).prop_shuffle()),
    ) {
        let count = u8::try_from(order.len()).unwrap();
        let vectors: Vec<(usize, Vec<f64>)> = order
            .iter()
            .map(|index| (*index, vec![f64::from(u8::try_from(*index).unwrap()), 1.0]))
            .collect();
        let answer = taken(&openai(&vectors), order.len());
        let expected: Vec<Vec<f32>> = (0..count).map(|index| vec![f32::from(index), 1.0]).collect();
        prop_assert_eq!(answer, expected);
    }

    #[test]
    fn what_is_taken_is_finite_and_even(bytes in prop::collection::vec(any::<u8>(), 0..300), asked in 0_usize..4) {
        if let Ok(vectors) = read(&bytes, asked, None) {
            prop_assert_eq!(vectors.len(), asked);
            prop_assert!(vectors.iter().flatten().all(|number| number.is_finite()));
        }
    }
}
