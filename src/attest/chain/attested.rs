//! Authentic statements: signed by a key of the trust root, under the role whose word it is.

use super::super::dsse::{Envelope, IN_TOTO};
use super::super::keys::KeyId;
use super::super::predicate::TrustRootRef;
use super::super::role::Role;
use super::super::statement::Statement;
use super::super::text::shown;
use super::super::trust_root::{Revocation, RoleKey, TrustHistory};
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
    authenticate_logged(trust, envelope, None)
}

/// The same for an envelope that a log is known to hold at `index`, under a checkpoint that was verified. An index is not the
/// signer's to choose, so where the trust root ends a key at one, it decides instead of the moment that the statement claims.
pub fn authenticate_logged(
    trust: &TrustHistory,
    envelope: &Envelope,
    index: Option<u64>,
) -> Result<Attested, Refusal> {
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
    key_counts(trust, &statement, &keyid, index)?;
    Ok(Attested {
        statement,
        role,
        keyid,
        digest: verified.digest(),
    })
}

/// Whether a statement counts under a key of its role: what a verifier asks of a signature, and a signer before it makes one.
pub fn key_counts(
    trust: &TrustHistory,
    statement: &Statement,
    keyid: &KeyId,
    index: Option<u64>,
) -> Result<(), Refusal> {
    match statement.claims() {
        Some((reference, moment)) => {
            let claim = Claim { moment, index };
            check_key(trust, statement.role(), keyid, reference, claim)
        }
        None => Ok(()),
    }
}

/// When a statement was made: as it says itself, and by its place in the log where that is known.
#[derive(Clone, Copy)]
struct Claim {
    moment: Millis,
    index: Option<u64>,
}

/// Whether the key counted at that moment, by the version that the statement names and by the newest one.
fn check_key(
    trust: &TrustHistory,
    role: Role,
    keyid: &KeyId,
    reference: TrustRootRef,
    claim: Claim,
) -> Result<(), Refusal> {
    let named = || format!("version {} ({})", reference.version, reference.sha256);
    let Some(root) = trust.version(reference) else {
        let same_number = trust
            .versions()
            .find(|root| root.document().version == reference.version);
        return Err(match same_number {
            Some(held) => Refusal::invalid(
                Rule::TrustRoot,
                format!("digest {}", held.digest()),
                named(),
            ),
            None => Refusal::unverifiable(
                Rule::TrustRoot,
                "a version of the trust root that is held",
                named(),
            ),
        });
    };
    let Some((_, key)) = root.role_key(keyid).filter(|(listed, _)| *listed == role) else {
        let expected = format!("a {role} key of trust root version {}", reference.version);
        return Err(Refusal::invalid(Rule::Key, expected, keyid.as_str()));
    };
    // Break it: ask the named version alone; `attest::trust::a_key_that_was_replaced_cannot_go_on_under_the_version_before` fails.
    for entry in [Some(key), trust.role_key(keyid).map(|(_, key)| key)] {
        entry.map_or(Ok(()), |entry| check_window(entry, claim))?;
    }
    let revocations = trust
        .versions()
        .filter_map(|root| root.role_key(keyid))
        .filter_map(|(_, key)| key.revoked.as_ref());
    for revocation in revocations {
        check_revocation(revocation, claim)?;
    }
    Ok(())
}

fn check_window(key: &RoleKey, claim: Claim) -> Result<(), Refusal> {
    if !key.counts_at(claim.moment) {
        let end = key
            .not_after
            .map_or_else(|| "without end".to_owned(), |end| format!("before {end}"));
        let expected = format!("a moment from {} on, {end}", key.not_before);
        let found = claim.moment.to_string();
        return Err(Refusal::invalid(Rule::KeyWindow, expected, found));
    }
    let Some(index) = claim.index else {
        return Ok(());
    };
    let from = key.from_index.unwrap_or(0);
    if from <= index && key.until_index.is_none_or(|until| index < until) {
        return Ok(());
    }
    let end = key.until_index.map_or_else(
        || "without end".to_owned(),
        |until| format!("below {until}"),
    );
    let expected = format!("a log index from {from} on, {end}");
    Err(Refusal::invalid(
        Rule::KeyWindow,
        expected,
        index.to_string(),
    ))
}

/// What was logged before a compromise still counts, and what was logged after it does not, whatever moment it claims. Without
/// an index on both sides only the claim is left.
fn check_revocation(revocation: &Revocation, claim: Claim) -> Result<(), Refusal> {
    if let (Some(end), Some(index)) = (revocation.at_index, claim.index) {
        // Break it: compare the moments here, too; `attest::trust::a_logged_event_counts_by_its_index_and_not_by_its_claim` fails.
        return if index < end {
            Ok(())
        } else {
            let expected = format!("a log index before the revocation's, {end}");
            Err(Refusal::invalid(
                Rule::KeyRevoked,
                expected,
                index.to_string(),
            ))
        };
    }
    let from = revocation.effective_from();
    if claim.moment < from {
        return Ok(());
    }
    Err(Refusal::invalid(
        Rule::KeyRevoked,
        format!("a moment before the revocation's, {from}"),
        claim.moment.to_string(),
    ))
}
