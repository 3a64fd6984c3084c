//! What polls of one project remember for each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::clock::Millis;
use crate::connector::RunView;

/// What polls of one project remember for each other. Losing it costs some requests and nothing else.
#[derive(Debug, Default)]
pub struct Memory {
    /// The newest run at the last poll: what is older was looked at.
    pub(super) newest: Option<u64>,
    /// Runs that have not ended.
    pub(super) running: BTreeSet<u64>,
    /// Runs that have ended and are not understood yet.
    pub(super) unread: BTreeSet<u64>,
    /// Runs of these that are no longer on the first page.
    pub(super) beyond: BTreeSet<u64>,
    /// The first page of which everything is written down. Whether a page is that one is told from the page itself: that the
    /// provider calls it unchanged says only that somebody has read it, which may have been another project or a poll that failed.
    pub(super) settled: Option<Arc<[RunView]>>,
    /// How often an attempt of a run was read without being understood.
    pub(super) readings: BTreeMap<(u64, u64), u32>,
    /// How often an attempt of a run has waited for the log of one of its jobs.
    pub(super) log_readings: BTreeMap<(u64, u64), u32>,
    /// Attempts of runs that wait for a person, and of which that was said.
    pub(super) held: BTreeSet<(u64, u64)>,
    /// Runs and workflows that cannot be judged, in words, of which that was said.
    pub(super) left_out: BTreeSet<String>,
    /// When all pages were read last.
    pub(super) swept_at: Option<Millis>,
}

impl Memory {
    /// The newest run that was seen.
    pub const fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Whether something runs or is not understood yet, so that the next poll should be soon.
    pub fn is_busy(&self) -> bool {
        !self.running.is_empty() || !self.unread.is_empty()
    }

    /// Whether it is not yet said, of what is in these words, that it cannot be judged.
    pub(super) fn is_news(&mut self, words: &str) -> bool {
        // Break it: answer true; the same workflow is then told every quarter of an hour
        // (`watch::silence::a_workflow_that_cannot_be_numbered_is_said_once`).
        self.left_out.insert(words.to_owned())
    }

    /// Whether this first page is one of which everything is written down, with nothing left over from before.
    pub(super) fn has_settled(&self, page: &Arc<[RunView]>) -> bool {
        // Break it: believe the provider's "not modified" instead; what a poll that failed had read is then never written
        // (`watch::polling::a_page_that_a_failed_poll_has_read_is_read_again`).
        let same = self
            .settled
            .as_ref()
            .is_some_and(|settled| Arc::ptr_eq(settled, page));
        same && self.unread.is_empty() && self.beyond.is_empty()
    }
}
