//! The branch that holds checkpoints of the log: whether the provider keeps it from being pushed over or removed.

use super::Finding;
use crate::attest::text::shown;
use crate::config::{BranchAnchor, rules_from_yaml};
use crate::connector::{BranchProtection, Connector, Guarded};
use crate::gate::AnchorDemand;
use crate::store::Project;

/// Whether the repository of this project has such a branch: it is the one that is named, or its rules demand one.
pub(super) fn holds(anchor: &BranchAnchor, project: &Project) -> bool {
    if let Some(named) = &anchor.project {
        return *named == project.id;
    }
    // Rules that cannot be read are said elsewhere.
    rules_from_yaml(project.rules.as_bytes(), "the rules")
        .is_ok_and(|rules| rules.anchors.required.contains(&AnchorDemand::Branch))
}

/// Asks the provider.
pub(super) async fn look(connector: &dyn Connector, anchor: &BranchAnchor) -> Finding {
    const CHECK: &str = "log branch";
    let name = shown(&anchor.name);
    match connector.protection(&anchor.name).await {
        Ok(Some(protection)) if protection.is_whole() => Finding::ok(
            CHECK,
            format!("the provider refuses to push over {name} or to delete it"),
        ),
        Ok(Some(protection)) => Finding::warning(CHECK, format!("{name} {}", lacking(protection))),
        Ok(None) => Finding::ok(
            CHECK,
            format!("{name} is not there yet; protect it once it is"),
        ),
        Err(error) => Finding::warning(
            CHECK,
            format!(
                "whether {name} is protected is not known: {}",
                shown(&error.to_string())
            ),
        ),
    }
}

/// What can be done to the branch, or is not known to be impossible.
fn lacking(protection: BranchProtection) -> String {
    let of = |wanted: Guarded| {
        let each = [
            (protection.force_pushes, "pushed over"),
            (protection.deletion, "deleted"),
        ];
        let found = each.into_iter().filter(|(guarded, _)| *guarded == wanted);
        found.map(|(_, word)| word).collect::<Vec<_>>().join(" or ")
    };
    let (possible, untold) = (of(Guarded::Possible), of(Guarded::Untold));
    let mut words = Vec::new();
    if !possible.is_empty() {
        words.push(format!(
            "can be {possible} by whoever may push, which caretaker would notice and cannot prevent"
        ));
    }
    if !untold.is_empty() {
        words.push(format!(
            "is protected, but only administrators are told whether it can be {untold}"
        ));
    }
    format!(
        "{}; add a ruleset for it at the provider that restricts deletions and blocks force pushes",
        words.join(", and ")
    )
}
