//! The budget of a credential: what may be sent when, decided without sending anything.

use std::collections::VecDeque;

use caretaker::clock::Millis;
use caretaker::connector::github::budget::{
    Admission, Budget, CONTENT_PER_HOUR, CONTENT_PER_MINUTE, Cost, Heard, Limited,
    POINTS_PER_MINUTE, Ticket, Wait,
};
use caretaker::connector::github::credential::Use;
use http::Method;
use proptest::prelude::*;

use super::provider::NOW;

fn read() -> Cost {
    Cost::of(&Method::GET)
}

fn change() -> Cost {
    Cost::of(&Method::POST)
}

fn later(seconds: i64) -> Millis {
    NOW.plus_seconds(seconds)
}

fn ticket(budget: &mut Budget, now: Millis, task: Use, cost: Cost) -> Ticket {
    match budget.admit(now, task, cost) {
        Admission::Go(ticket) => ticket,
        Admission::Wait(wait) => panic!("{wait:?}"),
    }
}

fn wait(budget: &mut Budget, now: Millis, task: Use, cost: Cost) -> Wait {
    match budget.admit(now, task, cost) {
        Admission::Wait(wait) => wait,
        Admission::Go(_) => panic!("let go"),
    }
}

/// An answer with status 200 and these numbers.
fn told(limit: u64, remaining: u64, resets_at: Millis) -> Heard {
    Heard {
        limit: Some(limit),
        remaining: Some(remaining),
        resets_at: Some(resets_at),
        success: true,
        ..Heard::default()
    }
}

fn limit(until: Option<Millis>) -> Heard {
    Heard {
        limited: Some(Limited {
            until,
            why: "too much".to_owned(),
        }),
        ..Heard::default()
    }
}

#[test]
fn what_each_request_costs() {
    let cost = |points, content| Cost { points, content };
    assert_eq!(Cost::of(&Method::GET), cost(1, false));
    assert_eq!(Cost::of(&Method::POST), cost(5, true));
    assert_eq!(Cost::of(&Method::PUT), cost(5, true));
    assert_eq!(Cost::of(&Method::PATCH), cost(5, false));
    assert_eq!(Cost::of(&Method::DELETE), cost(5, false));
}

/// Of 5,000 requests, so many are left: who may still ask?
#[test]
fn what_is_left_is_kept_for_proposing_and_merging() {
    for (remaining, expected) in [
        (5_000, [true, true, true]),
        (501, [true, true, true]),
        (500, [false, true, true]),
        (251, [false, true, true]),
        (250, [false, false, true]),
        (1, [false, false, true]),
        (0, [false, false, false]),
    ] {
        for (errand, allowed) in Use::ALL.into_iter().zip(expected) {
            let mut budget = Budget::default();
            let first = ticket(&mut budget, NOW, Use::Execute, read());
            budget.answered(NOW, first, &told(5_000, remaining, later(600)));
            match budget.admit(NOW, errand, read()) {
                Admission::Go(_) => assert!(allowed, "{remaining} {errand:?}"),
                Admission::Wait(wait) => {
                    assert!(!allowed, "{remaining} {errand:?}");
                    assert_eq!(wait.until, later(600));
                    assert!(wait.why.contains("of 5000 requests"), "{}", wait.why);
                }
            }
        }
    }
}

#[test]
fn the_next_hour_begins_with_a_whole_allowance() {
    let mut budget = Budget::default();
    let first = ticket(&mut budget, NOW, Use::Read, read());
    budget.answered(NOW, first, &told(5_000, 0, later(600)));
    wait(&mut budget, later(599), Use::Execute, read());
    ticket(&mut budget, later(600), Use::Read, read());
    assert_eq!(budget.standing(later(600)).remaining, None, "not known yet");
}

#[test]
fn what_is_under_way_is_taken_off_and_what_is_unchanged_is_given_back() {
    let mut budget = Budget::default();
    let hour = later(600);
    let first = ticket(&mut budget, NOW, Use::Read, read());
    budget.answered(NOW, first, &told(100, 50, hour));
    let tickets: Vec<_> = (0..10)
        .map(|_| ticket(&mut budget, NOW, Use::Read, read()))
        .collect();
    assert_eq!(budget.standing(NOW).remaining, Some(40));
    // The answers come in any order, and each tells what it knew.
    for (answer, number) in tickets
        .into_iter()
        .zip([47_u64, 49, 48, 44, 45, 46, 41, 43, 42, 40])
    {
        budget.answered(NOW, answer, &told(100, number, hour));
        assert!(budget.standing(NOW).remaining.unwrap() <= 40);
    }
    assert_eq!(budget.standing(NOW).remaining, Some(40));
    let unchanged = ticket(&mut budget, NOW, Use::Read, read());
    let heard = Heard {
        unchanged: true,
        ..told(100, 40, hour)
    };
    budget.answered(NOW, unchanged, &heard);
    assert_eq!(budget.standing(NOW).remaining, Some(40));
    let lost = ticket(&mut budget, NOW, Use::Read, read());
    budget.unanswered(lost);
    assert_eq!(budget.standing(NOW).remaining, Some(39));
}

