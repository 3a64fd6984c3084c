//! How projects' credentials lie in the database: sealed under a key that does not lie there.
//!
//! The key is `credential.key`. While it is rotated, the next one lies beside it (see the private `rotation` module): whatever
//! is sealed under either opens, and what is made new is made with the newest.
//!
//! Sealed bytes are a format byte (1), a random nonce of 24 bytes, and the token sealed with XChaCha20-Poly1305. The
//! associated data names the project, so a sealed credential that is moved to another project's row does not open.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::{KeyringError, files, places};
use crate::approve::{ApprovalToken, Principal};
use crate::attest::keys::hkdf_sha256;
use crate::attest::keys::{Fill, FillError};
use crate::change::Sha256Digest;
use crate::config::Configuration;
use crate::id::{ApprovalId, ProjectId};

const FORMAT: u8 = 1;
const NONCE_BYTES: usize = 24;
/// The longest token, in bytes; GitHub's have some hundred at most.
const TOKEN_BYTES: usize = 16 * 1024;
const TAG_BYTES: usize = 16;

/// Why a credential cannot be sealed or opened. Messages never hold the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// Nothing, or too much.
    #[error(
        "sealing the credential of {project}: a token has 1 to {TOKEN_BYTES} bytes, this one has {length}; give the token alone"
    )]
    Length {
        /// The project.
        project: ProjectId,
        /// Bytes given.
        length: usize,
    },
    /// Not what was sealed for this project with this key.
    #[error(
        "opening the credential of {project}: it was sealed with another credential.key or for another project, or the credential or what was confirmed of the project (rules, owner, address, intent) was changed; restore credential.key and the database, or register the project again"
    )]
    Unopened {
        /// The project.
        project: ProjectId,
    },
    /// No randomness.
    #[error(transparent)]
    Fill(#[from] FillError),
}

/// One key; wiped when dropped.
pub(super) type DeploymentKey = Zeroizing<[u8; 32]>;

/// Seals and opens credentials with the installation's own key, which is wiped when this is dropped. A key that was rotated
/// meanwhile is read again, so that a process that runs for long goes on.
pub struct CredentialSeal {
    /// The newest first; more than one only while a rotation is under way.
    keys: RwLock<Vec<DeploymentKey>>,
    /// Where they lie; none for a key that lies nowhere.
    folder: Option<PathBuf>,
}

/// Never prints the key.
impl std::fmt::Debug for CredentialSeal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CredentialSeal")
    }
}

/// The first eight hexadecimal digits of a token's SHA-256: enough to tell two tokens apart, and of no use to whoever reads it.
pub fn fingerprint(token: &SecretString) -> String {
    let digest = Sha256Digest::of(token.expose_secret().as_bytes());
    digest.to_string().chars().take(8).collect()
}

/// Reads a key that only this user may read.
pub(super) fn read_key(path: &Path) -> Result<DeploymentKey, KeyringError> {
    let refuse = |problem: String| KeyringError::Credential {
        path: path.display().to_string(),
        problem,
    };
    let mode = files::mode(path).map_err(|error| refuse(error.to_string()))?;
    if mode & 0o077 != 0 {
        return Err(KeyringError::CredentialOpen {
            path: path.display().to_string(),
            mode,
        });
    }
    let bytes = files::read(path, 32).map_err(|error| refuse(error.to_string()))?;
    let key: &[u8; 32] = bytes
        .as_slice()
        .try_into()
        .map_err(|_| refuse(format!("it has {} bytes instead of 32", bytes.len())))?;
    Ok(Zeroizing::new(*key))
}

/// The keys in a folder, the newest first. The next one is looked for before the present one: while the one is renamed to the
/// other, at least one of the two looks finds it.
fn read_keys(folder: &Path) -> Result<Vec<DeploymentKey>, KeyringError> {
    let next = places::next_credential_file(folder);
    let mut keys = Vec::new();
    if next.exists() {
        match read_key(&next) {
            Ok(key) => keys.push(key),
            // It was put in place between the two looks.
            Err(_) if !next.exists() => {}
            Err(error) => return Err(error),
        }
    }
    keys.push(read_key(&places::credential_file(folder))?);
    Ok(keys)
}

impl CredentialSeal {
    /// A seal with this key.
    pub fn new(key: [u8; 32]) -> Self {
        Self {
            keys: RwLock::new(vec![Zeroizing::new(key)]),
            folder: None,
        }
    }

    /// Reads `credential.key` in the folder of keys, and the next one while a rotation is under way.
    ///
    /// # Errors
    /// It is missing, is not 32 bytes, or others may read it.
    pub fn read(configuration: &Configuration) -> Result<Self, KeyringError> {
        let folder = &configuration.keys.dir;
        Ok(Self {
            keys: RwLock::new(read_keys(folder)?),
            folder: Some(folder.clone()),
        })
    }

