//! The quick reading of statements takes what the strict one takes, and nothing else.

use std::sync::LazyLock;

use caretaker::attest::Statement;
use proptest::prelude::*;

use super::examples::examples;

/// The bytes of every kind of statement; making them takes longer than reading them.
static WRITTEN: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    examples()
        .iter()
        .map(|example| example.draft().unwrap())
        .collect()
});

/// Bytes with white space behind them are left to the strict reading, which passes it over.
fn strictly(bytes: &[u8]) -> Result<Statement, String> {
    let mut bytes = bytes.to_vec();
    bytes.push(b' ');
    Statement::parse(&bytes).map_err(|error| error.to_string())
}

fn quickly(bytes: &[u8]) -> Result<Statement, String> {
    Statement::parse(bytes).map_err(|error| error.to_string())
}

/// Break it: take long numbers (`json::exact`).
#[test]
fn what_is_read_exactly_is_what_is_read_strictly() {
    let mut bent = 0;
    for statement in examples() {
        let bytes = String::from_utf8(statement.draft().unwrap()).unwrap();
        assert_eq!(quickly(bytes.as_bytes()), strictly(bytes.as_bytes()));
        // Every number in turn beyond what a double holds.
        for (place, _) in bytes
            .match_indices("\":")
            .filter(|(place, _)| bytes[place + 2..].starts_with(|c: char| c.is_ascii_digit()))
        {
            let start = place + 2;
            let digits = bytes[start..]
                .chars()
                .take_while(char::is_ascii_digit)
                .count();
            for number in [
                "9007199254740993",
                "9007199254740992",
                "18446744073709551615",
                "9007199254740991",
            ] {
                let text = format!("{}{number}{}", &bytes[..start], &bytes[start + digits..]);
                assert_eq!(
                    quickly(text.as_bytes()).is_ok(),
                    strictly(text.as_bytes()).is_ok(),
                    "{text}"
                );
                if number != "9007199254740991" {
                    assert!(quickly(text.as_bytes()).is_err(), "{text}");
                }
                bent += 1;
            }
        }
    }
    assert!(bent > 40, "{bent}");
}

/// What looks like the member that names the kind may stand in a string before it.
///
/// Break it: do not compare the kind that was guessed with the one that was read (`Source::wire`).
#[test]
fn what_stands_in_a_string_is_not_the_kind() {
    let examples = examples();
    for statement in &examples {
        let bytes = String::from_utf8(statement.draft().unwrap()).unwrap();
        for other in &examples {
            let uri = |statement: &Statement| statement.predicate_type().uri().to_owned();
            let text = bytes.replace(&uri(statement), &uri(other));
            if uri(statement) == uri(other) {
                continue;
            }
            assert_eq!(
                quickly(text.as_bytes()),
                strictly(text.as_bytes()),
                "{text}"
            );
        }
        let text = bytes.replacen("/Statement/v1", "/Statement/v2", 1);
        assert!(quickly(text.as_bytes()).is_err(), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn bent_statements_are_read_alike(which in any::<prop::sample::Index>(), edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..3)) {
        let mut bytes = which.get(WRITTEN.as_slice()).clone();
        for (place, byte, what) in edits {
            let place = place.index(bytes.len());
            match what {
                0 => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                _ => { bytes.remove(place); }
            }
        }
        let quick = Statement::parse(&bytes);
        let strict = strictly(&bytes);
        prop_assert_eq!(quick.is_ok(), strict.is_ok(), "{:?}", String::from_utf8_lossy(&bytes));
        if let (Ok(quick), Ok(strict)) = (quick, strict) {
            prop_assert_eq!(quick, strict);
        }
    }
}
