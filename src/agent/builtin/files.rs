//! What the tools for files do, in texts for the model.

use std::fmt::Write as _;
use std::os::fd::OwnedFd;

use memchr::memmem;
use rustix::fs::FileType;

use super::shown::{self, MOST_SHOWN};
use super::tree::{Tree, reason};
use crate::change::RepoPath;

/// Most bytes of one answer of `read_file`.
const MOST_READ: usize = 256 << 10;
/// Largest file that is searched, in bytes.
const LARGEST_SEARCHED: usize = 1 << 20;
/// Most bytes that one search reads.
const MOST_SEARCHED: usize = 64 << 20;
/// Most files and folders that one search looks at.
const MOST_VISITED: usize = 20_000;
/// Deepest folder that is searched.
const DEEPEST: usize = 64;
/// Most lines that one search finds.
const MOST_FOUND: usize = 200;
/// Bytes at the beginning of a file among which a NUL says that it is no text.
const BINARY_WITHIN: usize = 8_000;
/// Most characters of a found line.
const LONGEST_LINE: usize = 300;

/// The lines of a file from `first_line` (1 is the first), at most `lines` of them and at most [`MOST_READ`] bytes.
pub(super) fn read(
    tree: &Tree,
    path: &RepoPath,
    first_line: usize,
    lines: usize,
) -> Result<String, String> {
    let content = tree.read(path)?;
    let text = String::from_utf8_lossy(&content);
    let mut shown = String::new();
    let mut all = 0;
    let mut last = 0;
    let mut cut = false;
    for line in text.split_inclusive('\n') {
        all += 1;
        if all < first_line || all - first_line >= lines || cut {
            continue;
        }
        let room = MOST_READ - shown.len();
        let fits = shown::beginning(line, room);
        cut = fits.len() < line.len();
        // A line is shown in part only where it is the first that is shown.
        if !cut || shown.is_empty() {
            shown.push_str(fits);
            last = all;
        }
    }
    if all > 0 && first_line > all {
        return Err(format!("{path}: it has {all} lines"));
    }
    if all == 0 {
        return Ok("(the file is empty)".to_owned());
    }
    if first_line > 1 || last < all || cut {
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
        let _infallible = write!(shown, "(cut: lines {first_line} to {last} of {all}");
        if cut && first_line == last {
            shown.push_str("; the line is longer than is shown");
        }
        shown.push(')');
    }
    Ok(shown)
}

/// Replaces a text that stands in the file exactly once.
pub(super) fn replace(
    tree: &Tree,
    path: &RepoPath,
    old: &str,
    new: &str,
) -> Result<String, String> {
    if old.is_empty() {
        return Err("old is empty; to write a whole file call write_file".to_owned());
    }
    let content = tree.read(path)?;
    let finder = memmem::Finder::new(old.as_bytes());
    let Some(at) = finder.find(&content) else {
        return Err(format!(
            "{path}: old does not stand in it; read the file, and give the text exactly, with its blanks"
        ));
    };
    // From the next byte on, so that a text that overlaps itself is seen twice.
    let rest = content.get(at + 1..).unwrap_or_default();
    if finder.find(rest).is_some() {
        return Err(format!(
            "{path}: old stands in it more than once; give more of the text around it"
        ));
    }
    let (before, after) = (
        content.get(..at).unwrap_or_default(),
        content.get(at + old.len()..).unwrap_or_default(),
    );
    tree.write(path, &[before, new.as_bytes(), after].concat())?;
    Ok(format!("{path}: replaced"))
}

/// Writes a whole file.
pub(super) fn write(tree: &Tree, path: &RepoPath, content: &str) -> Result<String, String> {
    let existed = tree.write(path, content.as_bytes())?;
    let done = if existed { "written anew" } else { "made" };
    Ok(format!("{path}: {done}, {} bytes", content.len()))
}

/// Removes a file.
pub(super) fn delete(tree: &Tree, path: &RepoPath) -> Result<String, String> {
    tree.remove(path)?;
    Ok(format!("{path}: deleted"))
}

/// What stands in one folder.
pub(super) fn list(tree: &Tree, path: Option<&RepoPath>) -> Result<String, String> {
    let folder = tree.folder(path)?;
    let mut shown = String::new();
    for entry in Tree::entries(&folder)? {
        let mark = match entry.kind {
            FileType::Directory => "/",
            FileType::RegularFile => "",
            FileType::Symlink => " (a link; not followed)",
            _ => " (no file)",
        };
        let _infallible = writeln!(shown, "{}{mark}", String::from_utf8_lossy(&entry.name));
    }
    if shown.is_empty() {
        return Ok("(the folder is empty)".to_owned());
    }
    Ok(shown::cut(shown, MOST_SHOWN))
}

