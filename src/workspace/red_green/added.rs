//! Which tests a fix adds, once it is certain that it takes none away.

use crate::change::{FileChange, Mode, RepoPath};

use super::plan::{Fault, Planner, fault, text};
use super::structure::{Language, Loss, TestCase, compare};
use super::{AddedTest, UnprovenReason};

/// Endings of files that hold data for tests. What they say is judged by running the base's own on the fix.
const DATA: [&str; 28] = [
    ".bin", ".bmp", ".cfg", ".csv", ".css", ".gif", ".golden", ".gz", ".html", ".ico", ".ini",
    ".jpg", ".json", ".lock", ".log", ".md", ".ndjson", ".out", ".pdf", ".png", ".snap", ".svg",
    ".toml", ".tsv", ".txt", ".xml", ".yaml", ".yml",
];

impl Planner<'_> {
    pub(super) fn added_tests(&self) -> Result<Vec<AddedTest>, Fault> {
        let mut added = Vec::new();
        for entry in &self.tests {
            added.extend(named(&entry.path, self.compare_file(entry)?));
        }
        for (path, inline) in &self.inline {
            let (base, fix) = (inline.base.tests.join("\n"), inline.fix.tests.join("\n"));
            let cases =
                compare(Some(Language::Rust), &base, &fix).map_err(|loss| lost(path, &loss))?;
            added.extend(named(path, cases));
        }
        if added.is_empty() {
            let detail = "no test that would run is new";
            return Err(fault(UnprovenReason::NoTestAdded, detail));
        }
        Ok(added)
    }

    fn compare_file(&self, entry: &FileChange) -> Result<Vec<TestCase>, Fault> {
        let path = &entry.path;
        let language = Language::of_path(path.as_bytes());
        if language.is_none() && is_data(path) {
            return Ok(Vec::new());
        }
        let (base, fix) = (
            text(self.repository, entry.old)?,
            text(self.repository, entry.new)?,
        );
        if entry.old.mode == Mode::Absent {
            let file = language.and_then(|language| language.read(&fix));
            return Ok(file.map_or_else(|| vec![TestCase::whole_file()], |file| file.cases));
        }
        let holds_none = language
            .and_then(|language| language.read(&base))
            .is_some_and(|file| file.cases.is_empty());
        if entry.new.mode == Mode::Absent && !holds_none {
            let detail = format!("{path} is gone");
            return Err(fault(UnprovenReason::TestDeleted, &detail));
        }
        compare(language, &base, &fix).map_err(|loss| lost(path, &loss))
    }
}

fn is_data(path: &RepoPath) -> bool {
    let bytes = path.as_bytes().to_ascii_lowercase();
    DATA.iter().any(|ending| bytes.ends_with(ending.as_bytes()))
}

fn named(path: &RepoPath, cases: Vec<TestCase>) -> impl Iterator<Item = AddedTest> {
    cases
        .into_iter()
        .filter(|case| !case.is_skipped())
        .map(|case| AddedTest {
            file: path.clone(),
            name: case.name,
        })
}

fn lost(path: &RepoPath, loss: &Loss) -> Fault {
    fault(loss.reason, &format!("{path}: {}", loss.detail))
}
