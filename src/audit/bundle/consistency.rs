//! Whether two checkpoints are of one log, as a bundle proves it.

use super::super::archive::Archive;
use crate::log::{MAX_PROOF, TreeHash, TreeHead, verify_consistency};

/// Why two heads are not shown to be of one log.
#[derive(Debug)]
pub(in crate::audit) enum NotOneLog {
    /// Two roots over as many leaves.
    OtherRoot,
    /// The bundle does not have this member.
    NoProof(String),
    /// This member does not hold hashes.
    NoHashes(String),
    /// The proof does not lead from one to the other.
    NotProven(String),
}

/// Two heads are of one log.
pub(in crate::audit) fn one_log(
    archive: &Archive<'_>,
    one: TreeHead,
    other: TreeHead,
) -> Result<(), NotOneLog> {
    let (older, newer) = if one.size() <= other.size() {
        (one, other)
    } else {
        (other, one)
    };
    if older.size() == newer.size() {
        // Break it: drop this comparison; a log that was written anew then passes
        // (`audit::bundle::a_log_that_was_written_anew_does_not_extend_the_one_that_was_seen`).
        return if older.root() == newer.root() {
            Ok(())
        } else {
            Err(NotOneLog::OtherRoot)
        };
    }
    let name = format!("consistency/{}-{}", older.size(), newer.size());
    let Some(proof) = archive.member(&name) else {
        return Err(NotOneLog::NoProof(name));
    };
    let proof = hashes(proof).ok_or(NotOneLog::NoHashes(name))?;
    verify_consistency(&older, &newer, &proof)
        .map_err(|error| NotOneLog::NotProven(error.to_string()))
}

/// A number in its one spelling.
pub(in crate::audit) fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

pub(super) fn range(text: &str) -> Option<(u64, u64)> {
    let (older, newer) = text.split_once('-')?;
    Some((number(older)?, number(newer)?))
}

/// Hashes, a line each, none of them without its line break; no more than a proof can have.
pub(super) fn hashes(text: &[u8]) -> Option<Vec<TreeHash>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let text = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let lines: Vec<_> = text.split('\n').take(MAX_PROOF + 1).collect();
    if lines.len() > MAX_PROOF {
        return None;
    }
    lines.into_iter().map(|line| line.parse().ok()).collect()
}
