//! The App's private key, and the short-lived assertion that it signs.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::sign::SigningKey;
use rustls::{SignatureAlgorithm, SignatureScheme};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use crate::clock::Millis;

/// How far back an assertion is dated, in seconds, so that a provider whose clock is behind takes it.
const BACKDATED: i64 = 60;
/// How long it lasts from now, in seconds. With [`BACKDATED`] that is the ten minutes that the provider allows.
const LASTS: i64 = 9 * 60;

/// Why a private key cannot be used. The key is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppKeyError {
    /// No private key in it, or one under a passphrase.
    #[error(
        "reading the App's private key: it holds no unencrypted private key in PEM form; use the .pem file as GitHub gave it"
    )]
    Form,
    /// A key of another kind, or a broken one.
    #[error(
        "reading the App's private key: it is no RSA key of 2048 to 8192 bits; generate a private key on the App's page and use that file"
    )]
    Kind,
    /// The key does not sign.
    #[error("signing as the App: {reason}")]
    Signing {
        /// What the library says.
        reason: String,
    },
}

/// The App's private key, RSA, as PKCS#1 (what GitHub gives out) or PKCS#8.
#[derive(Clone)]
pub struct AppKey(Arc<dyn SigningKey>);

/// That there is one.
impl fmt::Debug for AppKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AppKey(..)")
    }
}

impl AppKey {
    /// Reads a key in PEM form.
    ///
    /// # Errors
    /// It is no PEM, no RSA key, or the key is broken.
    pub fn from_pem(pem: &SecretString) -> Result<Self, AppKeyError> {
        let key = PrivateKeyDer::from_pem_slice(pem.expose_secret().as_bytes())
            .map_err(|_| AppKeyError::Form)?;
        let key =
            rustls::crypto::ring::sign::any_supported_type(&key).map_err(|_| AppKeyError::Kind)?;
        if key.algorithm() == SignatureAlgorithm::RSA {
            Ok(Self(key))
        } else {
            Err(AppKeyError::Kind)
        }
    }

    /// A JSON web token (RS256) that says "this is App `app`", for the next nine minutes.
    pub(super) fn assertion(&self, app: u64, now: Millis) -> Result<SecretString, AppKeyError> {
        let seconds = now.0.div_euclid(1000);
        let header = json!({"alg": "RS256", "typ": "JWT"});
        let claims = json!({
            "iat": seconds.saturating_sub(BACKDATED),
            "exp": seconds.saturating_add(LASTS),
            "iss": app.to_string(),
        });
        let encoded = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let said = format!("{}.{}", encoded(header), encoded(claims));
        let signer = self
            .0
            .choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256])
            .ok_or(AppKeyError::Kind)?;
        let signature = signer
            .sign(said.as_bytes())
            .map_err(|error| AppKeyError::Signing {
                reason: error.to_string(),
            })?;
        let token = format!("{said}.{}", URL_SAFE_NO_PAD.encode(signature));
        Ok(SecretString::from(token))
    }
}
