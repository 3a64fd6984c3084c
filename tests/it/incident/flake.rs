//! Flaky or not: what the table says before anything is diagnosed.

use caretaker::incident::{Rerun, Waiting};

use super::*;

fn green() -> Fact {
    Fact::Reproduced(Reproduction::Green {
        command: vec!["cargo".to_owned(), "test".to_owned()],
        sandbox: "none".to_owned(),
        evidence: Sha256Digest::of(b"run"),
    })
}

fn unrunnable() -> Fact {
    Fact::Reproduced(Reproduction::Unrunnable {
        reason: "there is no cargo here".to_owned(),
    })
}

fn flaky_here() -> Fact {
    Fact::Reproduced(Reproduction::Flaky {
        command: vec!["cargo".to_owned(), "test".to_owned()],
        sandbox: "none".to_owned(),
        passed: 1,
        failed: 2,
        evidence: vec![Sha256Digest::of(b"run"); 3],
    })
}

const ASKED: Fact = Fact::RerunAsked {
    run_id: 8,
    attempt: 2,
};

fn failed_again(run_id: u64, attempt: u64) -> Fact {
    Fact::Recurred {
        run_id,
        attempt,
        job_id: None,
    }
}

/// The next step of an incident of which nothing is signed, that long after its facts.
fn after(seconds: i64, facts: &[Fact]) -> Step {
    next(
        &snapshot(facts.to_vec(), signed(0)),
        NOW.plus_seconds(seconds),
    )
}

/// Why it is closed, and in which words.
fn closed(step: Step) -> (ClosedReason, String) {
    match step {
        Step::Close { reason, detail } => (reason, detail),
        other => panic!("not closed: {other:?}"),
    }
}

#[test]
fn what_fails_here_too_is_read_and_diagnosed() {
    assert_eq!(after(0, &[red()]), Step::Read);
}

#[test]
fn what_fails_and_passes_here_is_closed_with_counts() {
    let (reason, detail) = closed(after(0, &[flaky_here()]));
    assert_eq!(reason, ClosedReason::Flaky);
    insta::assert_snapshot!(detail, @"cargo test failed in 2 runs and passed in 1 run at the failing commit in the sandbox");
}

#[test]
fn what_passes_here_or_cannot_be_run_is_run_again_there_and_waited_for() {
    for first in [green(), unrunnable()] {
        assert_eq!(after(0, std::slice::from_ref(&first)), Step::Rerun);
        let waits = Step::Wait {
            until: NOW.plus_seconds(3_600),
            why: Waiting::Rerun {
                run_id: 8,
                attempt: 2,
            },
        };
        assert_eq!(after(3_599, &[first, ASKED]), waits);
    }
}

