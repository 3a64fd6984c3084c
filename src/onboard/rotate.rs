//! Another deployment key: every credential sealed anew, every open approval link renewed.

use std::ops::ControlFlow;

use super::draft_digest;
use crate::approve::Principal;
use crate::attest::keys::Fill;
use crate::clock::Millis;
use crate::config::Configuration;
use crate::id::{IncidentId, OrganisationId};
use crate::incident::AuditEvent;
use crate::signer::{CredentialError, CredentialSeal, Rotation, RotationError};
use crate::store::{Project, Store, StoreError, Swap};

/// Where a rotation may be stopped by a test, as `kill -9` would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotationPoint {
    /// The new key lies beside the old one.
    KeyWritten,
    /// The database is sealed under the new key.
    Resealed,
    /// The new key has taken the place of the old one.
    KeyInPlace,
}

/// Why the deployment key is not rotated, or not wholly. Whatever is sealed still opens.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The files of the key.
    #[error(transparent)]
    Rotation(#[from] RotationError),
    /// A credential that neither key opens would be lost to whoever still has its key.
    #[error(
        "rotating the deployment key: {0}. Nothing was changed; give the project another token with `caretaker project credential`, or remove it, then rotate again"
    )]
    Credential(CredentialError),
    /// Rotating the key for another database would lose the credentials in the right one.
    #[error(
        "rotating the deployment key: the database {place} holds no project, so nothing is sealed with the key. Nothing was changed; set database.url to the database that belongs to these keys"
    )]
    NothingSealed {
        /// The database.
        place: String,
    },
    /// The database fails or refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A test stopped it here.
    #[error("rotating the deployment key: stopped at {0:?}")]
    Stopped(RotationPoint),
}

/// What a rotation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    /// How many credentials were sealed anew.
    pub credentials: usize,
    /// Incidents whose approval link was revoked; a worker sends another one.
    pub renewed: Vec<IncidentId>,
    /// Whether this ended a rotation that had been interrupted.
    pub resumed: bool,
}

/// Rotates the deployment key. `passed` is told of each point; what it breaks off stays as it is, as after a crash.
///
/// # Errors
/// See [`RotateError`]. Running it again takes up where it stopped.
pub async fn rotate_deployment_key(
    configuration: &Configuration,
    store: &Store,
    organisation: &OrganisationId,
    by: &Principal,
    fill: Fill<'_>,
    now: Millis,
    passed: &(dyn Fn(RotationPoint) -> ControlFlow<()> + Sync),
) -> Result<Rotated, RotateError> {
    let stop_at = |point| match passed(point) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(RotateError::Stopped(point)),
    };
    let present = CredentialSeal::read(configuration).map_err(RotationError::from)?;
    let sealed = store.sealed_credentials().await?;
    if sealed.is_empty() {
        let place = store.place().to_owned();
        return Err(RotateError::NothingSealed { place });
    }
    // Before a key is written: what does not open is said while everything is as it was.
    for (project, bytes) in &sealed {
        open(&present, project, bytes)?;
    }
    let rotation = Rotation::begin(configuration, &mut *fill)?;
    stop_at(RotationPoint::KeyWritten)?;
    let every = CredentialSeal::read(configuration).map_err(RotationError::from)?;
    let swaps = resealed(&every, rotation.seal(), sealed, fill)?;
    let event = AuditEvent {
        kind: "deployment-key-rotated",
        detail: format!(
            "by {by}: every credential is sealed with another key, and open approval links were renewed"
        ),
    };
    let renewed = store
        .reseal_credentials(&swaps, organisation, &event, now)
        .await?;
    stop_at(RotationPoint::Resealed)?;
    rotation.finish()?;
    stop_at(RotationPoint::KeyInPlace)?;
    Ok(Rotated {
        credentials: swaps.len(),
        renewed,
        resumed: rotation.resumed(),
    })
}

fn open(
    seal: &CredentialSeal,
    project: &Project,
    bytes: &[u8],
) -> Result<secrecy::SecretString, RotateError> {
    let draft = draft_digest(project);
    let opened = seal.open(&project.id, &draft, bytes);
    opened.map_err(RotateError::Credential)
}

fn resealed(
    from: &CredentialSeal,
    to: &CredentialSeal,
    sealed: Vec<(Project, Vec<u8>)>,
    fill: Fill<'_>,
) -> Result<Vec<Swap>, RotateError> {
    let mut swaps = Vec::new();
    for (project, before) in sealed {
        let token = open(from, &project, &before)?;
        let draft = draft_digest(&project);
        let after = to.seal(&project.id, &draft, &token, &mut *fill);
        swaps.push(Swap {
            after: after.map_err(RotateError::Credential)?,
            before,
            project,
        });
    }
    Ok(swaps)
}
