//! Checkpoints in the database, with the words of witnesses that came in for them.

use caretaker::audit::log_keys;
use caretaker::clock::Millis;
use caretaker::id::OrganisationId;
use caretaker::log::{Leaf, LogPolicy, Record, SignedCheckpoint};
use caretaker::signer::{CheckpointSigner, Keyring, system_randomness};
use caretaker::store::{Store, StoredAnchor};
use tempfile::TempDir;

use super::scene::{NOW, witness};

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
        let ensured = store
            .ensure_organisation(organisation, "example", NOW)
            .await;
        ensured.unwrap();
        Self { home, store, keys }
    }

    fn organisation(&self) -> &OrganisationId {
        self.keys.organisation()
    }

    /// One leaf more, and the checkpoint over it.
    async fn grow(&self) -> SignedCheckpoint {
        let at = NOW;
        let leaf = Leaf::record(Record::Heartbeat { at }).unwrap();
        self.store
            .log(self.organisation(), &leaf, NOW)
            .await
            .unwrap();
        let signer = CheckpointSigner::of(&self.keys, self.home.path()).unwrap();
        signer.cover(&self.store, NOW).await.unwrap().unwrap()
    }

    fn policy(&self, quorum: usize) -> LogPolicy {
        let witnesses = (1..=3).map(|number| witness(number).verifier()).collect();
        LogPolicy::new(log_keys(self.keys.history()).unwrap(), witnesses, quorum).unwrap()
    }

    async fn keep(&self, size: u64, kind: &str, name: &str, receipt: Vec<u8>) {
        let anchor = StoredAnchor {
            size,
            kind: kind.to_owned(),
            name: name.to_owned(),
            receipt,
            anchored_at: Millis(1),
        };
        self.store
            .keep_anchor(self.organisation(), &anchor)
            .await
            .unwrap();
    }

    /// Witnesses answer, and it is kept.
    async fn cosign(&self, checkpoint: &SignedCheckpoint, witnesses: &[u8]) {
        let trusted = self.policy(0).verify(checkpoint).unwrap();
        for number in witnesses {
            let line = format!("{}\n", witness(*number).cosign(&trusted, NOW).unwrap());
            let (size, name) = (trusted.head().size(), format!("w{number}"));
            self.keep(size, "witness", &name, line.into_bytes()).await;
        }
    }

    /// The size of the checkpoint that most have seen, which has to verify.
    async fn best(&self, least: u64, quorum: usize) -> Option<u64> {
        let scoped = self.store.within(self.organisation());
        let best = scoped.best_cosigned(least).await.unwrap()?;
        Some(self.policy(quorum).verify(&best).unwrap().head().size())
    }
}

#[tokio::test]
async fn what_witnesses_said_is_handed_out_with_the_checkpoint() {
    let world = World::new().await;
    let first = world.grow().await;
    assert_eq!(world.best(0, 0).await, None);
    world.cosign(&first, &[1, 2]).await;
    let newest = world.grow().await;
    let scoped = world.store.within(world.organisation());
    let stored = scoped.newest_checkpoint().await.unwrap().unwrap();
    // Receipts of other checkpoints are no words about this one.
    assert_eq!(scoped.cosigned(&stored).await.unwrap(), newest);
    world.cosign(&newest, &[3]).await;
    let cosigned = scoped.cosigned(&stored).await.unwrap();
    let trusted = world.policy(1).verify(&cosigned).unwrap();
    assert_eq!(trusted.cosignatures().len(), 1);
}

#[tokio::test]
async fn the_checkpoint_that_most_have_seen_is_the_best_that_covers() {
    let world = World::new().await;
    let mut checkpoints = Vec::new();
    for _ in 0..5 {
        checkpoints.push(world.grow().await);
    }
    world.cosign(&checkpoints[0], &[1, 2, 3]).await;
    world.cosign(&checkpoints[1], &[1, 2]).await;
    world.cosign(&checkpoints[2], &[2, 3]).await;
    world.cosign(&checkpoints[3], &[3]).await;
    assert_eq!(world.best(0, 3).await, Some(1));
    assert_eq!(world.best(1, 3).await, Some(1));
    assert_eq!(world.best(2, 2).await, Some(3));
    assert_eq!(world.best(4, 1).await, Some(4));
    assert_eq!(world.best(5, 0).await, None);
}

#[tokio::test]
async fn other_receipts_and_such_as_are_none_do_no_harm() {
    let world = World::new().await;
    let checkpoint = world.grow().await;
    world.keep(1, "timestamp", "tsa", vec![0x30, 0x80]).await;
    world
        .keep(1, "branch", "branch", b"\xff\xfe".to_vec())
        .await;
    assert_eq!(world.best(0, 0).await, None);
    world
        .keep(1, "witness", "changed", b"\xff no line\n\n".to_vec())
        .await;
    world.cosign(&checkpoint, &[2]).await;
    assert_eq!(world.best(0, 1).await, Some(1));
    // A receipt that was exchanged has the form of one: the witness's verifiers refuse the note.
    let other = witness(1).cosign(&world.policy(0).verify(&world.grow().await).unwrap(), NOW);
    let line = format!("{}\n", other.unwrap());
    world.keep(1, "witness", "w1", line.into_bytes()).await;
    let scoped = world.store.within(world.organisation());
    let best = scoped.best_cosigned(0).await.unwrap().unwrap();
    world.policy(0).verify(&best).unwrap_err();
}
