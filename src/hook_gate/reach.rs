//! Whether a text leads into the gate's state, however whoever runs the call reads it: as a path, with blanks or quotes around it,
//! as an address of a file, behind `~` or a variable, as a pattern.
//!
//! What cannot be told (a variable that stands for the whole path) is not taken for such a text: outside of a sandbox that would
//! refuse every loop over files.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use super::places::{lexical, resolve};
use crate::gate::folded;
use crate::tool_gate::{Mention, fits};

/// Longest text that is looked at, in bytes; no system call takes more (Linux, `PATH_MAX`).
const LONGEST: usize = 4096;
/// Most parts of a text with commas or lines.
const MOST_PARTS: usize = 200;
/// Names in the state by which it is known behind a variable.
const OWN_NAMES: [&str; 3] = ["hook-gate", "audit", "hook-gate.sock"];

/// The gate's state, as paths are held against it.
pub(super) struct State<'a> {
    /// Its folder, without links.
    pub(super) folder: &'a Path,
    /// The worktree, which may lie in it.
    pub(super) top: &'a Path,
    /// The folder that `~` stands for, if that is known.
    pub(super) home: Option<&'a Path>,
}

impl State<'_> {
    /// Whether a path without links is the state or lies in it.
    pub(super) fn holds(&self, real: &Path) -> bool {
        // A worker's own sessions work in a scratch tree below the state.
        // Break it: leave this out; `hook_gate::tokens::a_worktree_below_the_state_can_be_worked_in` fails.
        if self.top.starts_with(self.folder) && real.starts_with(self.top) {
            return false;
        }
        // Break it: compare the bytes alone; `hook_gate::mentions::another_case_reaches_nothing` fails.
        let state = names(self.folder, usize::MAX);
        begins(&names(real, state.len()), &state) || self.is_below_by_identity(real)
    }

    /// By another name: a mount of its own, a file system that folds names.
    fn is_below_by_identity(&self, real: &Path) -> bool {
        let Ok(state) = std::fs::metadata(self.folder) else {
            return false;
        };
        // From above: below what is not there nothing is.
        let mut place = PathBuf::from("/");
        for name in real.components().skip(1) {
            place.push(name);
            match std::fs::symlink_metadata(&place) {
                Ok(found) if found.ino() == state.ino() && found.dev() == state.dev() => {
                    return true;
                }
                Ok(_) => {}
                Err(_) => return false,
            }
        }
        false
    }

    /// Whether a mention leads into the state.
    pub(super) fn is_reached(&self, from: &Path, mention: &Mention) -> bool {
        if mention.text.len() > LONGEST {
            return false;
        }
        let reaches = |text: &str| {
            spellings(text)
                .iter()
                .any(|spelled| self.spelled(from, spelled, mention))
        };
        let leads = |part: &&str| part.contains(['/', '~', '$']);
        reaches(&mention.text)
            || mention
                .text
                .split([',', ';', '\n'])
                .filter(|part| part.len() < mention.text.len())
                .filter(leads)
                .take(MOST_PARTS)
                .any(reaches)
    }

    fn spelled(&self, from: &Path, text: &str, mention: &Mention) -> bool {
        let first = text.split('/').next().unwrap_or_default();
        let rest = text.get(first.len()..).unwrap_or_default();
        match first {
            "~" | "$HOME" | "${HOME}" => match self.home {
                Some(home) => self.walks(home, rest.trim_start_matches('/'), mention),
                None => self.behind_unknown(rest, true, mention.search),
            },
            "$CARETAKER_HOME" | "${CARETAKER_HOME}" => true,
            "$PWD" | "${PWD}" => self.walks(from, rest.trim_start_matches('/'), mention),
            _ if first.starts_with('~') => self.behind_unknown(rest, true, false),
            _ if first.contains('$') => self.behind_unknown(rest, false, false),
            _ => self.walks(from, text, mention),
        }
    }

    /// A path from a folder that is known.
    fn walks(&self, from: &Path, text: &str, mention: &Mention) -> bool {
        let parts: Vec<&str> = text.split('/').collect();
        let is_plain = |part: &&str| !(part.contains('$') || mention.pattern && is_pattern(part));
        let plain = parts.iter().take_while(|part| is_plain(part)).count();
        let (before, behind) = parts.split_at(plain);
        let mut base = if text.starts_with('/') {
            PathBuf::from("/")
        } else {
            from.to_owned()
        };
        for name in before {
            base.push(unescaped(name));
        }
        let behind = without_dots(behind, Some(&mut base));
        [resolve(&base), resolve(&lexical(&base))]
            .into_iter()
            .flatten()
            .any(|real| self.holds(&real) || self.lies_behind(&real, &behind, mention.search))
    }

    /// Whether the state, or what lies in it, fits a pattern below a folder.
    fn lies_behind(&self, real: &Path, pattern: &[String], search: bool) -> bool {
        let state = names(self.folder, usize::MAX);
        let above = names(real, state.len() + 1);
        if !begins(&state, &above) {
            return false;
        }
        if pattern.is_empty() {
            return search;
        }
        meets(
            pattern,
            state.get(above.len()..).unwrap_or_default(),
            search,
        )
    }

    /// A path behind something that is not known, say a variable: it leads into the state when it goes on as the state's path ends.
    fn behind_unknown(&self, rest: &str, is_home: bool, search: bool) -> bool {
        let parts: Vec<&str> = rest.split('/').collect();
        let pattern = without_dots(&parts, None);
        if pattern.is_empty() {
            return is_home && search;
        }
        let state = names(self.folder, usize::MAX);
        (0..state.len()).any(|start| {
            let end = state.get(start..).unwrap_or_default();
            let beyond = pattern.get(end.len());
            let named = beyond.is_some_and(|name| {
                OWN_NAMES.contains(&name.as_str()) || name.strip_suffix(".key").is_some()
            });
            let literal = pattern
                .first()
                .is_some_and(|first| first.chars().filter(char::is_ascii_alphanumeric).count() > 2);
            literal && (is_home || named) && meets(&pattern, end, false)
        })
    }
}