#[test]
fn it_goes_on_as_ever_once_the_provider_has_answered_or_will_not() {
    let declined = Fact::RerunDeclined {
        reason: "403: Must have admin rights to Repository.".to_owned(),
    };
    let ends: [(i64, &[Fact]); 4] = [
        (0, &[ASKED, failed_again(8, 2)]),
        (0, &[ASKED, failed_again(9, 1)]),
        (3_600, &[ASKED]),
        (0, &[declined]),
    ];
    let mut words = Vec::new();
    for (seconds, facts) in ends {
        for (first, expected) in [
            (green(), ClosedReason::NotReproducible),
            (unrunnable(), ClosedReason::NotCode),
        ] {
            let all: Vec<Fact> = std::iter::once(first)
                .chain(facts.iter().cloned())
                .collect();
            let (reason, detail) = closed(after(seconds, &all));
            assert_eq!(reason, expected);
            words.push(detail);
        }
    }
    insta::assert_snapshot!(words.join("\n"), @"
    cargo test succeeds at the failing commit in the sandbox; attempt 2 of run 8 failed at the provider again
    there is no cargo here; attempt 2 of run 8 failed at the provider again
    cargo test succeeds at the failing commit in the sandbox; attempt 1 of run 9 failed at the provider again
    there is no cargo here; attempt 1 of run 9 failed at the provider again
    cargo test succeeds at the failing commit in the sandbox; attempt 2 of run 8 did not end in time
    there is no cargo here; attempt 2 of run 8 did not end in time
    cargo test succeeds at the failing commit in the sandbox; it was not run again at the provider: 403: Must have admin rights to Repository.
    there is no cargo here; it was not run again at the provider: 403: Must have admin rights to Repository.
    ");
}

#[test]
fn a_later_attempt_of_the_run_that_passes_is_flaky_and_a_newer_run_is_a_recovery() {
    let passed = |run_id, attempt| Fact::Recovered { run_id, attempt };
    let of = |facts: &[Fact]| closed(after(0, facts));
    let flaky = |words: &str| (ClosedReason::Flaky, words.to_owned());
    assert_eq!(
        of(&[green(), ASKED, passed(8, 2)]),
        flaky("failed in attempt 1, passed in attempt 2 of run 8 at the same commit")
    );
    // Somebody else ran it again, while the worker was at a fix already.
    assert_eq!(
        of(&[
            red(),
            failed_again(8, 2),
            failed_again(8, 3),
            passed(8, 4),
            decided(Verdict::Deny)
        ]),
        flaky("failed in attempts 1, 2 and 3, passed in attempt 4 of run 8 at the same commit")
    );
    for newer in [passed(9, 1), passed(9, 2), passed(9, 0)] {
        let words = "run 9 of the same job succeeded".to_owned();
        assert_eq!(of(&[green(), newer]), (ClosedReason::Recovered, words));
    }
    // A record from before attempts were kept.
    let old = serde_json::from_str(r#"{"kind":"recovered","body":{"run_id":8}}"#).unwrap();
    assert_eq!(of(&[red(), old]).0, ClosedReason::Recovered);
}

#[test]
fn a_reproduction_from_before_tests_were_repeated_is_read() {
    let old = r#"{"kind":"reproduced","body":{"outcome":"red","command":["true"],"sandbox":"none","evidence":"DIGEST"}}"#;
    let old = old.replace("DIGEST", &Sha256Digest::of(b"run").to_string());
    assert_eq!(serde_json::from_str::<Fact>(&old).unwrap(), red());
    assert_eq!(serde_json::to_string(&red()).unwrap(), old);
}

#[test]
fn a_repetition_is_never_repeated() {
    let mut repetition = snapshot(vec![green()], signed(0));
    repetition.failure.attempt = 2;
    assert_eq!(
        repetition.rerun(),
        Rerun::Repetition {
            run_id: 8,
            attempt: 2
        }
    );
    let (reason, detail) = closed(next(&repetition, NOW));
    assert_eq!(reason, ClosedReason::NotReproducible);
    assert!(detail.ends_with("; attempt 2 of run 8 was a repetition already"));
    assert_eq!(
        repetition.rerun_in_words(NOW),
        None,
        "nothing to show of it"
    );
}

fn about_flakes() -> impl Strategy<Value = Fact> {
    prop_oneof![
        Just(red()),
        Just(green()),
        Just(unrunnable()),
        Just(flaky_here()),
        Just(ASKED),
        Just(Fact::RerunDeclined {
            reason: "no".to_owned()
        }),
        (7..10_u64, 1..4_u64).prop_map(|(run, attempt)| failed_again(run, attempt)),
        (7..10_u64, 0..4_u64).prop_map(|(run_id, attempt)| Fact::Recovered { run_id, attempt }),
        Just(Fact::Screened { passed: true }),
        Just(decided(Verdict::Approve)),
    ]
}

/// Whether the step has anything to do with diagnosing or fixing.
fn repairs(step: &Step) -> bool {
    matches!(
        step,
        Step::Read
            | Step::Diagnose
            | Step::Screen
            | Step::Fix
            | Step::Propose
            | Step::Push
            | Step::Open
            | Step::Bind
            | Step::Merge(_)
            | Step::Compare { .. }
    )
}

/// What the world does to an incident between two steps of the worker.
#[derive(Debug, Clone, Copy)]
enum Happens {
    /// The worker's next step succeeds, or is killed after its effect and before its commit.
    Step { killed: bool },
    /// The newest attempt ends.
    AttemptEnds { passes: bool },
    /// A newer run ends.
    NewerRun { passes: bool },
    /// Somebody runs it again by hand.
    ByHand,
    /// Half an hour goes by.
    Time,
}

fn anything() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => any::<bool>().prop_map(|killed| Happens::Step { killed }),
        2 => any::<bool>().prop_map(|passes| Happens::AttemptEnds { passes }),
        1 => any::<bool>().prop_map(|passes| Happens::NewerRun { passes }),
        1 => Just(Happens::ByHand),
        1 => Just(Happens::Time),
    ]
}

/// A provider that counts how often it is asked, and an incident whose facts only grow as store and worker let them.
struct Simulation {
    snapshot: Snapshot,
    now: Millis,
    asked: u32,
    /// The newest attempt of run 8, and whether it has ended.
    attempt: (u64, bool),
    newest_run: u64,
}

