//! Evidence that is kept for a time: it goes after a signed gap has said so, and the ledger stays valid.

use caretaker::approve::HumanDecision;
use caretaker::attest::chain::Verdict;
use caretaker::audit::Rule;
use caretaker::incident::{Fact, Stage};
use caretaker::worker::{drain, sweep_evidence};
use sqlx::sqlite::SqlitePool;

use super::world::{Setting, World};

const DAY: i64 = 24 * 3_600_000;

async fn database(world: &World) -> SqlitePool {
    let file = world.home().join("caretaker.db");
    let url = format!("sqlite://{}", file.display());
    SqlitePool::connect(&url).await.unwrap()
}

async fn resolved(days: Option<u32>) -> World {
    let mut world = World::new(Setting::sums()).await;
    world.engine.settings.evidence_days = days;
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    world.answer(HumanDecision::Approve).await;
    assert_eq!(world.settle().await, Stage::Resolved);
    world
}

async fn documents(world: &World) -> usize {
    let scoped = world.engine.store.within(&world.project.organisation);
    scoped.evidence_of(&world.incident).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_goes_after_its_time_and_a_signed_gap_says_so() {
    let world = resolved(Some(90)).await;
    let kept = documents(&world).await;
    assert!(kept > 8, "{kept}");
    world.clock.advance_millis(90 * DAY - 1_000);
    assert_eq!(sweep_evidence(&world.engine).await.unwrap(), 0);
    assert_eq!(documents(&world).await, kept);
    world.clock.advance_millis(2_000);
    assert_eq!(sweep_evidence(&world.engine).await.unwrap(), 1);
    assert_eq!(sweep_evidence(&world.engine).await.unwrap(), 0, "once");
    drain(&world.engine, "worker").await.unwrap();
    assert_eq!(world.stage().await, Stage::Resolved);
    let expected: &[&str] = &["proposal", "policy-decision", "approval", "execution"];
    let gaps = kept.div_ceil(20);
    let events = world.events().await;
    assert_eq!(&events[..4], expected);
    assert_eq!(events[4..], vec!["gap"; gaps]);
    let pool = database(&world).await;
    let left: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM evidence")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(left, 0);
    let report = world.verify().await;
    assert_eq!(report.verdict, Verdict::Valid, "{report:#?}");
    let admissions = report.admissions();
    assert_eq!(admissions.len(), gaps);
    assert!(
        admissions[0]
            .1
            .ends_with("deleted after their time (kept for 90 days after the incident had ended)"),
        "{admissions:?}"
    );
    let told = world.snapshot().await.facts.iter().any(
        |one| matches!(one.fact, Fact::EvidenceLetGo { documents } if documents as usize == kept),
    );
    assert!(told);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_number_of_days_evidence_is_kept_for_ever() {
    let world = resolved(None).await;
    let kept = documents(&world).await;
    world.clock.advance_millis(20_000 * DAY);
    assert_eq!(sweep_evidence(&world.engine).await.unwrap(), 0);
    drain(&world.engine, "worker").await.unwrap();
    assert_eq!(documents(&world).await, kept);
}

// The line to break is named in `worker::steps::let_go`.
#[tokio::test(flavor = "multi_thread")]
async fn a_gap_written_into_the_database_is_not_signed() {
    let world = resolved(Some(90)).await;
    let kept = documents(&world).await;
    // Made due by hand before its time: the step drafts nothing.
    world
        .engine
        .store
        .make_evidence_due(
            &world.project.organisation,
            caretaker::clock::Millis(i64::MAX),
            caretaker::clock::Clock::now(world.clock.as_ref()),
            10,
        )
        .await
        .unwrap();
    drain(&world.engine, "worker").await.unwrap();
    assert_eq!(world.events().await.len(), 4);
    assert_eq!(documents(&world).await, kept);
    assert_eq!(world.stage().await, Stage::Resolved);

    // Drafted when its time had come, and then the configuration says something else: it is not signed.
    let mut world = resolved(Some(1)).await;
    world.clock.advance_millis(2 * DAY);
    assert_eq!(sweep_evidence(&world.engine).await.unwrap(), 1);
    let drafted = super::tampering::stopped_at_the_next_commit(&mut world).await;
    assert!(drafted, "the gap is drafted");
    world.engine.settings.evidence_days = None;
    drain(&world.engine, "worker").await.unwrap();
    assert_eq!(world.snapshot().await.ledger.appended, 4);
    let report = world.verify().await;
    assert_eq!(report.verdict, Verdict::CannotVerify);
    assert!(
        report
            .failures
            .iter()
            .any(|failure| failure.rule == Rule::Drafts)
    );
    assert!(documents(&world).await > 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_that_somebody_deleted_stops_the_merge_and_shows() {
    let world = World::new(Setting::sums()).await;
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    world.answer(HumanDecision::Approve).await;
    let pool = database(&world).await;
    let refused = sqlx::query("DELETE FROM evidence").execute(&pool).await;
    assert!(refused.unwrap_err().to_string().contains("append-only"));
    sqlx::query("DROP TRIGGER evidence_no_delete")
        .execute(&pool)
        .await
        .unwrap();
    let manifest = world.snapshot().await.diagnosis().unwrap().manifest;
    sqlx::query("DELETE FROM evidence WHERE digest = $1")
        .bind(manifest.to_string())
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    assert_eq!(world.settle().await, Stage::Escalated);
    let pulls = world.planted.repository.pulls().unwrap();
    assert!(pulls[0].merge_commit.is_none(), "nothing was merged");
    let report = world.verify().await;
    assert_eq!(report.verdict, Verdict::CannotVerify);
    let failure = report
        .failures
        .iter()
        .find(|failure| failure.rule == Rule::Evidence);
    assert_eq!(failure.map(|failure| failure.seq), Some(0));
}
