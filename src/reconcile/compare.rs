//! The comparison before a merge. Any "no" blocks.

use serde::{Deserialize, Serialize};

use super::live::{CheckRequirement, CheckView, LiveView};
use super::rows;
use crate::approve::Binding;
use crate::change::{ChangeDigest, ChangeSet, Mode, Oid, Side};
use crate::clock::Millis;

/// One thing that is not as approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Which check of the protocol said no, e.g. `head-commit`.
    pub rule: String,
    /// What was approved or required.
    pub expected: String,
    /// What is live.
    pub found: String,
}

/// What the project demands beyond equality.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demands<'a> {
    /// Checks that must be green.
    pub required_checks: &'a [CheckRequirement],
    /// Whether a head without any check may be merged.
    pub allow_no_checks: bool,
    /// What merging would change at the base tip, computed in the trusted repository; none when it would conflict.
    pub predicted: Option<&'a ChangeSet>,
}

/// Proof that the live change equals the approved one. Made only by [`compare`].
///
/// ```compile_fail
/// use caretaker::reconcile::Matched;
/// let forged = Matched { binding: unreachable!(), compared_at: unreachable!() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matched {
    binding: Binding,
    base_tip: Oid,
    compared_at: Millis,
}

impl Matched {
    /// What was matched.
    pub const fn binding(&self) -> &Binding {
        &self.binding
    }

    /// The digest that both sides have.
    pub const fn change_digest(&self) -> ChangeDigest {
        self.binding.change_digest()
    }

    /// The base branch's tip at the comparison.
    pub const fn base_tip(&self) -> Oid {
        self.base_tip
    }

    /// When it was compared.
    pub const fn compared_at(&self) -> Millis {
        self.compared_at
    }
}

/// The result of a comparison.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// Equal, and everything that was demanded holds.
    Matched(Box<Matched>),
    /// Equal as far as can be seen, but the provider or a check has not finished.
    Pending(String),
    /// Somebody else merged it.
    MergedElsewhere,
    /// Not equal, or not allowed.
    Blocked(Vec<Difference>),
}

/// Compares the live change with the approved one, steps 1 to 6 of the protocol. An expired binding never matches.
pub fn compare(
    binding: &Binding,
    live: &LiveView,
    demands: &Demands<'_>,
    now: Millis,
) -> Comparison {
    if live.pull.merged {
        return Comparison::MergedElsewhere;
    }
    let mut found = Findings::default();
    if now >= binding.expires_at {
        found.differ(
            "expiry",
            format!("before {}", binding.expires_at),
            now.to_string(),
        );
    }
    pull_request(binding, live, &mut found);
    base(binding, live, &mut found);
    entries(binding, live, &mut found);
    landing_place(binding, live, demands, &mut found);
    listed_files(live, binding, &mut found);
    permissions(binding, live, &mut found);
    checks(live, demands, &mut found);
    if !found.differences.is_empty() {
        return Comparison::Blocked(found.differences);
    }
    match found.pending {
        Some(reason) => Comparison::Pending(reason),
        None => Comparison::Matched(Box::new(Matched {
            binding: binding.clone(),
            base_tip: live.base_tip,
            compared_at: now,
        })),
    }
}

#[derive(Default)]
struct Findings {
    differences: Vec<Difference>,
    pending: Option<String>,
}

impl Findings {
    fn differ(&mut self, rule: &str, expected: impl Into<String>, found: impl Into<String>) {
        self.differences.push(Difference {
            rule: rule.to_owned(),
            expected: expected.into(),
            found: found.into(),
        });
    }

    fn require<T: PartialEq + ToString>(&mut self, rule: &str, expected: &T, found: &T) {
        if expected != found {
            self.differ(rule, expected.to_string(), found.to_string());
        }
    }

    fn require_flag(&mut self, rule: &str, wrong: bool, expected: &str, found: &str) {
        if wrong {
            self.differ(rule, expected, found);
        }
    }
}

/// Step 1. Being retargeted keeps head and list as they were; only the base reference shows it.
fn pull_request(binding: &Binding, live: &LiveView, found: &mut Findings) {
    let pull = &live.pull;
    found.require("repository", &binding.repository_id, &live.repository_id);
    found.require("pull-request", &binding.pull_request, &pull.number);
    found.require_flag("repository-archived", live.archived, "writable", "archived");
    found.require_flag("pull-request-open", !pull.open, "open", "closed");
    found.require_flag("pull-request-draft", pull.draft, "ready", "draft");
    found.require_flag(
        "pull-request-stacked",
        pull.stacked,
        "alone",
        "part of a stack",
    );
    found.require_flag("auto-merge", pull.auto_merge, "not armed", "armed");
    let head_repository = pull
        .head_repository
        .clone()
        .unwrap_or_else(|| "deleted".to_owned());
    found.require("head-repository", &binding.repository_id, &head_repository);
    found.require("head-branch", &binding.head_ref, &pull.head_ref);
    found.require("head-commit", &binding.head_commit, &pull.head_commit);
    found.require("base-branch", &binding.base_ref, &pull.base_ref);
    found.require("commits", &1, &pull.commits);
}

/// Step 2.
fn base(binding: &Binding, live: &LiveView, found: &mut Findings) {
    found.require("merge-base", &binding.merge_base, &live.merge_base);
    found.require("head-tree", &binding.head_tree, &live.head_tree);
}

