//! `enrolment`: a person's credential begins or ceases to count. Organisation's log.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::keys::KeyId;
use super::super::text::{Label, List, Text};
use super::{EvidenceRef, IdentityMethod, OrganisationBlock, PredicateError, require};
use crate::change::Sha256Digest;
use crate::clock::Millis;

/// Whether a credential begins or ceases to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EnrolmentAction {
    /// It begins.
    Enrol,
    /// It ceases.
    Withdraw,
}

/// A credential of a person, signed by the approver. Without a project in its block it is for all of the organisation's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Enrolment {
    /// The event.
    pub event: OrganisationBlock,
    /// What happens.
    pub action: EnrolmentAction,
    /// The person: `mailto:…`, `github:…`, `oidc:…`, `local:…`.
    pub principal: Text,
    /// The credential.
    pub credential: Credential,
    /// From when on it counts; on a withdrawal, from when on it no longer does.
    pub from: Millis,
    /// When it ceases by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
    /// Who vouches for it.
    pub voucher: Voucher,
    /// What shows it: the registration, the voucher's signature.
    pub evidence: List<EvidenceRef>,
    /// Why; always there on a withdrawal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
}

impl Enrolment {
    pub(crate) fn check(&self) -> Result<(), PredicateError> {
        require(
            !self.principal.as_str().is_empty(),
            "principal",
            "a credential is a person's",
        )?;
        // A link is not a credential: whoever has it may use it.
        require(
            self.credential.method != IdentityMethod::Link,
            "credential.method",
            "nobody is enrolled with a link",
        )?;
        require(
            self.from.0 >= 0 && self.until.is_none_or(|until| self.from < until),
            "until",
            "not after from",
        )?;
        let withdrawn = self.action == EnrolmentAction::Withdraw;
        require(
            !withdrawn || self.until.is_none(),
            "until",
            "a withdrawal has no end",
        )?;
        require(
            !withdrawn || self.reason.is_some(),
            "reason",
            "a withdrawal says why",
        )?;
        require(
            self.voucher != Voucher::Credential(self.credential.sha256.into()) || withdrawn,
            "voucher",
            "a credential does not vouch for itself",
        )
    }
}

/// What a person is recognised by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The kind.
    pub method: IdentityMethod,
    /// Its name with whoever made it: a key's fingerprint, a passkey's id, an issuer and subject.
    pub id: Text,
    /// SHA-256 of the public part as it was registered.
    pub sha256: Sha256Digest,
    /// The algorithm of its key, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Label>,
}

/// Who vouches for a credential: exactly one of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Voucher {
    /// A root key, which signed the registration.
    RootKey(KeyId),
    /// A credential that is enrolled already, by its digest.
    Credential(DigestRef),
}