/// The ways in which a text is read before it is a path.
fn spellings(text: &str) -> Vec<String> {
    let bare = text.trim_matches(|found: char| {
        found.is_whitespace() || found.is_control() || "\"'`@<>\u{feff}\u{200b}".contains(found)
    });
    let mut found = vec![text.to_owned()];
    if bare != text {
        found.push(bare.to_owned());
    }
    if bare
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("file:"))
    {
        let address = bare.get(5..).unwrap_or_default();
        let path = address.strip_prefix("//").map_or(address, |rest| {
            rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/")
        });
        found.push(path.to_owned());
        found.push(decoded(path));
    } else if bare.contains('%') {
        found.push(decoded(bare));
    }
    found
}

/// A text with `%41` in place.
fn decoded(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let pair = (digit(bytes.get(at + 1)), digit(bytes.get(at + 2)));
        if let (b'%', (Some(high), Some(low))) = (byte, pair) {
            out.extend(u8::try_from(high * 16 + low));
            at += 3;
        } else {
            out.push(*byte);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn is_pattern(part: &str) -> bool {
    part.contains(['*', '?', '[', '{', '(', '\\'])
}

fn unescaped(name: &str) -> String {
    name.replace('\\', "")
}

/// Names without `.`, empty ones and `..`, which takes the name before it away, or goes up from `base`.
fn without_dots(parts: &[&str], mut base: Option<&mut PathBuf>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for part in parts {
        match *part {
            "" | "." => {}
            ".." => {
                if out.pop().is_none()
                    && let Some(base) = base.as_deref_mut()
                {
                    base.pop();
                }
            }
            name => out.push(text_of(&folded(name.as_bytes()))),
        }
    }
    out
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// At most so many of a path's names, as a file system compares them that ignores case and composition.
fn names(path: &Path, most: usize) -> Vec<String> {
    use std::os::unix::ffi::OsStrExt as _;
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(text_of(&folded(name.as_bytes()))),
            _ => None,
        })
        .take(most)
        .collect()
}

fn begins(path: &[String], start: &[String]) -> bool {
    path.starts_with(start)
}

/// Whether a pattern may name a path or something in it; with `search` also something above it.
fn meets(pattern: &[String], path: &[String], search: bool) -> bool {
    // Each step is what of the path may be left; a pattern has few names and a path fewer.
    let mut left = vec![0_usize];
    for part in pattern {
        if left.iter().any(|at| *at >= path.len()) {
            return true;
        }
        let deep = part.contains("**") || part.contains('{') && part.contains('/');
        let mut next: Vec<usize> = Vec::new();
        for at in left {
            let end = if deep { path.len() } else { at };
            next.extend(at..=end);
            if !deep {
                next.pop();
            }
            if path.get(at).is_some_and(|name| may_fit(part, name)) {
                next.push(at + 1);
            }
        }
        next.sort_unstable();
        next.dedup();
        left = next;
    }
    left.iter()
        .any(|at| *at >= path.len() || search && *at <= path.len())
}

/// Whether one name may fit a part of a pattern, with everything that is not plain taken for any text.
fn may_fit(part: &str, name: &str) -> bool {
    if part.contains('$') {
        return true;
    }
    let mut plain = String::new();
    let mut characters = part.chars();
    while let Some(found) = characters.next() {
        match found {
            '\\' => plain.extend(characters.next().map(literal).into_iter().flatten()),
            // What stands between brackets is one of several, between braces and parentheses anything.
            '[' | '{' | '(' => {
                plain.push('*');
                let closing = match found {
                    '[' => ']',
                    '{' => '}',
                    _ => ')',
                };
                let mut inside = characters.clone();
                if inside.any(|other| other == closing) {
                    characters = inside;
                }
            }
            '!' | '@' | '+' if characters.clone().next() == Some('(') => {}
            other => plain.push(other),
        }
    }
    fits(&plain, name)
}

/// A character that stands for itself in a pattern.
fn literal(character: char) -> Vec<char> {
    if matches!(character, '*' | '?' | '[') {
        vec!['[', character, ']']
    } else {
        vec![character]
    }
}
