//! Maps the provider's list of files onto the approved entries. Table: `docs/reconcile.md`, "PR files row".

use crate::change::{ChangeSet, FileChange, Mode};

use super::live::PullFile;

/// Why the rows and the entries are not the same change; empty when they are. Each entry must be covered exactly once.
pub(super) fn disagreements(entries: &ChangeSet, rows: &[PullFile]) -> Vec<String> {
    let mut covered = vec![0_u32; entries.count()];
    let mut found = Vec::new();
    for row in rows {
        let problem = match row.status.as_str() {
            "added" | "modified" | "copied" | "changed" => {
                cover(entries, &mut covered, &row.path, |entry| {
                    present(entry, row)
                })
            }
            "removed" => cover(entries, &mut covered, &row.path, |entry| {
                removed(entry, row)
            }),
            "renamed" => row.previous_path.as_deref().map_or_else(
                || Some("is renamed without saying from where".to_owned()),
                |previous| {
                    let new_side = cover(entries, &mut covered, &row.path, |entry| {
                        present(entry, row)
                    });
                    new_side.or_else(|| {
                        cover(entries, &mut covered, previous, |entry| {
                            entry.new.mode == Mode::Absent
                        })
                    })
                },
            ),
            other => Some(format!("has the unknown status {other:?}")),
        };
        if let Some(problem) = problem {
            found.push(format!("row {:?} {problem}", row.path));
        }
    }
    for (entry, count) in entries.entries().iter().zip(&covered) {
        if *count != 1 {
            found.push(format!("entry {} is covered by {count} rows", entry.path));
        }
    }
    found
}

fn cover(
    entries: &ChangeSet,
    covered: &mut [u32],
    path: &str,
    fits: impl Fn(&FileChange) -> bool,
) -> Option<String> {
    let position = entries
        .entries()
        .binary_search_by(|entry| entry.path.as_bytes().cmp(path.as_bytes()));
    let Ok(position) = position else {
        return Some(format!("maps to no approved entry ({path})"));
    };
    if let Some(count) = covered.get_mut(position) {
        *count += 1;
    }
    match entries.entries().get(position) {
        Some(entry) if fits(entry) => None,
        _ => Some(format!("does not have the approved object ({path})")),
    }
}

/// A null object id is only right for a change of mode alone.
fn present(entry: &FileChange, row: &PullFile) -> bool {
    match row.oid {
        Some(oid) => entry.new.mode != Mode::Absent && entry.new.oid == oid,
        None => {
            entry.new.mode != Mode::Absent
                && entry.new.oid == entry.old.oid
                && entry.new.mode != entry.old.mode
        }
    }
}

fn removed(entry: &FileChange, row: &PullFile) -> bool {
    entry.new.mode == Mode::Absent && row.oid == Some(entry.old.oid)
}
