//! What each answer to a merge means. An ambiguous one is never answered by asking again.

use crate::change::Oid;
use crate::clock::Millis;

/// How the provider answered the one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeAnswer {
    /// 200: merged, as this commit.
    Merged(Oid),
    /// 409: the head is not the one in the order, says the provider.
    HeadMoved(String),
    /// 405, with the provider's reason.
    NotAllowed(String),
    /// 403 or 429 with the headers of a limit.
    Limited(Millis),
    /// 401: the credential ran out.
    CredentialExpired(String),
    /// 403 without them, 404, 422 and whatever else is plainly a no.
    Refused(String),
    /// 5xx, a timeout, a reset, an answer cut short: it may have happened.
    Ambiguous(String),
}

/// What to do next.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterMerge {
    /// Look at what landed. Never send again first.
    ProveLanding,
    /// Nothing happened and the reason may be gone: compare again from the start.
    CompareAgain,
    /// Wait outside, then compare again.
    WaitThenCompare(Millis),
    /// Stop and hand over, with the provider's reason.
    Stop(String),
}

/// How often a comparison may be repeated because the provider said that something moved.
pub const COMPARISONS_PER_MERGE: u32 = 3;

/// The table of answers. `comparisons` counts the comparisons made for this execution so far.
pub fn after(answer: &MergeAnswer, comparisons: u32) -> AfterMerge {
    match answer {
        MergeAnswer::Merged(_) | MergeAnswer::Ambiguous(_) => AfterMerge::ProveLanding,
        MergeAnswer::HeadMoved(reason) | MergeAnswer::CredentialExpired(reason) => {
            again_or_stop(comparisons, reason)
        }
        MergeAnswer::NotAllowed(reason) if reason.contains("Base branch was modified") => {
            again_or_stop(comparisons, reason)
        }
        MergeAnswer::Limited(until) => AfterMerge::WaitThenCompare(*until),
        MergeAnswer::NotAllowed(reason) | MergeAnswer::Refused(reason) => {
            AfterMerge::Stop(reason.clone())
        }
    }
}

fn again_or_stop(comparisons: u32, reason: &str) -> AfterMerge {
    if comparisons < COMPARISONS_PER_MERGE {
        AfterMerge::CompareAgain
    } else {
        AfterMerge::Stop(format!(
            "still refused after {comparisons} comparisons: {reason}"
        ))
    }
}
