//! One step, one transaction: all of it or nothing.

use std::task::Poll;

use caretaker::incident::{AuditEvent, ClosedReason, EvidenceDocument, Notice, NoticeEvent, Stage};
use caretaker::store::StoreError;

use super::*;

fn refusal(result: Result<Commit, StoreError>) -> String {
    let error = result.expect_err("was committed");
    assert!(matches!(error, StoreError::Inconsistent { .. }), "{error}");
    error.to_string()
}

fn drafted(draft: &Draft) -> Outcome {
    Outcome {
        drafts: vec![draft.clone()],
        ..Outcome::default()
    }
}

fn appended(draft: &Draft) -> Outcome {
    Outcome {
        envelope: Some(signed(draft)),
        ..Outcome::default()
    }
}

/// Drops a task once it has waited that often.
async fn dying<T>(task: impl Future<Output = T>, waits: u64) -> Option<T> {
    let mut task = std::pin::pin!(task);
    let mut left = waits;
    std::future::poll_fn(move |context| match task.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

on_both! {
    async fn everything_that_a_step_gives_is_there_afterwards(world) {
        let (claim, before) = world.claimed("test").await;
        let first = draft(&before.incident, 0, None, "first");
        let document = EvidenceDocument { media_type: "text/plain", bytes: b"log".to_vec() };
        let outcome = Outcome {
            facts: vec![Fact::Screened { passed: true }, Fact::Pushed { commit: oid(2) }],
            drafts: vec![first.clone()],
            envelope: Some(signed(&first)),
            evidence: vec![document.clone(), document.clone()],
            freeze: Some("another one landed".to_owned()),
            notices: vec![Notice { event: NoticeEvent::IncidentBlocked, text: "with a \0 in it".to_owned() }],
            audit: vec![AuditEvent { kind: "tried", detail: "once".to_owned() }],
            ..Outcome::default()
        };
        let after_commit = world.done(&claim, &before, outcome.clone()).await;
        assert_eq!(after_commit, before.after(&outcome, NOW));
        assert_eq!(world.snapshot(&before.incident).await, after_commit);

        let organisation = &world.project.organisation;
        let scope = world.store.within(organisation);
        let (media_type, bytes) = scope.evidence(&document.digest()).await.unwrap().unwrap();
        assert_eq!((media_type.as_str(), bytes), ("text/plain", document.bytes));
        assert_eq!(scope.draft(&before.incident, 0).await.unwrap(), Some(first.clone()));
        let ledger = scope.ledger(&before.incident).await.unwrap().unwrap();
        assert_eq!((ledger.rows.len(), ledger.chain.head), (1, Some(first.pae)));
        assert_eq!(ledger.rows[0].envelope, signed(&first).envelope);
        assert_eq!(ledger.project.unwrap().uri.as_str(), world.project.url);
        assert_eq!(world.reread_project().await.frozen.as_deref(), Some("another one landed"));
        let notices = world.store.due_notices(NOW, 9).await.unwrap();
        let texts: Vec<_> = notices.iter().map(|notice| (notice.event, notice.text.contains('\u{fffd}'))).collect();
        assert_eq!(texts, [(NoticeEvent::IncidentOpened, false), (NoticeEvent::IncidentBlocked, true)]);
        let audit = scope.audit_events(&before.incident).await.unwrap();
        assert_eq!((audit[0].kind.as_str(), audit.len()), ("tried", 1));
    }

    async fn the_ledger_grows_by_exactly_the_next_event(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let incident = snapshot.incident.clone();
        let first = draft(&incident, 0, None, "first");
        let second = draft(&incident, 1, Some(first.pae), "second");
        let commit = async |snapshot: &Snapshot, outcome: &Outcome| {
            world.store.commit(&claim, snapshot, outcome, NOW, LEASE).await
        };
        assert!(refusal(commit(&snapshot, &drafted(&second)).await).contains("not the next one"));
        let mut bent = first.clone();
        bent.statement.push(b' ');
        assert!(refusal(commit(&snapshot, &drafted(&bent)).await).contains("another digest"));
        assert!(refusal(commit(&snapshot, &appended(&first)).await).contains("drafted"));

        let snapshot = world.done(&claim, &snapshot, drafted(&first)).await;
        assert!(refusal(commit(&snapshot, &drafted(&first)).await).contains("not the next one"));
        let other = draft(&incident, 0, None, "other");
        assert!(refusal(commit(&snapshot, &appended(&other)).await).contains("drafted"));
        let misplaced = SignedEnvelope { seq: 1, ..signed(&first) };
        let misplaced = Outcome { envelope: Some(misplaced), ..Outcome::default() };
        assert!(refusal(commit(&snapshot, &misplaced).await).contains("event 0"));
        let foreign = draft(&IncidentId::new(NOW, [99; 10]), 0, None, "first");
        assert!(refusal(commit(&snapshot, &appended(&foreign)).await).contains("event 0 of"));
        let garbage = SignedEnvelope { seq: 0, envelope: b"{}".to_vec() };
        let garbage = Outcome { envelope: Some(garbage), ..Outcome::default() };
        assert!(refusal(commit(&snapshot, &garbage).await).contains("cannot be stored"));

        let snapshot = world.done(&claim, &snapshot, drafted(&second)).await;
        assert!(refusal(commit(&snapshot, &appended(&second)).await).contains("not the next one"));
        let snapshot = world.done(&claim, &snapshot, appended(&first)).await;
        assert!(refusal(commit(&snapshot, &appended(&first)).await).contains("not the next one"));
        let snapshot = world.done(&claim, &snapshot, appended(&second)).await;
        assert_eq!((snapshot.ledger.drafted, snapshot.ledger.appended), (2, 2));
        assert_eq!(world.snapshot(&incident).await, snapshot);
    }

    /// Break it: leave `next_seq = $3` out of `commit::ADVANCE_CHAIN`.
    async fn an_event_that_links_to_the_one_before_but_leaves_a_place_out_is_refused(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let first = draft(&snapshot.incident, 0, None, "first");
        let second = draft(&snapshot.incident, 1, Some(first.pae), "second");
        let early = draft(&snapshot.incident, 2, Some(first.pae), "early");
        let outcome = Outcome {
            drafts: vec![first.clone(), second, early.clone()],
            envelope: Some(signed(&first)),
            ..Outcome::default()
        };
        let snapshot = world.done(&claim, &snapshot, outcome).await;
        let committed = world.store.commit(&claim, &snapshot, &appended(&early), NOW, LEASE).await;
        assert!(refusal(committed).contains("not the next one"));
        assert_eq!(world.snapshot(&snapshot.incident).await, snapshot);
    }

    /// Break it: leave the comparison with `head` out of `commit::ADVANCE_CHAIN`.
    async fn an_event_that_does_not_link_to_the_one_before_is_refused(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let first = draft(&snapshot.incident, 0, None, "first");
        let elsewhere = draft(&snapshot.incident, 1, Some(Sha256Digest::of(b"elsewhere")), "second");
        let outcome = Outcome {
            drafts: vec![first.clone(), elsewhere.clone()],
            envelope: Some(signed(&first)),
            ..Outcome::default()
        };
        let snapshot = world.done(&claim, &snapshot, outcome).await;
        let commit = world.store.commit(&claim, &snapshot, &appended(&elsewhere), NOW, LEASE).await;
        assert!(refusal(commit).contains("link"));
    }

    async fn a_refused_commit_leaves_nothing_behind(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let outcome = Outcome {
            facts: vec![Fact::Screened { passed: true }],
            evidence: vec![EvidenceDocument { media_type: "text/plain", bytes: b"kept?".to_vec() }],
            notices: vec![Notice { event: NoticeEvent::Notice, text: "told?".to_owned() }],
            freeze: Some("frozen?".to_owned()),
            envelope: Some(SignedEnvelope { seq: 0, envelope: b"{}".to_vec() }),
            ..Outcome::default()
        };
        refusal(world.store.commit(&claim, &snapshot, &outcome, NOW, LEASE).await);
        assert_eq!(world.snapshot(&snapshot.incident).await, snapshot);
        let scope = world.store.within(&world.project.organisation);
        assert_eq!(scope.evidence(&Sha256Digest::of(b"kept?")).await.unwrap(), None);
        assert_eq!(world.store.due_notices(NOW, 9).await.unwrap().len(), 1);
        assert_eq!(world.reread_project().await.frozen, None);
    }

    async fn a_fact_that_is_known_once_is_not_known_twice(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let screened = Outcome::fact(Fact::Screened { passed: true });
        let snapshot = world.done(&claim, &snapshot, screened.clone()).await;
        let again = world.store.commit(&claim, &snapshot, &screened, NOW, LEASE).await;
        assert!(refusal(again).contains("known already"));
        let recovered = Outcome::fact(Fact::Recovered { run_id: 1, attempt: 1 });
        let snapshot = world.done(&claim, &snapshot, recovered.clone()).await;
        world.done(&claim, &snapshot, recovered).await;
    }

    async fn a_lease_on_one_incident_is_not_one_on_another(world) {
        let other = world.open("other").await;
        let other = world.snapshot(&other).await;
        let holder = world.claim("worker-0", NOW).await.unwrap();
        assert_eq!(holder.incident, other.incident);
        let (claim, _) = world.claimed("test").await;
        let outcome = Outcome::fact(Fact::CleanedUp);
        let commit = world.store.commit(&claim, &other, &outcome, NOW, LEASE).await;
        assert!(refusal(commit).contains("the lease is on"));
    }

    async fn of_many_commits_over_one_snapshot_one_is_written(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let first = draft(&snapshot.incident, 0, None, "first");
        let commits: Vec<_> = (0..10)
            .map(|_| {
                let (store, claim, snapshot) = (world.store.clone(), claim.clone(), snapshot.clone());
                let outcome = drafted(&first);
                tokio::spawn(async move { store.commit(&claim, &snapshot, &outcome, NOW, LEASE).await.unwrap() })
            })
            .collect();
        let mut done = 0;
        for commit in commits {
            match commit.await.unwrap() {
                Commit::Done(_) => done += 1,
                other => assert_eq!(other, Commit::Lost),
            }
        }
        assert_eq!((done, world.snapshot(&claim.incident).await.ledger.drafted), (1, 1));
    }

    /// The worker's task is dropped at every point at which it waits for the database.
    async fn a_commit_that_dies_half_way_is_written_whole_or_not_at_all(world) {
        let (claim, mut snapshot) = world.claimed("test").await;
        let mut prev = None;
        let (mut died, mut written) = (0, 0);
        for waits in 0..40 {
            let next = draft(&claim.incident, snapshot.ledger.drafted, prev, "gap");
            let outcome = Outcome {
                facts: vec![Fact::Recovered { run_id: waits, attempt: 1 }],
                envelope: Some(signed(&next)),
                drafts: vec![next.clone()],
                notices: vec![Notice { event: NoticeEvent::Notice, text: String::new() }],
                ..Outcome::default()
            };
            let commit = world.store.commit(&claim, &snapshot, &outcome, NOW, LEASE);
            died += u64::from(dying(commit, waits).await.is_none());
            // Waits for whatever the database was still told to do.
            assert!(world.store.extend(&claim, NOW, LEASE).await.unwrap());
            let found = world.snapshot(&claim.incident).await;
            if found != snapshot {
                assert_eq!(found, snapshot.after(&outcome, NOW));
                (snapshot, prev, written) = (found, Some(next.pae), written + 1);
            }
        }
        assert!(died > 0 && written > 0, "{died} died, {written} were written");
        let scope = world.store.within(&world.project.organisation);
        let ledger = scope.ledger(&claim.incident).await.unwrap().unwrap();
        assert_eq!((ledger.rows.len(), ledger.chain.next_seq), (written, written as u64));
        assert_eq!(world.store.due_notices(NOW, 999).await.unwrap().len(), 1 + written);
    }

    async fn stage_and_reason_follow_the_facts(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let outcome = Outcome::fact(Fact::Closed { reason: ClosedReason::Rejected, detail: String::new() });
        world.done(&claim, &snapshot, outcome).await;
        let scope = world.store.within(&world.project.organisation);
        let row = scope.incident(&snapshot.incident).await.unwrap().unwrap();
        assert_eq!((row.stage, row.closed_reason), (Stage::Closed, Some(ClosedReason::Rejected)));
    }

    /// Break it: leave the comparison of digests out of `Store::keep_evidence`.
    async fn evidence_is_refused_under_another_digest_than_its_own(world) {
        let document = EvidenceDocument { media_type: "text/plain", bytes: b"bytes".to_vec() };
        let organisation = &world.project.organisation;
        let wrong = Sha256Digest::of(b"others");
        let refused = world.store.keep_evidence(organisation, &wrong, &document, NOW).await;
        assert!(matches!(refused, Err(StoreError::EvidenceDigest { expected, .. }) if expected == wrong));
        let scope = world.store.within(organisation);
        assert_eq!(scope.evidence(&document.digest()).await.unwrap(), None);
        world.store.keep_evidence(organisation, &document.digest(), &document, NOW).await.unwrap();
        assert!(scope.evidence(&document.digest()).await.unwrap().is_some());
    }
}

/// SQLite has no digest function that a constraint could use, so reading has to notice.
#[tokio::test]
async fn evidence_whose_bytes_were_swapped_is_not_handed_out() {
    let world = World::sqlite().await;
    let document = EvidenceDocument {
        media_type: "text/plain",
        bytes: b"bytes".to_vec(),
    };
    let organisation = &world.project.organisation;
    let digest = document.digest();
    let kept = world
        .store
        .keep_evidence(organisation, &digest, &document, NOW);
    kept.await.unwrap();
    let tamper = "DROP TRIGGER evidence_no_update; UPDATE evidence SET bytes = X'00'";
    let mut raw = world.raw().await;
    sqlx::raw_sql(tamper).execute(&mut raw).await.unwrap();
    let read = world.store.within(organisation).evidence(&digest).await;
    assert!(read.unwrap_err().to_string().contains("have the digest"));
}
