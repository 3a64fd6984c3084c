//! The single questions that a decision is made of. Each answers with a node of the tree of reasons.

use super::glob::PathForms;
use super::matters::{Matter, by_mode, by_name};
use super::reason::{NOT_MEASURED, Reason};
use super::{
    Bump, Class, Handling, Limits, List, Measured, Rules, SecondOpinion, SecondOpinionRule, Verdict,
};
use crate::change::{FileChange, RepoPath};

/// A path that a rule names, short of refusing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MatchedPath {
    pub(super) path: RepoPath,
    pub(super) rule: String,
    pub(super) reason: Option<String>,
    pub(super) list: List,
    pub(super) class: Class,
    pub(super) matter: Option<Matter>,
}

impl MatchedPath {
    fn node(&self, outcome: Verdict) -> Reason {
        let node = Reason::new(&self.rule, outcome)
            .with("path", self.path.to_string())
            .with("class", self.class.as_str());
        match &self.reason {
            Some(reason) => node.with("reason", reason.as_str()),
            None => node,
        }
    }
}

const CLASSIFYING: [(List, Class); 2] = [
    (List::Infrastructure, Class::Infrastructure),
    (List::Data, Class::Data),
];

/// The class that a name alone has.
pub(super) fn class_by_name(rules: &Rules, forms: &PathForms<'_>) -> Class {
    let listed = CLASSIFYING
        .into_iter()
        .find(|(list, _)| rules.first_match(*list, forms).is_some())
        .map_or(Class::Functional, |(_, class)| class);
    by_name(forms)
        .into_iter()
        .map(Matter::class)
        .fold(listed, Class::max)
}

/// Everything that names one entry: at most one rule of each list, and the built-in matters of its name and of its modes.
pub(super) fn matches_of(
    rules: &Rules,
    entry: &FileChange,
    forms: &PathForms<'_>,
) -> Vec<MatchedPath> {
    let sensitive = (List::Sensitive, Class::Functional);
    let listed = CLASSIFYING
        .into_iter()
        .chain([sensitive])
        .filter_map(|(list, class)| {
            rules.first_match(list, forms).map(|rule| MatchedPath {
                path: entry.path.clone(),
                rule: rule.glob.clone(),
                reason: rule.reason.clone(),
                list,
                class,
                matter: None,
            })
        });
    let matters = by_name(forms)
        .into_iter()
        .chain(by_mode(entry))
        .map(|matter| MatchedPath {
            path: entry.path.clone(),
            rule: format!("built-in: {}", matter.as_str()),
            reason: None,
            list: List::BuiltIn,
            class: matter.class(),
            matter: Some(matter),
        });
    listed.chain(matters).collect()
}

/// The class by rules and by second opinion; the stricter wins, and anything above functional needs approval.
pub(super) fn class(
    rules_class: Class,
    matched: &[MatchedPath],
    opinion: &SecondOpinion,
) -> (Class, Reason) {
    let mut children: Vec<Reason> = matched
        .iter()
        .filter(|found| found.class > Class::Functional)
        .map(|found| found.node(Verdict::Approve))
        .collect();
    let mut class = rules_class;
    if let SecondOpinion::Given(given) = opinion {
        class = class.max(given.class);
        let outcome = needs_approval(given.class > Class::Functional);
        children.push(
            Reason::new("second opinion", outcome)
                .with("class", given.class.as_str())
                .with("model", given.model.as_str()),
        );
    }
    let node = Reason::new("class", needs_approval(class > Class::Functional))
        .with("class", class.as_str())
        .with("rules", rules_class.as_str())
        .because(children);
    (class, node)
}

/// Whether a needed second opinion is there at all; what it says is part of [`class`].
pub(super) fn second_opinion(rule: SecondOpinionRule, opinion: &SecondOpinion) -> Reason {
    let missing =
        rule == SecondOpinionRule::Required && !matches!(opinion, SecondOpinion::Given(_));
    let node = Reason::new("second-opinion", needs_approval(missing));
    match opinion {
        _ if !missing => node,
        SecondOpinion::Off => node.with("reason", NOT_MEASURED).with(
            "detail",
            "the rules require a second opinion and no model is configured",
        ),
        _ => node.with("reason", NOT_MEASURED),
    }
}

/// Paths under `sensitive`.
pub(super) fn sensitive(matched: &[MatchedPath]) -> Reason {
    let found = matched.iter().filter(|found| found.list == List::Sensitive);
    let children = found.map(|found| found.node(Verdict::Approve)).collect();
    Reason::new("sensitive", Verdict::Free).because(children)
}

/// Built-in matters other than dependencies.
pub(super) fn consequential(matched: &[MatchedPath]) -> Reason {
    let found = matched
        .iter()
        .filter(|found| !matches!(found.matter, None | Some(Matter::Dependencies)));
    let children = found.map(|found| found.node(Verdict::Approve)).collect();
    Reason::new("consequential", Verdict::Free).because(children)
}

/// Manifests and lockfiles, by the measured version step.
pub(super) fn dependencies(rules: &Rules, matched: &[MatchedPath], bump: Option<Bump>) -> Reason {
    let named = &rules.document().dependencies;
    let handling = bump.and_then(|bump| match bump {
        Bump::Patch => named.patch,
        Bump::Minor => named.minor,
        Bump::Major => named.major,
    });
    let outcome = match handling {
        Some(Handling::Deny) => Verdict::Deny,
        Some(Handling::Approve) | None => Verdict::Approve,
        Some(Handling::Free) => Verdict::Free,
    };
    let found = matched
        .iter()
        .filter(|found| found.matter == Some(Matter::Dependencies));
    let children: Vec<Reason> = found
        .map(|found| {
            let node = found.node(outcome);
            match bump {
                Some(bump) => node.with("step", bump.as_str()),
                None => node.with("reason", NOT_MEASURED),
            }
        })
        .collect();
    Reason::new("dependencies", Verdict::Free).because(children)
}

/// Sizes against the project's limits.
pub(super) fn limits(limits: &Limits, measured: &Measured<'_>) -> Reason {
    let files = u64::try_from(measured.change.count()).unwrap_or(u64::MAX);
    let binary = limits.binary.and_then(super::BinaryLimit::most);
    let children = [
        limit("files", limits.files, Some(files)),
        limit("lines", limits.lines, measured.lines),
        limit("binary", binary, measured.binary),
    ];
    Reason::new("limits", Verdict::Free).because(children.into_iter().flatten().collect())
}

fn limit(name: &str, most: Option<u64>, measured: Option<u64>) -> Option<Reason> {
    let most = most?;
    let over = measured.is_none_or(|count| count > most);
    let node = Reason::new(name, needs_approval(over)).with("limit", most);
    Some(match measured {
        Some(count) => node.with("measured", count),
        None => node.with("reason", NOT_MEASURED),
    })
}

const fn needs_approval(needed: bool) -> Verdict {
    if needed {
        Verdict::Approve
    } else {
        Verdict::Free
    }
}
