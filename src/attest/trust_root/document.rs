//! What a trust root says, and when it contradicts itself.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::keys::{KeyId, PublicKey};
use super::super::role::Role;
use super::super::text::{Label, List, Text};
use super::TrustRootError;
use super::validity::{Revocation, Validity};
use crate::clock::Millis;

/// The one signature algorithm of this version.
pub(super) const ALGORITHM: &str = "ed25519";
const FORMAT: u32 = 1;

/// The payload of a trust root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TrustRootDocument {
    /// Format, 1.
    pub v: u32,
    /// The organisation.
    pub org: Label,
    /// From 1, without gaps.
    pub version: u64,
    /// Digest of the version before, null in version 1.
    pub prev: Option<DigestRef>,
    /// When it was made.
    pub issued_at: Millis,
    /// From when on it no longer allows acting.
    pub expires_at: Millis,
    /// How many root keys have to sign.
    pub threshold: u64,
    /// The root keys.
    pub root_keys: List<RootKey>,
    /// The role keys, present and past.
    pub roles: RoleKeys,
    /// Keys beside the ledger's: of the log, of receipts, of capability tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side_keys: Option<List<SideKey>>,
    /// Verification keys of witnesses, in C2SP's form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witnesses: Option<List<Text>>,
    /// Timestamp authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_authorities: Option<List<TimestampAuthority>>,
}

/// A key that signs trust roots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RootKey {
    /// Its fingerprint.
    pub keyid: KeyId,
    /// `ed25519`.
    pub alg: Label,
    /// The public key.
    pub public: PublicKey,
}

/// The keys of each role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RoleKeys {
    /// Of the proposer.
    pub proposer: List<RoleKey>,
    /// Of policy.
    pub policy: List<RoleKey>,
    /// Of the approver.
    pub approver: List<RoleKey>,
    /// Of the executor.
    pub executor: List<RoleKey>,
}

impl RoleKeys {
    /// The keys of one role.
    pub fn of(&self, role: Role) -> &[RoleKey] {
        match role {
            Role::Proposer => &self.proposer,
            Role::Policy => &self.policy,
            Role::Approver => &self.approver,
            Role::Executor => &self.executor,
        }
    }

    /// The same, to change them.
    pub(super) const fn of_mut(&mut self, role: Role) -> &mut List<RoleKey> {
        match role {
            Role::Proposer => &mut self.proposer,
            Role::Policy => &mut self.policy,
            Role::Approver => &mut self.approver,
            Role::Executor => &mut self.executor,
        }
    }

    /// Every key with its role.
    pub fn iter(&self) -> impl Iterator<Item = (Role, &RoleKey)> {
        Role::ALL
            .into_iter()
            .flat_map(|role| self.of(role).iter().map(move |key| (role, key)))
    }
}

/// A key of a role and when it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RoleKey {
    /// Its fingerprint.
    pub keyid: KeyId,
    /// `ed25519`.
    pub alg: Label,
    /// The public key.
    pub public: PublicKey,
    /// From when on its statements count.
    pub not_before: Millis,
    /// From when on they no longer count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Millis>,
    /// First log index at which its statements count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_index: Option<u64>,
    /// First log index at which they no longer count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_index: Option<u64>,
    /// Set when the key was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revocation>,
}

impl RoleKey {
    /// A key that counts from a moment on.
    pub fn from_public(public: PublicKey, not_before: Millis) -> Self {
        Self {
            keyid: public.keyid(),
            alg: Label::fixed(ALGORITHM),
            public,
            not_before,
            not_after: None,
            from_index: None,
            until_index: None,
            revoked: None,
        }
    }

    /// When its statements count.
    pub const fn validity(&self) -> Validity<'_> {
        Validity {
            not_before: self.not_before,
            not_after: self.not_after,
            from_index: self.from_index,
            until_index: self.until_index,
            revoked: self.revoked.as_ref(),
        }
    }

    /// Whether a statement of this moment falls into the key's window. A revocation is another question.
    pub fn counts_at(&self, moment: Millis) -> bool {
        self.validity().includes(moment)
    }
}

impl RootKey {
    /// A root key.
    pub fn from_public(public: PublicKey) -> Self {
        Self {
            keyid: public.keyid(),
            alg: Label::fixed(ALGORITHM),
            public,
        }
    }
}

/// A key beside the ledger's roles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SideKey {
    /// `log`, `receipt` or `token`.
    #[serde(rename = "use")]
    pub purpose: Label,
    /// Its fingerprint.
    pub keyid: KeyId,
    /// `ed25519`.
    pub alg: Label,
    /// The public key.
    pub public: PublicKey,
    /// From when on it counts; always, where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Millis>,
    /// From when on it no longer counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Millis>,
    /// Set when the key was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revocation>,
}

impl SideKey {
    /// A side key for `log`, `receipt` or `token`.
    pub fn from_public(purpose: Label, public: PublicKey) -> Self {
        Self {
            purpose,
            keyid: public.keyid(),
            alg: Label::fixed(ALGORITHM),
            public,
            not_before: None,
            not_after: None,
            revoked: None,
        }
    }

