//! Paths inside a repository: bytes, as git stores them.

use std::fmt;

/// A name that cannot be a tree path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("path {shown}: {reason}")]
pub struct PathError {
    shown: String,
    reason: &'static str,
}

/// A path relative to the repository's root, `/` between its components.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// Checks a path as bytes.
    ///
    /// # Errors
    /// Empty, absolute, a NUL, an empty component, or a `.`, `..` or `.git` component (in any case): a tree that holds one is
    /// hostile.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PathError> {
        let refuse = |reason| {
            Err(PathError {
                shown: escape(bytes),
                reason,
            })
        };
        if bytes.is_empty() {
            return refuse("is empty");
        }
        if bytes.contains(&0) {
            return refuse("contains a NUL byte; such names are refused everywhere");
        }
        for component in bytes.split(|byte| *byte == b'/') {
            match component {
                b"" => return refuse("has an empty component or starts or ends with a slash"),
                b"." | b".." => return refuse("has a . or .. component"),
                _ if component.eq_ignore_ascii_case(b".git") => return refuse("names .git"),
                _ => {}
            }
        }
        Ok(Self(bytes.to_vec()))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as text, when it is valid UTF-8; a path that is not cannot be proposed, since JSON cannot carry it.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

/// Printable form: control, escape and bidirectional characters and invalid bytes appear as escapes.
fn escape(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            let hidden = character.is_control()
                || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
            if hidden {
                shown.extend(character.escape_unicode());
            } else {
                shown.push(character);
            }
        }
        for byte in chunk.invalid() {
            shown.extend(format!("\\x{byte:02x}").chars());
        }
    }
    shown
}

impl std::str::FromStr for RepoPath {
    type Err = PathError;
    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::from_bytes(text.as_bytes())
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.0))
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// JSON carries the path as text; a path that is not UTF-8 is an error there.
impl serde::Serialize for RepoPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_text() {
            Some(text) => serializer.serialize_str(text),
            None => Err(serde::ser::Error::custom(format!(
                "path {self} is not UTF-8 and cannot be written as JSON"
            ))),
        }
    }
}

impl<'de> serde::Deserialize<'de> for RepoPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