    /// The keys as their folder shows them now, or as they were when it cannot be read.
    fn look_again(&self) {
        if let Some(folder) = &self.folder
            && let Ok(keys) = read_keys(folder)
        {
            *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        }
    }

    fn keys(&self) -> Vec<DeploymentKey> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.clone()
    }

    /// The newest key as the folder shows it now.
    fn newest(&self) -> DeploymentKey {
        self.look_again();
        self.keys().into_iter().next().unwrap_or_default()
    }

    /// Seals the token of one project for the draft that a person confirms, by its digest; the random bytes are the nonce.
    ///
    /// # Errors
    /// The token is empty or longer than 16 KiB, or there are no random bytes.
    pub fn seal(
        &self,
        project: &ProjectId,
        draft: &Sha256Digest,
        token: &SecretString,
        fill: Fill<'_>,
    ) -> Result<Vec<u8>, CredentialError> {
        let token = token.expose_secret().as_bytes();
        let length_refused = || CredentialError::Length {
            project: project.clone(),
            length: token.len(),
        };
        if token.is_empty() || token.len() > TOKEN_BYTES {
            return Err(length_refused());
        }
        let mut nonce = [0; NONCE_BYTES];
        fill(&mut nonce)?;
        let payload = Payload {
            msg: token,
            aad: &associated_data(project, draft),
        };
        let sealed = cipher(&self.newest())
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| length_refused())?;
        let mut bytes = vec![FORMAT];
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&sealed);
        Ok(bytes)
    }

    /// Opens what [`Self::seal`] made for this project and this draft: whoever changes a project's rules, owner or address in the
    /// database leaves it without a credential.
    ///
    /// # Errors
    /// The bytes were sealed with another key or for another project or draft, or were changed.
    pub fn open(
        &self,
        project: &ProjectId,
        draft: &Sha256Digest,
        bytes: &[u8],
    ) -> Result<SecretString, CredentialError> {
        let try_each = || {
            let keys = self.keys();
            keys.iter()
                .find_map(|key| decrypt(key, project, draft, bytes))
        };
        try_each()
            .or_else(|| {
                // Break it: do not look again; `keys::rotation::a_process_that_runs_for_long_goes_on_after_a_rotation` fails.
                self.look_again();
                try_each()
            })
            .ok_or_else(|| CredentialError::Unopened {
                project: project.clone(),
            })
    }

    /// The nonce of an approval link: it follows from what the link is for and from a key that is not in the database. So the
    /// approver can tell a link that was made here from one that was written into the database.
    ///
    /// A rotation revokes the links that follow from the older key, so that they count for nothing once it is gone.
    pub fn link(
        &self,
        approval: &ApprovalId,
        request: &Sha256Digest,
        principal: &Principal,
    ) -> ApprovalToken {
        link_of(&self.newest(), approval, request, principal)
    }

    /// The nonces that a link for this may have, the newest key's first; more than one only while a rotation is under way.
    pub fn links(
        &self,
        approval: &ApprovalId,
        request: &Sha256Digest,
        principal: &Principal,
    ) -> Vec<ApprovalToken> {
        self.look_again();
        let keys = self.keys();
        keys.iter()
            .map(|key| link_of(key, approval, request, principal))
            .collect()
    }
}

fn link_of(
    key: &DeploymentKey,
    approval: &ApprovalId,
    request: &Sha256Digest,
    principal: &Principal,
) -> ApprovalToken {
    let info = format!("caretaker/approval-link/v1/{approval}/{request}/{principal}");
    let nonce = hkdf_sha256(key.as_slice(), b"caretaker", info.as_bytes());
    ApprovalToken::from_random(*nonce)
}

fn decrypt(
    key: &DeploymentKey,
    project: &ProjectId,
    draft: &Sha256Digest,
    bytes: &[u8],
) -> Option<SecretString> {
    if bytes.len() > 1 + NONCE_BYTES + TOKEN_BYTES + TAG_BYTES {
        return None;
    }
    let (&FORMAT, rest) = bytes.split_first()? else {
        return None;
    };
    let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>()?;
    let payload = Payload {
        msg: sealed,
        aad: &associated_data(project, draft),
    };
    let token = cipher(key)
        .decrypt(&XNonce::from(*nonce), payload)
        .map(Zeroizing::new)
        .ok()?;
    str::from_utf8(&token).ok().map(SecretString::from)
}

fn cipher(key: &DeploymentKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&(**key).into())
}

fn associated_data(project: &ProjectId, draft: &Sha256Digest) -> Vec<u8> {
    // Break it: leave the project out; a credential then opens in another project's row
    // (`keys::credentials::another_project_or_another_installation_does_not_open_it`). Leave the draft out; rules that were
    // changed in the database are then obeyed (`onboard::a_project_changed_in_the_database_has_no_credential`).
    format!("caretaker/credential/v1/{project}/{draft}").into_bytes()
}
