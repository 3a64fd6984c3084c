//! Names and keys of logs and witnesses (C2SP signed-note, "Signatures"; tlog-cosignature).

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use thiserror::Error;
use zeroize::Zeroizing;

use super::encoding::{from_base64, to_base64};
use crate::attest::keys::{Fill, FillError, KeyError, PublicKey, SecretKey};
use crate::attest::text::shown;

/// The longest text of a key, in bytes.
const MAX_KEY_TEXT: usize = 512;

/// Why a name or a key is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LogKeyError {
    /// Not a name.
    #[error(
        "{found} is not the name of a log or witness: 1 to {} bytes without spaces, plus signs and control characters; \
         by custom an address without scheme, as example.com/log",
        KeyName::MAX_BYTES
    )]
    Name {
        /// What was found, made printable.
        found: String,
    },
    /// Not the text of a verification key.
    #[error(
        "not a verification key: `NAME+ID+KEY` with 8 lower-case hexadecimal digits and base64 was expected, found \
         {found}"
    )]
    Verification {
        /// What was found, made printable.
        found: String,
    },
    /// Not the text of a signing key. The text is not repeated.
    #[error("not a signing key: `PRIVATE+KEY+NAME+ID+KEY` was expected")]
    Signing,
    /// The id in the text is not the key's.
    #[error(
        "the key {name} says that its id is {found}, but it is {expected}; the text is damaged"
    )]
    Id {
        /// The name.
        name: KeyName,
        /// The id computed from name and key.
        expected: KeyHash,
        /// The id in the text.
        found: String,
    },
    /// An algorithm that this version does not verify.
    #[error(
        "the key {name} has signature type {found:#04x}; this version knows 0x01 (Ed25519) and 0x04 (Ed25519 cosignature)"
    )]
    Algorithm {
        /// The name.
        name: KeyName,
        /// The type byte.
        found: u8,
    },
    /// Not a public key.
    #[error(transparent)]
    Public(#[from] KeyError),
}

/// The name of a log (its origin) or of a witness.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName(String);

impl KeyName {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 255;

    /// Takes a name, refusing spaces of any kind, plus signs, control characters and more than 255 bytes.
    pub fn new(name: &str) -> Result<Self, LogKeyError> {
        let sound = (1..=Self::MAX_BYTES).contains(&name.len())
            && !name.contains(|character: char| {
                character == '+' || character.is_whitespace() || character.is_control()
            });
        if sound {
            Ok(Self(name.to_owned()))
        } else {
            Err(LogKeyError::Name { found: shown(name) })
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The short id of a key in a signature line. With the name it says which key to try; it is no proof of anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; 4]);

impl fmt::Display for KeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

/// What a key signs, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignatureType {
    /// 0x01: Ed25519 over the note's text. A log's.
    Log,
    /// 0x04: Ed25519 over a time and the note's text (`cosignature/v1`). A witness's.
    Witness,
}

impl SignatureType {
    /// The byte that stands for it.
    pub const fn byte(self) -> u8 {
        match self {
            Self::Log => 0x01,
            Self::Witness => 0x04,
        }
    }

    const fn of(byte: u8) -> Option<Self> {
        match byte {
            0x01 => Some(Self::Log),
            0x04 => Some(Self::Witness),
            _ => None,
        }
    }
}

/// A public key with its name and use: what an auditor is given. As text `NAME+ID+KEY` (a "vkey").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: KeyName,
    signature_type: SignatureType,
    hash: KeyHash,
    public: PublicKey,
}

impl VerifierKey {
    /// The key of a log or witness.
    pub fn new(name: KeyName, signature_type: SignatureType, public: PublicKey) -> Self {
        let hash = key_hash(&name, signature_type, &public);
        Self {
            name,
            signature_type,
            hash,
            public,
        }
    }

    /// The name: of a log, its origin.
    pub fn name(&self) -> &KeyName {
        &self.name
    }

    /// Log or witness.
    pub const fn signature_type(&self) -> SignatureType {
        self.signature_type
    }

    /// The id in signature lines.
    pub const fn hash(&self) -> KeyHash {
        self.hash
    }

    /// The key itself.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }
}

impl FromStr for VerifierKey {
    type Err = LogKeyError;

