//! Secret keys at rest.
//!
//! A key file is two lines. The first is its header, compact JSON; the second is three words of base64: nonce, sealed
//! seed, checksum. The seed is sealed with XChaCha20-Poly1305 whose associated data is the first line, byte for byte,
//! so a header cannot be exchanged. The checksum is plain SHA-256 over everything before it: it protects nothing and
//! only tells a damaged file from a wrong secret. After opening, the public key is computed again and must have the
//! header's id, because XChaCha20-Poly1305 does not commit to its key.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::Zeroizing;

use super::super::json::{self, JsonError};
use super::super::role::Role;
use super::super::text::Label;
use super::{Fill, FillError, Kdf, KeyId, SecretKey};
use crate::change::Sha256Digest;

/// The longest key file, in bytes.
const MAX_BYTES: usize = 4_096;
const ALGORITHM: &str = "ed25519";
const FORMAT: u32 = 1;

/// What a key is for: one of the four ledger roles, or a key beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyUse {
    /// [`Role::Proposer`].
    Proposer,
    /// [`Role::Policy`].
    Policy,
    /// [`Role::Approver`].
    Approver,
    /// [`Role::Executor`].
    Executor,
    /// Signs trust roots.
    Root,
    /// Signs the log's checkpoints.
    Log,
    /// Signs gate receipts.
    Receipt,
    /// Signs capability tokens.
    Token,
}

impl KeyUse {
    /// Every use.
    pub const ALL: [Self; 8] = [
        Self::Proposer,
        Self::Policy,
        Self::Approver,
        Self::Executor,
        Self::Root,
        Self::Log,
        Self::Receipt,
        Self::Token,
    ];

    /// The name in headers, configuration and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proposer => "proposer",
            Self::Policy => "policy",
            Self::Approver => "approver",
            Self::Executor => "executor",
            Self::Root => "root",
            Self::Log => "log",
            Self::Receipt => "receipt",
            Self::Token => "token",
        }
    }

    /// The use with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|used| used.name() == name)
    }
}

impl From<Role> for KeyUse {
    fn from(role: Role) -> Self {
        match role {
            Role::Proposer => Self::Proposer,
            Role::Policy => Self::Policy,
            Role::Approver => Self::Approver,
            Role::Executor => Self::Executor,
        }
    }
}

impl fmt::Display for KeyUse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Why a key file cannot be written, read or opened.
#[derive(Debug, Error)]
pub enum KeyFileError {
    /// The file is not a key file, or its bytes changed.
    #[error("the key file is damaged ({reason}); restore it from a backup or rotate the key")]
    Damaged {
        /// What is wrong with it.
        reason: String,
    },
    /// The file is another role's.
    #[error("the key file is the {found}'s, but the {expected}'s is needed; check the path")]
    WrongRole {
        /// The role asked for.
        expected: KeyUse,
        /// The role in the header.
        found: KeyUse,
    },
    /// Authenticated decryption failed.
    #[error(
        "the secret does not open the {role}'s key {keyid}: it is not this file's secret, or the file's header was \
         exchanged; each role has a secret of its own"
    )]
    WrongSecret {
        /// The role in the header.
        role: KeyUse,
        /// The key in the header.
        keyid: KeyId,
    },
    /// The sealed seed is another key's.
    #[error(
        "the key file says it holds {expected}, but holds {found}; restore it from a backup or rotate the key"
    )]
    WrongKey {
        /// The key in the header.
        expected: Box<KeyId>,
        /// The key inside.
        found: Box<KeyId>,
    },
    /// The costs are beyond what is accepted.
    #[error(
        "the key file asks for {memory_kib} KiB, {passes} passes and {lanes} lanes; at most 262144 KiB, 16 and 8 are \
         spent on opening a key"
    )]
    Cost {
        /// Memory in KiB.
        memory_kib: u32,
        /// Passes.
        passes: u32,
        /// Lanes.
        lanes: u32,
    },
    /// HKDF needs 32 bytes.
    #[error("the key file is sealed for a secret of 32 random bytes, the one given has {length}")]
    SecretLength {
        /// Length of the secret given.
        length: usize,
    },
    /// An empty secret.
    #[error(
        "the secret for the {role}'s key is empty; give it by a file, a credential or an environment variable"
    )]
    NoSecret {
        /// The role.
        role: KeyUse,
    },
    /// Sealing failed.
    #[error("the {role}'s key could not be sealed: {reason}")]
    Seal {
        /// The role.
        role: KeyUse,
        /// Why.
        reason: String,
    },
    /// No randomness.
    #[error(transparent)]
    Fill(#[from] FillError),
}

impl From<JsonError> for KeyFileError {
    fn from(error: JsonError) -> Self {
        Self::Damaged {
            reason: format!("its header: {error}"),
        }
    }
}

/// The first line of a key file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyHeader {
    /// Format, 1.
    pub v: u32,
    /// The organisation the key acts for.
    pub org: Label,
    /// What the key is for.
    pub role: KeyUse,
    /// The key's fingerprint.
    pub keyid: KeyId,
    /// `ed25519`.
    pub alg: String,
    /// How the sealing key is derived.
    pub kdf: Kdf,
}

