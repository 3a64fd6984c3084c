//! Whatever a step gives: what is read back is what [`Snapshot::after`] says.

use caretaker::incident::{AuditEvent, ClosedReason, EscalationReason, stage};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// What a step may give, before it is fitted to the incident it is given to.
#[derive(Debug, Clone)]
struct Gift {
    facts: Vec<Fact>,
    drafts: usize,
    /// A signature, a link, a freeze, an audit event.
    extras: [bool; 4],
}

fn any_fact() -> impl Strategy<Value = Fact> {
    let execution = || caretaker::id::ExecutionId::new(NOW, [6; 10]);
    let detail = "[a-z\u{0}\u{1f600}]{0,8}";
    prop_oneof![
        any::<bool>().prop_map(|passed| Fact::Screened { passed }),
        Just(Fact::Pushed { commit: oid(2) }),
        Just(Fact::Opened {
            number: 3,
            url: "https://github.example/3".to_owned()
        }),
        Just(Fact::Requested {
            request: Box::new(request())
        }),
        Just(Fact::Merging {
            execution: execution(),
            comparisons: 1,
            base_tip: oid(1),
            checkpoint: None,
        }),
        detail.prop_map(move |answer| Fact::MergeAsked {
            execution: execution(),
            answer
        }),
        (0..3_u64).prop_map(|attempt| Fact::Recurred {
            run_id: 5,
            attempt,
            job_id: None
        }),
        Just(Fact::RerunAsked {
            run_id: 5,
            attempt: 2
        }),
        Just(Fact::Recovered {
            run_id: 4,
            attempt: 1
        }),
        any::<bool>().prop_map(|matches| Fact::Landed {
            execution: None,
            commit: oid(5),
            observed: Sha256Digest::of(b"x"),
            matches,
            event: Sha256Digest::of(b"e"),
        }),
        detail.prop_map(|detail| Fact::Closed {
            reason: ClosedReason::Expired,
            detail
        }),
        detail.prop_map(|detail| Fact::Escalated {
            reason: EscalationReason::CoderFailed,
            detail,
            differences: Vec::new(),
        }),
    ]
}

fn any_gift() -> impl Strategy<Value = Gift> {
    let facts = prop::collection::vec(any_fact(), 0..3);
    (facts, 0..3_usize, any::<[bool; 4]>()).prop_map(|(facts, drafts, extras)| Gift {
        facts,
        drafts,
        extras,
    })
}

impl World {
    /// The gift as an outcome that the incident can take. `drafts` are those made so far.
    fn fitted(&self, gift: &Gift, snapshot: &Snapshot, drafts: &mut Vec<Draft>) -> Outcome {
        let [sign, link, freeze, audit] = gift.extras;
        let mut known: Vec<&str> = snapshot.facts.iter().map(|one| one.fact.kind()).collect();
        let mut facts = Vec::new();
        for fact in &gift.facts {
            if fact.repeats() || !known.contains(&fact.kind()) {
                known.push(fact.kind());
                facts.push(fact.clone());
            }
        }
        let first = drafts.len();
        for _ in 0..gift.drafts {
            let prev = drafts.last().map(|last| last.pae);
            drafts.push(draft(&snapshot.incident, drafts.len() as u64, prev, "gap"));
        }
        let appended = usize::try_from(snapshot.ledger.appended).unwrap();
        let mut outcome = Outcome {
            facts,
            drafts: drafts[first..].to_vec(),
            envelope: drafts.get(appended).filter(|_| sign).map(signed),
            freeze: freeze.then(|| "frozen".to_owned()),
            audit: if audit {
                vec![AuditEvent {
                    kind: "tried",
                    detail: String::new(),
                }]
            } else {
                Vec::new()
            },
            ..Outcome::default()
        };
        if link && !stage(&snapshot.after(&outcome, NOW)).is_final() {
            let entropy = [u8::try_from(snapshot.version).unwrap(); 10];
            let approval = ApprovalId::new(NOW, entropy);
            let named = format!("{}{approval}", snapshot.incident);
            let token = TokenHash(Sha256Digest::of(named.as_bytes()));
            outcome.link = Some(NewLink {
                approval: named_approval(&named),
                ..self.link(&request(), token, after(3600))
            });
        }
        outcome
    }

    /// Commits every gift in turn and compares what is read back.
    async fn given(&self, number: u32, gifts: &[Gift]) {
        let id = IncidentId::new(Millis(NOW.0 + i64::from(number)), [1; 10]);
        let failure = failure(&format!("job-{number}"), 100);
        let observed = self
            .store
            .observe(&self.project, &failure, None, &id, NOW)
            .await;
        assert_eq!(observed.unwrap(), Observed::Opened(id.clone()));
        let claim = self.claim("worker", NOW).await.unwrap();
        let mut snapshot = self.snapshot(&id).await;
        let mut drafts = Vec::new();
        for gift in gifts {
            let outcome = self.fitted(gift, &snapshot, &mut drafts);
            let mut expected = snapshot.after(&outcome, NOW);
            if stage(&expected).is_final() {
                expected.link = None;
            }
            snapshot = self.done(&claim, &snapshot, outcome).await;
            assert_eq!(snapshot, expected);
            assert_eq!(self.snapshot(&id).await, expected);
            let scope = self.store.within(&self.project.organisation);
            let row = scope.incident(&id).await.unwrap().unwrap();
            assert_eq!(row.stage, stage(&expected));
            assert_eq!(
                row.closed_reason,
                expected.closed().map(|(reason, _)| reason)
            );
        }
        let rested = self.store.rest(&claim, snapshot.version, None, "", 0);
        assert!(rested.await.unwrap());
        self.store.unfreeze(&self.project, NOW).await.unwrap();
    }
}

/// An id of its own for every link of every incident.
fn named_approval(name: &str) -> ApprovalId {
    let digest = Sha256Digest::of(name.as_bytes());
    let entropy = digest.as_bytes().first_chunk::<10>().unwrap();
    ApprovalId::new(NOW, *entropy)
}

fn hold(world: &World, runtime: &tokio::runtime::Runtime) {
    let mut runner = TestRunner::new(Config {
        cases: 24,
        failure_persistence: None,
        ..Config::default()
    });
    let number = std::cell::Cell::new(0);
    let result = runner.run(&prop::collection::vec(any_gift(), 1..6), |gifts| {
        number.set(number.get() + 1);
        runtime.block_on(world.given(number.get(), &gifts));
        Ok(())
    });
    result.unwrap();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Break it: leave `facts` out of `commit::Writing::advance`, or compute the stage from the snapshot before.
#[test]
fn what_is_read_back_on_sqlite_is_what_the_outcome_said() {
    let runtime = runtime();
    let world = runtime.block_on(World::sqlite());
    hold(&world, &runtime);
}

#[test]
fn what_is_read_back_on_postgres_is_what_the_outcome_said() {
    let runtime = runtime();
    if let Some(world) = runtime.block_on(World::postgres()) {
        hold(&world, &runtime);
    }
}
