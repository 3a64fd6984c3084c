//! Nonces of approval links that were made and not yet delivered.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::approve::ApprovalToken;
use crate::id::ApprovalId;

/// Undelivered links that are remembered; the oldest is forgotten first, and another link is made for it.
const REMEMBERED: usize = 1_024;

/// The nonces, in this process's memory alone: the store keeps only their hashes, so a restart makes new links.
#[derive(Debug, Default)]
pub struct Links(Mutex<BTreeMap<ApprovalId, ApprovalToken>>);

impl Links {
    /// Keeps a nonce until its link is delivered.
    pub(super) fn keep(&self, approval: ApprovalId, token: ApprovalToken) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.insert(approval, token);
        if links.len() > REMEMBERED {
            // Identifiers sort by time.
            links.pop_first();
        }
    }

    /// The part of the link behind `/a/`, if this process made it.
    pub(super) fn text(&self, approval: &ApprovalId) -> Option<zeroize::Zeroizing<String>> {
        let links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.get(approval).map(ApprovalToken::to_link_text)
    }

    /// Forgets a nonce.
    pub(super) fn forget(&self, approval: &ApprovalId) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.remove(approval);
    }
}
