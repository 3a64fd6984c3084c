//! How long an embedder is waited for, without waiting.

use std::time::Duration;

use caretaker::clock::Millis;
use caretaker::embedder::http::Patience;
use caretaker::embedder::http::patience::retry_after;
use proptest::prelude::*;

const NONE: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_hours(1);

#[test]
fn pauses_double_at_most_and_are_taken_at_random() {
    let patience = Patience {
        attempts: 10,
        ..Patience::default()
    };
    let longest = |asked| {
        // The largest that the bits can give: one less than the span is the remainder of all ones only by luck, so search.
        let pauses = (0..2000_u64).map(|bits| {
            let bits = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            patience.pause(asked, NONE, LONG, bits).unwrap()
        });
        pauses.max().unwrap()
    };
    for (asked, ceiling) in [
        (1, 250),
        (2, 500),
        (3, 1000),
        (4, 2000),
        (5, 4000),
        (9, 4000),
    ] {
        let ceiling = Duration::from_millis(ceiling);
        let found = longest(asked);
        assert!(
            found <= ceiling && found > ceiling * 9 / 10,
            "{asked}: {found:?}"
        );
    }
    assert_eq!(patience.pause(1, NONE, LONG, 0), Some(NONE), "full jitter");
}

#[test]
fn requests_are_bounded_in_number_and_time() {
    let patience = Patience::default();
    assert!(patience.pause(3, NONE, LONG, 7).is_some());
    assert_eq!(patience.pause(4, NONE, LONG, 7), None);
    assert_eq!(patience.pause(1, NONE, NONE, 0), None, "no time is left");
}

#[test]
fn a_server_that_says_when_is_not_asked_before() {
    let patience = Patience::default();
    let server = Duration::from_secs(7);
    assert_eq!(patience.pause(1, server, LONG, 0), Some(server));
    // Not within the deadline: then not at all.
    assert_eq!(patience.pause(1, server, server, 0), None);
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let now = Millis(784_111_777_000); // Sun, 06 Nov 1994 08:49:37 GMT
    let seconds = |value| retry_after(value, now).map(|wait| wait.as_secs());
    assert_eq!(seconds("120"), Some(120));
    assert_eq!(seconds(" 0 "), Some(0));
    assert_eq!(seconds("Sun, 06 Nov 1994 08:50:07 GMT"), Some(30));
    assert_eq!(seconds("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
    assert_eq!(seconds("99999999999999999999999"), Some(u64::MAX));
    for odd in ["", "soon", "-1", "1.5", "\u{661}"] {
        assert_eq!(seconds(odd), None, "{odd}");
    }
}

proptest! {
    #[test]
    fn no_pause_outlasts_the_deadline(
        asked in 1_u32..50,
        server in 0_u64..100_000,
        left in 0_u64..100_000,
        random in any::<u64>(),
    ) {
        let (server, left) = (Duration::from_millis(server), Duration::from_millis(left));
        if let Some(pause) = Patience::default().pause(asked, server, left, random) {
            prop_assert!(pause < left && pause >= server);
            prop_assert!(asked < Patience::default().attempts);
        }
    }
}
