//! Branch protection, rules and rulesets.

use serde_json::{Map, Value, json};

use super::super::encoding::percent_encoded_path;
use super::super::state::{Protection, RepositoryState, Rule};
use super::super::time::rfc3339;
use super::{api_root, node_id, web_root};

fn plain_rule(rule: &Rule) -> Map<String, Value> {
    let mut value = Map::from_iter([("type".to_owned(), json!(rule.kind))]);
    if !rule.parameters.is_null() {
        value.insert("parameters".to_owned(), rule.parameters.clone());
    }
    value
}

/// A rule as a branch shows it, with where it comes from.
pub(crate) fn branch_rule(state: &RepositoryState, rule: &Rule) -> Value {
    let mut value = plain_rule(rule);
    value.insert("ruleset_source_type".to_owned(), json!("Repository"));
    value.insert("ruleset_source".to_owned(), json!(state.full_name()));
    value.insert("ruleset_id".to_owned(), json!(rule.ruleset));
    Value::Object(value)
}

/// The ruleset of one rule; `whole`: with conditions and rules, as it stands alone.
pub(crate) fn ruleset(base: &str, state: &RepositoryState, rule: &Rule, whole: bool) -> Value {
    let id = rule.ruleset;
    let mut value = json!({
        "id": id,
        "name": format!("{} of {}", rule.kind, rule.branch),
        "target": "branch",
        "source_type": "Repository",
        "source": state.full_name(),
        "enforcement": "active",
        "node_id": node_id("RRS", id),
        "current_user_can_bypass": "never",
        "_links": {
            "self": {"href": format!("{}/rulesets/{id}", api_root(base, state))},
            "html": {"href": format!("{}/rules/{id}", web_root(base, state))},
        },
        "created_at": rfc3339(state.created_at),
        "updated_at": rfc3339(state.created_at),
    });
    if whole {
        value["conditions"] = json!({"ref_name": {"include": [format!("refs/heads/{}", rule.branch)], "exclude": []}});
        value["rules"] = json!([plain_rule(rule)]);
    }
    value
}

/// The protection of a branch.
pub(crate) fn protection(
    base: &str,
    state: &RepositoryState,
    branch: &str,
    protection: &Protection,
) -> Value {
    let url = format!(
        "{}/branches/{}/protection",
        api_root(base, state),
        percent_encoded_path(branch)
    );
    let enabled = |enabled: bool| json!({"enabled": enabled});
    let mut value = json!({
        "url": url,
        "enforce_admins": {"url": format!("{url}/enforce_admins"), "enabled": true},
        "required_signatures": {"url": format!("{url}/required_signatures"), "enabled": protection.required_signatures},
        "required_linear_history": enabled(protection.linear_history),
        "allow_force_pushes": enabled(protection.allow_force_pushes),
        "allow_deletions": enabled(protection.allow_deletions),
        "block_creations": enabled(false),
        "required_conversation_resolution": enabled(false),
        "lock_branch": enabled(protection.locked),
        "allow_fork_syncing": enabled(false),
    });
    if !protection.required_checks.is_empty() {
        let checks = protection
            .required_checks
            .iter()
            .map(|name| json!({"context": name, "app_id": null}));
        value["required_status_checks"] = json!({
            "url": format!("{url}/required_status_checks"),
            "strict": protection.strict,
            "contexts": protection.required_checks,
            "contexts_url": format!("{url}/required_status_checks/contexts"),
            "checks": checks.collect::<Value>(),
        });
    }
    if let Some(reviews) = protection.required_reviews {
        value["required_pull_request_reviews"] = json!({
            "url": format!("{url}/required_pull_request_reviews"),
            "dismiss_stale_reviews": false,
            "require_code_owner_reviews": false,
            "require_last_push_approval": false,
            "required_approving_review_count": reviews,
        });
    }
    value
}
