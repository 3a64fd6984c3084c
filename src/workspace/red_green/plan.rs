//! Deciding which trees prove a fix, or why none can.

use std::collections::BTreeMap;

use crate::change::{ChangeSet, FileChange, Mode, Oid, RepoPath, Side};

use super::super::toolchain::{DetectedToolchain, TestFiles};
use super::rust_items::{Separated, separate};
use super::structure::missing;
use super::{AddedTest, Unproven, UnprovenReason, guard};
use crate::workspace::{RepositoryReader, TrustedRepository, WorkspaceError};

/// Longest source that is read, in bytes.
const SOURCE_BYTES: u64 = 4 << 20;

/// What has to be run to prove a fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The tree of the base with the fix's tests: must fail.
    pub red: Oid,
    /// The tree of the fix: must pass.
    pub green: Oid,
    /// The tree of the fix with the base's tests: must pass.
    pub base_on_fix: Oid,
    /// The tests that the fix adds, at least one.
    pub added: Vec<AddedTest>,
    /// How the tests are run.
    pub toolchain: DetectedToolchain,
}

/// A plan, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Planned {
    /// Run this.
    Ready(Box<Plan>),
    /// No run could prove the fix.
    Unproven(Unproven),
}

/// Plans the proof of a fix; `base` and `fix` are commits or trees. Nothing is run; two trees are written to the repository.
///
/// # Errors
/// The repository cannot be read or written.
pub fn plan(
    repository: &TrustedRepository,
    base: Oid,
    fix: Oid,
    toolchain: &DetectedToolchain,
) -> Result<Planned, WorkspaceError> {
    let planned = Planner::new(repository, base, fix, toolchain).and_then(|planner| {
        planner.object()?;
        let added = planner.added_tests()?;
        let (red, base_on_fix) = planner.write_trees()?;
        Ok(Plan {
            red,
            green: repository.tree_of(fix)?,
            base_on_fix,
            added,
            toolchain: toolchain.clone(),
        })
    });
    match planned {
        Ok(plan) => Ok(Planned::Ready(Box::new(plan))),
        Err(Fault::Unproven(unproven)) => Ok(Planned::Unproven(unproven)),
        Err(Fault::Workspace(error)) => Err(error),
    }
}

/// Either outcome that ends planning.
pub(super) enum Fault {
    Unproven(Unproven),
    Workspace(WorkspaceError),
}

impl From<WorkspaceError> for Fault {
    fn from(error: WorkspaceError) -> Self {
        Self::Workspace(error)
    }
}

pub(super) fn fault(reason: UnprovenReason, detail: &str) -> Fault {
    Fault::Unproven(Unproven::new(reason, detail))
}

pub(super) struct Planner<'a> {
    pub(super) repository: &'a TrustedRepository,
    toolchain: &'a DetectedToolchain,
    pub(super) files: TestFiles,
    pub(super) base: BTreeMap<RepoPath, Side>,
    pub(super) fix: BTreeMap<RepoPath, Side>,
    /// Changed files that are tests as a whole.
    pub(super) tests: Vec<FileChange>,
    /// The other changed files.
    pub(super) sources: Vec<FileChange>,
    /// Of these the Rust ones, in two parts each; a side without a file is empty.
    pub(super) inline: BTreeMap<RepoPath, Inline>,
}

/// Both sides of a Rust source with tests inside.
pub(super) struct Inline {
    pub(super) base: Separated,
    pub(super) fix: Separated,
}

impl<'a> Planner<'a> {
    fn new(
        repository: &'a TrustedRepository,
        base: Oid,
        fix: Oid,
        toolchain: &'a DetectedToolchain,
    ) -> Result<Self, Fault> {
        let change: ChangeSet = repository.change_set(base, fix)?;
        let mut planner = Self {
            repository,
            toolchain,
            files: toolchain.matcher()?,
            base: repository.tracked_files(base)?,
            fix: repository.tracked_files(fix)?,
            tests: Vec::new(),
            sources: Vec::new(),
            inline: BTreeMap::new(),
        };
        for entry in change.entries() {
            if planner.files.contains(&entry.path) || planner.is_test_module(&entry.path)? {
                planner.tests.push(entry.clone());
                continue;
            }
            planner.sources.push(entry.clone());
            if is_rust(&entry.path) {
                let inline = planner.split(entry)?;
                planner.inline.insert(entry.path.clone(), inline);
            }
        }
        Ok(planner)
    }

