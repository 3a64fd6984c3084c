//! Branch protection and rules: what is told of them, and where they are enforced.

use serde_json::json;

use super::super::git::ObjectId;
use super::super::render;
use super::super::state::{Repository, RepositoryState, Rule};
use super::checks::check_runs;
use super::paging::array;
use super::routes::Scene;
use super::{Answer, Refusal, Reply};

/// `GET /repos/{owner}/{repo}/rules/branches/{branch}`
pub(crate) fn rules(scene: Scene<'_>, branch: &str) -> Answer {
    let state = scene.repository.current()?;
    let rules: Vec<&Rule> = state.rules_of(branch).collect();
    let row = |rule: &&Rule| render::branch_rule(&state, rule);
    Ok(array(
        scene.shared,
        scene.repository.id,
        scene.call,
        &rules,
        row,
    ))
}

/// `GET /repos/{owner}/{repo}/rulesets`: this forge makes one for each rule.
pub(crate) fn rulesets(scene: Scene<'_>) -> Answer {
    let state = scene.repository.current()?;
    let row = |rule: &Rule| render::ruleset(&scene.shared.url, &state, rule, false);
    Ok(array(
        scene.shared,
        scene.repository.id,
        scene.call,
        &state.rules,
        row,
    ))
}

/// `GET /repos/{owner}/{repo}/rulesets/{ruleset_id}`
pub(crate) fn ruleset(scene: Scene<'_>, id: &str) -> Answer {
    let state = scene.repository.current()?;
    let rule = state
        .rules
        .iter()
        .find(|rule| rule.ruleset.to_string() == id)
        .ok_or_else(Refusal::not_found)?;
    Ok(Reply::ok(render::ruleset(
        &scene.shared.url,
        &state,
        rule,
        true,
    )))
}

/// `GET /repos/{owner}/{repo}/branches/{branch}/protection`
pub(crate) fn protection(scene: Scene<'_>, branch: &str) -> Answer {
    let state = scene.repository.current()?;
    if state.tip(branch).is_none() {
        return Err(Refusal::new(404, "Branch not found"));
    }
    let protection = state
        .protections
        .get(branch)
        .ok_or_else(|| Refusal::new(404, "Branch not protected"))?;
    Ok(Reply::ok(render::protection(
        &scene.shared.url,
        &state,
        branch,
        protection,
    )))
}

/// Whether a check of this name, of this App if one is named, has succeeded at a commit; a commit status counts where no
/// App is named.
fn succeeded(state: &RepositoryState, sha: &ObjectId, name: &str, app: Option<u64>) -> bool {
    let checks = check_runs(state, Some(sha));
    let latest = checks
        .iter()
        .rev()
        .filter(|check| check.name == name)
        .find(|check| app.is_none_or(|app| check.suite.app_id == app));
    if let Some(check) = latest {
        let conclusion = check.conclusion.as_deref();
        return matches!(conclusion, Some("success" | "neutral" | "skipped"));
    }
    let status = state
        .statuses
        .iter()
        .rev()
        .find(|status| status.sha == *sha && status.context == name);
    app.is_none() && status.is_some_and(|status| status.state == "success")
}

/// The required checks of a branch that a commit lacks, in GitHub's words.
fn lacking_checks(state: &RepositoryState, branch: &str, sha: &ObjectId) -> Option<String> {
    let guard = state.guard_of(branch);
    let missing: Vec<&str> = guard
        .checks
        .iter()
        .filter(|(name, app)| !succeeded(state, sha, name, *app))
        .map(|(name, _)| name.as_str())
        .collect();
    match missing.as_slice() {
        [] => None,
        [only] => Some(format!("Required status check \"{only}\" is expected.")),
        many => Some(format!(
            "{} of {} required status checks are expected.",
            many.len(),
            guard.checks.len()
        )),
    }
}

/// Why the guard of a base does not let a head in now; `None`: it does.
pub(crate) fn merge_objection(
    repository: &Repository,
    state: &RepositoryState,
    base: &str,
    head: &ObjectId,
    method: &str,
) -> Result<Option<String>, Refusal> {
    let guard = state.guard_of(base);
    let forbidden_method = guard
        .methods
        .as_ref()
        .is_some_and(|methods| !methods.iter().any(|allowed| allowed == method));
    let mut objections: Vec<String> = [
        (guard.queued, "Changes must be made through the merge queue"),
        (guard.locked, "Cannot change this locked branch"),
        (
            guard.reviewed,
            "At least 1 approving review is required by reviewers with write access.",
        ),
        (guard.signed, "Commits must have verified signatures."),
        (
            guard.linear && method == "merge",
            "This branch must not contain merge commits.",
        ),
        (
            forbidden_method,
            "This merge method is not allowed on this branch.",
        ),
    ]
    .into_iter()
    .filter(|(applies, _)| *applies)
    .map(|(_, words)| words.to_owned())
    .collect();
    objections.extend(lacking_checks(state, base, head));
    if guard.strict
        && let Some(tip) = state.tip(base)
        && !repository.git.is_ancestor(tip, head)?
    {
        objections.push("Head branch is out of date. Review and try the merge again.".to_owned());
    }
    Ok((!objections.is_empty()).then(|| objections.join(" ")))
}

/// Refuses what the guard of a branch does not allow a client of the API to do with it. `to`: where the branch is to go;
/// `None`: it is to be deleted. `forced`: it leaves its old tip.
pub(crate) fn move_allowed(
    state: &RepositoryState,
    name: &str,
    to: Option<&ObjectId>,
    forced: bool,
) -> Result<(), Refusal> {
    let Some(branch) = name.strip_prefix("refs/heads/") else {
        return Ok(());
    };
    let guard = state.guard_of(branch);
    let objection = match to {
        _ if guard.pulls_only => Some("Changes must be made through a pull request.".to_owned()),
        None if guard.kept => Some("Cannot delete this protected branch".to_owned()),
        Some(_) if forced && guard.forward_only => {
            Some("Cannot force-push to this branch".to_owned())
        }
        Some(to) => lacking_checks(state, branch, to),
        None => None,
    };
    match objection {
        None => Ok(()),
        Some(words) => Err(Refusal {
            errors: vec![json!({"resource": "Reference", "code": "custom", "message": words})],
            ..Refusal::new(422, words)
        }),
    }
}

/// Pairs of a branch with required checks and a commit that has them all: what a push may move those branches to.
pub(crate) fn checked_commits(state: &RepositoryState) -> (Vec<String>, Vec<String>) {
    let branches: Vec<String> = state
        .guarded_branches()
        .into_iter()
        .filter(|branch| !state.guard_of(branch).checks.is_empty())
        .collect();
    let mut commits: Vec<ObjectId> = check_runs(state, None)
        .into_iter()
        .map(|check| check.head_sha)
        .chain(state.statuses.iter().map(|status| status.sha.clone()))
        .collect();
    commits.sort();
    commits.dedup();
    let mut pairs = Vec::new();
    for branch in &branches {
        let good = commits
            .iter()
            .filter(|commit| lacking_checks(state, branch, commit).is_none());
        pairs.extend(good.map(|commit| format!("refs/heads/{branch} {commit}")));
    }
    let names = branches
        .into_iter()
        .map(|branch| format!("refs/heads/{branch}"));
    (names.collect(), pairs)
}