impl Simulation {
    fn add(&mut self, fact: Fact) {
        let ordinal = self.snapshot.facts.len() as u64;
        let at = self.now;
        self.snapshot.facts.push(RecordedFact { ordinal, at, fact });
    }

    /// The watch tells what it saw, as the store takes it.
    fn seen(&mut self, run_id: u64, attempt: u64, passes: bool) {
        let failure = Failure {
            run_id,
            attempt,
            ..self.snapshot.failure.clone()
        };
        let failed = self.snapshot.failed_attempts(run_id);
        if passes && self.snapshot.recovered().is_none() && !failed.contains(&attempt) {
            self.add(Fact::Recovered { run_id, attempt });
        } else if !passes && self.snapshot.learns_from(&failure) {
            self.add(failed_again(run_id, attempt));
        }
    }

    fn happens(&mut self, happens: Happens, first: &Fact) {
        match happens {
            Happens::Step { killed } => self.step(killed, first),
            Happens::AttemptEnds { passes } if !self.attempt.1 => {
                self.attempt.1 = true;
                self.seen(8, self.attempt.0, passes);
            }
            Happens::NewerRun { passes } => {
                self.newest_run += 1;
                self.seen(self.newest_run, 1, passes);
            }
            Happens::ByHand if self.attempt.1 => self.attempt = (self.attempt.0 + 1, false),
            Happens::Time => self.now = self.now.plus_seconds(1_800),
            Happens::AttemptEnds { .. } | Happens::ByHand => {}
        }
    }

    fn step(&mut self, killed: bool, first: &Fact) {
        match next(&self.snapshot, self.now) {
            Step::Reproduce if !killed => self.add(first.clone()),
            Step::Rerun => {
                // As `steps::rerun` does: look, then ask.
                if self.attempt.0 == 1 {
                    self.asked += 1;
                    self.attempt = (2, false);
                }
                if !killed {
                    let (run_id, attempt) = (8, self.attempt.0);
                    self.add(Fact::RerunAsked { run_id, attempt });
                }
            }
            Step::Close { reason, detail } if !killed => self.add(Fact::Closed { reason, detail }),
            _ => {}
        }
    }
}

proptest! {
    #[test]
    fn a_flaky_failure_is_never_repaired(facts in prop::collection::vec(about_flakes(), 0..8)) {
        let snapshot = snapshot(facts, signed(0));
        let step = next(&snapshot, NOW);
        if snapshot.flake().is_some() {
            prop_assert!(!repairs(&step), "{step:?}");
        }
        if !matches!(snapshot.reproduction(), Some(Reproduction::Red { .. })) {
            prop_assert!(!repairs(&step), "{step:?}");
        }
        if step == Step::Rerun {
            prop_assert_eq!(snapshot.rerun(), Rerun::Open);
            let answers = |fact: &Fact| matches!(
                fact,
                Fact::RerunAsked { .. } | Fact::RerunDeclined { .. } | Fact::Recurred { .. } | Fact::Recovered { .. }
            );
            let answered = snapshot.facts.iter().any(|one| answers(&one.fact));
            prop_assert!(!answered);
        }
    }

    #[test]
    fn of_one_incident_at_most_one_rerun_is_asked_for(
        first in prop::sample::select(vec![red(), green(), unrunnable(), flaky_here()]),
        story in prop::collection::vec(anything(), 0..40),
    ) {
        let mut simulation = Simulation {
            snapshot: snapshot(Vec::new(), signed(0)),
            now: NOW,
            asked: 0,
            attempt: (1, true),
            newest_run: 8,
        };
        for happens in story {
            simulation.happens(happens, &first);
        }
        let facts = &simulation.snapshot.facts;
        let asked = facts.iter().filter(|one| matches!(one.fact, Fact::RerunAsked { .. })).count();
        prop_assert!(simulation.asked <= 1 && asked <= 1, "{facts:?}");
        if matches!(first, Fact::Reproduced(Reproduction::Red { .. } | Reproduction::Flaky { .. })) {
            prop_assert_eq!(asked, 0);
        }
        // However it went, it ends: an attempt that tells nothing is not waited for longer than an hour.
        simulation.now = simulation.now.plus_seconds(3_601);
        for _ in 0..4 {
            simulation.step(false, &first);
            simulation.now = simulation.now.plus_seconds(3_601);
        }
        let repaired = repairs(&next(&simulation.snapshot, simulation.now));
        let ended = simulation.snapshot.closed().is_some();
        prop_assert!(ended || repaired, "{:?}", simulation.snapshot.facts);
    }
}
