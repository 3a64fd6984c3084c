//! What the provider demands of the head commit and of the base branch.

use std::collections::BTreeMap;

use super::answer::{item, required};
use super::api::Api;
use super::path::{check_branch, encoded};
use super::wire;
use crate::change::Oid;
use crate::connector::ConnectorError;
use crate::reconcile::CheckView;

/// Pages of checks, statuses and rules that are read.
const PAGES: u32 = 20;

/// Check runs and commit statuses on a commit. Within a suite only the newest attempt of a check counts; the same check in two
/// suites (a push and a pull request, say) counts twice, so that a red one never hides behind a green one.
pub(super) async fn on_commit(api: &Api, commit: Oid) -> Result<Vec<CheckView>, ConnectorError> {
    let action = format!("reading the checks of commit {commit}");
    let tail = format!("/commits/{commit}/check-runs?filter=latest");
    let runs: Vec<wire::CheckRun> = api.every(&action, &tail, Some("check_runs"), PAGES).await?;
    let mut newest = BTreeMap::new();
    for run in runs {
        let id = required(&action, "check_runs.id", run.id)?;
        let suite = run.check_suite.and_then(|suite| suite.id);
        let view = CheckView {
            name: required(&action, "check_runs.name", run.name)?,
            app: run.app.and_then(|app| app.slug),
            completed: run.status.as_deref() == Some("completed"),
            conclusion: run.conclusion,
        };
        let key = (view.name.clone(), view.app.clone(), suite);
        match newest.get(&key) {
            Some((other, _)) if *other > id => {}
            _ => {
                newest.insert(key, (id, view));
            }
        }
    }
    let mut checks: Vec<_> = newest.into_values().map(|(_, view)| view).collect();
    checks.extend(statuses(api, commit).await?);
    Ok(checks)
}

/// The newest status of each context. Anyone who can push can set one, so that it has no app.
async fn statuses(api: &Api, commit: Oid) -> Result<Vec<CheckView>, ConnectorError> {
    let action = format!("reading the statuses of commit {commit}");
    let tail = format!("/commits/{commit}/status");
    let statuses: Vec<wire::Status> = api.every(&action, &tail, Some("statuses"), PAGES).await?;
    statuses
        .into_iter()
        .map(|status| {
            Ok(CheckView {
                name: required(&action, "statuses.context", status.context)?,
                app: None,
                completed: status.state.as_deref() != Some("pending"),
                conclusion: status.state,
            })
        })
        .collect()
}

/// What the rules of a branch mean for a merge.
#[derive(Default)]
pub(super) struct BranchRules {
    /// Rules that forbid a direct merge, in the provider's words.
    pub(super) blocking: Vec<String>,
    /// Methods that every rule allows, when any rule speaks of methods.
    pub(super) methods: Option<Vec<String>>,
}

impl BranchRules {
    fn restrict(&mut self, allowed: &[String]) {
        let kept = match self.methods.take() {
            Some(methods) => methods
                .into_iter()
                .filter(|method| allowed.contains(method))
                .collect(),
            None => allowed.to_vec(),
        };
        self.methods = Some(kept);
    }
}

/// What the rules that are active on a branch mean for a merge.
pub(super) async fn rules(api: &Api, branch: &str) -> Result<BranchRules, ConnectorError> {
    let mut rules = BranchRules::default();
    for (kind, parameters) in active_rules(api, branch).await? {
        match kind.as_str() {
            "merge_queue" | "update" => rules.blocking.push(kind),
            "required_linear_history" => {
                rules.restrict(&["squash".to_owned(), "rebase".to_owned()]);
            }
            "pull_request" => {
                if let Some(methods) = parameters.and_then(|it| it.allowed_merge_methods) {
                    rules.restrict(&methods);
                }
            }
            _ => {}
        }
    }
    Ok(rules)
}

/// The kinds and parameters of the rules that are active on a branch. Where the provider has none to show, it still enforces its
/// own when asked.
pub(super) async fn active_rules(
    api: &Api,
    branch: &str,
) -> Result<Vec<(String, Option<wire::RuleParameters>)>, ConnectorError> {
    let action = format!("reading the rules of branch {branch}");
    check_branch(&action, branch)?;
    let tail = format!("/rules/branches/{}", encoded(branch));
    let found = match api.pages(&action, &tail, None, PAGES).await {
        Ok(found) => found,
        Err(error) if has_no_rules(&error) => {
            tracing::debug!(branch, %error, "the provider shows no rules for branches here");
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let understood = found.into_iter().map(|value| {
        let rule: wire::Rule = item(&action, value)?;
        Ok((required(&action, "type", rule.kind)?, rule.parameters))
    });
    understood.collect()
}

/// Servers that are too old answer 404, plans without the feature 403 with an advertisement.
fn has_no_rules(error: &ConnectorError) -> bool {
    match error {
        ConnectorError::Absent { .. } => true,
        ConnectorError::Forbidden { reason, .. } => reason.contains("Upgrade to"),
        _ => false,
    }
}
