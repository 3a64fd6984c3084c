//! Which paths a session may write.
//!
//! The rule is Bernstein's, so that its policy files keep their meaning: a path relative to the worktree is allowed when it equals a
//! pattern (without a slash at its end), lies below one, or matches it as Python's `fnmatch` does, where `*` also crosses `/`.

use unicode_normalization::UnicodeNormalization as _;

use crate::gate::folded;

/// The patterns of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowlist {
    given: Vec<String>,
    /// Without slashes at the end; blank ones left out.
    patterns: Vec<String>,
}

impl Allowlist {
    /// The patterns as written.
    pub fn new(given: &[String]) -> Self {
        let patterns = given
            .iter()
            .filter(|pattern| !pattern.trim().is_empty())
            .map(|pattern| pattern.trim_end_matches('/').to_owned());
        Self {
            patterns: patterns.collect(),
            given: given.to_vec(),
        }
    }

    /// Whether there is anything to enforce: a list of blank patterns is none.
    pub fn enforces(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// Whether a path may be written. `path` is relative to the worktree, with links resolved, without `.` and `..`. Where the
    /// file system folds names (`folds`), case and composition do not count.
    pub fn allows(&self, path: &[u8], folds: bool) -> bool {
        let Ok(path) = str::from_utf8(path) else {
            // Bytes that are not text match nothing but a folder above them.
            return self.patterns.iter().any(|pattern| {
                path.strip_prefix(pattern.as_bytes())
                    .is_some_and(|rest| rest.first() == Some(&b'/'))
            });
        };
        if folds {
            let path = folded_name(path);
            self.patterns
                .iter()
                .any(|pattern| matches(&folded_name(pattern), &path))
        } else {
            self.patterns.iter().any(|pattern| matches(pattern, path))
        }
    }

    /// The patterns as Bernstein's messages show them: sorted, as Python prints a list of strings.
    pub fn shown(&self) -> String {
        let mut patterns: Vec<&str> = self.given.iter().map(String::as_str).collect();
        patterns.sort_unstable();
        let items: Vec<String> = patterns.into_iter().map(quoted).collect();
        format!("[{}]", items.join(", "))
    }
}

fn folded_name(name: &str) -> String {
    let composed: String = name.nfc().collect();
    String::from_utf8_lossy(&folded(composed.as_bytes())).into_owned()
}

fn matches(pattern: &str, path: &str) -> bool {
    // Nothing but slashes: it demands something, and nothing fits.
    if pattern.is_empty() {
        return false;
    }
    let below = path
        .strip_prefix(pattern)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    // Break it: compare with `starts_with` alone; `tool_gate::allowlist::a_folder_is_not_its_namesake` fails.
    below || fits(pattern, path)
}

/// Python's `fnmatch.fnmatchcase`: `*`, `?`, `[seq]`, `[!seq]`; nothing escapes, and `/` is a character like any other.
pub fn fits(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut from) = (0, 0);
    // Where to go on when something does not fit: behind the last star, one character further.
    let mut retry: Option<(usize, usize)> = None;
    while from < text.len() {
        match step(&pattern, at, text.get(from).copied().unwrap_or_default()) {
            Step::Star => {
                retry = Some((at + 1, from));
                at += 1;
            }
            Step::Fits(next) => {
                at = next;
                from += 1;
            }
            Step::Differs => {
                let Some((behind, tried)) = retry else {
                    return false;
                };
                at = behind;
                from = tried + 1;
                retry = Some((behind, from));
            }
        }
    }
    pattern
        .get(at..)
        .is_some_and(|rest| rest.iter().all(|character| *character == '*'))
}

enum Step {
    Star,
    Fits(usize),
    Differs,
}

fn step(pattern: &[char], at: usize, character: char) -> Step {
    match pattern.get(at) {
        Some('*') => Step::Star,
        Some('[') => match class(pattern, at, character) {
            Some((true, next)) => Step::Fits(next),
            // No closing bracket: it stands for itself.
            None if character == '[' => Step::Fits(at + 1),
            Some((false, _)) | None => Step::Differs,
        },
        Some(literal) if *literal == character || *literal == '?' => Step::Fits(at + 1),
        Some(_) | None => Step::Differs,
    }
}

/// Whether a character is in the class that begins at `at`, and where the class ends.
fn class(pattern: &[char], at: usize, character: char) -> Option<(bool, usize)> {
    let negated = pattern.get(at + 1) == Some(&'!');
    let first = at + 1 + usize::from(negated);
    // A bracket right behind the opening belongs to the class.
    let mut end = first + 1;
    while pattern.get(end).is_some_and(|found| *found != ']') {
        end += 1;
    }
    pattern.get(end)?;
    let members = pattern.get(first..end)?;
    let mut found = false;
    let mut index = 0;
    while let Some(low) = members.get(index) {
        if members.get(index + 1) == Some(&'-')
            && let Some(high) = members.get(index + 2)
        {
            found |= (*low..=*high).contains(&character);
            index += 3;
        } else {
            found |= *low == character;
            index += 1;
        }
    }
    Some((found != negated, end + 1))
}

/// A string as Python's `repr` writes it.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            found if found == quote => {
                out.push('\\');
                out.push(found);
            }
            found if found.is_control() => out.extend(found.escape_unicode()),
            found => out.push(found),
        }
    }
    out.push(quote);
    out
}
