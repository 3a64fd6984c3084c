//! The trust root's versions as they lie in the folder of keys.

use std::io;
use std::path::Path;

use super::{KeyringError, files, places};
use crate::attest::dsse::MAX_ENVELOPE;
use crate::attest::{TrustHistory, TrustRoot};
use crate::config::Configuration;

/// More versions than an organisation makes; a folder with more is not one of keys.
const VERSIONS: usize = 1_000;

/// Reads every version of the installation's trust root. Needs no secret: enough for verifying.
///
/// # Errors
/// There is none, one is missing between two others, or one is not what its name says or does not follow from the one before.
pub fn trust_history(configuration: &Configuration) -> Result<TrustHistory, KeyringError> {
    let directory = &configuration.keys.dir;
    let mut history: Option<TrustHistory> = None;
    for version in versions(directory)? {
        let path = places::trust_root_file(directory, version);
        let shown = || path.display().to_string();
        let bytes =
            files::read(&path, MAX_ENVELOPE as u64).map_err(|cause| KeyringError::Unreadable {
                path: shown(),
                cause,
            })?;
        let refused = |cause| KeyringError::TrustRootFile {
            path: shown(),
            cause,
        };
        let extended = match history {
            None => TrustRoot::parse_unpinned(&bytes).map(TrustHistory::from),
            Some(mut held) => held.add_newer(&bytes).map(|()| held),
        }
        .map_err(refused)?;
        let found = extended.newest().document().version;
        if found != version {
            return Err(KeyringError::TrustRootName {
                path: shown(),
                problem: format!("it holds version {found}"),
            });
        }
        history = Some(extended);
    }
    history.ok_or_else(|| KeyringError::NoKeys {
        directory: directory.display().to_string(),
    })
}

/// The versions that lie there, ascending, from 1 without gaps.
fn versions(directory: &Path) -> Result<Vec<u64>, KeyringError> {
    let refused = |cause| KeyringError::Unreadable {
        path: directory.display().to_string(),
        cause,
    };
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(refused)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(refused)?.file_name();
        found.extend(name.to_str().and_then(places::trust_root_version));
        if found.len() > VERSIONS {
            return Err(refused(io::Error::other(format!(
                "it holds more than {VERSIONS} trust roots"
            ))));
        }
    }
    found.sort_unstable();
    // Signatures tie each version to the one before, so a gap is refused anyway; this says which file is missing.
    match (1..)
        .zip(&found)
        .find(|(expected, found)| expected != *found)
    {
        None => Ok(found),
        Some((missing, _)) => Err(KeyringError::TrustRootName {
            path: places::trust_root_file(directory, missing)
                .display()
                .to_string(),
            problem: "this version is missing, while a later one is there".to_owned(),
        }),
    }
}
