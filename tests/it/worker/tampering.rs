//! Somebody who can write into the database, while the worker works.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use caretaker::approve::{ApprovalToken, Consumption, HumanDecision, TokenHash};
use caretaker::attest::dsse::{IN_TOTO, pae};
use caretaker::change::Sha256Digest;
use caretaker::clock::Clock as _;
use caretaker::id::ApprovalId;
use caretaker::incident::{EvidenceDocument, Stage};
use caretaker::store::Consumed;
use caretaker::worker::{Failpoint, drain};
use sqlx::sqlite::SqlitePool;
use tokio::sync::Notify;

use super::world::{NOW, Setting, World};

/// Stops the worker after its commit with this number.
struct StopAfterCommit {
    number: usize,
    commits: AtomicUsize,
    reached: Notify,
}

#[async_trait]
impl Failpoint for StopAfterCommit {
    async fn passed(&self, effect: &'static str) {
        if effect == "commit" && self.commits.fetch_add(1, Ordering::SeqCst) + 1 == self.number {
            self.reached.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

/// Lets the worker make one commit and stops it there; whether it made one.
pub(super) async fn stopped_at_the_next_commit(world: &mut World) -> bool {
    let stop = Arc::new(StopAfterCommit {
        number: 1,
        commits: AtomicUsize::new(0),
        reached: Notify::new(),
    });
    world.engine.failpoint = Some(stop.clone());
    let stopped = tokio::select! {
        _ = drain(&world.engine, "first") => false,
        () = stop.reached.notified() => true,
    };
    world.engine.failpoint = None;
    world.clock.advance_millis(61_000);
    stopped
}

async fn stopped_after_commit(number: usize) -> World {
    let mut world = World::new(Setting::sums()).await;
    let stop = Arc::new(StopAfterCommit {
        number,
        commits: AtomicUsize::new(0),
        reached: Notify::new(),
    });
    world.engine.failpoint = Some(stop.clone());
    tokio::select! {
        drained = drain(&world.engine, "first") => panic!("it ended: {drained:?}"),
        () = stop.reached.notified() => {}
    }
    world.engine.failpoint = None;
    world.clock.advance_millis(61_000);
    world
}

async fn database(world: &World) -> SqlitePool {
    let file = world.home().join("caretaker.db");
    let pool = SqlitePool::connect(&format!("sqlite://{}", file.display()))
        .await
        .unwrap();
    for trigger in ["statement_no_update", "fact_no_update", "ledger_no_update"] {
        // Names are fixed above: nothing from outside enters the statement.
        let drop = match trigger {
            "statement_no_update" => "DROP TRIGGER statement_no_update",
            "fact_no_update" => "DROP TRIGGER fact_no_update",
            _ => "DROP TRIGGER ledger_no_update",
        };
        sqlx::query(drop).execute(&pool).await.unwrap();
    }
    pool
}

// The line to break is named in `worker::steps::notary`.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_made_milder_in_the_database_is_not_signed() {
    // Reproduced, read, diagnosed, screened, fixed, proposed: proposal and decision are drafted, nothing is signed.
    let world = stopped_after_commit(6).await;
    let decision = world.snapshot().await.decision().unwrap().clone();
    let scoped = world.engine.store.within(&world.project.organisation);
    let draft = scoped.draft(&world.incident, 1).await.unwrap().unwrap();
    let milder = String::from_utf8(draft.statement)
        .unwrap()
        .replace("\"verdict\":\"approve\"", "\"verdict\":\"free\"");
    let name = Sha256Digest::of(&pae(IN_TOTO, milder.as_bytes())).to_string();
    let old = decision.decision_event.to_string();
    let pool = database(&world).await;
    sqlx::query("UPDATE statement SET statement = $1, pae = $2 WHERE seq = 1")
        .bind(milder.into_bytes())
        .bind(&name)
        .execute(&pool)
        .await
        .unwrap();
    sqlx::query("UPDATE chain SET draft_head = $1")
        .bind(&name)
        .execute(&pool)
        .await
        .unwrap();
    sqlx::query("UPDATE fact SET body = replace(replace(body, $1, $2), '\"verdict\":\"approve\"', '\"verdict\":\"free\"') WHERE kind = 'decided'")
        .bind(&old)
        .bind(&name)
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    assert_eq!(
        world.snapshot().await.decision().unwrap().verdict.as_str(),
        "free",
        "the database says so now"
    );
    for _ in 0..5 {
        drain(&world.engine, "second").await.unwrap();
        world.clock.advance_millis(400_000);
    }
    assert_eq!(world.snapshot().await.ledger.appended, 1, "the proposal");
    assert_eq!(world.stage().await, Stage::Gated);
    let history = scoped.audit_events(&world.incident).await.unwrap();
    let failure = history
        .iter()
        .find(|event| event.kind == "signing-failed")
        .expect("the history says so");
    assert!(
        failure.detail.contains("the rules decide otherwise"),
        "{}",
        failure.detail
    );
    assert!(world.planted.repository.pulls().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_row_changed_after_the_approval_stops_the_merge() {
    let world = World::new(Setting::sums()).await;
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    world.answer(HumanDecision::Approve).await;
    let pool = database(&world).await;
    sqlx::query("UPDATE ledger SET occurred_at = occurred_at + 1 WHERE seq = 0")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    // Break it: let `steps::merge::authority` skip `audit::verify`; the envelopes alone are sound, and it merges.
    assert_eq!(world.settle().await, Stage::Escalated);
    let pulls = world.planted.repository.pulls().unwrap();
    assert!(pulls[0].merge_commit.is_none(), "nothing was merged");
}

/// Puts another record of the answer in the place of the one that is there.
async fn rewrite(world: &World, pool: &SqlitePool, change: impl FnOnce(&mut Consumption)) {
    let organisation = &world.project.organisation;
    let store = &world.engine.store;
    let old = world.snapshot().await.consumption().unwrap();
    let kept = store.within(organisation).evidence(&old).await;
    let mut record: Consumption = serde_json::from_slice(&kept.unwrap().unwrap().1).unwrap();
    change(&mut record);
    let document = EvidenceDocument {
        media_type: "application/json",
        bytes: record.to_bytes(),
    };
    let new = record.digest();
    store
        .keep_evidence(organisation, &new, &document, world.clock.now())
        .await
        .unwrap();
    sqlx::query("UPDATE fact SET body = replace(body, $1, $2) WHERE kind = 'consumed'")
        .bind(old.to_string())
        .bind(new.to_string())
        .execute(pool)
        .await
        .unwrap();
    let found = world.snapshot().await.consumption();
    assert_eq!(found, Some(new), "the database says so now");
}

/// Uses a link of one's own in the owner's place, which the database alone cannot tell; gives the hash of the owner's.
async fn answer_with(world: &World, pool: &SqlitePool, own: &ApprovalToken) -> TokenHash {
    let made = world.inbox.link().unwrap().hash();
    sqlx::query("UPDATE approval SET token = $1")
        .bind(own.hash().0.to_string())
        .execute(pool)
        .await
        .unwrap();
    let store = &world.engine.store;
    let used = store
        .consume(own, HumanDecision::Approve, None, world.clock.now())
        .await;
    assert!(matches!(used, Ok(Consumed::Done { .. })), "{used:?}");
    made
}

async fn is_not_signed(world: &World) {
    assert_eq!(world.settle().await, Stage::Escalated);
    assert_eq!(
        world.events().await,
        ["proposal", "policy-decision", "escalation"]
    );
    let pulls = world.planted.repository.pulls().unwrap();
    assert!(pulls[0].merge_commit.is_none(), "nothing was merged");
}

/// Somebody who can write the database answers in the owner's place, with a link of their own.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_written_into_the_database_is_not_signed() {
    let world = World::new(Setting::sums()).await;
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    let pool = database(&world).await;
    answer_with(&world, &pool, &ApprovalToken::from_random([7; 32])).await;
    pool.close().await;
    is_not_signed(&world).await;
}

/// The hash of the owner's link stands in the database, so that the record can be made to name it; its nonce does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_names_the_owners_link_without_its_nonce_is_not_signed() {
    let world = World::new(Setting::sums()).await;
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    let pool = database(&world).await;
    let made = answer_with(&world, &pool, &ApprovalToken::from_random([7; 32])).await;
    rewrite(&world, &pool, |record| record.token = made).await;
    pool.close().await;
    is_not_signed(&world).await;
}

/// The owner did answer; what is signed must not say that another link was used.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_names_another_link_than_the_one_used_is_not_signed() {
    let world = World::new(Setting::sums()).await;
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    world.answer(HumanDecision::Approve).await;
    let other = ApprovalToken::from_random([7; 32]).hash();
    let pool = database(&world).await;
    rewrite(&world, &pool, |record| record.token = other).await;
    pool.close().await;
    is_not_signed(&world).await;
}

/// The owner rejected. Record, fact and link are made to say that they approved.
#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_turned_into_an_approval_in_the_database_is_not_signed() {
    let world = World::new(Setting::sums()).await;
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    world.answer(HumanDecision::Reject).await;
    let pool = database(&world).await;
    rewrite(&world, &pool, |record| {
        record.decision = HumanDecision::Approve;
    })
    .await;
    for statement in [
        "UPDATE fact SET body = replace(body, '\"reject\"', '\"approve\"') WHERE kind = 'consumed'",
        "UPDATE approval SET decision = 'approve' WHERE decision = 'reject'",
    ] {
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    pool.close().await;
    let answer = world.snapshot().await.answer();
    assert_eq!(answer, Some(HumanDecision::Approve), "the database says so");
    is_not_signed(&world).await;
}

/// The seal is over all of it.
#[test]
fn nothing_in_the_record_of_an_answer_can_be_changed() {
    let bends: [fn(&mut Consumption); 5] = [
        |record| record.comment = Some("of course".to_owned()),
        |record| record.consumed_at = record.consumed_at.plus_seconds(-1),
        |record| record.expires_at = record.expires_at.plus_seconds(600),
        |record| record.issued_at = record.issued_at.plus_seconds(-1),
        |record| record.seal = None,
    ];
    let token = ApprovalToken::from_random([7; 32]);
    let record = Consumption {
        request: Sha256Digest::of(b"request"),
        approval: ApprovalId::new(NOW, [1; 10]),
        token: token.hash(),
        nonce: None,
        issued_at: NOW,
        expires_at: NOW.plus_seconds(3_600),
        consumed_at: NOW.plus_seconds(60),
        decision: HumanDecision::Reject,
        principal: "local:ada".parse().unwrap(),
        comment: None,
        seal: None,
    }
    .sealed_by(&token);
    assert!(record.is_sealed_by(&token));
    assert!(!record.is_sealed_by(&ApprovalToken::from_random([8; 32])));
    for bend in bends {
        let mut bent = record.clone();
        bend(&mut bent);
        assert!(!bent.is_sealed_by(&token), "{bent:?}");
    }
}
