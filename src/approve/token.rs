//! The secret in an approval link.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::attest::keys::hkdf_sha256;
use crate::change::Sha256Digest;

/// A text that cannot be an approval token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "reading an approval link: the part after /a/ is not a token of 43 letters, digits, - and _; open the link exactly as it was sent"
)]
pub struct TokenError;

/// A 32-byte nonce. It is shown once, inside the link; the store keeps only its [`TokenHash`].
#[derive(Clone)]
pub struct ApprovalToken(Zeroizing<[u8; 32]>);

impl ApprovalToken {
    /// A token from fresh random bytes.
    pub fn from_random(nonce: [u8; 32]) -> Self {
        Self(Zeroizing::new(nonce))
    }

    /// What the store keeps and looks up by.
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256Digest::of(self.0.as_slice()))
    }

    /// A code over a text that only who holds the token can make.
    pub(super) fn code(&self, purpose: &str, text: &[u8]) -> Sha256Digest {
        Sha256Digest::from_bytes(*hkdf_sha256(self.0.as_slice(), purpose.as_bytes(), text))
    }

    /// The token as it stands in the link: base64url without padding.
    pub fn to_link_text(&self) -> Zeroizing<String> {
        Zeroizing::new(URL_SAFE_NO_PAD.encode(self.0.as_slice()))
    }
}

/// Never prints the secret.
impl fmt::Debug for ApprovalToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApprovalToken({})", self.hash().0)
    }
}

impl std::str::FromStr for ApprovalToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let mut nonce = Zeroizing::new([0; 32]);
        match URL_SAFE_NO_PAD.decode_slice(text, nonce.as_mut_slice()) {
            Ok(32) => Ok(Self(nonce)),
            _ => Err(TokenError),
        }
    }
}

/// SHA-256 of a token's nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenHash(pub Sha256Digest);
