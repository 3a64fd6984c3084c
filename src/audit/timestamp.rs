//! Timestamps (RFC 3161) that a bundle or a folder brings: what belongs to them, and what they say once they are verified.
//!
//! Verifying one takes X.509, which a small verifier has no room for: without a [`TimestampRoots`] they are told, not checked.

use std::collections::BTreeMap;

use serde::Serialize;

use super::archive::Archive;
use super::bundle::{NotOneLog, number, one_log};
use crate::attest::chain::Verdict;
use crate::attest::text::shown;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::log::{LogPolicy, SignedCheckpoint, TreeHead};

/// The most that are looked at in one bundle: each costs signatures.
const MOST: usize = 64;
/// The name of the checkpoint that timestamps beside it are of.
const CHECKPOINT: &str = "checkpoint";

/// A verified timestamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamped {
    /// When, by the authority's clock.
    pub at: Millis,
    /// By how much that may be wrong, in milliseconds, if the authority says so.
    pub accuracy_millis: Option<u64>,
    /// Under which policy of the authority: an object identifier.
    pub policy: String,
    /// The common name in the authority's certificate, made printable.
    pub authority: String,
    /// SHA-256 of the authority's public key: two timestamps under one key are one authority's.
    pub key: Sha256Digest,
    /// The number of the request, octets of an integer, if it had one.
    pub nonce: Option<Vec<u8>>,
}

impl Stamped {
    /// The moment before which what was stamped existed: the authority's, with all of what it may be wrong by.
    pub fn before(&self) -> Millis {
        let wrong = i64::try_from(self.accuracy_millis.unwrap_or(0)).unwrap_or(i64::MAX);
        self.at.plus_millis(wrong)
    }
}

/// Whoever can verify timestamps.
pub trait TimestampRoots {
    /// Verifies an authority's answer about bytes with this SHA-256.
    ///
    /// # Errors
    /// It does not hold, in words.
    fn verify(&self, response: &[u8], imprint: &Sha256Digest) -> Result<Stamped, String>;
}

/// Whether a timestamp was verified, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimestampVerdict {
    /// Nobody looked.
    NotChecked,
    /// It holds.
    Valid,
    /// It does not.
    Invalid,
}

/// A timestamp of a checkpoint that belongs to what is verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BroughtTimestamp {
    /// Leaves of the checkpoint.
    pub checkpoint: u64,
    /// What whoever anchored it calls the authority.
    pub name: String,
    /// How many events of the bundle, from the first, are among these leaves; none in a whole log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Whether it holds.
    pub verdict: TimestampVerdict,
    /// The moment before which these leaves existed, if it holds.
    pub before: Option<Millis>,
    /// According to whom.
    pub authority: Option<String>,
    /// SHA-256 of the authority's public key.
    pub key: Option<Sha256Digest>,
    /// What was stamped.
    #[serde(skip)]
    imprint: Sha256Digest,
    /// The authority's answer.
    #[serde(skip)]
    response: Vec<u8>,
}

impl BroughtTimestamp {
    /// One that nobody has looked at yet, over a checkpoint of so many leaves with these bytes.
    pub fn new(checkpoint: u64, name: &str, stamped: &[u8], response: &[u8]) -> Self {
        Self {
            checkpoint,
            name: name.to_owned(),
            events: None,
            verdict: TimestampVerdict::NotChecked,
            before: None,
            authority: None,
            key: None,
            imprint: Sha256Digest::of(stamped),
            response: response.to_vec(),
        }
    }

    /// Verifies it.
    ///
    /// # Errors
    /// It does not hold, in words.
    pub fn check(&mut self, roots: &dyn TimestampRoots) -> Result<(), String> {
        let stamped = roots.verify(&self.response, &self.imprint);
        self.verdict = match stamped {
            Ok(_) => TimestampVerdict::Valid,
            Err(_) => TimestampVerdict::Invalid,
        };
        let stamped = stamped
            .map_err(|reason| format!("{} over {} leaves: {reason}", self.name, self.checkpoint))?;
        self.before = Some(stamped.before());
        self.authority = Some(stamped.authority);
        self.key = Some(stamped.key);
        Ok(())
    }
}

/// Of the timestamps that hold, those that say most, one for each authority, which is its key: over the most leaves, and of
/// these the earliest.
pub fn by_authority(timestamps: &[BroughtTimestamp]) -> Vec<&BroughtTimestamp> {
    let mut best: BTreeMap<Sha256Digest, &BroughtTimestamp> = BTreeMap::new();
    for found in timestamps {
        // Break it: take the name instead of the key; one authority under two names then counts twice
        // (`audit::timestamps::two_timestamps_of_one_authority_count_once`).
        let Some(key) = found.key else { continue };
        let worth = |one: &BroughtTimestamp| {
            let covered = one.events.unwrap_or(one.checkpoint);
            (covered, std::cmp::Reverse(one.before))
        };
        let entry = best.entry(key).or_insert(found);
        if worth(found) > worth(entry) {
            *entry = found;
        }
    }
    best.into_values().collect()
}

