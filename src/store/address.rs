//! Where the database is.

use std::path::{Path, PathBuf};

use super::StoreError;
use super::dialect::Dialect;

/// A parsed address. Only [`Self::shown`] is for people.
#[derive(Clone)]
pub(super) struct Address {
    /// Which of the two databases.
    pub(super) dialect: Dialect,
    /// The file, for the embedded database.
    pub(super) file: Option<PathBuf>,
    /// The address of the server, password included.
    server: String,
    /// Without user, password and parameters.
    pub(super) shown: String,
}

impl Address {
    /// Reads `sqlite://PATH` or `postgres://…`.
    pub(super) fn parse(text: &str) -> Result<Self, StoreError> {
        if let Some(rest) = text.strip_prefix("sqlite:") {
            return Self::embedded(rest.strip_prefix("//").unwrap_or(rest));
        }
        let url = url::Url::parse(text).map_err(|_| StoreError::Address {
            reason: "database.url is not an address",
        })?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(StoreError::Address {
                reason: "database.url is neither an SQLite file nor a PostgreSQL server",
            });
        }
        let shown = format!(
            "{}://{}{}",
            url.scheme(),
            url.host_str().unwrap_or_default(),
            url.path()
        );
        Ok(Self {
            dialect: Dialect::Postgres,
            file: None,
            server: text.to_owned(),
            shown,
        })
    }

    fn embedded(rest: &str) -> Result<Self, StoreError> {
        let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        if !parameters.is_empty() {
            return Err(StoreError::Address {
                reason: "an SQLite address takes no parameters",
            });
        }
        if path.is_empty() || path.starts_with(":memory:") || path.contains('\0') {
            return Err(StoreError::Address {
                reason: "an SQLite address names a file (in memory, signed evidence would end with the process)",
            });
        }
        let decoded = percent_decoded(path).ok_or(StoreError::Address {
            reason: "the path of the SQLite file has a % that is not an escape",
        })?;
        let file = std::path::absolute(&decoded).unwrap_or_else(|_| PathBuf::from(decoded));
        Ok(Self {
            dialect: Dialect::Sqlite,
            shown: format!("sqlite://{}", file.display()),
            file: Some(file),
            server: String::new(),
        })
    }

    /// What the driver is given. The file must exist: nothing but [`super::Store::open`] makes one.
    pub(super) fn driver_url(&self) -> String {
        match &self.file {
            Some(file) => format!("sqlite://{}?mode=rw", escaped(file)),
            None => self.server.clone(),
        }
    }
}

/// Escapes everything that has a meaning in an address.
fn escaped(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes
        .iter()
        .map(|byte| {
            if plain(*byte) {
                char::from(*byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect::<Vec<_>>()
        .concat()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let digits = tail.get(..2)?;
            bytes.extend(hex::decode(digits).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}
