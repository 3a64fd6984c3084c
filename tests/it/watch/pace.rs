//! When a project is looked at next.

use caretaker::clock::Millis;
use caretaker::config::Poll;
use caretaker::connector::Condition;
use caretaker::watch::{Allowance, Shown, next_look};
use proptest::prelude::*;

const NOW: Millis = Millis(1_800_000_000_000);

fn shown(condition: Condition) -> Shown {
    Shown {
        busy: false,
        condition,
        failures: 0,
        until: None,
    }
}

fn seconds(shown: Shown, chance: u32) -> f64 {
    let next = next_look(&Poll::default(), None, shown, NOW, chance);
    let length = u32::try_from(next.0 - NOW.0).unwrap();
    f64::from(length) / 1000.0
}

#[test]
fn quiet_busy_and_broken_projects_have_their_pace() {
    let quiet = shown(Condition::Fine);
    let busy = Shown {
        busy: true,
        ..quiet
    };
    let failing = |failures| Shown {
        failures,
        ..shown(Condition::Unreachable)
    };
    let limited = Shown {
        until: Some(NOW.plus_seconds(100)),
        ..shown(Condition::Limited)
    };
    for (shown, none, most) in [
        (quiet, 60.0, 54.0),
        (busy, 20.0, 18.0),
        (failing(1), 60.0, 54.0),
        (failing(3), 240.0, 216.0),
        (failing(u32::MAX), 600.0, 540.0),
        (shown(Condition::Absent), 600.0, 540.0),
        (limited, 100.0, 110.0),
    ] {
        assert!((seconds(shown, 0) - none).abs() < 0.01);
        assert!((seconds(shown, u32::MAX) - most).abs() < 0.01);
    }
}

#[test]
fn a_schedule_is_kept_with_a_little_chance() {
    let own = "0 0 3 * * *".parse().unwrap();
    let next = |chance| {
        next_look(
            &Poll::default(),
            Some(&own),
            shown(Condition::Fine),
            NOW,
            chance,
        )
    };
    assert_eq!(next(0).0 % 86_400_000, 3 * 3_600_000);
    assert_eq!(next(u32::MAX).0 - next(0).0, 5_000);
    let often = "*/2 * * * * *".parse().unwrap();
    let next = |chance| {
        next_look(
            &Poll::default(),
            Some(&often),
            shown(Condition::Fine),
            NOW,
            chance,
        )
    };
    assert_eq!(
        (next(0).0 - NOW.0, next(u32::MAX).0 - next(0).0),
        (2000, 200)
    );
}

proptest! {
    /// Whatever happens: never in the past, never later than the longest pause, and quiet ones within 60 seconds.
    #[test]
    fn the_next_look_is_soon_and_never_in_the_past(busy: bool, failures: u32, chance: u32, condition in 0..11_usize) {
        let conditions = [
            Condition::Fine, Condition::CredentialRefused, Condition::PermissionMissing, Condition::Renamed,
            Condition::Transferred, Condition::Archived, Condition::Disabled, Condition::Absent, Condition::Limited,
            Condition::Unreachable, Condition::Failing,
        ];
        let shown = Shown { busy, condition: conditions[condition], failures, until: None };
        let next = next_look(&Poll::default(), None, shown, NOW, chance);
        prop_assert!(next > NOW && next <= NOW.plus_seconds(600));
        if shown.condition == Condition::Fine {
            prop_assert!(next <= NOW.plus_seconds(60));
        }
    }

    /// However requests come: whoever waits for the allowance sends at most what an hour may cost, and the burst.
    #[test]
    fn nobody_who_waits_for_the_allowance_sends_more_than_it(spent in proptest::collection::vec((1..30_u64, 0..120_000_i64), 1..200)) {
        let poll = Poll::default();
        let mut allowance = Allowance::full(NOW);
        let (mut now, mut total) = (NOW, 0);
        for (requests, pause) in spent {
            now = now.plus_millis(pause).max(allowance.ready_at(&poll));
            allowance.spend(&poll, requests, now);
            total += requests;
            let elapsed = u64::try_from(now.0 - NOW.0).unwrap();
            // The last look may go into debt by what it sent.
            prop_assert!(total <= 40 + 30 + elapsed * u64::from(poll.requests_per_hour) / 3_600_000);
        }
    }
}
