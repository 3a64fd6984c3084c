//! Whose signatures count: what follows from the trust root that is pinned.

use std::collections::BTreeMap;

use super::{BundleError, Pin};
use crate::attest::predicate::CheckpointRef;
use crate::attest::text::Text;
use crate::attest::{KeyUse, TrustHistory, TrustRoot};
use crate::log::{KeyName, LogPolicy, SignatureType, TrustedCheckpoint, VerifierKey};

/// The most versions of the trust root that are looked at: each costs signatures.
pub(super) const MAX_ROOTS: usize = 64;

/// The versions of a trust root that follow from the pinned one, of those that were brought along under some name.
///
/// # Errors
/// The pinned one is not there, or one that is does not follow from it.
pub fn trust_from<'a>(
    members: impl Iterator<Item = (String, &'a [u8])>,
    pin: &Pin,
) -> Result<TrustHistory, BundleError> {
    let mut brought = BTreeMap::new();
    for (count, (member, bytes)) in members.enumerate() {
        if count >= MAX_ROOTS {
            return Err(BundleError::TooManyRoots);
        }
        let root = TrustRoot::parse_unpinned(bytes);
        let root = root.map_err(|reason| BundleError::TrustRoot {
            member: member.clone(),
            reason,
        })?;
        let version = root.document().version;
        // Each under its own number, so that none is there twice.
        if member != format!("root/{version}.json") {
            return Err(BundleError::Misnamed { member, version });
        }
        brought.insert(version, (member, bytes, root.digest()));
    }
    let pinned = match pin {
        Pin::Root(root) => root.as_ref().clone(),
        Pin::Digest(pinned) => {
            let found = brought.values().find(|(_, _, digest)| digest == pinned);
            let (member, bytes, _) = found.ok_or(BundleError::NotThere { pinned: *pinned })?;
            let root = TrustRoot::parse_pinned(bytes, pinned);
            root.map_err(|reason| BundleError::TrustRoot {
                member: member.clone(),
                reason,
            })?
        }
    };
    let version = pinned.document().version;
    // Break it: pass over it; a trust map that was swapped then travels along unnoticed
    // (`audit::bundle::another_trust_root_of_the_pinned_number_is_refused`).
    if let Some((member, _, found)) = brought.get(&version)
        && *found != pinned.digest()
    {
        return Err(BundleError::Swapped {
            member: member.clone(),
            pinned: pinned.digest(),
            found: *found,
        });
    }
    let mut history = TrustHistory::from(pinned);
    let older = brought.range(..version).rev();
    let newer = brought.range(version.saturating_add(1)..);
    // Break it: start from the bundle's own first version; whoever makes a bundle then says whose keys count
    // (`audit::bundle::a_bundle_with_a_trust_root_of_its_own_is_refused`).
    for (_, (member, bytes, _)) in older {
        let added = history.add_older(bytes);
        added.map_err(|reason| BundleError::TrustRoot {
            member: member.clone(),
            reason,
        })?;
    }
    for (_, (member, bytes, _)) in newer {
        let added = history.add_newer(bytes);
        added.map_err(|reason| BundleError::TrustRoot {
            member: member.clone(),
            reason,
        })?;
    }
    Ok(history)
}

/// Whose checkpoints count: the log's keys, past ones included, in the newest trust root that is held, except revoked ones: what
/// a thief signs carries no date that could be believed.
///
/// # Errors
/// There are none, in words.
pub fn log_policy(trust: &TrustHistory) -> Result<LogPolicy, String> {
    LogPolicy::new(log_keys(trust)?, Vec::new(), 0).map_err(|error| error.to_string())
}

/// The keys of [`log_policy`].
///
/// # Errors
/// The organisation's name does not fit, in words.
pub fn log_keys(trust: &TrustHistory) -> Result<Vec<VerifierKey>, String> {
    let origin = log_origin(trust.newest().document().org.as_str())?;
    let mut keys: Vec<VerifierKey> = Vec::new();
    // Break it: take the keys of every version; a key of the log that was revoked or dropped signs on
    // (`audit::bundle::a_checkpoint_by_a_revoked_key_of_the_log_proves_nothing`).
    for key in trust.newest().side_keys(KeyUse::Log) {
        if key.revoked.is_none() {
            let public = key.public.clone();
            keys.push(VerifierKey::new(origin.clone(), SignatureType::Log, public));
        }
    }
    Ok(keys)
}

/// The name of an organisation's log: no trust root has to say it, since it follows from the organisation's own.
///
/// # Errors
/// The organisation's name does not fit, in words.
pub fn log_origin(organisation: &str) -> Result<KeyName, String> {
    KeyName::new(&format!("caretaker/{organisation}")).map_err(|error| error.to_string())
}

/// How events and reports name a checkpoint.
pub fn reference(checkpoint: &TrustedCheckpoint) -> CheckpointRef {
    CheckpointRef {
        origin: Text::clipped(checkpoint.checkpoint().origin().as_str()),
        size: checkpoint.head().size(),
        root: checkpoint.head().root().to_digest(),
    }
}