#[test]
fn numbers_that_make_no_sense_are_not_believed() {
    let mut budget = Budget::default();
    let mut hear = |heard: &Heard| {
        let sent = ticket(&mut budget, NOW, Use::Execute, read());
        budget.answered(NOW, sent, heard);
        budget.standing(NOW)
    };
    assert_eq!(hear(&told(60, 0, later(-1))).remaining, None, "over");
    let partly = Heard {
        remaining: Some(0),
        ..Heard::default()
    };
    assert_eq!(hear(&partly).remaining, None);
    // Milliseconds where seconds belong.
    let standing = hear(&told(60, 50, Millis(NOW.0 * 1000)));
    assert_eq!(standing.resets_at, Some(later(3_600)));
}

#[test]
fn limits_that_do_not_say_how_long_are_waited_for_longer_each_time() {
    let mut budget = Budget::default();
    let mut now = NOW;
    for expected in [60, 120, 240, 480, 960, 1_920, 3_600, 3_600] {
        let sent = ticket(&mut budget, now, Use::Read, read());
        let waited = budget.answered(now, sent, &limit(None)).unwrap();
        assert_eq!(waited.until, now.plus_seconds(expected));
        assert_eq!(budget.standing(now).paused, Some(waited.clone()));
        // Nobody goes before it is over, not even to merge.
        let before = waited.until.plus_millis(-1);
        assert_eq!(wait(&mut budget, before, Use::Execute, change()), waited);
        now = waited.until;
    }
    let sent = ticket(&mut budget, now, Use::Read, read());
    budget.answered(now, sent, &told(60, 50, now.plus_seconds(60)));
    let sent = ticket(&mut budget, now, Use::Read, read());
    let waited = budget.answered(now, sent, &limit(None)).unwrap();
    assert_eq!(waited.until, now.plus_seconds(60), "a success begins anew");
}

#[test]
fn those_under_way_when_a_limit_came_are_one_limit() {
    let mut budget = Budget::default();
    let sent: Vec<_> = (0..30)
        .map(|_| ticket(&mut budget, NOW, Use::Read, read()))
        .collect();
    for (number, sent) in sent.into_iter().enumerate() {
        let heard = match number {
            // One that was answered before the limit, and arrives after it, does not end it.
            5 => told(5_000, 4_000, later(600)),
            _ => limit(None),
        };
        budget.answered(later(1), sent, &heard);
    }
    assert_eq!(budget.standing(later(1)).paused.unwrap().until, later(61));
    let sent = ticket(&mut budget, later(61), Use::Read, read());
    let stated = budget.answered(later(61), sent, &limit(Some(later(100))));
    assert_eq!(stated.unwrap().until, later(100), "what is said counts");
}

#[test]
fn content_is_counted_by_the_minute_and_by_the_hour() {
    let mut budget = Budget::default();
    let mut now = NOW;
    let mut sent = 0;
    while sent < CONTENT_PER_HOUR {
        match budget.admit(now, Use::Propose, change()) {
            Admission::Go(ticket) => {
                budget.answered(now, ticket, &Heard::default());
                sent += 1;
            }
            Admission::Wait(wait) => {
                assert_eq!(sent % CONTENT_PER_MINUTE, 0, "{sent}");
                now = wait.until;
            }
        }
    }
    let waited = wait(&mut budget, now, Use::Execute, change());
    assert_eq!(waited.until, later(3_600), "{}", waited.why);
    ticket(&mut budget, now.plus_seconds(60), Use::Read, read());
}

