//! The key of the log and what it signs: checkpoints.
//!
//! The signer does not believe the database. It keeps the last checkpoint that it signed in a file of its own, computes the
//! tree anew from the leaves that came since, and signs only what extends that checkpoint: a database that was rolled back,
//! cut or written anew gets no signature.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{Keyring, files};
use crate::attest::SecretKey;
use crate::audit::log_origin;
use crate::clock::Millis;
use crate::id::OrganisationId;
use crate::log::{
    Checkpoint, CheckpointError, Frontier, LogSigner, MAX_NOTE, Node, SignedCheckpoint, TreeError,
    TreeHash, TreeHead,
};
use crate::store::{Scoped, Store, StoreError};

/// Leaves that are read at once.
const CHUNK: u64 = 256;

/// Why no checkpoint was signed.
#[derive(Debug, Error)]
pub enum CheckpointRefusal {
    /// The database.
    #[error("making a checkpoint: {0}")]
    Store(#[from] StoreError),
    /// Fewer leaves than were signed for.
    #[error(
        "the log in the database has {found} leaves, but a checkpoint over {signed} was signed: the database was restored from an older copy or cut. \
         Nothing is signed until the newer database is back; the last signed checkpoint is {memory}"
    )]
    RolledBack {
        /// Leaves signed for.
        signed: u64,
        /// Leaves there are.
        found: u64,
        /// Where the checkpoint is kept.
        memory: String,
    },
    /// Other leaves than were signed for.
    #[error(
        "the log in the database is not the one that was signed for: its first {signed} leaves have another root. Somebody changed the database; \
         nothing is signed. The last signed checkpoint is {memory}"
    )]
    Forked {
        /// Leaves signed for.
        signed: u64,
        /// Where the checkpoint is kept.
        memory: String,
    },
    /// The stored tree is not that of the stored leaves.
    #[error(
        "the log in the database contradicts itself: the hashes kept for its {size} leaves are not those of the leaves; somebody changed the database"
    )]
    Contradiction {
        /// Leaves.
        size: u64,
    },
    /// A leaf without bytes.
    #[error(
        "the log's leaf {position} has lost its bytes: the event it logged is gone from the ledger; somebody changed the database"
    )]
    Missing {
        /// Where.
        position: u64,
    },
    /// The file with the last checkpoint.
    #[error("the file {path} with the last signed checkpoint: {cause}")]
    Memory {
        /// Where.
        path: String,
        /// What the system says.
        cause: io::Error,
    },
    /// What is in it.
    #[error(
        "the file {path} does not hold the last checkpoint that this key signed ({reason}); restore it, or if the key is new here, move it away"
    )]
    Unreadable {
        /// Where.
        path: String,
        /// Why not.
        reason: String,
    },
    /// The tree.
    #[error("making a checkpoint: {0}")]
    Tree(#[from] TreeError),
    /// The note.
    #[error("making a checkpoint: {0}")]
    Checkpoint(#[from] CheckpointError),
}

/// Signs checkpoints of one organisation's log.
#[derive(Debug)]
pub struct CheckpointSigner<'k> {
    signer: LogSigner<&'k SecretKey>,
    organisation: &'k OrganisationId,
    /// Where the last one is kept.
    memory: PathBuf,
}

impl<'k> CheckpointSigner<'k> {
    /// The signer of an installation, which remembers in `log.checkpoint` of its folder; none without a key of the log.
    pub fn of(keys: &'k Keyring, home: &Path) -> Option<Self> {
        let organisation = keys.organisation();
        let origin = log_origin(organisation.as_str()).ok()?;
        Some(Self {
            signer: LogSigner::new(origin, keys.log_key()?),
            organisation,
            memory: home.join("log.checkpoint"),
        })
    }

