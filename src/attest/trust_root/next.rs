//! The version after a version.

use super::document::{RoleKey, RootKey, SideKey, TrustRootDocument};
use super::validity::Revocation;
use super::{TrustRoot, TrustRootError};
use crate::attest::keys::{KeyId, KeyUse, PublicKey};
use crate::attest::role::Role;
use crate::attest::text::{Label, List, MAX_ITEMS, Text};
use crate::clock::Millis;

/// How long a key that was replaced still counts, in seconds: an hour, so that what was under way can be finished under the
/// version that it names.
pub const OVERLAP_SECONDS: i64 = 60 * 60;

/// What a new version changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A new key of a role or of the log. What counted before ends after [`OVERLAP_SECONDS`].
    Key(KeyUse, PublicKey),
    /// A key counts no longer.
    Revoke(KeyId, Revocation),
    /// Another root key.
    AddRoot(PublicKey),
    /// A root key less.
    RemoveRoot(KeyId),
    /// How many root keys have to sign.
    Threshold(u64),
}

impl TrustRootDocument {
    /// The version after `root` with some changes, in order.
    ///
    /// # Errors
    /// A change is none that can be made, or makes a version that contradicts itself.
    pub fn after(
        root: &TrustRoot,
        changes: &[Change],
        issued_at: Millis,
        expires_at: Millis,
    ) -> Result<Self, TrustRootError> {
        let previous = root.document();
        let mut next = Self {
            version: previous.version + 1,
            prev: Some(root.digest().into()),
            issued_at,
            expires_at,
            ..previous.clone()
        };
        if issued_at < previous.issued_at {
            let problem = format!(
                "the clock says {issued_at}, and the version before was made at {}; set the clock",
                previous.issued_at
            );
            return Err(next.refused(problem));
        }
        for change in changes {
            next.change(change)?;
        }
        next.check()?;
        Ok(next)
    }

    fn refused(&self, problem: impl Into<String>) -> TrustRootError {
        TrustRootError::Change {
            version: self.version,
            problem: problem.into(),
        }
    }

    fn change(&mut self, change: &Change) -> Result<(), TrustRootError> {
        match change {
            Change::Key(used, public) => self.add_key(*used, public),
            Change::Revoke(keyid, revocation) => self.revoke(keyid, revocation),
            Change::AddRoot(public) => {
                let mut keys = self.root_keys.to_vec();
                keys.push(RootKey::from_public(public.clone()));
                let kept = List::new(keys).map_err(|error| self.refused(error.to_string()))?;
                self.root_keys = kept;
                Ok(())
            }
            Change::RemoveRoot(keyid) => {
                let mut keys = self.root_keys.to_vec();
                keys.retain(|key| key.keyid != *keyid);
                if keys.len() == self.root_keys.len() {
                    return Err(self.refused(format!("it lists no root key {keyid}")));
                }
                self.root_keys = List::first_of(keys);
                Ok(())
            }
            Change::Threshold(threshold) => {
                self.threshold = *threshold;
                Ok(())
            }
        }
    }

    fn add_key(&mut self, used: KeyUse, public: &PublicKey) -> Result<(), TrustRootError> {
        let (from, end) = (self.issued_at, self.issued_at.plus_seconds(OVERLAP_SECONDS));
        if let Some(role) = Role::parse(used.name()) {
            let mut keys = self.roles.of(role).to_vec();
            for key in keys.iter_mut().filter(|key| key.revoked.is_none()) {
                key.not_after = Some(key.not_after.map_or(end, |earlier| earlier.min(end)));
            }
            keys.push(RoleKey::from_public(public.clone(), from));
            *self.roles.of_mut(role) = latest(keys);
            return Ok(());
        }
        let purpose = Label::new(used.name()).map_err(|error| self.refused(error.to_string()))?;
        if used == KeyUse::Root {
            return Err(
                self.refused("a root key has no validity; one is added and another removed")
            );
        }
        let mut keys = self.side_keys.take().unwrap_or_default().to_vec();
        let same = |key: &&mut SideKey| key.purpose == purpose && key.revoked.is_none();
        for key in keys.iter_mut().filter(same) {
            key.not_after = Some(key.not_after.map_or(end, |earlier| earlier.min(end)));
        }
        keys.push(SideKey {
            not_before: Some(from),
            ..SideKey::from_public(purpose, public.clone())
        });
        self.side_keys = Some(latest(keys));
        Ok(())
    }

    fn revoke(&mut self, keyid: &KeyId, revocation: &Revocation) -> Result<(), TrustRootError> {
        for role in Role::ALL {
            let mut keys = self.roles.of(role).to_vec();
            if let Some(key) = keys.iter_mut().find(|key| key.keyid == *keyid) {
                key.revoked = Some(joined(key.revoked.as_ref(), revocation));
                *self.roles.of_mut(role) = List::first_of(keys);
                return Ok(());
            }
        }
        let mut keys = self.side_keys.clone().unwrap_or_default().to_vec();
        if let Some(key) = keys.iter_mut().find(|key| key.keyid == *keyid) {
            key.revoked = Some(joined(key.revoked.as_ref(), revocation));
            self.side_keys = Some(List::first_of(keys));
            return Ok(());
        }
        let root = self.root_keys.iter().any(|key| key.keyid == *keyid);
        Err(self.refused(if root {
            format!("{keyid} is a root key, which is not revoked but replaced: `caretaker keys rotate root`")
        } else {
            format!("it lists no key {keyid}; `caretaker keys list` shows those it lists")
        }))
    }
}

/// A key that is revoked twice counts until the earlier of both.
fn joined(before: Option<&Revocation>, now: &Revocation) -> Revocation {
    let Some(before) = before else {
        return now.clone();
    };
    let earlier = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let since = before.effective_from().min(now.effective_from());
    Revocation {
        at: before.at.min(now.at),
        at_index: earlier(before.at_index, now.at_index),
        compromised_since: (before.compromised_since.is_some() || now.compromised_since.is_some())
            .then_some(since),
        reason: Text::clipped(now.reason.as_str()),
    }
}

/// The newest keys. Those that no longer fit stand in the versions before, where history finds them.
fn latest<K>(keys: Vec<K>) -> List<K> {
    let surplus = keys.len().saturating_sub(MAX_ITEMS);
    List::first_of(keys.into_iter().skip(surplus))
}