#[test]
fn a_clock_that_is_moved_back_makes_no_limit_longer() {
    let back = later(-86_400);
    let after = |seconds| back.plus_seconds(seconds);
    // A limit that was met.
    let mut budget = Budget::default();
    let sent = ticket(&mut budget, NOW, Use::Read, read());
    budget.answered(NOW, sent, &limit(None));
    // Requests that are weighed at the same time come in any order, which is no clock that is moved back.
    let at_once = wait(&mut budget, NOW.plus_millis(-500), Use::Read, read());
    assert_eq!(at_once.until, later(60));
    assert_eq!(budget.standing(back).paused.unwrap().until, after(60));
    let waited = wait(&mut budget, after(59), Use::Execute, change());
    assert_eq!(waited.until, after(60));
    ticket(&mut budget, after(60), Use::Read, read());

    // The provider's hour.
    let mut budget = Budget::default();
    let sent = ticket(&mut budget, NOW, Use::Execute, read());
    budget.answered(NOW, sent, &told(5_000, 0, later(600)));
    let waited = wait(&mut budget, back, Use::Execute, read());
    assert_eq!(waited.until, after(600));

    // The minute, in points and in things that are made.
    for (cost, times) in [(read(), POINTS_PER_MINUTE), (change(), CONTENT_PER_MINUTE)] {
        let mut budget = Budget::default();
        for _ in 0..times {
            let sent = ticket(&mut budget, NOW, Use::Execute, cost);
            budget.unanswered(sent);
        }
        let waited = wait(&mut budget, back, Use::Execute, cost);
        assert_eq!(waited.until, after(60));
        ticket(&mut budget, after(60), Use::Execute, cost);
    }
}

/// What happens next.
#[derive(Debug, Clone)]
enum Event {
    Pass(i64),
    Ask(Use, Method),
    Answer(Option<u8>),
}

fn event() -> impl Strategy<Value = Event> {
    let errand = prop_oneof![Just(Use::Read), Just(Use::Propose), Just(Use::Execute)];
    let method = prop_oneof![Just(Method::GET), Just(Method::PATCH), Just(Method::POST)];
    prop_oneof![
        1 => prop_oneof![8 => 0_i64..50, 1 => 0_i64..30_000].prop_map(Event::Pass),
        12 => (errand, method).prop_map(|(errand, method)| Event::Ask(errand, method)),
        6 => proptest::option::of(any::<u8>()).prop_map(Event::Answer),
    ]
}

/// Points and things made, of what was let go and not given back.
type Sent = (Millis, u32, u32);

fn within(sent: &[Sent], end: Millis, span: i64) -> (u32, u32) {
    let counted = sent
        .iter()
        .filter(|(at, ..)| *at <= end && at.plus_millis(span) > end);
    counted.fold((0, 0), |(points, made), (_, more, one)| {
        (points + more, made + one)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Whatever is asked and answered in whatever order: no window holds more than is allowed, and nothing is sent in a pause.
    #[test]
    fn admitted_is_never_more_than_allowed_in_any_window(
        events in proptest::collection::vec(event(), 0..1_500),
    ) {
        let mut budget = Budget::default();
        let mut now = NOW;
        let mut sent: Vec<Sent> = Vec::new();
        let mut under_way: VecDeque<(usize, Ticket)> = VecDeque::new();
        let mut paused_until = NOW;
        for event in events {
            match event {
                Event::Pass(millis) => now = now.plus_millis(millis),
                Event::Ask(task, method) => {
                    let cost = Cost::of(&method);
                    match budget.admit(now, task, cost) {
                        Admission::Go(ticket) => {
                            prop_assert!(now >= paused_until);
                            sent.push((now, cost.points, u32::from(cost.content)));
                            under_way.push_back((sent.len() - 1, ticket));
                        }
                        Admission::Wait(wait) => prop_assert!(wait.until > now),
                    }
                }
                Event::Answer(kind) => {
                    let Some((place, ticket)) = under_way.pop_front() else { continue };
                    match kind {
                        None => budget.unanswered(ticket),
                        Some(0..=2) => {
                            let waited = budget.answered(now, ticket, &limit(None)).unwrap();
                            paused_until = paused_until.max(waited.until);
                        }
                        Some(3..=120) => {
                            let heard = Heard { unchanged: true, success: true, ..Heard::default() };
                            budget.answered(now, ticket, &heard);
                            sent[place].1 = 0;
                        }
                        Some(_) => {
                            let heard = Heard { success: true, ..Heard::default() };
                            budget.answered(now, ticket, &heard);
                        }
                    }
                }
            }
        }
        for (end, ..) in &sent {
            let (points, made) = within(&sent, *end, 60_000);
            prop_assert!(points <= POINTS_PER_MINUTE, "{points} points");
            prop_assert!(made <= CONTENT_PER_MINUTE, "{made} things in a minute");
            let (_, made) = within(&sent, *end, 3_600_000);
            prop_assert!(made <= CONTENT_PER_HOUR, "{made} things in an hour");
        }
    }
}
