//! Ed25519 keys as the published tools keep them: PEM files (RFC 8410) with a PKCS #8 private key or a SPKI public key, named by the
//! first 16 hexadecimal digits of the SHA-256 of the public file's text.
//!
//! For this one algorithm both structures are a fixed prefix and 32 bytes, so no reader of ASN.1 is needed.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;
use zeroize::{Zeroize as _, Zeroizing};

use crate::attest::keys::{Fill, FillError, KeyError, PublicKey, SecretKey};
use crate::attest::text::shown;
use crate::change::Sha256Digest;

/// `SubjectPublicKeyInfo` of an Ed25519 key up to its 32 bytes (RFC 8410, section 4).
const PUBLIC_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
/// `PrivateKeyInfo` of an Ed25519 key up to its 32 bytes (RFC 8410, section 7), without attributes.
const PRIVATE_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
const PUBLIC: &str = "PUBLIC KEY";
const PRIVATE: &str = "PRIVATE KEY";
/// The longest PEM text that is looked at, in bytes.
const MAX_PEM: usize = 4_096;

/// Why a text is not a key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PemError {
    /// Not one PEM block.
    #[error(
        "not a PEM file with one key: `-----BEGIN {expected}-----`, base64 and `-----END {expected}-----` were expected"
    )]
    Block {
        /// The label that was looked for.
        expected: &'static str,
    },
    /// A PEM block with another label.
    #[error(
        "the PEM file holds `{found}` where `{expected}` is needed, Ed25519 and not encrypted; `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` make such files"
    )]
    Label {
        /// The label that was looked for.
        expected: &'static str,
        /// The label found, made printable.
        found: String,
    },
    /// Not an Ed25519 key.
    #[error(
        "the key in the PEM file is not a plain Ed25519 key; `openssl genpkey -algorithm ed25519` makes one"
    )]
    Algorithm,
    /// An Ed25519 key that is not used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Not a key's name.
    #[error("{found} names no key: 16 lower-case hexadecimal digits were expected")]
    Id {
        /// What was found, made printable.
        found: String,
    },
    /// No randomness.
    #[error(transparent)]
    Fill(#[from] FillError),
}

/// The name of a key in tokens and receipts: the first 16 hexadecimal digits of the SHA-256 of its public PEM text, with its line
/// breaks. It chooses which trusted key a signature is held against and makes none count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PemKeyId(String);

impl PemKeyId {
    /// Takes `id`, refusing every other spelling.
    pub fn parse(id: &str) -> Result<Self, PemError> {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if id.len() == 16 && id.bytes().all(digit) {
            Ok(Self(id.to_owned()))
        } else {
            Err(PemError::Id { found: shown(id) })
        }
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of a public key.
    pub fn of(key: &PublicKey) -> Self {
        let digits = Sha256Digest::of(public_pem(key).as_bytes()).to_string();
        Self(digits.get(..16).unwrap_or_default().to_owned())
    }
}

impl fmt::Display for PemKeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The PEM text of a public key, as `openssl pkey -pubout` prints it.
pub fn public_pem(key: &PublicKey) -> String {
    let mut der = PUBLIC_PREFIX.to_vec();
    der.extend_from_slice(key.as_bytes());
    format!(
        "-----BEGIN {PUBLIC}-----\n{}\n-----END {PUBLIC}-----\n",
        STANDARD.encode(der)
    )
}

/// Reads a public key: from its own PEM file, or from that of its private key, of which nothing else is used.
pub fn read_public_pem(text: &str) -> Result<PublicKey, PemError> {
    if label(text, PUBLIC)? == PRIVATE {
        return Ok(PemKey::from_pem(text)?.public());
    }
    let der = block(text, PUBLIC)?;
    let bytes = der.strip_prefix(&PUBLIC_PREFIX).map(<[u8; 32]>::try_from);
    let Some(Ok(bytes)) = bytes else {
        return Err(PemError::Algorithm);
    };
    Ok(PublicKey::from_bytes(&bytes)?)
}

/// A secret key with its name. Wiped when dropped; printing it prints its public id.
#[derive(Debug)]
pub struct PemKey {
    secret: SecretKey,
    id: PemKeyId,
}

impl PemKey {
    /// Names a key that is there.
    pub fn new(secret: SecretKey) -> Self {
        let id = PemKeyId::of(&secret.public());
        Self { secret, id }
    }