/// The lines that hold a text, in the files of a folder and below it, or of one file.
pub(super) fn search(tree: &Tree, path: Option<&RepoPath>, text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains('\n') {
        return Err("text must be a part of one line, and not empty".to_owned());
    }
    let mut search = Search {
        tree,
        finder: memmem::Finder::new(text.as_bytes()),
        visited: 0,
        bytes: 0,
        found: 0,
        passed_over: 0,
        over: None,
        shown: String::new(),
    };
    let whole = match path {
        None => Err(String::new()),
        Some(path) => tree.read(path),
    };
    match (whole, path) {
        (Ok(content), Some(path)) => search.lines(path.as_bytes(), &content),
        _ => {
            let folder = tree.folder(path)?;
            let mut prefix = path.map_or_else(Vec::new, |path| path.as_bytes().to_vec());
            if !prefix.is_empty() {
                prefix.push(b'/');
            }
            search.folder(&folder, &mut prefix, 0);
        }
    }
    Ok(search.told())
}

struct Search<'a> {
    tree: &'a Tree,
    finder: memmem::Finder<'a>,
    visited: usize,
    bytes: usize,
    found: usize,
    /// Files that are too large, cannot be read or are no text.
    passed_over: usize,
    /// Why it ended before it was through.
    over: Option<&'static str>,
    shown: String,
}

impl Search<'_> {
    fn folder(&mut self, folder: &OwnedFd, prefix: &mut Vec<u8>, depth: usize) {
        let entries = match Tree::entries(folder) {
            Ok(entries) if depth <= DEEPEST => entries,
            _ => {
                self.passed_over += 1;
                return;
            }
        };
        for entry in entries {
            self.visited += 1;
            if self.visited > MOST_VISITED || self.bytes > MOST_SEARCHED {
                self.over = Some("there are more files than one search reads; name a folder");
            }
            if self.over.is_some() {
                return;
            }
            let length = prefix.len();
            prefix.extend_from_slice(&entry.name);
            match entry.kind {
                FileType::Directory => self.subfolder(folder, &entry.name, prefix, depth),
                FileType::RegularFile => self.file(folder, &entry.name, prefix),
                _ => {}
            }
            prefix.truncate(length);
        }
    }

    fn subfolder(&mut self, folder: &OwnedFd, name: &[u8], prefix: &mut Vec<u8>, depth: usize) {
        match self.tree.below(folder, name).map_err(reason) {
            Ok(below) => {
                prefix.push(b'/');
                self.folder(&below, prefix, depth + 1);
            }
            Err(_) => self.passed_over += 1,
        }
    }

    fn file(&mut self, folder: &OwnedFd, name: &[u8], path: &[u8]) {
        match self.tree.read_in(folder, name, LARGEST_SEARCHED) {
            Ok(content) => self.lines(path, &content),
            Err(_) => self.passed_over += 1,
        }
    }

    fn lines(&mut self, path: &[u8], content: &[u8]) {
        self.bytes += content.len();
        let beginning = content.get(..BINARY_WITHIN).unwrap_or(content);
        if beginning.contains(&0) {
            self.passed_over += 1;
            return;
        }
        if self.finder.find(content).is_none() {
            return;
        }
        for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
            if self.finder.find(line).is_none() {
                continue;
            }
            if self.found >= MOST_FOUND {
                self.over = Some("there are more such lines; search for more of the text");
                return;
            }
            self.found += 1;
            let line = String::from_utf8_lossy(line);
            let line: String = line.chars().take(LONGEST_LINE).collect();
            let path = String::from_utf8_lossy(path);
            let _infallible = writeln!(self.shown, "{path}:{}: {line}", index + 1);
        }
    }

    fn told(self) -> String {
        let mut shown = shown::cut(self.shown, MOST_SHOWN);
        if self.found == 0 {
            shown.push_str("(no line holds it)\n");
        }
        if self.passed_over > 0 {
            let _infallible = writeln!(
                shown,
                "(passed over: {} files or folders that are no text, too large or not readable)",
                self.passed_over
            );
        }
        if let Some(over) = self.over {
            let _infallible = writeln!(shown, "(cut: {over})");
        }
        shown
    }
}
