//! Branch protection and rules: what is published of them, and what they forbid.

use std::collections::BTreeSet;

use serde_json::Value;

use super::RepositoryState;

/// The protection of a branch, as its settings page shows it. Nobody passes it by here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own"
)]
pub struct Protection {
    /// Names of checks that must have succeeded before a merge.
    pub required_checks: Vec<String>,
    /// Whether a pull request must stand on the newest base.
    pub strict: bool,
    /// How many approving reviews a merge needs; `None`: changes need no pull request. This forge knows no reviews, so
    /// anything above zero forbids every merge.
    pub required_reviews: Option<u64>,
    /// Whether commits must be signed. Nothing here is, so this forbids merges.
    pub required_signatures: bool,
    /// Whether merge commits are forbidden.
    pub linear_history: bool,
    /// Whether the branch may be moved to a commit that does not contain the old tip.
    pub allow_force_pushes: bool,
    /// Whether the branch may be deleted.
    pub allow_deletions: bool,
    /// Whether nobody may push or merge at all.
    pub locked: bool,
}

/// One rule of a ruleset of a branch.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) branch: String,
    /// Such as `merge_queue`, `pull_request` or `required_status_checks`.
    pub(crate) kind: String,
    /// `null` for rules without any.
    pub(crate) parameters: Value,
    pub(crate) ruleset: u64,
}

/// What protection and rules together forbid on a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
pub(crate) struct Guard {
    /// Nobody pushes; changes come by pull requests.
    pub(crate) pulls_only: bool,
    /// It cannot be deleted.
    pub(crate) kept: bool,
    /// It moves forward only.
    pub(crate) forward_only: bool,
    /// It moves by a merge queue only.
    pub(crate) queued: bool,
    pub(crate) locked: bool,
    pub(crate) signed: bool,
    pub(crate) linear: bool,
    pub(crate) strict: bool,
    /// More than zero approving reviews are needed.
    pub(crate) reviewed: bool,
    /// Check names, with the number of the only App whose check counts.
    pub(crate) checks: Vec<(String, Option<u64>)>,
    /// The merge methods that a rule leaves; `None`: those of the repository.
    pub(crate) methods: Option<Vec<String>>,
}

impl Guard {
    fn add_protection(&mut self, protection: &Protection) {
        self.pulls_only |= protection.required_reviews.is_some()
            || protection.locked
            || protection.required_signatures;
        self.reviewed |= protection.required_reviews.is_some_and(|count| count > 0);
        self.kept |= !protection.allow_deletions;
        self.forward_only |= !protection.allow_force_pushes;
        self.locked |= protection.locked;
        self.signed |= protection.required_signatures;
        self.linear |= protection.linear_history;
        self.strict |= protection.strict;
        let checks = protection.required_checks.iter();
        self.checks.extend(checks.map(|name| (name.clone(), None)));
    }

    fn add_rule(&mut self, rule: &Rule) {
        let parameters = &rule.parameters;
        match rule.kind.as_str() {
            "pull_request" => {
                self.pulls_only = true;
                self.reviewed |= parameters["required_approving_review_count"]
                    .as_u64()
                    .is_some_and(|count| count > 0);
                let methods = parameters["allowed_merge_methods"].as_array();
                self.methods = methods.map(|methods| {
                    let words = methods.iter().filter_map(Value::as_str);
                    words.map(str::to_owned).collect()
                });
            }
            "merge_queue" => {
                self.queued = true;
                self.pulls_only = true;
            }
            "deletion" => self.kept = true,
            "non_fast_forward" => self.forward_only = true,
            "update" => {
                self.locked = true;
                self.pulls_only = true;
            }
            "required_signatures" => {
                self.signed = true;
                self.pulls_only = true;
            }
            "required_linear_history" => self.linear = true,
            "required_status_checks" => {
                self.strict |= parameters["strict_required_status_checks_policy"] == true;
                let checks = parameters["required_status_checks"].as_array();
                self.checks
                    .extend(checks.into_iter().flatten().filter_map(|check| {
                        let name = check["context"].as_str()?.to_owned();
                        Some((name, check["integration_id"].as_u64()))
                    }));
            }
            _ => {}
        }
    }
}

impl RepositoryState {
    /// The names of branches that anything is said about.
    pub(crate) fn guarded_branches(&self) -> BTreeSet<String> {
        let rules = self.rules.iter().map(|rule| rule.branch.clone());
        self.protections.keys().cloned().chain(rules).collect()
    }

    /// What is forbidden on a branch.
    pub(crate) fn guard_of(&self, branch: &str) -> Guard {
        let mut guard = Guard::default();
        if let Some(protection) = self.protections.get(branch) {
            guard.add_protection(protection);
        }
        for rule in self.rules_of(branch) {
            guard.add_rule(rule);
        }
        guard
    }

    /// The rules of a branch.
    pub(crate) fn rules_of(&self, branch: &str) -> impl Iterator<Item = &Rule> {
        let branch = branch.to_owned();
        self.rules.iter().filter(move |rule| rule.branch == branch)
    }
}