    /// When what it signs counts.
    pub fn validity(&self) -> Validity<'_> {
        Validity {
            not_before: self.not_before.unwrap_or(Millis(i64::MIN)),
            not_after: self.not_after,
            from_index: None,
            until_index: None,
            revoked: self.revoked.as_ref(),
        }
    }
}

/// A timestamp authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TimestampAuthority {
    /// Its address.
    pub uri: Text,
    /// SHA-256 of its certificate chain.
    pub chain: DigestRef,
    /// From when on its timestamps count.
    pub not_before: Millis,
    /// From when on they no longer count.
    pub not_after: Millis,
}

impl TrustRootDocument {
    /// The first version with one root key.
    pub fn first(
        org: Label,
        issued_at: Millis,
        expires_at: Millis,
        root: PublicKey,
        roles: RoleKeys,
    ) -> Self {
        Self {
            v: FORMAT,
            org,
            version: 1,
            prev: None,
            issued_at,
            expires_at,
            threshold: 1,
            root_keys: List::first_of([RootKey::from_public(root)]),
            roles,
            side_keys: None,
            witnesses: None,
            timestamp_authorities: None,
        }
    }

    /// Every key with what it is for.
    pub(super) fn uses(&self) -> impl Iterator<Item = (&str, &KeyId)> {
        let root = self.root_keys.iter().map(|key| ("root", &key.keyid));
        let roles = self.roles.iter();
        let roles = roles.map(|(role, key)| (role.name(), &key.keyid));
        let side = self.side_keys.iter().flat_map(|keys| keys.iter());
        let side = side.map(|key| (key.purpose.as_str(), &key.keyid));
        root.chain(roles).chain(side)
    }

    pub(super) fn check(&self) -> Result<(), TrustRootError> {
        let unsound = |member, problem: &str| {
            Err(TrustRootError::Unsound {
                version: self.version,
                member,
                problem: problem.to_owned(),
            })
        };
        if self.v != FORMAT {
            return unsound("v", "not a format of this version");
        }
        if self.version == 0 || (self.version == 1) != self.prev.is_none() {
            return unsound(
                "prev",
                "versions start at 1, and exactly version 1 has none before it",
            );
        }
        if self.issued_at >= self.expires_at {
            return unsound("expires_at", "not after issued_at");
        }
        if self.threshold == 0
            || usize::try_from(self.threshold).is_ok_and(|needed| needed > self.root_keys.len())
        {
            return unsound("threshold", "must be from 1 to the number of root keys");
        }
        if Role::ALL
            .into_iter()
            .any(|role| self.roles.of(role).is_empty())
        {
            return unsound("roles", "every role needs a key");
        }
        self.check_keys()
    }

    /// Every key once: the same key under two roles, or twice in a list, would undo roles and thresholds.
    fn check_keys(&self) -> Result<(), TrustRootError> {
        let root = self
            .root_keys
            .iter()
            .map(|key| ("root_keys", &key.keyid, &key.alg, &key.public));
        let roles = self
            .roles
            .iter()
            .map(|(_, key)| ("roles", &key.keyid, &key.alg, &key.public));
        let side = self.side_keys.iter().flat_map(|keys| keys.iter());
        let side = side.map(|key| ("side_keys", &key.keyid, &key.alg, &key.public));
        let mut seen: Vec<&PublicKey> = Vec::new();
        for (member, keyid, alg, public) in root.chain(roles).chain(side) {
            let unsound = |problem: String| {
                Err(TrustRootError::Unsound {
                    version: self.version,
                    member,
                    problem,
                })
            };
            if alg.as_str() != ALGORITHM {
                return unsound(format!("the key {keyid} is not an {ALGORITHM} key"));
            }
            if public.keyid() != *keyid {
                return unsound(format!(
                    "the key id {keyid} is not that of its public key, {}",
                    public.keyid()
                ));
            }
            if seen.contains(&public) {
                return unsound(format!(
                    "the key {keyid} is listed twice; each role needs a key of its own"
                ));
            }
            seen.push(public);
        }
        self.check_windows()
    }

    fn check_windows(&self) -> Result<(), TrustRootError> {
        let roles = self
            .roles
            .iter()
            .map(|(role, key)| ("roles", role.name(), &key.keyid, key.validity()));
        let side = self.side_keys.iter().flat_map(|keys| keys.iter());
        let side = side.map(|key| {
            (
                "side_keys",
                key.purpose.as_str(),
                &key.keyid,
                key.validity(),
            )
        });
        match roles.chain(side).find(|(.., validity)| validity.is_empty()) {
            None => Ok(()),
            Some((member, whose, keyid, _)) => Err(TrustRootError::Unsound {
                version: self.version,
                member,
                problem: format!("the {whose}'s key {keyid} never counts: its validity is empty"),
            }),
        }
    }
}
