//! The address of the database.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize, de};

/// Why a text is not the address of a database. The text is not repeated: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is not a database address; write sqlite://PATH, or postgres://USER@HOST/NAME")]
pub struct DatabaseUrlError;

/// `sqlite://PATH` or `postgres://…`. Shows without user, password and parameters.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

const EMBEDDED: &str = "sqlite:";

impl DatabaseUrl {
    /// The embedded database in a file.
    pub fn embedded(file: &Path) -> Self {
        Self(format!("{EMBEDDED}//{}", escaped(file)))
    }

    /// The whole address, password included: for opening the database and for nothing else.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Whether this is the embedded database.
    pub fn is_embedded(&self) -> bool {
        self.0.starts_with(EMBEDDED)
    }

    /// The address with a relative file resolved against a folder.
    pub(super) fn resolved_against(self, folder: &Path) -> Self {
        let Some(rest) = self.0.strip_prefix(EMBEDDED) else {
            return self;
        };
        let file = rest.strip_prefix("//").unwrap_or(rest);
        if file.starts_with('/') || file.starts_with(":memory:") {
            return self;
        }
        Self(format!("{EMBEDDED}//{}/{file}", escaped(folder)))
    }
}

/// A path as the address carries it: `%` and `?` have a meaning there.
fn escaped(path: &Path) -> String {
    path.display()
        .to_string()
        .replace('%', "%25")
        .replace('?', "%3F")
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, DatabaseUrlError> {
        let named = text
            .strip_prefix(EMBEDDED)
            .map(|rest| rest.trim_start_matches('/'));
        let embedded = named.is_some_and(|file| !file.is_empty() && !file.starts_with('?'));
        let shared = url::Url::parse(text).is_ok_and(|url| {
            matches!(url.scheme(), "postgres" | "postgresql")
                && (url.host().is_some() || url.query().is_some())
        });
        if (embedded || shared) && !text.contains('\0') {
            Ok(Self(text.to_owned()))
        } else {
            Err(DatabaseUrlError)
        }
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match url::Url::parse(&self.0) {
            Ok(url) if !self.is_embedded() => {
                write!(
                    f,
                    "{}://{}{}",
                    url.scheme(),
                    url.host_str().unwrap_or_default(),
                    url.path()
                )
            }
            _ => f.write_str(self.0.split('?').next().unwrap_or_default()),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for DatabaseUrl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for DatabaseUrl {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
