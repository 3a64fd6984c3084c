//! What the provider refuses to those who push to a branch, as far as it says so.
//!
//! Two features say it: rules of branches, which every reader sees (`GET …/rules/branches/{branch}`), and the older branch protection,
//! of which a reader sees only that there is some (`GET …/branches/{branch}`) and an administrator what it is
//! (`GET …/branches/{branch}/protection`).

use http::StatusCode;
use serde::Deserialize;

use super::answer::{decoded, words};
use super::api::Api;
use super::checks::active_rules;
use super::path::{check_branch, encoded};
use crate::connector::{BranchProtection, ConnectorError, Guarded};

/// Said with 404 to an administrator; everybody else is told `Not Found`.
const NONE: &str = "Branch not protected";

/// A branch. Every member may be missing.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Branch {
    protected: Option<bool>,
}

/// Its protection.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Protection {
    allow_force_pushes: Option<Setting>,
    allow_deletions: Option<Setting>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Setting {
    enabled: Option<bool>,
}

/// What protects a branch; `None` when there is no such branch and no rule waits for it.
pub(super) async fn protection(
    api: &Api,
    branch: &str,
) -> Result<Option<BranchProtection>, ConnectorError> {
    let action = format!(
        "reading what protects branch {branch} of {}",
        api.full_name()
    );
    check_branch(&action, branch)?;
    let rules = active_rules(api, branch).await?;
    let ruled = |kind: &str| rules.iter().any(|(rule, _)| rule == kind);
    let by_rules = BranchProtection {
        force_pushes: Guarded::of(ruled("non_fast_forward")),
        deletion: Guarded::of(ruled("deletion")),
    };
    if by_rules.is_whole() {
        return Ok(Some(by_rules));
    }
    let setting = setting(api, &action, branch).await?;
    Ok(setting.map(|setting| by_rules.or(setting)))
}

/// What the older feature says.
async fn setting(
    api: &Api,
    action: &str,
    branch: &str,
) -> Result<Option<BranchProtection>, ConnectorError> {
    let tail = format!("/branches/{}", encoded(branch));
    let Some(found) = api.read_if_present::<Branch>(action, &tail).await? else {
        return Ok(None);
    };
    if found.protected == Some(false) {
        return Ok(Some(BranchProtection::NONE));
    }
    let tail = format!("{tail}/protection");
    let answer = api.answer(action, &tail).await?;
    match answer.status {
        StatusCode::OK => {
            let protection: Protection = decoded(action, &answer.body)?;
            Ok(Some(BranchProtection {
                force_pushes: refused_unless(protection.allow_force_pushes),
                deletion: refused_unless(protection.allow_deletions),
            }))
        }
        StatusCode::NOT_FOUND if words(&answer).contains(NONE) => Ok(Some(BranchProtection::NONE)),
        // Only administrators are told.
        StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => Ok(Some(BranchProtection::UNTOLD)),
        _ => Err(api.refused(action, &tail, &answer)),
    }
}

fn refused_unless(allowed: Option<Setting>) -> Guarded {
    match allowed.and_then(|setting| setting.enabled) {
        Some(allowed) => Guarded::of(!allowed),
        None => Guarded::Untold,
    }
}