    fn split(&self, entry: &FileChange) -> Result<Inline, Fault> {
        let part = |side, whose: &str| {
            let text = text(self.repository, side)?;
            separate(&text).map_err(|error| {
                let detail = format!("{} of the {whose} cannot be read: {error}", entry.path);
                fault(UnprovenReason::InlineTestsNotSeparable, &detail)
            })
        };
        let inline = Inline {
            base: part(entry.old, "base")?,
            fix: part(entry.new, "fix")?,
        };
        if inline.base.nested != inline.fix.nested {
            let detail = format!(
                "{} has tests inside modules of code, and the fix changes them",
                entry.path
            );
            return Err(fault(UnprovenReason::InlineTestsNotSeparable, &detail));
        }
        Ok(inline)
    }

    /// Refuses changes after which the tests would say nothing.
    fn object(&self) -> Result<(), Fault> {
        let changes_code = |entry: &FileChange| {
            self.inline
                .get(&entry.path)
                .is_none_or(|inline| !same_code(inline) || entry.old.mode != entry.new.mode)
        };
        if !self.sources.iter().any(changes_code) {
            let detail = "every change is a change of tests; what was broken is still broken";
            return Err(fault(UnprovenReason::NothingButTests, detail));
        }
        if let Some(unproven) = guard::objection(self.repository, self.toolchain, &self.sources)? {
            return Err(Fault::Unproven(unproven));
        }
        for (path, inline) in &self.inline {
            let (base, fix) = (&inline.base, &inline.fix);
            if !missing(&fix.conditions, &base.conditions).is_empty() {
                let detail = format!("{path} now has a condition on being tested");
                return Err(fault(UnprovenReason::SourceKnowsTests, &detail));
            }
            if let Some(line) = missing(&base.examples, &fix.examples).first() {
                let detail = format!("the documentation in {path} no longer has `{line}`");
                return Err(fault(UnprovenReason::TestWeakened, &detail));
            }
        }
        Ok(())
    }

    /// Whether a Rust file is a module that its parent declares for tests only, on every side on which it exists.
    fn is_test_module(&self, path: &RepoPath) -> Result<bool, WorkspaceError> {
        if !is_rust(path) {
            return Ok(false);
        }
        let mut declared = false;
        for files in [&self.base, &self.fix] {
            if files.contains_key(path) {
                if !self.declares_for_tests(files, path)? {
                    return Ok(false);
                }
                declared = true;
            }
        }
        Ok(declared)
    }

    fn declares_for_tests(
        &self,
        files: &BTreeMap<RepoPath, Side>,
        path: &RepoPath,
    ) -> Result<bool, WorkspaceError> {
        let Some((directory, name)) = path.as_text().and_then(module_of) else {
            return Ok(false);
        };
        let parents = [
            format!("{directory}/mod.rs"),
            format!("{directory}/lib.rs"),
            format!("{directory}/main.rs"),
            format!("{directory}.rs"),
        ];
        for parent in parents {
            let side = parent
                .trim_start_matches('/')
                .parse()
                .ok()
                .and_then(|parent: RepoPath| files.get(&parent).copied());
            let Some(side) = side else { continue };
            let separated = separate(&text(self.repository, side)?);
            if separated.is_ok_and(|parts| parts.test_modules.iter().any(|other| other == name)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether both sides have the same code, whatever their tests.
fn same_code(inline: &Inline) -> bool {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    squeezed(&inline.base.production) == squeezed(&inline.fix.production)
}

/// The directory in which the parent of a module lies, and the module's name.
fn module_of(path: &str) -> Option<(&str, &str)> {
    let stem = path.strip_suffix(".rs")?;
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    Some(stem.rsplit_once('/').unwrap_or(("", stem)))
}

fn is_rust(path: &RepoPath) -> bool {
    path.as_bytes().ends_with(b".rs")
}

/// The text of a side; empty for what is no file.
pub(super) fn text(repository: &RepositoryReader, side: Side) -> Result<String, WorkspaceError> {
    if !matches!(side.mode, Mode::Regular | Mode::Executable) {
        return Ok(String::new());
    }
    let bytes = repository.read_blob(side.oid, SOURCE_BYTES)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
