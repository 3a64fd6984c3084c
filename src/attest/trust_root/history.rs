//! The versions of a trust root that a verifier holds, without gaps.

use std::collections::BTreeMap;

use super::super::dsse::SignedDocument;
use super::super::keys::{KeyId, KeyUse, PublicKey};
use super::super::predicate::TrustRootRef;
use super::super::role::Role;
use super::{RoleKey, SideKey, TrustRoot, TrustRootError, verify_with};
use crate::clock::Millis;

/// Consecutive versions of one organisation's trust root, each reached from a pinned one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustHistory {
    /// Ascending; the first is never missing.
    first: TrustRoot,
    later: Vec<TrustRoot>,
}

impl From<TrustRoot> for TrustHistory {
    /// Starts from the version that is trusted.
    fn from(root: TrustRoot) -> Self {
        Self {
            first: root,
            later: Vec::new(),
        }
    }
}

impl TrustHistory {
    /// Adds the version before the oldest one. It is trusted because the oldest one names its digest.
    pub fn add_older(&mut self, bytes: &[u8]) -> Result<(), TrustRootError> {
        let older = TrustRoot::parse_unpinned(bytes)?;
        let newer = &self.first;
        if newer.document.prev.map(|prev| prev.sha256) != Some(older.digest) {
            return discontinuous(&older, "the version after it names another predecessor");
        }
        self.check_pair(&older, newer)?;
        let newer = std::mem::replace(&mut self.first, older);
        self.later.insert(0, newer);
        Ok(())
    }

    /// Adds the version after the newest one. It is trusted because the newest one's root keys signed it, too.
    pub fn add_newer(&mut self, bytes: &[u8]) -> Result<(), TrustRootError> {
        let newer = TrustRoot::parse_unpinned(bytes)?;
        let older = self.newest();
        if newer.document.prev.map(|prev| prev.sha256) != Some(older.digest) {
            return discontinuous(&newer, "it names another predecessor");
        }
        // Without the old threshold whoever makes a root of their own could append it.
        verify_with(&SignedDocument::parse(bytes)?, &older.document)?;
        self.check_pair(older, &newer)?;
        self.later.push(newer);
        Ok(())
    }

    /// The newest version held.
    pub fn newest(&self) -> &TrustRoot {
        self.later.last().unwrap_or(&self.first)
    }

    /// Every version held, oldest first.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = &TrustRoot> {
        std::iter::once(&self.first).chain(&self.later)
    }

    /// The version that an event names: none if it is not held, or is another document of the same number.
    pub fn version(&self, reference: TrustRootRef) -> Option<&TrustRoot> {
        self.versions().find(|root| root.reference() == reference)
    }

    /// The newest entry of the role key with this id. A key has one role in all versions.
    pub fn role_key(&self, keyid: &KeyId) -> Option<(Role, &RoleKey)> {
        self.versions().rev().find_map(|root| root.role_key(keyid))
    }

    /// The log's keys whose checkpoints of this moment count. Of a key that several versions list, the newest entry says
    /// until when; one that any version revoked stays revoked.
    pub fn log_keys_at(&self, moment: Millis) -> Vec<&PublicKey> {
        let mut found: Vec<&SideKey> = Vec::new();
        let listed = self.versions().rev();
        for key in listed.flat_map(|root| root.side_keys(KeyUse::Log)) {
            if !found.iter().any(|newer| newer.keyid == key.keyid) {
                found.push(key);
            }
        }
        let revoked = |keyid: &KeyId| {
            self.versions()
                .flat_map(|root| root.side_keys(KeyUse::Log))
                .filter(|key| key.keyid == *keyid)
                .filter_map(|key| key.revoked.as_ref())
                .any(|revocation| revocation.effective_from() <= moment)
        };
        found
            .into_iter()
            .filter(|key| key.validity().counts_at(moment) && !revoked(&key.keyid))
            .map(|key| &key.public)
            .collect()
    }

    fn check_pair(&self, older: &TrustRoot, newer: &TrustRoot) -> Result<(), TrustRootError> {
        if older.document.org != newer.document.org {
            return discontinuous(newer, "it is another organisation's");
        }
        if newer.document.version != older.document.version + 1 {
            return discontinuous(newer, "the numbers are not consecutive");
        }
        // A key that was revoked, or signed, under one use and comes back under another would have two words.
        let mut known: BTreeMap<&KeyId, &str> = BTreeMap::new();
        let held = self.versions().chain([older, newer]);
        for (used, keyid) in held.flat_map(|root| root.document.uses()) {
            if *known.entry(keyid).or_insert(used) != used {
                return discontinuous(newer, "a key changes its role");
            }
        }
        Ok(())
    }
}

fn discontinuous(root: &TrustRoot, problem: &str) -> Result<(), TrustRootError> {
    Err(TrustRootError::Discontinuous {
        version: root.document.version,
        problem: problem.to_owned(),
    })
}
