//! The decision over one exact change.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::change::{ChangeDigest, ChangeSet, RepoPath, Sha256Digest};

use super::denied::{denial, denied_node};
use super::glob::PathForms;
use super::reason::Capped;
use super::weigh::{self, MatchedPath};
use super::{Class, Cleared, DeniedPath, List, Reason, Rules, SecondOpinion, Stricter, twins};

/// What may happen to a change. Ordered: the greater is the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may be merged without asking a person.
    Free,
    /// A person must approve exactly this change.
    Approve,
    /// It is refused.
    Deny,
}

impl Verdict {
    /// The word used in JSON, in signed statements and on pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The greatest version step among the dependencies that a change touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bump {
    /// Patch versions only.
    Patch,
    /// At least one minor version.
    Minor,
    /// At least one major version, a new dependency, or one whose versions cannot be compared.
    Major,
}

impl Bump {
    /// The key under `dependencies`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }
}

/// A change and what was measured about it. What is `None` was not measured; a rule that needs it then asks for approval.
#[derive(Debug, Clone)]
pub struct Measured<'a> {
    /// The exact change.
    pub change: &'a ChangeSet,
    /// Added plus removed lines.
    pub lines: Option<u64>,
    /// Number of binary files that change.
    pub binary: Option<u64>,
    /// The greatest version step; looked at only when a manifest or lockfile changes.
    pub bump: Option<Bump>,
    /// Every path of the resulting tree, to find twins of changed paths among the unchanged. Without it twins are looked for
    /// inside the change only.
    pub tree: Option<&'a [RepoPath]>,
    /// A model's classification.
    pub opinion: SecondOpinion,
}

impl<'a> Measured<'a> {
    /// A change about which nothing else is known.
    pub const fn nothing_but(change: &'a ChangeSet) -> Self {
        Self {
            change,
            lines: None,
            binary: None,
            bump: None,
            tree: None,
            opinion: SecondOpinion::NotMeasured,
        }
    }
}

/// The outcome over one exact change under one exact rules file. Only [`evaluate`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    verdict: Verdict,
    class: Class,
    rules_class: Class,
    opinion: SecondOpinion,
    denied: Vec<DeniedPath>,
    matched: Vec<MatchedPath>,
    reasons: Vec<Reason>,
    change: ChangeDigest,
    rules: Sha256Digest,
}

/// Decides. Total: any rules and any measurements have exactly one decision, and a stricter rule, another path or a stricter
/// opinion never makes it milder.
pub fn evaluate(rules: &Rules, measured: &Measured<'_>) -> Decision {
    let mut denied = Vec::new();
    let mut matched = Vec::new();
    for entry in measured.change.entries() {
        let forms = PathForms::of(entry.path.as_bytes());
        denied.extend(denial(rules, &entry.path, &forms));
        matched.extend(weigh::matches_of(rules, entry, &forms));
    }
    let rules_class = matched
        .iter()
        .map(|found| found.class)
        .max()
        .unwrap_or_default();
    let (class, class_reason) = weigh::class(rules_class, &matched, &measured.opinion);
    let document = rules.document();
    let reasons = vec![
        denied_node(&denied),
        class_reason,
        weigh::second_opinion(document.second_opinion, &measured.opinion),
        weigh::sensitive(&matched),
        weigh::consequential(&matched),
        weigh::dependencies(rules, &matched, measured.bump),
        weigh::limits(&document.limits, measured),
        twins::twins(measured.change, measured.tree),
    ];
    // No reason at all would be a fault of this function, so it denies.
    let verdict = reasons
        .iter()
        .map(|reason| reason.outcome)
        .max()
        .unwrap_or(Verdict::Deny);
    Decision {
        verdict,
        class,
        rules_class,
        opinion: measured.opinion.clone(),
        denied,
        matched,
        reasons,
        change: measured.change.digest(),
        rules: *rules.digest(),
    }
}

impl Decision {
    /// The verdict.
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The blast radius: the stricter of rules and second opinion.
    pub const fn class(&self) -> Class {
        self.class
    }

