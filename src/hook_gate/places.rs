//! Where paths are, asked of the file system.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crate::tool_gate::{Access, Place, Places, Touch};

/// Longest path, in bytes; no file system call takes more (Linux, `PATH_MAX`).
const LONGEST_PATH: usize = 4096;
/// Longest name, in bytes (Linux, `NAME_MAX`).
const LONGEST_NAME: usize = 255;
/// Most links that are followed, as the kernel does.
const MOST_LINKS: usize = 40;

/// A worktree on a file system.
#[derive(Debug, Clone)]
pub struct Worktree {
    /// Its top, without links.
    pub top: PathBuf,
    /// Caretaker's state, without links.
    pub state: PathBuf,
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
        if path.starts_with('~') || path.starts_with("file:") {
            return nowhere("it begins with something that a client may expand");
        }
        let from = match folder {
            Some(folder) if !touch.from_top && Path::new(folder).is_absolute() => Path::new(folder),
            Some(_) if !touch.from_top => return nowhere("the event's folder is not absolute"),
            _ => &self.top,
        };
        let whole = from.join(path);
        if whole.as_os_str().len() >= LONGEST_PATH {
            return nowhere("it is longer than a path can be");
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
        // A worker's own sessions work in a scratch tree below the state.
        // Break it: leave the second half out; `hook_gate::tokens::a_worktree_below_the_state_can_be_worked_in` fails.
        if real.starts_with(&self.state)
            && !(self.top.starts_with(&self.state) && real.starts_with(&self.top))
        {
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

    fn folds(&self) -> bool {
        self.folds
    }
}

/// The part of a path as spelt that lies below the worktree, by whatever links its top was reached.
fn deepest_below(spelled: &Path, top: &Path) -> Option<Vec<u8>> {
    let mut above = spelled;
    let mut names: Vec<&OsStr> = Vec::new();
    loop {
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
fn lexical(path: &Path) -> PathBuf {
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
fn resolve(path: &Path) -> Result<PathBuf, String> {
    let mut waiting: Vec<OsString> = Vec::new();
    push(&mut waiting, path);
    let mut real = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = waiting.pop() {
        if name == ".." {
            real.pop();
            continue;
        }
        if name.len() > LONGEST_NAME {
            return Err("a name in it is longer than a name can be".to_owned());
        }
        real.push(&name);
        let status = match std::fs::symlink_metadata(&real) {
            Ok(status) => status,
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
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
