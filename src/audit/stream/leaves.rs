//! Leaves of a log, each judged by itself: what several workers do side by side.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::SyncSender;

use super::LogFiles;
use crate::attest::OrganisationEvent;
use crate::attest::TrustHistory;
use crate::attest::chain::{Prepared, Refusal, Step, Word};
use crate::attest::predicate::PolicyVersion;
use crate::change::Sha256Digest;
use crate::log::{Leaf, LeafError, Record, TILE_WIDTH, TileId, TileKind, TreeHash, read_entries};

/// A leaf as far as it can be judged by itself.
pub(super) struct Judged {
    pub(super) hash: TreeHash,
    pub(super) what: What,
}

pub(super) enum What {
    /// Only what its chain needs: the rest is dropped where it was made, which costs least.
    Event(Box<Step>),
    /// Rules come into force.
    Policy(Box<PolicyVersion>),
    /// Authentic, and of no chain: it stands for itself.
    Statement,
    /// Signed, and not authentic.
    Refused(Box<Refusal>),
    TrustRoot(Sha256Digest),
    Record(Record),
    Unreadable(LeafError),
}

/// A block of leaves, or why there is none.
pub(super) type Block = Result<Vec<Judged>, String>;

/// Reads and judges blocks of leaves, each by itself.
pub(super) fn work(
    files: &dyn LogFiles,
    trust: &TrustHistory,
    size: u64,
    blocks: impl Iterator<Item = u64>,
    sender: &SyncSender<Block>,
) {
    for block in blocks {
        // Break it: call it directly; a fault of this program then ends the verification without a word
        // (`audit::stream::a_part_of_the_verifier_that_fails_makes_nothing_valid`).
        let judged = catch_unwind(AssertUnwindSafe(|| judged(files, trust, size, block)))
            .unwrap_or_else(|_| Err("the verifier itself failed here".to_owned()));
        let failed = judged.is_err();
        // Nobody takes it any more when the verification has ended.
        if sender.send(judged).is_err() || failed {
            return;
        }
    }
}

fn judged(files: &dyn LogFiles, trust: &TrustHistory, size: u64, block: u64) -> Block {
    let id = entries_tile(block, size)?;
    let bytes = files.file(id)?;
    let entries = read_entries(&bytes, id.width()).map_err(|error| format!("{id}: {error}"))?;
    let places = id.first_leaf()..;
    let judged = places.zip(entries);
    Ok(judged
        .map(|(place, entry)| judge(trust, entry, place))
        .collect())
}

fn judge(trust: &TrustHistory, entry: &[u8], place: u64) -> Judged {
    let what = match Leaf::parse(entry) {
        Ok(Leaf::Statement(envelope)) => {
            match Prepared::read(trust, &envelope, Some(place)).into_word() {
                Ok(Word::Step(step)) => What::Event(Box::new(step)),
                Ok(Word::Organisation(OrganisationEvent::PolicyVersion(version))) => {
                    What::Policy(version)
                }
                Ok(Word::Organisation(_) | Word::Evidence) => What::Statement,
                Err(refusal) => What::Refused(Box::new(refusal)),
            }
        }
        Ok(Leaf::TrustRoot(document)) => What::TrustRoot(document.digest()),
        Ok(Leaf::Record(record)) => What::Record(record),
        Err(error) => What::Unreadable(error),
    };
    Judged {
        hash: TreeHash::of_leaf(entry),
        what,
    }
}

pub(super) fn entries_tile(block: u64, size: u64) -> Result<TileId, String> {
    let left = size.saturating_sub(block * u64::from(TILE_WIDTH));
    let width = u16::try_from(left.min(u64::from(TILE_WIDTH))).unwrap_or(TILE_WIDTH);
    TileId::new(TileKind::Entries, block, width).map_err(|error| error.to_string())
}
