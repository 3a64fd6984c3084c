//! From a secret to the key that seals a key file.

use argon2::{Algorithm, Argon2, Params, Version};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeroize::{Zeroize as _, Zeroizing};

use super::KeyFileError;

/// Most memory a key file may ask for when it is opened, in KiB (256 MiB).
const MAX_MEMORY_KIB: u32 = 256 * 1024;
/// Most passes a key file may ask for.
const MAX_PASSES: u32 = 16;
/// Most lanes a key file may ask for.
const MAX_LANES: u32 = 8;
/// Bytes of salt.
const SALT_BYTES: usize = 16;

/// How a key file's sealing key is derived from its secret (RFC 9106, RFC 5869). The salt is lower-case hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Kdf {
    /// Argon2id version 1.3: for passphrases.
    Argon2id {
        /// Memory in KiB.
        memory_kib: u32,
        /// Passes over the memory.
        passes: u32,
        /// Lanes.
        lanes: u32,
        /// 16 random bytes.
        salt: String,
    },
    /// HKDF with SHA-256: for secrets that are 32 random bytes.
    HkdfSha256 {
        /// 16 random bytes.
        salt: String,
    },
}

/// What opening a key file with a passphrase costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argon2Cost {
    /// Memory in KiB, at most 256 MiB.
    pub memory_kib: u32,
    /// Passes over the memory, at most 16.
    pub passes: u32,
    /// Lanes, at most 8.
    pub lanes: u32,
}

impl Default for Argon2Cost {
    /// 64 MiB, three passes, one lane: about a quarter of a second.
    fn default() -> Self {
        Self {
            memory_kib: 64 * 1024,
            passes: 3,
            lanes: 1,
        }
    }
}

impl Kdf {
    /// Argon2id at this cost.
    pub fn argon2id(cost: Argon2Cost, salt: [u8; 16]) -> Self {
        let Argon2Cost {
            memory_kib,
            passes,
            lanes,
        } = cost;
        Self::Argon2id {
            memory_kib,
            passes,
            lanes,
            salt: hex::encode(salt),
        }
    }

    /// HKDF, for 32-byte secrets only.
    pub fn hkdf(salt: [u8; 16]) -> Self {
        Self::HkdfSha256 {
            salt: hex::encode(salt),
        }
    }

    /// The 32-byte sealing key. The costs come from a file and are bounded before any memory is taken.
    pub(super) fn derive(&self, secret: &[u8]) -> Result<Zeroizing<[u8; 32]>, KeyFileError> {
        match self {
            Self::Argon2id {
                memory_kib,
                passes,
                lanes,
                salt,
            } => {
                let cost = Argon2Cost {
                    memory_kib: *memory_kib,
                    passes: *passes,
                    lanes: *lanes,
                };
                argon2id(secret, &decode_salt(salt)?, cost)
            }
            Self::HkdfSha256 { salt } => {
                let salt = decode_salt(salt)?;
                if secret.len() == 32 {
                    Ok(hkdf_sha256(secret, &salt, b"caretaker/key-file/v1"))
                } else {
                    Err(KeyFileError::SecretLength {
                        length: secret.len(),
                    })
                }
            }
        }
    }
}

fn decode_salt(salt: &str) -> Result<[u8; SALT_BYTES], KeyFileError> {
    let mut bytes = [0; SALT_BYTES];
    let lower = salt.bytes().all(|byte| !byte.is_ascii_uppercase());
    if lower && hex::decode_to_slice(salt, &mut bytes).is_ok() {
        Ok(bytes)
    } else {
        Err(KeyFileError::Damaged {
            reason: "the salt is not 32 lower-case hexadecimal digits".to_owned(),
        })
    }
}

fn argon2id(
    secret: &[u8],
    salt: &[u8],
    cost: Argon2Cost,
) -> Result<Zeroizing<[u8; 32]>, KeyFileError> {
    let Argon2Cost {
        memory_kib,
        passes,
        lanes,
    } = cost;
    if memory_kib > MAX_MEMORY_KIB || passes > MAX_PASSES || lanes > MAX_LANES {
        return Err(KeyFileError::Cost {
            memory_kib,
            passes,
            lanes,
        });
    }
    let refused = |_| KeyFileError::Cost {
        memory_kib,
        passes,
        lanes,
    };
    let params = Params::new(memory_kib, passes, lanes, Some(32)).map_err(refused)?;
    let mut key = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(secret, salt, key.as_mut_slice())
        .map_err(refused)?;
    Ok(key)
}

/// HKDF with SHA-256 (RFC 5869) for 32 bytes of output.
pub fn hkdf_sha256(secret: &[u8], salt: &[u8], info: &[u8]) -> Zeroizing<[u8; 32]> {
    let extracted = hmac_sha256(salt, &[secret]);
    hmac_sha256(extracted.as_slice(), &[info, &[1]])
}

/// HMAC with SHA-256 (RFC 2104) over the concatenation of `parts`.
fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let mut block = Zeroizing::new([0; 64]);
    if key.len() > block.len() {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let keyed = |pad: u8| {
        let mut padded = block.map(|byte| byte ^ pad);
        let hash = Sha256::new_with_prefix(padded);
        padded.zeroize();
        hash
    };
    let mut inner = keyed(0x36);
    for part in parts {
        inner.update(part);
    }
    let mut outer = keyed(0x5c);
    outer.update(inner.finalize());
    Zeroizing::new(outer.finalize().into())
}
