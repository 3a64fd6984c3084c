//! Somebody who can write into the database cuts the end off a ledger, with everything that counts its events.

use caretaker::anchor::AnchorKind;
use caretaker::incident::Stage;
use caretaker::worker::{drain, log_round};
use sqlx::{AnyConnection, Connection as _, Row as _};

use super::anchoring::{Ear, approved_on};
use super::tampering::stopped_at_the_next_commit;
use super::world::World;
use crate::support::postgres;

/// An incident that was approved and then handed over to a person, every event of it under a checkpoint; and how everything
/// that counts its events stood when the approval was the last one.
struct Story {
    world: World,
    database: AnyConnection,
    sqlite: bool,
    chain: (i64, Option<String>, i64, Option<String>),
    facts: i64,
}

impl Story {
    async fn on(address: Option<String>) -> Self {
        sqlx::any::install_default_drivers();
        let witness = Ear::new(AnchorKind::Witness, "auditor");
        witness.contradicts();
        let sqlite = address.is_none();
        let mut world = approved_on(address.clone(), "witness", &[&witness]).await;
        while world.snapshot().await.ledger.appended < 3 {
            assert!(stopped_at_the_next_commit(&mut world).await);
        }
        let file = world.home().join("caretaker.db");
        let address = address.unwrap_or_else(|| format!("sqlite://{}", file.display()));
        let mut database = AnyConnection::connect(&address).await.unwrap();
        let read = "SELECT c.next_draft, c.draft_head, c.next_seq, c.head, i.next_fact FROM chain c JOIN incident i ON i.id = c.incident";
        let row = sqlx::query(read).fetch_one(&mut database).await.unwrap();
        let (chain, facts) = ((row.get(0), row.get(1), row.get(2), row.get(3)), row.get(4));
        assert_eq!(world.settle().await, Stage::Escalated);
        let events = ["proposal", "policy-decision", "approval", "escalation"];
        assert_eq!(world.events().await, events);
        log_round(&world.engine).await.unwrap();
        Self {
            world,
            database,
            sqlite,
            chain,
            facts,
        }
    }

    async fn run(&mut self, statement: &'static str) {
        let done = sqlx::query(statement).execute(&mut self.database).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    async fn unguard(&mut self) {
        let guards: &[&'static str] = if self.sqlite {
            &[
                "DROP TRIGGER fact_no_delete",
                "DROP TRIGGER statement_no_delete",
                "DROP TRIGGER ledger_no_delete",
                "DROP TRIGGER log_leaf_no_update",
            ]
        } else {
            &[
                "DROP TRIGGER fact_append_only ON fact",
                "DROP TRIGGER statement_append_only ON statement",
                "DROP TRIGGER ledger_append_only ON ledger",
                "DROP TRIGGER log_leaf_append_only ON log_leaf",
            ]
        };
        for guard in guards {
            self.run(guard).await;
        }
    }

    /// The escalation never was.
    async fn cut(&mut self) {
        self.run("DELETE FROM ledger WHERE seq = 3").await;
        self.run("DELETE FROM statement WHERE seq = 3").await;
        let facts = sqlx::query("DELETE FROM fact WHERE ordinal >= $1").bind(self.facts);
        facts.execute(&mut self.database).await.unwrap();
        let (next_draft, draft_head, next_seq, head) = self.chain.clone();
        let chain = sqlx::query(
            "UPDATE chain SET next_draft = $1, draft_head = $2, next_seq = $3, head = $4",
        )
        .bind(next_draft)
        .bind(draft_head)
        .bind(next_seq)
        .bind(head);
        chain.execute(&mut self.database).await.unwrap();
        let incident = "UPDATE incident SET stage = 'approved', closed_reason = NULL, wake_at = opened_at, wait_reason = NULL, \
            attempts = 0, lease_owner = NULL, lease_until = NULL, next_fact = $1";
        let incident = sqlx::query(incident).bind(self.facts);
        incident.execute(&mut self.database).await.unwrap();
        self.run("UPDATE project SET merge_holder = NULL").await;
    }

    /// Lets the worker work; every reason for which the incident rested.
    async fn waits(&self) -> Vec<String> {
        let world = &self.world;
        let mut reasons = Vec::new();
        for _ in 0..6 {
            drain(&world.engine, "worker").await.unwrap();
            let scoped = world.engine.store.within(&world.project.organisation);
            let row = scoped.incident(&world.incident).await.unwrap().unwrap();
            reasons.extend(row.wait.map(|(_, reason)| reason));
            world.clock.advance_millis(5_000);
        }
        let pulls = world.planted.repository.pulls().unwrap();
        assert!(pulls[0].merge_commit.is_none(), "nothing was merged");
        reasons
    }
}

/// The ledger alone is whole, and was valid once; the log has one event more.
async fn an_end_that_was_cut_off_shows(address: Option<String>) {
    let mut story = Story::on(address).await;
    story.unguard().await;
    story.cut().await;
    let report = story.world.verify().await;
    let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
    assert_eq!(report.verdict.name(), "invalid", "{failures:?}");
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].starts_with("event 3: log: "), "{failures:?}");
    let reasons = story.waits().await;
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("does not hold exactly the events")),
        "{reasons:?}"
    );
}