    /// A new key from 32 random bytes, and the PEM text to keep it in.
    pub fn generate(fill: Fill<'_>) -> Result<(Self, Zeroizing<String>), PemError> {
        let mut seed = Zeroizing::new([0; 32]);
        fill(seed.as_mut_slice())?;
        let mut der = Zeroizing::new(PRIVATE_PREFIX.to_vec());
        der.extend_from_slice(seed.as_slice());
        let encoded = Zeroizing::new(STANDARD.encode(&der));
        let pem = format!(
            "-----BEGIN {PRIVATE}-----\n{}\n-----END {PRIVATE}-----\n",
            encoded.as_str()
        );
        Ok((Self::new(SecretKey::from_seed(&seed)), Zeroizing::new(pem)))
    }

    /// Reads an unencrypted private key.
    pub fn from_pem(text: &str) -> Result<Self, PemError> {
        label(text, PRIVATE)?;
        let der = Zeroizing::new(block(text, PRIVATE)?);
        let seed = der.strip_prefix(&PRIVATE_PREFIX).map(<[u8; 32]>::try_from);
        let Some(Ok(mut seed)) = seed else {
            return Err(PemError::Algorithm);
        };
        let key = Self::new(SecretKey::from_seed(&seed));
        seed.zeroize();
        Ok(key)
    }

    /// The name.
    pub fn id(&self) -> &PemKeyId {
        &self.id
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        self.secret.public()
    }

    /// Signs exactly these bytes.
    pub(super) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.secret.sign(message)
    }
}

/// The keys whose signatures count, by name. There is no root above them.
#[derive(Debug, Clone, Default)]
pub struct TrustedKeys(BTreeMap<PemKeyId, PublicKey>);

impl TrustedKeys {
    /// These keys.
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        let named = keys.into_iter().map(|key| (PemKeyId::of(&key), key));
        Self(named.collect())
    }

    /// The key of this name, if it is trusted.
    pub fn find(&self, id: &str) -> Option<&PublicKey> {
        self.0
            .iter()
            .find(|(known, _)| known.as_str() == id)
            .map(|(_, key)| key)
    }

    /// The keys with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&PemKeyId, &PublicKey)> {
        self.0.iter()
    }
}

/// The label of a text's first PEM block, which must be the expected one or a private key's.
fn label<'a>(text: &'a str, expected: &'static str) -> Result<&'a str, PemError> {
    let first = text.trim_start().lines().next().unwrap_or_default();
    let found = first
        .trim_end()
        .strip_prefix("-----BEGIN ")
        .and_then(|rest| rest.strip_suffix("-----"))
        .filter(|_| text.len() <= MAX_PEM)
        .ok_or(PemError::Block { expected })?;
    if found == expected || found == PRIVATE {
        Ok(found)
    } else {
        Err(PemError::Label {
            expected,
            found: shown(found),
        })
    }
}

/// The bytes of the one PEM block that `text` is.
fn block(text: &str, label: &'static str) -> Result<Vec<u8>, PemError> {
    let refused = || PemError::Block { expected: label };
    let body = text
        .trim()
        .strip_prefix(&format!("-----BEGIN {label}-----"))
        .and_then(|rest| rest.strip_suffix(&format!("-----END {label}-----")))
        .ok_or_else(refused)?;
    let encoded: Zeroizing<String> =
        Zeroizing::new(body.split_ascii_whitespace().collect::<String>());
    STANDARD.decode(encoded.as_bytes()).map_err(|_| refused())
}