    fn from_str(text: &str) -> Result<Self, LogKeyError> {
        let refused = || LogKeyError::Verification { found: shown(text) };
        let read = read_key(text, refused)?;
        let public = PublicKey::from_bytes(&read.bytes)?;
        check_hash(
            Self::new(read.name, read.signature_type, public),
            read.stated_hash,
        )
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = vec![self.signature_type.byte()];
        key.extend_from_slice(self.public.as_bytes());
        write!(formatter, "{}+{}+{}", self.name, self.hash, to_base64(&key))
    }
}

/// A new signing key's text, `PRIVATE+KEY+NAME+ID+SEED` (an "skey"), and its public half. Only keys that nothing seals are written
/// so, as long as they are new; the organisation's keys leave memory in sealed key files alone.
pub fn new_signing_key(
    name: &KeyName,
    signature_type: SignatureType,
    fill: Fill<'_>,
) -> Result<(Zeroizing<String>, VerifierKey), FillError> {
    let mut seed = Zeroizing::new([0; 32]);
    fill(seed.as_mut_slice())?;
    let public = SecretKey::from_seed(&seed).public();
    let key = VerifierKey::new(name.clone(), signature_type, public);
    let mut typed = Zeroizing::new(vec![signature_type.byte()]);
    typed.extend_from_slice(seed.as_slice());
    let encoded = Zeroizing::new(to_base64(&typed));
    let text = format!("PRIVATE+KEY+{name}+{}+{}", key.hash(), encoded.as_str());
    Ok((Zeroizing::new(text), key))
}

/// Reads the text of a signing key, `PRIVATE+KEY+NAME+ID+SEED` (an "skey"): the secret and its public half.
pub fn read_signing_key(text: &str) -> Result<(SecretKey, VerifierKey), LogKeyError> {
    let refused = || LogKeyError::Signing;
    let rest = text.strip_prefix("PRIVATE+KEY+").ok_or_else(refused)?;
    let read = read_key(rest, refused)?;
    let secret = SecretKey::from_seed(&read.bytes);
    let key = VerifierKey::new(read.name, read.signature_type, secret.public());
    Ok((secret, check_hash(key, read.stated_hash)?))
}

/// The parts of a key's text.
struct KeyText<'a> {
    name: KeyName,
    stated_hash: &'a str,
    signature_type: SignatureType,
    /// The public key or the seed.
    bytes: Zeroizing<[u8; 32]>,
}

fn read_key(text: &str, refused: impl Fn() -> LogKeyError) -> Result<KeyText<'_>, LogKeyError> {
    if text.len() > MAX_KEY_TEXT {
        return Err(refused());
    }
    let (name, rest) = text.split_once('+').ok_or_else(&refused)?;
    let (stated_hash, encoded) = rest.split_once('+').ok_or_else(&refused)?;
    let name = KeyName::new(name).map_err(|_| refused())?;
    let decoded = Zeroizing::new(from_base64(encoded).ok_or_else(&refused)?);
    let (algorithm, key) = decoded.split_first().ok_or_else(&refused)?;
    let signature_type = SignatureType::of(*algorithm).ok_or_else(|| LogKeyError::Algorithm {
        name: name.clone(),
        found: *algorithm,
    })?;
    let bytes = Zeroizing::new(key.try_into().map_err(|_| refused())?);
    Ok(KeyText {
        name,
        stated_hash,
        signature_type,
        bytes,
    })
}

fn check_hash(key: VerifierKey, stated: &str) -> Result<VerifierKey, LogKeyError> {
    if key.hash.to_string() == stated {
        Ok(key)
    } else {
        Err(LogKeyError::Id {
            expected: key.hash,
            found: shown(stated),
            name: key.name,
        })
    }
}

/// The first four bytes of SHA-256 over name, newline, type byte and public key.
fn key_hash(name: &KeyName, signature_type: SignatureType, public: &PublicKey) -> KeyHash {
    let digest: [u8; 32] = Sha256::new_with_prefix(name.as_str())
        .chain_update([b'\n', signature_type.byte()])
        .chain_update(public.as_bytes())
        .finalize()
        .into();
    let [a, b, c, d, ..] = digest;
    KeyHash([a, b, c, d])
}
