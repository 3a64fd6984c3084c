//! The refusal: paths that caretaker never changes.

use crate::change::RepoPath;

use super::glob::PathForms;
use super::matters::{Matter, WORKFLOWS, by_name};
use super::reason::{Capped, Reason};
use super::weigh::class_by_name;
use super::{Class, List, Rules, Verdict};

/// A path that is refused, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedPath {
    /// The path.
    pub path: RepoPath,
    /// The glob as written in the rules file, or `built-in: …`.
    pub rule: String,
    /// Why, when the rules say it.
    pub reason: Option<String>,
}

impl DeniedPath {
    pub(super) fn reason_node(&self) -> Reason {
        let node = Reason::new(&self.rule, Verdict::Deny).with("path", self.path.to_string());
        match &self.reason {
            Some(reason) => node.with("reason", reason.as_str()),
            None => node,
        }
    }
}

/// At least one path is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// Every refused path, in the order given.
    pub paths: Vec<DeniedPath>,
    /// The class of all the paths looked at, by their names.
    pub class: Class,
}

impl Denied {
    /// The tree of reasons, in the shape that [`super::Decision::reasons`] has.
    pub fn reasons(&self) -> Vec<Reason> {
        vec![denied_node(&self.paths)]
    }

    /// The reasons as lines for a signed decision.
    pub fn signed_reasons(&self) -> Capped {
        Capped::of_reasons(&self.reasons())
    }
}

pub(super) fn denied_node(paths: &[DeniedPath]) -> Reason {
    Reason::new("denied", Verdict::Free)
        .with("paths", paths.len())
        .because(paths.iter().map(DeniedPath::reason_node).collect())
}

/// What refuses a path, if anything does. The project's own rules speak first, so that their reason is the one shown.
pub(super) fn denial(rules: &Rules, path: &RepoPath, forms: &PathForms<'_>) -> Option<DeniedPath> {
    let refuse = |rule: &str, reason: Option<&str>| DeniedPath {
        path: path.clone(),
        rule: rule.to_owned(),
        reason: reason.map(str::to_owned),
    };
    if let Some(rule) = rules.first_match(List::Denied, forms) {
        return Some(refuse(&rule.glob, rule.reason.as_deref()));
    }
    if rules.denies_workflows() && by_name(forms).contains(&Matter::Workflow) {
        let reason = "workflows are not changed unless the rules say `workflows: approve`";
        return Some(refuse(WORKFLOWS, Some(reason)));
    }
    if path.as_text().is_none() {
        let reason = "a name that is not UTF-8 cannot be proposed";
        return Some(refuse("built-in: name", Some(reason)));
    }
    None
}

/// The check right after diagnosis, on file names alone: before any branch, commit, test of a fix or pull request exists.
/// `None` means that no name is refused; the change itself still goes through [`super::evaluate`].
pub fn check_paths<'a>(
    rules: &Rules,
    paths: impl IntoIterator<Item = &'a RepoPath>,
) -> Option<Denied> {
    let mut denied = Vec::new();
    let mut class = Class::default();
    for path in paths {
        let forms = PathForms::of(path.as_bytes());
        class = class.max(class_by_name(rules, &forms));
        denied.extend(denial(rules, path, &forms));
    }
    (!denied.is_empty()).then_some(Denied {
        paths: denied,
        class,
    })
}