    /// A checkpoint over everything that is logged now: the newest one, or a new one. None of an empty log.
    ///
    /// # Errors
    /// The database fails, or is not the one that was signed for before: see [`CheckpointRefusal`].
    pub async fn cover(
        &self,
        store: &Store,
        now: Millis,
    ) -> Result<Option<SignedCheckpoint>, CheckpointRefusal> {
        let scoped = store.within(self.organisation);
        let frontier = scoped.log_frontier().await?;
        let head = frontier.head();
        if head.size() == 0 && self.remembered()?.is_none() {
            return Ok(None);
        }
        if let Some(newest) = scoped.newest_checkpoint().await?
            && newest.size == head.size()
            && let Ok(signed) = SignedCheckpoint::parse(newest.note.as_bytes())
            && signed.claimed().head() == head
            && self.is_ours(&signed)
        {
            return Ok(Some(signed));
        }
        self.check(&scoped, head).await?;
        let checkpoint = Checkpoint::new(self.signer.verifier().name().clone(), head);
        let signed = self.signer.sign(checkpoint)?;
        let note = signed.to_string();
        // Remembered before anybody can see it.
        let path = &self.memory;
        files::write_whole(path, note.as_bytes(), true).map_err(|cause| memory(path, cause))?;
        store
            .keep_checkpoint(self.organisation, head.size(), &note, now)
            .await?;
        Ok(Some(signed))
    }

    /// Computes the tree from what was signed before and the leaves since.
    async fn check(&self, scoped: &Scoped<'_>, head: TreeHead) -> Result<(), CheckpointRefusal> {
        let mut tree = Frontier::new();
        if let Some(signed) = self.remembered()? {
            let memory = self.place();
            // Break it: drop this comparison; an older copy of the database is then signed for again
            // (`log::keeping::a_database_that_was_rolled_back_gets_no_checkpoint`).
            if signed.size() > head.size() {
                return Err(CheckpointRefusal::RolledBack {
                    signed: signed.size(),
                    found: head.size(),
                    memory,
                });
            }
            let peaks = scoped.log_hashes(Node::peaks(signed.size())?).await?;
            tree = Frontier::from_peaks(signed.size(), peaks)?;
            // Break it: drop this comparison; a history that was written anew is then signed for
            // (`log::keeping::a_log_that_was_written_anew_gets_no_checkpoint`).
            if tree.root() != signed.root() {
                return Err(CheckpointRefusal::Forked {
                    signed: signed.size(),
                    memory,
                });
            }
        }
        let tree = grown(scoped, tree, head.size(), |_| {}).await?;
        // Break it: drop this comparison; what is signed is then whatever hashes stand in the database
        // (`log::keeping::hashes_that_are_not_the_leaves_get_no_checkpoint`).
        if tree.head() == head {
            Ok(())
        } else {
            Err(CheckpointRefusal::Contradiction { size: head.size() })
        }
    }

    /// The head of the last checkpoint that was signed here.
    fn remembered(&self) -> Result<Option<TreeHead>, CheckpointRefusal> {
        let path = &self.memory;
        let bytes = match files::read(path, MAX_NOTE as u64) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|cause| memory(path, cause))?,
        };
        let unreadable = |reason: String| CheckpointRefusal::Unreadable {
            path: path.display().to_string(),
            reason,
        };
        let signed =
            SignedCheckpoint::parse(&bytes).map_err(|error| unreadable(error.to_string()))?;
        if !self.is_ours(&signed) {
            return Err(unreadable("another key signed it".to_owned()));
        }
        Ok(Some(signed.claimed().head()))
    }

    /// Whether the key of this log signed it, under this log's name.
    pub fn is_ours(&self, signed: &SignedCheckpoint) -> bool {
        let verifier = self.signer.verifier();
        signed.claimed().origin() == verifier.name()
            && signed
                .note()
                .verify(&[verifier])
                .is_ok_and(|signers| !signers.is_empty())
    }

    fn place(&self) -> String {
        self.memory.display().to_string()
    }
}

/// The tree with the leaves up to `size`, each of which is shown to `look`.
pub(super) async fn grown(
    scoped: &Scoped<'_>,
    mut tree: Frontier,
    size: u64,
    mut look: impl FnMut(&[u8]) + Send,
) -> Result<Frontier, CheckpointRefusal> {
    while tree.size() < size {
        let to = size.min(tree.size() + CHUNK);
        let leaves = scoped.log_leaves(tree.size(), to).await?;
        for leaf in &leaves {
            let position = tree.size();
            let entry = leaf.entry.as_deref().filter(|_| leaf.position == position);
            let entry = entry.ok_or(CheckpointRefusal::Missing { position })?;
            look(entry);
            tree.append(TreeHash::of_leaf(entry))?;
        }
        if tree.size() < to {
            return Err(CheckpointRefusal::Missing {
                position: tree.size(),
            });
        }
    }
    Ok(tree)
}

fn memory(path: &Path, cause: io::Error) -> CheckpointRefusal {
    CheckpointRefusal::Memory {
        path: path.display().to_string(),
        cause,
    }
}