/// A key file, still sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile {
    header: KeyHeader,
    /// The first line exactly as it stands in the file: the associated data.
    header_bytes: Vec<u8>,
    nonce: [u8; 24],
    sealed: Vec<u8>,
}

impl KeyFile {
    /// Seals `key` under `secret` for one organisation and use. The random bytes are the nonce.
    pub fn seal(
        key: &SecretKey,
        org: &Label,
        role: KeyUse,
        kdf: Kdf,
        secret: &[u8],
        fill: Fill<'_>,
    ) -> Result<Self, KeyFileError> {
        if secret.is_empty() {
            return Err(KeyFileError::NoSecret { role });
        }
        let keyid = key.public().keyid();
        let header = KeyHeader {
            v: FORMAT,
            org: org.clone(),
            role,
            keyid,
            alg: ALGORITHM.to_owned(),
            kdf,
        };
        let header_bytes = json::to_bytes(&header)?;
        let mut nonce = [0; 24];
        fill(&mut nonce)?;
        let cipher = cipher(&header.kdf, secret)?;
        let seed = key.seed();
        let payload = Payload {
            msg: seed.as_slice(),
            aad: &header_bytes,
        };
        let sealed = cipher
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|error| KeyFileError::Seal {
                role,
                reason: error.to_string(),
            })?;
        Ok(Self {
            header,
            header_bytes,
            nonce,
            sealed,
        })
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.header_bytes.clone();
        let body = format!(
            "\n{} {} ",
            STANDARD.encode(self.nonce),
            STANDARD.encode(&self.sealed)
        );
        bytes.extend_from_slice(body.as_bytes());
        let checksum = STANDARD.encode(Sha256Digest::of(&bytes).as_bytes());
        bytes.extend_from_slice(checksum.as_bytes());
        bytes.push(b'\n');
        bytes
    }

    /// Reads a key file without opening it.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyFileError> {
        let damaged = |reason: &str| KeyFileError::Damaged {
            reason: reason.to_owned(),
        };
        if bytes.len() > MAX_BYTES {
            return Err(damaged("it has more than 4096 bytes"));
        }
        let text = str::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
        let (first, second) = text
            .split_once('\n')
            .ok_or_else(|| damaged("it has no second line"))?;
        let words: Vec<&str> = second
            .strip_suffix('\n')
            .unwrap_or(second)
            .split(' ')
            .collect();
        let [nonce, sealed, _checksum] = words.as_slice() else {
            return Err(damaged("its second line does not have three words"));
        };
        let decoded = |word: &str| {
            STANDARD
                .decode(word)
                .map_err(|_| damaged("its second line is not base64"))
        };
        let header: KeyHeader = json::parse(first.as_bytes(), MAX_BYTES)?;
        let nonce = decoded(nonce)?
            .try_into()
            .map_err(|_| damaged("its nonce does not have 24 bytes"))?;
        let file = Self {
            header,
            header_bytes: first.as_bytes().to_vec(),
            nonce,
            sealed: decoded(sealed)?,
        };
        if file.to_bytes() != bytes {
            return Err(damaged("its checksum does not match"));
        }
        if file.header.v != FORMAT || file.header.alg != ALGORITHM {
            return Err(damaged(
                "its format or algorithm is not known to this version",
            ));
        }
        Ok(file)
    }

    /// The header. Nothing in it is authenticated before [`Self::open`] succeeds.
    pub fn header(&self) -> &KeyHeader {
        &self.header
    }

    /// Opens the file for one use. The file of another role is refused before its secret is tried.
    pub fn open(&self, role: KeyUse, secret: &[u8]) -> Result<SecretKey, KeyFileError> {
        let header = &self.header;
        if header.role != role {
            return Err(KeyFileError::WrongRole {
                expected: role,
                found: header.role,
            });
        }
        if secret.is_empty() {
            return Err(KeyFileError::NoSecret { role });
        }
        let payload = Payload {
            msg: &self.sealed,
            aad: &self.header_bytes,
        };
        let opened = cipher(&header.kdf, secret)?
            .decrypt(&XNonce::from(self.nonce), payload)
            .map(Zeroizing::new)
            .map_err(|_| KeyFileError::WrongSecret {
                role,
                keyid: header.keyid.clone(),
            })?;
        let seed: &[u8; 32] = opened
            .as_slice()
            .try_into()
            .map_err(|_| KeyFileError::Damaged {
                reason: format!("it holds {} bytes instead of a 32-byte seed", opened.len()),
            })?;
        let key = SecretKey::from_seed(seed);
        let found = key.public().keyid();
        if found == header.keyid {
            Ok(key)
        } else {
            Err(KeyFileError::WrongKey {
                expected: Box::new(header.keyid.clone()),
                found: Box::new(found),
            })
        }
    }
}

fn cipher(kdf: &Kdf, secret: &[u8]) -> Result<XChaCha20Poly1305, KeyFileError> {
    let key = kdf.derive(secret)?;
    Ok(XChaCha20Poly1305::new(key.as_slice().try_into().map_err(
        |_| KeyFileError::Damaged {
            reason: "its sealing key does not have 32 bytes".to_owned(),
        },
    )?))
}
