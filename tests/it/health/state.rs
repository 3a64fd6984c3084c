//! When an outage is one: the table of phases, and what no sequence of checks can do.

use caretaker::change::Oid;
use caretaker::clock::Millis;
use caretaker::config::HealthCheck;
use caretaker::watch::health::{HealthState, LastResult, Outcome, Phase, Transition, advance};
use proptest::prelude::*;

use super::{NOW, after, check};

fn thresholds(open: u32, close: u32) -> HealthCheck {
    check(&format!(
        r#"{{"name": "a", "url": "https://x.example/", "failures_to_open": {open}, "successes_to_close": {close}}}"#
    ))
}

fn passed() -> Outcome {
    Outcome::Passed {
        latency: 5,
        certificate_days: None,
        commit: None,
    }
}

fn failed() -> Outcome {
    Outcome::Failed {
        reason: "status 503, expected 200-299".to_owned(),
        commit: None,
    }
}

fn ours() -> Outcome {
    Outcome::OurOutage {
        reason: "no answer within 10000 ms".to_owned(),
    }
}

fn ends_in(days: i64) -> Outcome {
    Outcome::Passed {
        latency: 5,
        certificate_days: Some(days),
        commit: None,
    }
}

/// Checks one after the other, a minute apart.
fn play(check: &HealthCheck, outcomes: &[Outcome]) -> (HealthState, Vec<Transition>) {
    let mut state = HealthState::default();
    let mut happened = Vec::new();
    for (minute, outcome) in (0..).zip(outcomes) {
        let (next, transitions) = advance(&state, check, outcome, after(minute * 60));
        state = next;
        happened.extend(transitions);
    }
    (state, happened)
}

#[test]
fn three_failures_in_a_row_open_and_two_successes_in_a_row_close() {
    let check = thresholds(3, 2);
    let story = [
        failed(),
        failed(),
        failed(),
        failed(),
        passed(),
        failed(),
        passed(),
        passed(),
    ];
    let phase = |count: usize| play(&check, &story[..count]).0.phase;
    let outage = u64::try_from(after(120).0).unwrap();
    assert_eq!(phase(0), Phase::Up);
    assert_eq!(
        phase(1),
        Phase::Failing {
            count: 1,
            since: NOW
        }
    );
    assert_eq!(
        phase(2),
        Phase::Failing {
            count: 2,
            since: NOW
        }
    );
    assert_eq!(phase(3), Phase::Down { since: NOW, outage });
    assert_eq!(phase(4), Phase::Down { since: NOW, outage });
    let recovering = Phase::Recovering {
        count: 1,
        since: NOW,
        outage,
    };
    assert_eq!(phase(5), recovering);
    // Half a recovery is none.
    assert_eq!(phase(6), Phase::Down { since: NOW, outage });
    assert_eq!(phase(7), recovering);
    let (state, happened) = play(&check, &story);
    assert_eq!((state.phase, state.since), (Phase::Up, Some(after(420))));
    assert_eq!(
        happened,
        [
            Transition::Opened {
                outage,
                since: NOW,
                reason: "status 503, expected 200-299".to_owned(),
                commit: None
            },
            Transition::Closed { outage, since: NOW },
        ]
    );
}

#[test]
fn an_endpoint_that_comes_and_goes_opens_nothing() {
    let flapping: Vec<_> = (0..1_000)
        .map(|minute| if minute % 3 == 2 { passed() } else { failed() })
        .collect();
    assert_eq!(play(&thresholds(3, 2), &flapping).1, []);
    // One name that could not be resolved once, as a resolver answers now and then.
    let once = [passed(), failed(), passed(), passed()];
    assert_eq!(play(&thresholds(2, 1), &once).1, []);
}

#[test]
fn an_outage_of_our_own_counts_for_nothing_and_is_remembered() {
    let check = thresholds(2, 2);
    let (state, happened) = play(&check, &vec![ours(); 500]);
    assert_eq!((state.phase, happened), (Phase::Up, vec![]));
    assert_eq!(state.last.unwrap().result, LastResult::OurOutage);
    // In the middle of a count it is as if the check had not been made.
    let (_, happened) = play(&check, &[failed(), ours(), ours(), failed()]);
    assert_eq!(happened.len(), 1);
    let (_, happened) = play(&check, &[failed(), failed(), passed(), ours(), passed()]);
    assert_eq!(happened.len(), 2);
}

#[test]
fn a_certificate_that_ends_is_told_once_a_day_until_it_is_renewed() {
    let check = thresholds(1, 1);
    let hours = |hours: i64| after(hours * 3_600);
    let mut state = HealthState::default();
    let mut told = Vec::new();
    for hour in 0..72 {
        let (next, transitions) = advance(&state, &check, &ends_in(14 - hour / 24), hours(hour));
        state = next;
        told.extend(transitions.into_iter().map(|what| (hour, what)));
    }
    let ends = |days| Transition::CertificateEnds { days };
    assert_eq!(told, [(0, ends(14)), (24, ends(13)), (48, ends(12))]);
    assert_eq!(state.phase, Phase::Up);
    // Renewed, and the next one is told of at once.
    let (state, quiet) = advance(&state, &check, &ends_in(90), hours(73));
    let (_, told) = advance(&state, &check, &ends_in(2), hours(74));
    assert_eq!((quiet, told), (vec![], vec![ends(2)]));
    let silent = super::check(
        r#"{"name": "a", "url": "https://x.example/", "expect": {"certificate_days": 0}}"#,
    );
    assert_eq!(play(&silent, &[ends_in(0)]).1, []);
}