/// Step 3. The difference is reported entry by entry, at most twenty of them.
fn entries(binding: &Binding, live: &LiveView, found: &mut Findings) {
    let approved = match ChangeSet::try_from(&binding.change) {
        Ok(approved) => approved,
        Err(error) => {
            return found.differ(
                "approved-entries",
                "a well-formed change set",
                error.to_string(),
            );
        }
    };
    if approved == live.entries && approved.digest() == live.entries.digest() {
        return;
    }
    found.differ(
        "change-digest",
        approved.digest().to_string(),
        live.entries.digest().to_string(),
    );
    for entry in approved
        .entries()
        .iter()
        .filter(|entry| !live.entries.entries().contains(entry))
        .take(10)
    {
        found.differ(
            "entry",
            format!(
                "{} {} {}",
                entry.path,
                entry.new.mode.as_str(),
                entry.new.oid
            ),
            "absent or different",
        );
    }
    for entry in live
        .entries
        .entries()
        .iter()
        .filter(|entry| !approved.entries().contains(entry))
        .take(10)
    {
        found.differ(
            "entry",
            "nothing at this path",
            format!(
                "{} {} {}",
                entry.path,
                entry.new.mode.as_str(),
                entry.new.oid
            ),
        );
    }
}

/// Step 4, the pre-image rule: what stands at the base tip must be what the approved change started from, and merging there
/// must change exactly the approved entries (a directory renamed on the base would move them elsewhere).
fn landing_place(binding: &Binding, live: &LiveView, demands: &Demands<'_>, found: &mut Findings) {
    for entry in live.entries.entries() {
        let here = live
            .base_sides
            .get(&entry.path)
            .copied()
            .unwrap_or_else(|| Side::absent(live.entries.format()));
        if here != entry.old {
            let side = |side: &Side| {
                if side.mode == Mode::Absent {
                    "absent".to_owned()
                } else {
                    format!("{} {}", side.mode.as_str(), side.oid)
                }
            };
            found.differ(
                "pre-image",
                format!("{} {}", entry.path, side(&entry.old)),
                side(&here),
            );
        }
    }
    for path in &live.path_conflicts {
        found.differ(
            "path-conflict",
            format!("{path} free at the base tip"),
            "a file stands where a directory must be, or the reverse",
        );
    }
    match demands.predicted {
        Some(predicted) => found.require(
            "predicted-merge",
            &binding.change_digest(),
            &predicted.digest(),
        ),
        None => found.differ(
            "predicted-merge",
            binding.change_digest().to_string(),
            "a conflict",
        ),
    }
}

/// Step 5. The list is not tied to a commit, so the head is read again after its last page.
fn listed_files(live: &LiveView, binding: &Binding, found: &mut Findings) {
    for problem in rows::disagreements(&live.entries, &live.files)
        .into_iter()
        .take(20)
    {
        found.differ("listed-files", "rows that cover each entry once", problem);
    }
    found.require(
        "listed-file-count",
        &live.pull.changed_files,
        &(live.files.len() as u64),
    );
    found.require(
        "head-commit-after-list",
        &binding.head_commit,
        &live.head_commit_after_files,
    );
}

/// Step 6, what the provider's own rules allow.
fn permissions(binding: &Binding, live: &LiveView, found: &mut Findings) {
    for rule in &live.blocking_rules {
        found.differ("base-branch-rule", "a direct merge", rule.clone());
    }
    if !live
        .allowed_methods
        .iter()
        .any(|method| method == binding.merge_method.as_str())
    {
        found.differ(
            "merge-method",
            binding.merge_method.as_str(),
            live.allowed_methods.join(", "),
        );
    }
    match live.pull.mergeable {
        Some(true) => {}
        Some(false) => found.differ("mergeable", "yes", "the provider says no"),
        None => {
            found.pending = Some(
                "the provider has not yet computed whether the pull request can be merged"
                    .to_owned(),
            );
        }
    }
}

/// Step 6, checks. No check at all is not green unless the project says so; an unknown word is never green.
fn checks(live: &LiveView, demands: &Demands<'_>, found: &mut Findings) {
    for check in live.checks.iter().filter(|check| !check.completed) {
        found.pending = Some(format!("check {:?} is still running", check.name));
    }
    for check in live
        .checks
        .iter()
        .filter(|check| check.completed && !is_green(check))
    {
        found.differ(
            "check",
            format!("{} green", check.name),
            check
                .conclusion
                .clone()
                .unwrap_or_else(|| "no conclusion".to_owned()),
        );
    }
    if live.checks.is_empty() && demands.required_checks.is_empty() && !demands.allow_no_checks {
        found.pending = Some("no check has reported on the head commit; a project without checks says `checks: {allow_none: true}` in its rules".to_owned());
    }
    for required in demands.required_checks {
        let meets = |check: &&CheckView| {
            check.name == required.name && (required.app.is_none() || check.app == required.app)
        };
        if !live.checks.iter().any(|check| meets(&check)) {
            found.pending = Some(format!(
                "the required check {:?} has not reported",
                required.name
            ));
        } else if !live
            .checks
            .iter()
            .filter(meets)
            .all(|check| !check.completed || check.conclusion.as_deref() == Some("success"))
        {
            found.differ(
                "required-check",
                format!("{} success", required.name),
                "another conclusion",
            );
        }
    }
}

fn is_green(check: &CheckView) -> bool {
    matches!(
        check.conclusion.as_deref(),
        Some("success" | "skipped" | "neutral")
    )
}
