//! What the log's key signs: never what a database that was changed would have it sign.

use caretaker::clock::Millis;
use caretaker::id::OrganisationId;
use caretaker::log::{Leaf, Record, SignedCheckpoint};
use caretaker::signer::{CheckpointRefusal, CheckpointSigner, Keyring, system_randomness};
use caretaker::store::Store;
use sqlx::Connection as _;
use tempfile::TempDir;

const NOW: Millis = Millis(1_800_000_000_000);

/// A log in a database, and its key.
struct World {
    home: TempDir,
    store: Store,
    keys: Keyring,
}

impl World {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let address = format!("sqlite://{}", home.path().join("caretaker.db").display());
        let store = Store::open(&address).await.unwrap();
        let keys = Keyring::in_memory(None, NOW, &mut system_randomness).unwrap();
        let organisation = keys.organisation();
        store
            .ensure_organisation(organisation, "example", NOW)
            .await
            .unwrap();
        Self { home, store, keys }
    }

    fn organisation(&self) -> &OrganisationId {
        self.keys.organisation()
    }

    async fn log(&self, count: i64) {
        let size = self.size().await;
        for number in 0..count {
            let at = NOW.plus_millis(i64::try_from(size).unwrap() + number);
            let leaf = Leaf::record(Record::Heartbeat { at }).unwrap();
            self.store
                .log(self.organisation(), &leaf, NOW)
                .await
                .unwrap();
        }
    }

    async fn size(&self) -> u64 {
        let scoped = self.store.within(self.organisation());
        scoped.log_frontier().await.unwrap().size()
    }

    async fn cover(&self) -> Result<Option<SignedCheckpoint>, CheckpointRefusal> {
        let signer = CheckpointSigner::of(&self.keys, self.home.path()).unwrap();
        signer.cover(&self.store, NOW).await
    }

    /// Somebody with write access to the database.
    async fn tamper(&self, statements: &'static str) {
        let address = format!(
            "sqlite://{}",
            self.home.path().join("caretaker.db").display()
        );
        let mut raw = sqlx::SqliteConnection::connect(&address).await.unwrap();
        for table in ["log_leaf", "log_node", "log_checkpoint"] {
            for trigger in ["no_update", "no_delete", "no_replace"] {
                let drop = format!("DROP TRIGGER IF EXISTS {table}_{trigger}");
                sqlx::raw_sql(drop.leak() as &'static str)
                    .execute(&mut raw)
                    .await
                    .unwrap();
            }
        }
        sqlx::raw_sql(statements).execute(&mut raw).await.unwrap();
        raw.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_checkpoint_covers_everything_and_is_made_once() {
    let world = World::new().await;
    assert!(world.cover().await.unwrap().is_none(), "nothing is logged");
    world.log(300).await;
    let first = world.cover().await.unwrap().unwrap();
    assert_eq!(first.claimed().head().size(), 300);
    assert_eq!(world.cover().await.unwrap().unwrap(), first);
    world.log(5).await;
    let second = world.cover().await.unwrap().unwrap();
    assert_eq!(second.claimed().head().size(), 305);
    let newest = world
        .store
        .within(world.organisation())
        .newest_checkpoint()
        .await;
    assert_eq!(newest.unwrap().unwrap().note, second.to_string());
}

#[tokio::test]
async fn a_database_that_was_rolled_back_gets_no_checkpoint() {
    let world = World::new().await;
    world.log(10).await;
    let copy = world.home.path().join("copy.db");
    world.tamper("PRAGMA wal_checkpoint(TRUNCATE)").await;
    std::fs::copy(world.home.path().join("caretaker.db"), &copy).unwrap();
    world.log(10).await;
    world.cover().await.unwrap();
    // The backup of before is restored.
    let address = format!("sqlite://{}", copy.display());
    let restored = Store::open(&address).await.unwrap();
    let signer = CheckpointSigner::of(&world.keys, world.home.path()).unwrap();
    let refused = signer.cover(&restored, NOW).await.unwrap_err();
    assert!(
        matches!(
            refused,
            CheckpointRefusal::RolledBack {
                signed: 20,
                found: 10,
                ..
            }
        ),
        "{refused}"
    );
    assert!(refused.to_string().contains("log.checkpoint"), "{refused}");
}

#[tokio::test]
async fn a_log_that_was_written_anew_gets_no_checkpoint() {
    let world = World::new().await;
    world.log(8).await;
    world.cover().await.unwrap();
    world.log(1).await;
    world
        .tamper("UPDATE log_node SET hash = zeroblob(32) WHERE level = 3")
        .await;
    let refused = world.cover().await.unwrap_err();
    assert!(
        matches!(refused, CheckpointRefusal::Forked { signed: 8, .. }),
        "{refused}"
    );
}

#[tokio::test]
async fn hashes_that_are_not_the_leaves_get_no_checkpoint() {
    let world = World::new().await;
    world.log(8).await;
    world.cover().await.unwrap();
    world.log(3).await;
    world
        .tamper("UPDATE log_leaf SET entry = CAST(replace(CAST(entry AS TEXT), 'heartbeat', 'Heartbeat') AS BLOB) WHERE position = 9")
        .await;
    let refused = world.cover().await.unwrap_err();
    assert!(
        matches!(refused, CheckpointRefusal::Contradiction { size: 11 }),
        "{refused}"
    );
}

#[tokio::test]
async fn a_leaf_that_is_gone_is_named() {
    let world = World::new().await;
    world.log(6).await;
    world
        .tamper("DELETE FROM log_leaf WHERE position = 4")
        .await;
    let refused = world.cover().await.unwrap_err();
    assert!(
        matches!(refused, CheckpointRefusal::Missing { position: 4 }),
        "{refused}"
    );
}

#[tokio::test]
async fn a_memory_that_another_key_wrote_is_not_believed() {
    let world = World::new().await;
    world.log(2).await;
    world.cover().await.unwrap();
    let other = Keyring::in_memory(
        Some(world.organisation().clone()),
        NOW,
        &mut system_randomness,
    );
    let other = other.unwrap();
    let signer = CheckpointSigner::of(&other, world.home.path()).unwrap();
    world.log(1).await;
    let refused = signer.cover(&world.store, NOW).await.unwrap_err();
    assert!(
        matches!(refused, CheckpointRefusal::Unreadable { .. }),
        "{refused}"
    );
}
