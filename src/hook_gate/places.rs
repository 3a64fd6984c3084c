//! Where paths are, asked of the file system.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use super::reach::State;
use crate::tool_gate::{Access, Below, Mention, Place, Places, Touch, is_protected};

/// Longest path, in bytes; no file system call takes more (Linux, `PATH_MAX`).
const LONGEST_PATH: usize = 4096;
/// Longest name, in bytes (Linux, `NAME_MAX`).
const LONGEST_NAME: usize = 255;
/// Most names of a path that is written.
const DEEPEST: usize = 200;
/// Most links that are followed, as the kernel does.
const MOST_LINKS: usize = 40;
/// Most entries that are looked through below a folder that is removed or moved.
const MOST_BELOW: usize = 20_000;

/// A worktree on a file system.
#[derive(Debug, Clone)]
pub struct Worktree {
    /// Its top, without links.
    pub top: PathBuf,
    /// Caretaker's state, without links.
    pub state: PathBuf,
    /// The folder that `~` stands for, where that is known.
    pub home: Option<PathBuf>,
    /// Whether the file system folds names.
    pub folds: bool,
}

impl Places for Worktree {
    fn place(&self, folder: Option<&str>, touch: &Touch) -> Place {
        let nowhere = |reason: &str| Place::Nowhere(reason.to_owned());
        let path = touch.path.as_str();
        if path.is_empty() {
            return nowhere("it is empty");
        }
        if path.contains('\0') {
            return nowhere("it holds a NUL");
        }
        if path.starts_with('~')
            || path
                .get(..5)
                .is_some_and(|start| start.eq_ignore_ascii_case("file:"))
        {
            return nowhere("it begins with something that a client may expand");
        }
        // Break it: leave this out; `hook_gate::paths::blanks_around_a_path_hide_nothing` fails.
        if touch.access == Access::Write && path.trim_matches(is_blank) != path {
            return nowhere("it begins or ends with a blank, which a client may take away");
        }
        let Some(from) = self.from(folder.filter(|_| !touch.from_top)) else {
            return nowhere("the event's folder is not absolute");
        };
        let whole = from.join(path);
        // Names of processes: who looks there finds what is its own.
        if touch.access == Access::Write && lexical(&whole).starts_with("/proc") {
            return nowhere("where it leads depends on who looks");
        }
        if whole.as_os_str().len() >= LONGEST_PATH {
            return nowhere("it is longer than a path can be");
        }
        if touch.access == Access::Write && whole.components().count() > DEEPEST {
            return nowhere("it is deeper than is looked into");
        }
        let spelled = lexical(&whole);
        let found = resolve(&whole).and_then(|real| {
            // A client may take `..` out before it opens the file, or leave that to the file system.
            // Break it: leave this out; `hook_gate::paths::dots_behind_a_link_are_ambiguous` fails.
            if resolve(&spelled)? == real {
                Ok(real)
            } else {
                Err("where `..` leads depends on links".to_owned())
            }
        });
        let real = match found {
            Ok(real) => real,
            Err(reason) => return Place::Nowhere(reason),
        };
        if self.state().holds(&real) {
            return Place::GateState;
        }
        let Ok(inside) = real.strip_prefix(&self.top) else {
            return Place::Outside;
        };
        if touch.access == Access::Write && has_other_names(&real) {
            return nowhere(
                "the file has several hard links, so that it may be one from elsewhere",
            );
        }
        Place::Inside {
            path: inside.as_os_str().as_bytes().to_vec(),
            spelled: deepest_below(&spelled, &self.top)
                .unwrap_or_else(|| inside.as_os_str().as_bytes().to_vec()),
        }
    }

    fn reaches_state(&self, folder: Option<&str>, mention: &Mention) -> bool {
        // From a folder that is none, a relative path leads nowhere; an absolute one is looked at all the same.
        let from = self.from(folder).unwrap_or(&self.top);
        self.state().is_reached(from, mention)
    }

    fn below(&self, folder: Option<&str>, touch: &Touch) -> Below {
        let Some(from) = self.from(folder) else {
            return Below::Harmless;
        };
        let Ok(real) = resolve(&from.join(&touch.path)) else {
            return Below::Harmless;
        };
        protected_below(&real)
    }

    fn folds(&self) -> bool {
        self.folds
    }
}

