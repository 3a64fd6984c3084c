//! Lists of globs, matched against the bytes of a path and against its folded forms.
//!
//! Syntax: `*` and `?` stay within one name, `**` alone between slashes spans any number of folders, `[ab]`, `[!ab]`,
//! `{a,b}`. A glob starts at the repository's root. What would silently match nothing is refused when the rules are read.

use std::collections::BTreeSet;

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

use super::fold::{folded_text, forms, is_invisible};

/// Most globs of one list.
pub const MAXIMUM_GLOBS: usize = 1_000;

/// Longest glob, in bytes.
pub const MAXIMUM_GLOB_BYTES: usize = 1_024;

/// Why a text is not a glob that rules accept; each says the mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobFault {
    /// Nothing there.
    #[error("it is empty; remove it or write a path")]
    Empty,
    /// Longer than [`MAXIMUM_GLOB_BYTES`].
    #[error("it has {0} bytes, more than {MAXIMUM_GLOB_BYTES}; split it")]
    Long(usize),
    /// A leading `!`.
    #[error("rules have no negation; list what is meant and remove the leading !")]
    Negation,
    /// A control character or one that does not show.
    #[error("it holds the invisible character U+{0:04X}; retype it without")]
    Invisible(u32),
    /// A backslash.
    #[error("it holds a backslash; write / between folders, and [*] for a literal star")]
    Backslash,
    /// A leading slash, `./`, `//`, or `..`.
    #[error(
        "it has an empty, . or .. component, which no path in a repository has; start at the root, without a leading slash"
    )]
    Component,
    /// A trailing slash.
    #[error("it ends with a slash and would match nothing; write {0}** for all that is below")]
    Folder(String),
    /// `**` beside other characters.
    #[error("** must stand alone between slashes, as in src/**/x; within a name write *")]
    DoubleStar,
    /// `[[:alpha:]]`.
    #[error("named character classes are not supported; write the characters, as in [a-z]")]
    NamedClass,
    /// Letters outside ASCII beside `?` or `[…]`.
    #[error("it mixes letters outside ASCII with ? or [ ]; write * instead")]
    Mixed,
    /// What the glob parser found.
    #[error("{0}")]
    Syntax(String),
}

/// Checks what the glob parser would accept and then match nothing, or less than was meant, with.
fn check(glob: &str) -> Result<(), GlobFault> {
    if glob.is_empty() {
        return Err(GlobFault::Empty);
    }
    if glob.len() > MAXIMUM_GLOB_BYTES {
        return Err(GlobFault::Long(glob.len()));
    }
    if glob.starts_with('!') {
        return Err(GlobFault::Negation);
    }
    if let Some(hidden) = glob.chars().find(|c| c.is_control() || is_invisible(*c)) {
        return Err(GlobFault::Invisible(u32::from(hidden)));
    }
    if glob.contains('\\') {
        return Err(GlobFault::Backslash);
    }
    if glob.contains("[:") {
        return Err(GlobFault::NamedClass);
    }
    if !glob.is_ascii() && glob.contains(['?', '[']) {
        return Err(GlobFault::Mixed);
    }
    if glob.len() > 1 && glob.ends_with('/') && !glob.ends_with("//") {
        return Err(GlobFault::Folder(glob.to_owned()));
    }
    if glob.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Err(GlobFault::Component);
    }
    check_double_stars(glob)
}

/// Every `**` fills a whole component, or a whole branch of braces.
fn check_double_stars(glob: &str) -> Result<(), GlobFault> {
    for (start, stars) in glob.match_indices("**") {
        let before = glob.get(..start).and_then(|text| text.chars().next_back());
        let after = glob
            .get(start + stars.len()..)
            .and_then(|text| text.chars().next());
        if !matches!(before, None | Some('/' | '{' | ','))
            || !matches!(after, None | Some('/' | '}' | ','))
        {
            return Err(GlobFault::DoubleStar);
        }
    }
    Ok(())
}

fn parse(glob: &str) -> Result<globset::Glob, GlobFault> {
    GlobBuilder::new(glob)
        .literal_separator(true)
        .build()
        .map_err(|error| GlobFault::Syntax(error.kind().to_string()))
}

/// `src/auth/**` also means `src/auth` itself: a link or a file put where the folder is replaces all that is below. Not for a
/// folder given by a pattern, since `*/**` would then name every file at the root.
fn folder_itself(glob: &str) -> Option<&str> {
    let folder = glob.strip_suffix("/**")?;
    let last = folder.rsplit('/').next()?;
    (!last.contains(['*', '?', '['])).then_some(folder)
}

/// A compiled list of globs.
#[derive(Debug, Clone)]
pub(super) struct Globs {
    raw: GlobSet,
    folded: GlobSet,
    /// For each glob in a set, the index of the rule it came from.
    origin: Vec<usize>,
}

impl Globs {
    /// Compiles a list.
    ///
    /// # Errors
    /// The index of the first glob that is refused, and why; the number of globs when they are too many or too large together.
    pub(super) fn compile<'a>(
        globs: impl ExactSizeIterator<Item = &'a str>,
    ) -> Result<Self, (usize, GlobFault)> {
        let count = globs.len();
        if count > MAXIMUM_GLOBS {
            let fault = format!("the list has {count} globs, more than {MAXIMUM_GLOBS}");
            return Err((MAXIMUM_GLOBS, GlobFault::Syntax(fault)));
        }
        let mut raw = GlobSetBuilder::new();
        let mut folded = GlobSetBuilder::new();
        let mut origin = Vec::new();
        for (index, glob) in globs.enumerate() {
            let at = |fault| (index, fault);
            check(glob).map_err(at)?;
            for variant in std::iter::once(glob).chain(folder_itself(glob)) {
                raw.add(parse(variant).map_err(at)?);
                folded.add(parse(&folded_text(variant)).map_err(at)?);
                origin.push(index);
            }
        }
        let too_large = |error: globset::Error| {
            let fault = format!("together with the others it is too large ({error})");
            (count.saturating_sub(1), GlobFault::Syntax(fault))
        };
        Ok(Self {
            raw: raw.build().map_err(too_large)?,
            folded: folded.build().map_err(too_large)?,
            origin,
        })
    }

    /// The indices of the rules that match any form of the path.
    pub(super) fn matches(&self, path: &PathForms<'_>) -> BTreeSet<usize> {
        let raw = self.raw.matches_candidate(&Candidate::from_bytes(path.raw));
        let folded = path
            .folded
            .iter()
            .flat_map(|form| self.folded.matches_candidate(&Candidate::from_bytes(form)));
        raw.into_iter()
            .chain(folded)
            .filter_map(|index| self.origin.get(index).copied())
            .collect()
    }
}

/// A path and its folded forms, computed once for all lists.
#[derive(Debug, Clone)]
pub(super) struct PathForms<'a> {
    raw: &'a [u8],
    folded: Vec<Vec<u8>>,
}

impl<'a> PathForms<'a> {
    pub(super) fn of(path: &'a [u8]) -> Self {
        Self {
            raw: path,
            folded: forms(path),
        }
    }
}