/// The leaf, too, is made to look as if it was of no incident. The page cannot tell; before a merge the leaves are read.
async fn a_merge_does_not_follow_a_hidden_leaf(
    address: Option<String>,
    hide: &'static str,
    reason: &str,
) {
    let mut story = Story::on(address).await;
    story.unguard().await;
    story.run(hide).await;
    story.cut().await;
    let report = story.world.verify().await;
    assert_eq!(report.verdict.name(), "valid", "{report:#?}");
    let reasons = story.waits().await;
    assert!(
        reasons.iter().any(|found| found.contains(reason)),
        "{reasons:?}"
    );
}

/// Its bytes stay, so that the tree stays as it was.
const OF_NOBODY: &str = "UPDATE log_leaf SET entry = (SELECT l.envelope FROM ledger l WHERE l.seq = 3), incident = NULL, seq = NULL \
    WHERE seq = 3";
const MISSED: &str = "the log has 4 events of this incident and its ledger 3";
/// Something else stands in its place.
const EXCHANGED: &str = "UPDATE log_leaf SET entry = (SELECT h.entry FROM log_leaf h WHERE h.kind = 'heartbeat' LIMIT 1), \
    incident = NULL, seq = NULL WHERE seq = 3";
const OTHER_TREE: &str = "the log in the database contradicts itself";

// The lines to break are named in `audit::verify` and `worker::steps::hold`.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_was_cut_off_shows_on_sqlite() {
    Box::pin(an_end_that_was_cut_off_shows(None)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_was_cut_off_shows_on_postgresql() {
    if let Some(schema) = postgres::schema().await {
        Box::pin(an_end_that_was_cut_off_shows(Some(schema))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_does_not_follow_an_end_that_was_cut_off() {
    Box::pin(a_merge_does_not_follow_a_hidden_leaf(
        None, OF_NOBODY, MISSED,
    ))
    .await;
    Box::pin(a_merge_does_not_follow_a_hidden_leaf(
        None, EXCHANGED, OTHER_TREE,
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_does_not_follow_an_end_that_was_cut_off_on_postgresql() {
    for (hide, reason) in [(OF_NOBODY, MISSED), (EXCHANGED, OTHER_TREE)] {
        if let Some(schema) = postgres::schema().await {
            Box::pin(a_merge_does_not_follow_a_hidden_leaf(
                Some(schema),
                hide,
                reason,
            ))
            .await;
        }
    }
}

/// So that the tests above show something: without a cut there is a merge.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_escalation_it_would_have_been_merged() {
    let witness = Ear::new(AnchorKind::Witness, "auditor");
    let world = approved_on(None, "witness", &[&witness]).await;
    assert_eq!(world.settle().await, Stage::Resolved);
}
