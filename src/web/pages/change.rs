//! The exact change, as a table.

use super::super::shown::Shown;
use crate::change::{ChangeDocument, ChangeDocumentEntry, Mode};

/// The entries of a change with their digest.
pub(super) struct ChangeView {
    pub(super) digest: String,
    pub(super) count: usize,
    pub(super) entries: Vec<EntryView>,
}

/// One changed path.
pub(super) struct EntryView {
    pub(super) path: Shown,
    /// What happens to it, in a word or two.
    pub(super) action: &'static str,
    pub(super) old_mode: &'static str,
    pub(super) new_mode: &'static str,
    pub(super) old_oid: String,
    pub(super) new_oid: String,
}

impl From<&ChangeDocument> for ChangeView {
    fn from(change: &ChangeDocument) -> Self {
        Self {
            digest: change.digest.to_string(),
            count: change.count,
            entries: change.entries.iter().map(entry).collect(),
        }
    }
}

fn entry(entry: &ChangeDocumentEntry) -> EntryView {
    let path = match &entry.path {
        Some(path) => Shown::line(path),
        None => Shown::line(format!("bytes {}", entry.path_hex)),
    };
    EntryView {
        path,
        action: action(entry),
        old_mode: entry.old_mode.as_str(),
        new_mode: entry.new_mode.as_str(),
        old_oid: entry.old_oid.to_string(),
        new_oid: entry.new_oid.to_string(),
    }
}

fn action(entry: &ChangeDocumentEntry) -> &'static str {
    match (entry.old_mode, entry.new_mode) {
        (Mode::Absent, Mode::Symlink) => "added link",
        (Mode::Absent, Mode::Gitlink) => "added submodule",
        (Mode::Absent, Mode::Executable) => "added program",
        (Mode::Absent, _) => "added",
        (_, Mode::Absent) => "removed",
        (old, new) if old != new && entry.old_oid == entry.new_oid => "mode changed",
        (old, new) if old != new => "changed, with its mode",
        _ => "changed",
    }
}
