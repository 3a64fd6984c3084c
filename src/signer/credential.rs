//! How projects' credentials lie in the database: sealed under a key that does not lie there.
//!
//! Sealed bytes are a format byte (1), a random nonce of 24 bytes, and the token sealed with XChaCha20-Poly1305. The
//! associated data names the project, so a sealed credential that is moved to another project's row does not open.

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

/// Seals and opens credentials with the installation's own key, which is wiped when this is dropped.
pub struct CredentialSeal(Zeroizing<[u8; 32]>);

/// Never prints the key.
impl std::fmt::Debug for CredentialSeal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CredentialSeal")
    }
}

impl CredentialSeal {
    /// A seal with this key.
    pub fn new(key: [u8; 32]) -> Self {
        Self(Zeroizing::new(key))
    }

    /// Reads `credential.key` in the folder of keys.
    ///
    /// # Errors
    /// It is missing, is not 32 bytes, or others may read it.
    pub fn read(configuration: &Configuration) -> Result<Self, KeyringError> {
        let path = places::credential_file(&configuration.keys.dir);
        let refuse = |problem: String| KeyringError::Credential {
            path: path.display().to_string(),
            problem,
        };
        let mode = files::mode(&path).map_err(|error| refuse(error.to_string()))?;
        if mode & 0o077 != 0 {
            return Err(KeyringError::CredentialOpen {
                path: path.display().to_string(),
                mode,
            });
        }
        let bytes = files::read(&path, 32).map_err(|error| refuse(error.to_string()))?;
        let key: &[u8; 32] = bytes
            .as_slice()
            .try_into()
            .map_err(|_| refuse(format!("it has {} bytes instead of 32", bytes.len())))?;
        Ok(Self(Zeroizing::new(*key)))
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
        let sealed = self
            .cipher()
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
        self.decrypt(project, draft, bytes)
            .ok_or_else(|| CredentialError::Unopened {
                project: project.clone(),
            })
    }

    /// The nonce of an approval link: it follows from what the link is for and from a key that is not in the database. So the
    /// approver can tell a link that was made here from one that was written into the database.
    pub fn link(
        &self,
        approval: &ApprovalId,
        request: &Sha256Digest,
        principal: &Principal,
    ) -> ApprovalToken {
        let info = format!("caretaker/approval-link/v1/{approval}/{request}/{principal}");
        let nonce = hkdf_sha256(self.0.as_slice(), b"caretaker", info.as_bytes());
        ApprovalToken::from_random(*nonce)
    }

    fn decrypt(
        &self,
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
        let token = self
            .cipher()
            .decrypt(&XNonce::from(*nonce), payload)
            .map(Zeroizing::new)
            .ok()?;
        str::from_utf8(&token).ok().map(SecretString::from)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&(*self.0).into())
    }
}

fn associated_data(project: &ProjectId, draft: &Sha256Digest) -> Vec<u8> {
    // Break it: leave the project out; a credential then opens in another project's row. Leave the draft out; rules that were
    // changed in the database are then obeyed.
    format!("caretaker/credential/v1/{project}/{draft}").into_bytes()
}
