//! The manifest, its canonical form and its digest.

use serde::{Deserialize, Serialize};

use super::CONTEXT_MANIFEST_FORMAT;
use crate::change::Sha256Digest;

/// Longest name of an input, in bytes.
const LONGEST_NAME: usize = 500;

/// One input. The order (quarantined before direct, then by name) is the canonical one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "trust", rename_all = "lowercase", deny_unknown_fields)]
pub enum ContextEntry {
    /// Untrusted text of which only an extraction went on.
    Quarantined {
        /// What it is, e.g. `log:<job id>`.
        name: String,
        /// SHA-256 of the bytes as fetched.
        raw: Sha256Digest,
        /// SHA-256 of the canonical extraction.
        extraction: Sha256Digest,
    },
    /// Content that went on as it is.
    Direct {
        /// What it is, e.g. `intent` or `tree:<path>`.
        name: String,
        /// SHA-256 of the content.
        sha256: Sha256Digest,
    },
}

impl ContextEntry {
    /// What the input is.
    pub fn name(&self) -> &str {
        match self {
            Self::Quarantined { name, .. } | Self::Direct { name, .. } => name,
        }
    }
}

/// Why something is not a context manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// A name that could not be shown or compared.
    #[error(
        "building a context manifest: the input name {name:?} {reason}; use 1 to 500 bytes without control characters"
    )]
    Name {
        /// The name, cut to 80 characters.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// One name for two contents, or for both trust classes.
    #[error(
        "building a context manifest: the input {name:?} is listed with two different contents; give each input a name of its own"
    )]
    Ambiguous {
        /// The name.
        name: String,
    },
    /// JSON that is not a manifest.
    #[error("reading a context manifest: {0}; it must be the document caretaker stored, unchanged")]
    Json(String),
    /// A format this version does not know.
    #[error("reading a context manifest: format {found:?} is not {CONTEXT_MANIFEST_FORMAT:?}")]
    Format {
        /// The format as written.
        found: String,
    },
    /// A manifest whose bytes are not the one canonical serialisation of its content.
    #[error(
        "reading a context manifest: the bytes are not in canonical form (compact, entries sorted, each once); it was changed after it was written"
    )]
    NotCanonical,
}

/// Every distinct input of a diagnosis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct ContextManifest {
    entries: Vec<ContextEntry>,
}

/// The manifest as JSON has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: String,
    entries: Vec<ContextEntry>,
}

impl ContextManifest {
    /// Sorts the inputs and keeps each once.
    ///
    /// # Errors
    /// A name that is empty, longer than 500 bytes or holds control characters; one name for two contents.
    pub fn new(mut entries: Vec<ContextEntry>) -> Result<Self, ManifestError> {
        for entry in &entries {
            check_name(entry.name())?;
        }
        entries.sort();
        entries.dedup();
        let mut names: Vec<&str> = entries.iter().map(ContextEntry::name).collect();
        names.sort_unstable();
        let repeated = names.windows(2).find_map(|pair| match pair {
            [first, second] if first == second => Some((*first).to_owned()),
            _ => None,
        });
        match repeated {
            Some(name) => Err(ManifestError::Ambiguous { name }),
            None => Ok(Self { entries }),
        }
    }

    /// Reads a stored manifest.
    ///
    /// # Errors
    /// Anything but the bytes that [`ContextManifest::canonical`] gives for the same content.
    pub fn from_canonical(bytes: &[u8]) -> Result<Self, ManifestError> {
        let document: Document = serde_json::from_slice(bytes)
            .map_err(|error| ManifestError::Json(error.to_string()))?;
        let manifest = Self::try_from(document)?;
        if manifest.canonical() == bytes {
            Ok(manifest)
        } else {
            Err(ManifestError::NotCanonical)
        }
    }

    /// The inputs, in canonical order.
    pub fn entries(&self) -> &[ContextEntry] {
        &self.entries
    }

    /// The one serialisation that is stored and signed: compact JSON, members and entries in fixed order.
    pub fn canonical(&self) -> Vec<u8> {
        // Strings only: this cannot fail, and an empty text would fail every later check.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// SHA-256 of [`ContextManifest::canonical`].
    pub fn digest(&self) -> Sha256Digest {
        Sha256Digest::of(&self.canonical())
    }
}

impl From<ContextManifest> for Document {
    fn from(manifest: ContextManifest) -> Self {
        Self {
            format: CONTEXT_MANIFEST_FORMAT.to_owned(),
            entries: manifest.entries,
        }
    }
}

impl TryFrom<Document> for ContextManifest {
    type Error = ManifestError;

    fn try_from(document: Document) -> Result<Self, ManifestError> {
        if document.format != CONTEXT_MANIFEST_FORMAT {
            let found = document.format.chars().take(80).collect();
            return Err(ManifestError::Format { found });
        }
        Self::new(document.entries)
    }
}

fn check_name(name: &str) -> Result<(), ManifestError> {
    let reason = if name.is_empty() {
        "is empty"
    } else if name.len() > LONGEST_NAME {
        "is too long"
    } else if name.chars().any(char::is_control) {
        "holds a control character"
    } else {
        return Ok(());
    };
    Err(ManifestError::Name {
        name: name.chars().take(80).collect(),
        reason,
    })
}