/// Whether the rest of a member's name behind `timestamps/` is one that a bundle has.
pub(super) fn is_member(rest: &str) -> bool {
    rest.split_once('/').is_some_and(|(size, file)| {
        number(size).is_some() && (file == CHECKPOINT || authority_of(file).is_some())
    })
}

/// The name of the authority in that of a file, if it is a timestamp's.
pub fn authority_of(file: &str) -> Option<&str> {
    let name = file.strip_suffix(".tsr")?;
    let fits = (1..=60).contains(&name.len())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    fits.then_some(name)
}

/// The checkpoint that timestamps are of: one of so many leaves that counts, without anybody's cosignature.
///
/// # Errors
/// It is something else, in words.
pub fn stamped_checkpoint(bytes: &[u8], size: u64, policy: &LogPolicy) -> Result<TreeHead, String> {
    let checkpoint = SignedCheckpoint::parse(bytes).map_err(|error| error.to_string())?;
    if checkpoint.without_cosignatures().as_bytes() != bytes {
        return Err("lines beside the log's own".to_owned());
    }
    let trusted = policy.verify(&checkpoint);
    let head = trusted.map_err(|error| error.to_string())?.head();
    if head.size() == size {
        Ok(head)
    } else {
        Err(format!("one over {} leaves", head.size()))
    }
}

/// What does not hold, with what was expected and what was found.
pub(super) type Fault = (Verdict, &'static str, String);

/// The timestamps of a bundle whose checkpoint counts and is of the bundle's log, and what is wrong with the others. `places` are
/// those of its events in the log.
pub(super) fn of_bundle(
    archive: &Archive<'_>,
    policy: &LogPolicy,
    head: &TreeHead,
    places: &[u64],
) -> (Vec<BroughtTimestamp>, Vec<Fault>) {
    let (mut brought, mut faults) = (Vec::new(), Vec::new());
    let mut folders: BTreeMap<u64, BTreeMap<&str, &[u8]>> = BTreeMap::new();
    for (name, bytes) in archive
        .folder("timestamps")
        .filter(|(name, _)| is_member(name))
    {
        if let Some((size, file)) = name.split_once('/')
            && let Some(size) = number(size)
        {
            folders.entry(size).or_default().insert(file, bytes);
        }
    }
    for (size, mut files) in folders {
        let checkpoint = files.remove(CHECKPOINT).unwrap_or_default();
        let fitting = stamped_checkpoint(checkpoint, size, policy)
            .map_err(|found| (Verdict::Invalid, found))
            // Break it: drop this; timestamps of another history then stand under this one
            // (`audit::timestamps::a_checkpoint_of_another_history_is_refused`).
            .and_then(|stamped| one_log(archive, stamped, *head).map_err(fault));
        if let Err((verdict, found)) = fitting {
            let found = format!("timestamps/{size}/{CHECKPOINT}: {found}");
            faults.push((verdict, "timestamps of this log's checkpoints", found));
            continue;
        }
        if files.is_empty() {
            let found = format!("none beside timestamps/{size}/{CHECKPOINT}");
            faults.push((Verdict::Invalid, "a timestamp of the checkpoint", found));
        }
        for (file, response) in files {
            let name = authority_of(file).unwrap_or_default();
            let mut one = BroughtTimestamp::new(size, name, checkpoint, response);
            one.events = Some(places.iter().filter(|place| **place < size).count() as u64);
            brought.push(one);
        }
    }
    // Break it: drop this bound (`audit::timestamps::no_more_are_looked_at_than_cost_little`).
    if brought.len() > MOST {
        let found = brought.len().to_string();
        faults.push((Verdict::Invalid, "at most 64 timestamps", found));
        brought.truncate(MOST);
    }
    (brought, faults)
}

fn fault(not_one: NotOneLog) -> (Verdict, String) {
    match not_one {
        NotOneLog::OtherRoot => (
            Verdict::Invalid,
            "another root over as many leaves".to_owned(),
        ),
        NotOneLog::NoProof(name) => (Verdict::CannotVerify, format!("no {name}")),
        NotOneLog::NoHashes(name) => (Verdict::Invalid, format!("{} is no proof", shown(&name))),
        NotOneLog::NotProven(found) => (Verdict::Invalid, found),
    }
}