    /// The class by rules and built-in matters alone.
    pub const fn rules_class(&self) -> Class {
        self.rules_class
    }

    /// The second opinion that went in.
    pub const fn opinion(&self) -> &SecondOpinion {
        &self.opinion
    }

    /// Which classification was stricter.
    pub fn stricter(&self) -> Stricter {
        match &self.opinion {
            SecondOpinion::Given(given) if given.class > self.rules_class => Stricter::Model,
            SecondOpinion::Given(given) if given.class < self.rules_class => Stricter::Rule,
            _ => Stricter::Equal,
        }
    }

    /// The refused paths.
    pub fn denied(&self) -> &[DeniedPath] {
        &self.denied
    }

    /// The tree of reasons, one node a question; those that found nothing have the outcome free.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// The reasons that decided, as lines for a signed statement.
    pub fn signed_reasons(&self) -> Capped {
        Capped::of_reasons(&self.reasons)
    }

    /// The change that was decided on.
    pub const fn change(&self) -> &ChangeDigest {
        &self.change
    }

    /// Digest of the rules file that decided.
    pub const fn rules(&self) -> &Sha256Digest {
        &self.rules
    }

    /// The proof that this change was not denied; nothing on a denial or for any other change.
    pub fn cleared(&self, change: &ChangeSet) -> Option<Cleared> {
        let same = change.digest() == self.change;
        (same && self.verdict != Verdict::Deny)
            .then(|| Cleared::new(self.change, self.verdict, self.class))
    }

    /// The form that `gate check --json` prints and that is stored.
    pub fn document(&self) -> DecisionDocument {
        DecisionDocument {
            verdict: self.verdict,
            class: self.class,
            denied: self.denied.iter().map(DeniedRow::from).collect(),
            matched: self.matched.iter().map(MatchedRow::from).collect(),
            reasons: self.reasons.clone(),
            rules_class: self.rules_class,
            opinion: self.opinion.clone(),
            change_digest: self.change,
            rules_digest: self.rules,
        }
    }
}

/// A decision as JSON. Reading one back gives a record, never a [`Decision`]: only [`evaluate`] makes those.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionDocument {
    /// The verdict.
    pub verdict: Verdict,
    /// The blast radius.
    pub class: Class,
    /// Refused paths.
    pub denied: Vec<DeniedRow>,
    /// Paths that a rule or a built-in matter names.
    pub matched: Vec<MatchedRow>,
    /// The tree of reasons.
    pub reasons: Vec<Reason>,
    /// The class by rules alone.
    pub rules_class: Class,
    /// The second opinion.
    pub opinion: SecondOpinion,
    /// The change that was decided on.
    pub change_digest: ChangeDigest,
    /// Digest of the rules file.
    pub rules_digest: Sha256Digest,
}

/// A refused path as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedRow {
    /// The path, hidden characters and bytes that are not UTF-8 shown as escapes.
    pub path: String,
    /// The glob or the built-in rule.
    pub rule: String,
    /// Why, when the rules say it.
    pub reason: Option<String>,
}

impl From<&DeniedPath> for DeniedRow {
    fn from(denied: &DeniedPath) -> Self {
        Self {
            path: denied.path.to_string(),
            rule: denied.rule.clone(),
            reason: denied.reason.clone(),
        }
    }
}

/// A named path as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchedRow {
    /// The path, shown as in [`DeniedRow`].
    pub path: String,
    /// The glob or the built-in matter.
    pub rule: String,
    /// The class that this rule gives.
    pub class: Class,
    /// The list that the rule stands in.
    pub list: List,
    /// Why, when the rules say it.
    pub reason: Option<String>,
}

impl From<&MatchedPath> for MatchedRow {
    fn from(matched: &MatchedPath) -> Self {
        Self {
            path: matched.path.to_string(),
            rule: matched.rule.clone(),
            class: matched.class,
            list: matched.list,
            reason: matched.reason.clone(),
        }
    }
}
