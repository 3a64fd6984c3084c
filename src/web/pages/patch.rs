//! The diff of a fix, line by line.

use super::super::evidence::kept;
use super::super::shown::Shown;
use crate::incident::FixFact;
use crate::store::{Scoped, StoreError};

/// Lines that are shown; the rest is at the provider.
const LINES: usize = 1_000;

/// One line of a diff.
pub(super) struct PatchLine {
    /// How it is marked: a heading, added, removed, a place, or nothing.
    pub(super) kind: &'static str,
    pub(super) text: Shown,
}

/// Reads the diff that was kept when the fix was made; empty when there is none.
pub(super) async fn patch(
    scope: Scoped<'_>,
    fix: Option<&FixFact>,
) -> Result<Vec<PatchLine>, StoreError> {
    let Some(digest) = fix.and_then(|fix| fix.patch) else {
        return Ok(Vec::new());
    };
    let bytes = kept(scope, &digest).await?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<PatchLine> = text.lines().take(LINES).map(line).collect();
    if text.lines().count() > LINES {
        lines.push(line("# more lines are not shown here"));
    }
    Ok(lines)
}

fn line(text: &str) -> PatchLine {
    let kind = match text.chars().next() {
        Some('#') => "head",
        Some('+') => "added",
        Some('-') => "removed",
        Some('@') => "place",
        _ => "same",
    };
    PatchLine {
        kind,
        text: Shown::line(text),
    }
}
