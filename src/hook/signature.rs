//! Who sent a delivery: HMAC-SHA256 over the bytes as they came, keyed with the secret that the service was given.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The secret has no bytes: anybody could sign with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "reading the webhook secret: it is empty, so that anybody could sign with it; make one of 32 random bytes, and give the same to the webhook's settings"
)]
pub struct EmptySecret;

/// A secret, ready for checking.
#[derive(Clone)]
pub struct HookKey(Hmac<Sha256>);

/// Shows nothing of the secret.
impl fmt::Debug for HookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookKey(…)")
    }
}

impl HookKey {
    /// The key that a secret is.
    ///
    /// # Errors
    /// The secret is empty.
    pub fn new(secret: &[u8]) -> Result<Self, EmptySecret> {
        // Break it: drop the condition; `hooks::signature::an_empty_secret_signs_nothing` then fails.
        if secret.is_empty() {
            return Err(EmptySecret);
        }
        // HMAC takes keys of any other length.
        let keyed = Hmac::new_from_slice(secret).map_err(|_| EmptySecret)?;
        Ok(Self(keyed))
    }

    /// Begins to check one body.
    pub fn verifier(&self) -> Verifier {
        Verifier(self.0.clone())
    }
}

/// What a sender claims: 32 bytes. They can be checked, not compared, so that no comparison ends early and tells how many of
/// them were right:
///
/// ```
/// let signature = caretaker::hook::Signature::parse(&[b"sha256=".as_slice(), &[b'0'; 64]].concat());
/// assert!(signature.is_some());
/// ```
/// ```compile_fail,E0369
/// let parse = || caretaker::hook::Signature::parse(b"").unwrap();
/// assert!(parse() == parse());
/// ```
pub struct Signature([u8; 32]);

/// Shows only that there is one.
impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature(…)")
    }
}

impl Signature {
    /// Reads the header `X-Hub-Signature-256`: `sha256=` and 64 hexadecimal digits. The older SHA-1 header is not read.
    pub fn parse(header: &[u8]) -> Option<Self> {
        let digits = header.strip_prefix(b"sha256=")?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// The form of the header, in lower case. Once it is known to be right, it names the body.
    pub fn name(&self) -> String {
        format!("sha256={}", hex::encode(self.0))
    }
}

/// A body under check; it is read piece by piece.
pub struct Verifier(Hmac<Sha256>);

impl Verifier {
    /// The next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// Whether whoever made this signature has the key and signed these bytes, all of them and no more. Takes the same time
    /// wherever the first wrong byte is.
    pub fn matches(self, signature: &Signature) -> bool {
        // Break it: answer `true`; `hooks::http::a_wrong_signature_changes_nothing` then fails.
        self.0.verify_slice(&signature.0).is_ok()
    }
}
