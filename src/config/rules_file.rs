//! Rules files: read once, compiled at once, named by the digest of their exact bytes.

use std::path::Path;

use crate::gate::{Rules, RulesDocument, RulesError};

use super::source::{self, SourceError};
use super::yaml::{self, YamlError};

/// Why a rules file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesFileError {
    /// The file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// It is not a rules file; the message has line and column.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// A rule or setting in it is refused.
    #[error("{file}: {error}")]
    Rules {
        /// The file's name.
        file: String,
        /// What is refused, and the mend.
        error: RulesError,
    },
}

/// Reads the text of a rules file; `file` is its name in messages.
///
/// # Errors
/// Anything that is not exactly a rules file, with line and column. An empty file too: a project without rules must say so, as
/// in `denied: []`.
pub fn rules_from_yaml(bytes: &[u8], file: &str) -> Result<RulesDocument, YamlError> {
    if yaml::is_blank(bytes) {
        return Err(YamlError {
            file: file.to_owned(),
            line: 1,
            column: 1,
            problem:
                "the rules file is empty; write at least `denied: []` if nothing is to be refused"
                    .to_owned(),
        });
    }
    yaml::read(bytes, file)
}

/// Reads and compiles a rules file.
///
/// # Errors
/// A file that cannot be read, is not a rules file, or holds a rule that is refused.
pub fn read_rules(path: &Path) -> Result<Rules, RulesFileError> {
    let bytes = source::read(path, "rules")?;
    let file = path.display().to_string();
    let document = rules_from_yaml(&bytes, &file)?;
    Rules::compile(document, &bytes).map_err(|error| RulesFileError::Rules { file, error })
}
