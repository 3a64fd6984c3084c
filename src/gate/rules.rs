//! Compiled rules of a project.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::change::Sha256Digest;

use super::glob::{GlobFault, Globs, PathForms};
use super::{PathRule, RulesDocument, Workflows};

/// One of the lists of a rules file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum List {
    /// Refused paths.
    Denied,
    /// Class infrastructure.
    Infrastructure,
    /// Class data.
    Data,
    /// Approval whatever the class.
    Sensitive,
    /// Not from the rules file: [`super::matters`].
    BuiltIn,
}

impl List {
    /// The key in the rules file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Infrastructure => "infrastructure",
            Self::Data => "data",
            Self::Sensitive => "sensitive",
            Self::BuiltIn => "built-in",
        }
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a rules file cannot be used. A project with such a file is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// A glob that is refused.
    #[error("rules: {list}[{index}]: the glob {glob:?} is refused: {fault}")]
    Glob {
        /// The list it stands in.
        list: List,
        /// Its position, from 0.
        index: usize,
        /// The glob, cut when long.
        glob: String,
        /// What is wrong and the mend.
        fault: GlobFault,
    },
    /// `base` is not the name of a branch.
    #[error(
        "rules: base: {found:?} is not a branch name ({fault}); write the short name, such as main"
    )]
    Base {
        /// What was written, cut when long.
        found: String,
        /// What is wrong.
        fault: &'static str,
    },
    /// An argument of `test` that no program can be given.
    #[error("rules: test: argument {index} {fault}; write the command as a list, program first")]
    Test {
        /// Its position, from 0.
        index: usize,
        /// What is wrong.
        fault: &'static str,
    },
    /// A required check without a name or an app.
    #[error(
        "rules: checks.required[{0}]: name and app must not be empty; a check is known by both"
    )]
    Check(usize),
}

/// The rules of a project, ready to decide.
#[derive(Debug, Clone)]
pub struct Rules {
    document: RulesDocument,
    digest: Sha256Digest,
    denied: Globs,
    infrastructure: Globs,
    data: Globs,
    sensitive: Globs,
}

impl Rules {
    /// Compiles a rules file; `source` is the file's exact bytes, whose digest names the rules in every decision.
    ///
    /// # Errors
    /// The first glob or setting that is refused, with its place and the mend.
    pub fn compile(document: RulesDocument, source: &[u8]) -> Result<Self, RulesError> {
        check_base(&document.base.0)?;
        check_settings(&document)?;
        Ok(Self {
            digest: Sha256Digest::of(source),
            denied: compile(List::Denied, &document.denied)?,
            infrastructure: compile(List::Infrastructure, &document.infrastructure)?,
            data: compile(List::Data, &document.data)?,
            sensitive: compile(List::Sensitive, &document.sensitive)?,
            document,
        })
    }

    /// The rules and settings as written.
    pub const fn document(&self) -> &RulesDocument {
        &self.document
    }

    /// SHA-256 of the exact bytes of the rules file.
    pub const fn digest(&self) -> &Sha256Digest {
        &self.digest
    }

    /// Whether the project refuses no path of its own: allowed, but worth a person's look.
    pub const fn denies_nothing(&self) -> bool {
        self.document.denied.is_empty()
    }

    /// The first rule of a list that names the path.
    pub(super) fn first_match(&self, list: List, path: &PathForms<'_>) -> Option<&PathRule> {
        let (globs, rules) = match list {
            List::Denied => (&self.denied, &self.document.denied),
            List::Infrastructure => (&self.infrastructure, &self.document.infrastructure),
            List::Data => (&self.data, &self.document.data),
            List::Sensitive => (&self.sensitive, &self.document.sensitive),
            List::BuiltIn => return None,
        };
        rules.get(*globs.matches(path).first()?)
    }

    pub(super) fn denies_workflows(&self) -> bool {
        self.document.workflows == Workflows::Deny
    }
}

fn compile(list: List, rules: &[PathRule]) -> Result<Globs, RulesError> {
    Globs::compile(rules.iter().map(|rule| rule.glob.as_str())).map_err(|(index, fault)| {
        let glob = rules
            .get(index)
            .map(|rule| rule.glob.chars().take(120).collect());
        RulesError::Glob {
            list,
            index,
            glob: glob.unwrap_or_default(),
            fault,
        }
    })
}

fn check_settings(document: &RulesDocument) -> Result<(), RulesError> {
    for (index, check) in document.checks.required.iter().enumerate() {
        if check.name.trim().is_empty() || check.app.trim().is_empty() {
            return Err(RulesError::Check(index));
        }
    }
    for (index, argument) in document.test.iter().enumerate() {
        if argument.contains('\0') {
            let fault = "contains a NUL byte";
            return Err(RulesError::Test { index, fault });
        }
        if index == 0 && argument.trim().is_empty() {
            let fault = "is empty, but names the program";
            return Err(RulesError::Test { index, fault });
        }
    }
    Ok(())
}

/// Git's rules for a branch name (`git check-ref-format`), and no full reference.
fn check_base(name: &str) -> Result<(), RulesError> {
    let fault = if name.is_empty() {
        "it is empty"
    } else if name.len() > 244 {
        "it is longer than 244 bytes"
    } else if name.starts_with("refs/") {
        "it is a full reference"
    } else if name.starts_with('-') || name == "@" || name == "HEAD" {
        "git reads it as something else"
    } else if name.contains("..") || name.contains("@{") || name.ends_with('.') {
        "it holds .., @{ or ends with a dot"
    } else if name
        .chars()
        .any(|c| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\'))
    {
        "it holds a space, a control character or one of ~^:?*[\\"
    } else if name.split('/').any(|part| {
        part.is_empty() || part.starts_with('.') || part.strip_suffix(".lock").is_some()
    }) {
        "a part of it is empty, starts with a dot or ends with .lock"
    } else {
        return Ok(());
    };
    Err(RulesError::Base {
        found: name.chars().take(120).collect(),
        fault,
    })
}
