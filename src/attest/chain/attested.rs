//! Authentic statements: signed by a key of the trust root, under the role whose word it is.

use super::super::dsse::{Envelope, IN_TOTO};
use super::super::keys::KeyId;
use super::super::predicate::TrustRootRef;
use super::super::role::Role;
use super::super::statement::Statement;
use super::super::text::shown;
use super::super::trust_root::TrustHistory;
use super::{Refusal, Rule};
use crate::change::Sha256Digest;
use crate::clock::Millis;

/// A statement whose signature, role and key validity were verified. There is no other way to make one.
///
/// ```compile_fail
/// let forged = caretaker::attest::chain::Attested { statement: todo!(), role: todo!(), keyid: todo!(), digest: todo!() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attested {
    statement: Statement,
    role: Role,
    keyid: KeyId,
    digest: Sha256Digest,
}

impl Attested {
    /// What was signed.
    pub const fn statement(&self) -> &Statement {
        &self.statement
    }

    /// What was signed, to keep.
    pub fn into_statement(self) -> Statement {
        self.statement
    }

    /// The role that signed.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// The key that signed.
    pub const fn keyid(&self) -> &KeyId {
        &self.keyid
    }

    /// Digest of the pre-authentication encoding: how other statements name this one.
    pub const fn digest(&self) -> Sha256Digest {
        self.digest
    }
}

/// Verifies one stored envelope, of a chain event or of an evidence document.
///
/// Its key id picks the key to try, so in the stored form it has to be the right one; it never makes a signature count.
pub fn authenticate(trust: &TrustHistory, envelope: &Envelope) -> Result<Attested, Refusal> {
    let (role, key) = trust.role_key(envelope.keyid()).ok_or_else(|| {
        Refusal::invalid(
            Rule::Key,
            "a role key of the trust root",
            envelope.keyid().as_str(),
        )
    })?;
    let verified = envelope.verify(IN_TOTO, &key.public).map_err(|_| {
        let found = format!(
            "another signature, on a payload of type {}",
            shown(envelope.payload_type())
        );
        Refusal::invalid(
            Rule::Signature,
            format!("the signature of the {role}'s key {}", key.keyid),
            found,
        )
    })?;
    let statement = Statement::parse(verified.payload()).map_err(|error| {
        Refusal::invalid(
            Rule::Statement,
            "a statement of a known kind",
            error.to_string(),
        )
    })?;
    // Role separation: without this comparison any role's key could say anything.
    if statement.role() != role {
        let expected = format!("a signature of the {}", statement.role());
        let found = format!(
            "the {role}'s, on a {} statement",
            statement.predicate_type()
        );
        return Err(Refusal::invalid(Rule::Role, expected, found));
    }
    let keyid = key.keyid.clone();
    if let Some((reference, moment)) = statement.claims() {
        check_key(trust, role, &keyid, reference, moment)?;
    }
    Ok(Attested {
        statement,
        role,
        keyid,
        digest: verified.digest(),
    })
}

/// Whether the key counted at that moment, by the version that the statement names and by the newest one.
fn check_key(
    trust: &TrustHistory,
    role: Role,
    keyid: &KeyId,
    reference: TrustRootRef,
    moment: Millis,
) -> Result<(), Refusal> {
    let named = format!("version {} ({})", reference.version, reference.sha256);
    let Some(root) = trust.version(reference) else {
        let same_number = trust
            .versions()
            .find(|root| root.document().version == reference.version);
        return Err(match same_number {
            Some(held) => {
                Refusal::invalid(Rule::TrustRoot, format!("digest {}", held.digest()), named)
            }
            None => Refusal::unverifiable(
                Rule::TrustRoot,
                "a version of the trust root that is held",
                named,
            ),
        });
    };
    let Some((_, key)) = root.role_key(keyid).filter(|(listed, _)| *listed == role) else {
        let expected = format!("a {role} key of trust root version {}", reference.version);
        return Err(Refusal::invalid(Rule::Key, expected, keyid.as_str()));
    };
    if !key.counts_at(moment) {
        let end = key
            .not_after
            .map_or_else(|| "without end".to_owned(), |end| format!("before {end}"));
        let expected = format!("a moment from {} on, {end}", key.not_before);
        return Err(Refusal::invalid(
            Rule::KeyWindow,
            expected,
            moment.to_string(),
        ));
    }
    let revoked = trust
        .versions()
        .filter_map(|root| root.role_key(keyid))
        .filter_map(|(_, key)| key.revoked.as_ref());
    let effective = revoked
        .map(super::super::trust_root::Revocation::effective_from)
        .min();
    match effective {
        Some(from) if moment >= from => Err(Refusal::invalid(
            Rule::KeyRevoked,
            format!("a moment before the revocation's, {from}"),
            moment.to_string(),
        )),
        _ => Ok(()),
    }
}