#[test]
fn an_outage_carries_the_commit_that_the_endpoint_last_told() {
    let commit = Oid::from_bytes(&[7; 20]).unwrap();
    let told = Outcome::Passed {
        latency: 5,
        certificate_days: None,
        commit: Some(commit),
    };
    let (_, happened) = play(&thresholds(1, 1), &[told, failed()]);
    assert!(
        matches!(&happened[..], [Transition::Opened { commit: Some(found), .. }] if *found == commit)
    );
}

#[test]
fn outages_are_numbered_upwards_even_when_the_clock_goes_back() {
    let check = thresholds(1, 1);
    let mut state = HealthState::default();
    let mut numbers = Vec::new();
    for (seconds, outcome) in [
        (100, failed()),
        (50, passed()),
        (20, failed()),
        (10, passed()),
        (0, failed()),
    ] {
        let (next, transitions) = advance(&state, &check, &outcome, after(seconds));
        assert!(next.last.as_ref().unwrap().at >= after(100));
        numbers.extend(transitions.iter().filter_map(|what| match what {
            Transition::Opened { outage, .. } => Some(*outage),
            _ => None,
        }));
        state = next;
    }
    assert!(
        numbers.len() == 3 && numbers.is_sorted_by(|one, next| one < next),
        "{numbers:?}"
    );
}

#[test]
fn a_state_of_another_version_is_refused_and_not_guessed_at() {
    let text = HealthState::default().to_text().unwrap();
    assert!(HealthState::from_text(&text).is_ok() && HealthState::from_text("").is_ok());
    let newer = text.replace("\"version\":1", "\"version\":2");
    for wrong in [newer.as_str(), "{}", "[]", "null", "x", &text[1..]] {
        assert!(HealthState::from_text(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_cannot_be_told_does_not_fill_the_database() {
    let story: Vec<_> = (0..10_000)
        .map(|minute| if minute % 2 == 0 { failed() } else { passed() })
        .collect();
    for length in [9_999, 10_000] {
        let (state, happened) = play(&thresholds(1, 1), &story[..length]);
        assert_eq!(happened.len(), length);
        assert!(state.owed().len() <= 16 && state.to_text().unwrap().len() < 8_000);
        assert_alternates(state.owed());
        // The newest of it is always there: what is told last is how it is now.
        assert_eq!(state.owed().last(), happened.last());
    }
}

fn assert_alternates(transitions: &[Transition]) {
    let mut open = None;
    for transition in transitions {
        match transition {
            Transition::Opened { outage, .. } => {
                assert!(open.is_none(), "two outages at once: {transitions:?}");
                open = Some(*outage);
            }
            Transition::Closed { outage, .. } => {
                assert_eq!(open.take(), Some(*outage), "{transitions:?}");
            }
            Transition::CertificateEnds { .. } => {}
        }
    }
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(passed()),
        Just(failed()),
        Just(ours()),
        (0_i64..30).prop_map(ends_in),
    ]
}

/// Checks at any moments, with or without a restart after each.
fn run(
    check: &HealthCheck,
    story: &[(i64, Outcome)],
    restarts: bool,
) -> (HealthState, Vec<Transition>) {
    let mut state = HealthState::default();
    let mut happened = Vec::new();
    for (second, outcome) in story {
        let (next, transitions) = advance(&state, check, outcome, after(*second));
        happened.extend(transitions);
        state = if restarts {
            HealthState::from_text(&next.to_text().unwrap()).unwrap()
        } else {
            next
        };
    }
    (state, happened)
}

proptest! {
    #[test]
    fn no_sequence_opens_twice_without_closing(open in 1_u32..5, close in 1_u32..5,
        story in prop::collection::vec((0_i64..1_000_000, any_outcome()), 0..200)) {
        let (_, happened) = run(&thresholds(open, close), &story, false);
        assert_alternates(&happened);
    }

    #[test]
    fn a_restart_at_any_point_changes_nothing(open in 1_u32..5, close in 1_u32..5,
        story in prop::collection::vec((0_i64..1_000_000, any_outcome()), 0..100)) {
        let check = thresholds(open, close);
        // Break it: skip a field of `HealthState` when it is stored.
        prop_assert_eq!(run(&check, &story, true), run(&check, &story, false));
    }

    #[test]
    fn fewer_failures_in_a_row_than_asked_for_open_nothing(open in 2_u32..6, rows in prop::collection::vec(1_u32..6, 0..60)) {
        let mut story = Vec::new();
        for row in rows {
            story.extend(std::iter::repeat_n(failed(), row.min(open - 1) as usize));
            story.push(passed());
        }
        prop_assert_eq!(play(&thresholds(open, 1), &story).1, vec![]);
    }

    #[test]
    fn outages_of_our_own_can_be_left_out(open in 1_u32..5, close in 1_u32..5,
        story in prop::collection::vec((0_i64..1_000_000, any_outcome()), 0..100)) {
        let check = thresholds(open, close);
        let sorted = {
            let mut sorted = story;
            sorted.sort_by_key(|(second, _)| *second);
            sorted
        };
        let without: Vec<_> = sorted.iter().filter(|(_, outcome)| !matches!(outcome, Outcome::OurOutage { .. })).cloned().collect();
        prop_assert_eq!(run(&check, &sorted, false).1, run(&check, &without, false).1);
    }

    #[test]
    fn time_only_goes_forward(story in prop::collection::vec((any::<i64>(), any_outcome()), 1..50)) {
        let check = thresholds(2, 2);
        let mut state = HealthState::default();
        let mut latest = Millis(i64::MIN);
        for (at, outcome) in story {
            state = advance(&state, &check, &outcome, Millis(at)).0;
            let seen = state.last.as_ref().unwrap().at;
            prop_assert!(seen >= latest && seen >= Millis(at));
            latest = seen;
        }
    }
}