impl Worktree {
    fn state(&self) -> State<'_> {
        State {
            folder: &self.state,
            top: &self.top,
            home: self.home.as_deref(),
        }
    }

    /// Where relative paths count from: the client's folder, or the worktree's top.
    fn from<'a>(&'a self, folder: Option<&'a str>) -> Option<&'a Path> {
        match folder {
            Some(folder) => Some(Path::new(folder)).filter(|folder| folder.is_absolute()),
            None => Some(&self.top),
        }
    }
}

fn is_blank(character: char) -> bool {
    character.is_whitespace()
        || character.is_control()
        || matches!(character, '\u{feff}' | '\u{200b}')
}

/// What below a folder decides about sessions. Links are not followed: what they lead to stays where it is.
fn protected_below(folder: &Path) -> Below {
    let mut waiting = vec![(folder.to_owned(), PathBuf::new())];
    let mut seen = 0;
    while let Some((place, named)) = waiting.pop() {
        let is_folder = std::fs::symlink_metadata(&place).is_ok_and(|status| status.is_dir());
        let Some(entries) = is_folder.then(|| std::fs::read_dir(&place).ok()).flatten() else {
            continue;
        };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MOST_BELOW {
                return Below::TooMuch;
            }
            let name = named.join(entry.file_name());
            if is_protected(name.as_os_str().as_bytes()) {
                return Below::Protected(name.to_string_lossy().into_owned());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push((entry.path(), name));
            }
        }
    }
    Below::Harmless
}

/// The part of a path as spelt that lies below the worktree, by whatever links its top was reached.
fn deepest_below(spelled: &Path, top: &Path) -> Option<Vec<u8>> {
    let mut above = spelled;
    let mut names: Vec<&OsStr> = Vec::new();
    loop {
        if names.len() > DEEPEST {
            return None;
        }
        if resolve(above).is_ok_and(|real| real == top) {
            let mut path = Vec::new();
            for name in names.iter().rev() {
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(name.as_bytes());
            }
            return Some(path);
        }
        names.push(above.file_name()?);
        above = above.parent()?;
    }
}

/// A path with `.` and `..` taken out by its spelling alone.
pub(super) fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::ParentDir => drop(out.pop()),
            Component::Normal(name) => out.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
}

/// An absolute path with every link on it resolved, also where its end does not exist yet.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, String> {
    let mut waiting: Vec<OsString> = Vec::new();
    push(&mut waiting, path);
    let mut real = PathBuf::from("/");
    let mut links = 0;
    // Below a name that is not there nothing is; how far below.
    let mut missing: usize = 0;
    while let Some(name) = waiting.pop() {
        if name == ".." {
            real.pop();
            missing = missing.saturating_sub(1);
            continue;
        }
        if name.len() > LONGEST_NAME {
            return Err("a name in it is longer than a name can be".to_owned());
        }
        real.push(&name);
        if missing > 0 {
            missing += 1;
            continue;
        }
        let status = match std::fs::symlink_metadata(&real) {
            Ok(status) => status,
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                missing = 1;
                continue;
            }
            Err(error) => return Err(format!("it cannot be looked at: {error}")),
        };
        if status.is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return Err("its links go round in circles".to_owned());
            }
            let target = std::fs::read_link(&real)
                .map_err(|error| format!("a link on it cannot be read: {error}"))?;
            if target.is_absolute() {
                real = PathBuf::from("/");
            } else {
                real.pop();
            }
            push(&mut waiting, &target);
        }
    }
    Ok(real)
}

fn push(waiting: &mut Vec<OsString>, path: &Path) {
    let names: Vec<OsString> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect();
    waiting.extend(names.into_iter().rev());
}

fn has_other_names(file: &Path) -> bool {
    std::fs::symlink_metadata(file).is_ok_and(|status| status.is_file() && status.nlink() > 1)
}

/// Whether a folder's file system takes names that differ in case for one: asked once, of what is there, without writing.
pub(super) fn folds(folder: &Path) -> bool {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .find(|name| name.bytes().any(|byte| byte.is_ascii_alphabetic()));
    let Some(name) = named else {
        return false;
    };
    let other: String = name
        .chars()
        .map(|character| {
            if character.is_ascii_lowercase() {
                character.to_ascii_uppercase()
            } else {
                character.to_ascii_lowercase()
            }
        })
        .collect();
    let status = |name: &str| std::fs::symlink_metadata(folder.join(name)).ok();
    match (status(&name), status(&other)) {
        (Some(one), Some(two)) => one.ino() == two.ino() && one.dev() == two.dev(),
        _ => false,
    }
}
