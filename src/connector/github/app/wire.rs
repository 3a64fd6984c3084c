//! The answers as written. Every member may be missing; what cannot be done without is asked for where it is used.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An account.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Owner {
    pub(super) login: Option<String>,
    pub(super) slug: Option<String>,
}

/// `GET /app`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct App {
    pub(super) id: Option<u64>,
    pub(super) slug: Option<String>,
    pub(super) name: Option<String>,
    pub(super) owner: Option<Owner>,
    pub(super) html_url: Option<String>,
    pub(super) permissions: Option<BTreeMap<String, Value>>,
    pub(super) events: Option<Vec<Value>>,
}

/// `GET /app/installations/{id}` and `GET /repos/{owner}/{repo}/installation`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Installation {
    pub(super) id: Option<u64>,
    pub(super) app_id: Option<u64>,
    pub(super) html_url: Option<String>,
    pub(super) permissions: Option<BTreeMap<String, Value>>,
    pub(super) suspended_at: Option<String>,
}

/// `POST /app/installations/{id}/access_tokens`. No `Debug`: it holds the token.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Issued {
    #[serde(deserialize_with = "secret")]
    pub(super) token: Option<SecretString>,
    pub(super) expires_at: Option<String>,
    pub(super) permissions: Option<BTreeMap<String, Value>>,
    pub(super) repositories: Option<Vec<Repository>>,
}

/// A repository that a token opens.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Repository {
    pub(super) id: Option<u64>,
    pub(super) name: Option<String>,
}

/// `POST /app-manifests/{code}/conversions`. No `Debug`: it holds the App's key.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Conversion {
    #[serde(deserialize_with = "secret")]
    pub(super) pem: Option<SecretString>,
    #[serde(deserialize_with = "secret")]
    pub(super) webhook_secret: Option<SecretString>,
    #[serde(flatten)]
    pub(super) app: App,
}

/// A text that is a secret from here on.
fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.map(SecretString::from))
}
