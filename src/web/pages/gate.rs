//! What the gate found, from the decision as it is recorded.

use serde::Deserialize;

use super::super::shown::Shown;
use super::{Badge, tone};
use crate::gate::{DeniedRow, MatchedRow, Reason, Verdict};
use crate::incident::DecisionFact;

/// How deep the tree of reasons is shown, and how many of its nodes.
const DEEPEST: usize = 4;
const MOST_NODES: usize = 200;

/// A decision.
pub(super) struct GateView {
    pub(super) verdict: Badge,
    pub(super) class: &'static str,
    /// Digest of the rules that decided.
    pub(super) rules: String,
    pub(super) denied: Vec<NamedPath>,
    pub(super) matched: Vec<NamedPath>,
    /// The tree of reasons, flattened: each node with its depth.
    pub(super) reasons: Vec<ReasonLine>,
}

/// A path and the rule that names it.
pub(super) struct NamedPath {
    pub(super) path: Shown,
    pub(super) rule: Shown,
    /// The list of the rules file that it stands in.
    pub(super) list: &'static str,
    pub(super) reason: Shown,
}

/// One node of the tree.
pub(super) struct ReasonLine {
    pub(super) depth: usize,
    pub(super) rule: Shown,
    pub(super) outcome: Badge,
    pub(super) values: Vec<(Shown, Shown)>,
}

/// The members that are shown. A decision over a mere list of files has fewer than one over a change, and its reasons are the
/// signed lines.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Recorded {
    denied: Vec<DeniedRow>,
    matched: Vec<MatchedRow>,
    reasons: Vec<Finding>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Finding {
    Node(Reason),
    Line(String),
}

impl GateView {
    pub(super) fn new(decision: &DecisionFact) -> Self {
        let recorded = Recorded::deserialize(&decision.document).unwrap_or_default();
        let mut reasons = Vec::new();
        for finding in &recorded.reasons {
            match finding {
                Finding::Node(reason) => flatten(reason, 0, &mut reasons),
                Finding::Line(line) => reasons.push(ReasonLine {
                    depth: 0,
                    rule: Shown::line(line),
                    outcome: verdict(decision.verdict),
                    values: Vec::new(),
                }),
            }
        }
        Self {
            verdict: verdict(decision.verdict),
            class: decision.class.as_str(),
            rules: decision.rules.to_string(),
            denied: recorded.denied.iter().map(denied).collect(),
            matched: recorded.matched.iter().map(matched).collect(),
            reasons,
        }
    }
}

fn denied(row: &DeniedRow) -> NamedPath {
    NamedPath {
        path: Shown::line(&row.path),
        rule: Shown::line(&row.rule),
        list: "denied",
        reason: Shown::line(row.reason.as_deref().unwrap_or_default()),
    }
}

fn matched(row: &MatchedRow) -> NamedPath {
    NamedPath {
        path: Shown::line(&row.path),
        rule: Shown::line(&row.rule),
        list: row.list.as_str(),
        reason: Shown::line(row.reason.as_deref().unwrap_or_default()),
    }
}

fn flatten(reason: &Reason, depth: usize, lines: &mut Vec<ReasonLine>) {
    if lines.len() >= MOST_NODES {
        return;
    }
    let values = reason.values.iter();
    lines.push(ReasonLine {
        depth: depth.min(DEEPEST),
        rule: Shown::line(&reason.rule),
        outcome: verdict(reason.outcome),
        values: values
            .map(|(name, value)| (Shown::line(name), Shown::line(value)))
            .collect(),
    });
    for child in &reason.children {
        flatten(child, depth + 1, lines);
    }
}

/// The badge of a decision's word.
const fn verdict(verdict: Verdict) -> Badge {
    let tone = match verdict {
        Verdict::Free => tone::GOOD,
        Verdict::Approve => tone::WARN,
        Verdict::Deny => tone::BAD,
    };
    Badge {
        word: verdict.as_str(),
        tone,
    }
}
