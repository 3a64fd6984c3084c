//! How a repository stands, in a word, with what to do about it.

use crate::connector::{Condition, ConnectorError, RepositoryView};
use crate::store::Project;

/// How a repository can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// The word.
    pub condition: Condition,
    /// What was seen.
    pub detail: Option<String>,
    /// What a person does about it; none when it passes by itself.
    pub mend: Option<String>,
}

impl Standing {
    pub(super) fn new(condition: Condition, detail: String, mend: Option<String>) -> Self {
        Self {
            condition,
            detail: Some(detail),
            mend,
        }
    }
}

/// What a failed call says of the repository.
pub fn of_error(project: &Project, error: &ConnectorError) -> Standing {
    let id = &project.id;
    let token = format!("`caretaker project credential {id} --token-env VAR`");
    let (condition, mend) = match error {
        ConnectorError::Limited { .. } => (
            Condition::Limited,
            Some(format!(
                "nothing is seen until then, and it is looked at again by itself; when it comes back, give the project a token or an App of its own: {token}, or ask less often with poll.quiet_seconds"
            )),
        ),
        ConnectorError::Unreachable { .. } => (
            Condition::Unreachable,
            Some(
                "look at the network and at github.api_url; it is looked at again by itself"
                    .to_owned(),
            ),
        ),
        ConnectorError::Unauthorised { .. } => (
            Condition::CredentialRefused,
            Some(format!("give it a token that is accepted: {token}")),
        ),
        ConnectorError::Forbidden { .. } => (
            Condition::PermissionMissing,
            Some(format!(
                "give the token the permission (`caretaker doctor` names what is missing), or give another one: {token}"
            )),
        ),
        ConnectorError::Absent { .. } => (
            Condition::Absent,
            Some(format!(
                "if it was deleted, `caretaker project remove {id}`; if the token lost sight of it, {token}"
            )),
        ),
        ConnectorError::NoToken { reason, mend } => {
            let (detail, mend) = (reason.clone(), (*mend).to_owned());
            return Standing::new(Condition::CredentialRefused, detail, Some(mend));
        }
        ConnectorError::Refused { .. } => (
            Condition::Failing,
            Some("look at the provider's status page; it is looked at again by itself".to_owned()),
        ),
    };
    Standing::new(condition, error.to_string(), mend)
}

/// What the repository says of itself.
pub fn of_repository(project: &Project, view: &RepositoryView) -> Standing {
    let id = &project.id;
    let known = &project.full_name;
    // Break it: leave this out; failures of whatever has the number now are then this project's
    // (`watch::conditions::another_repository_behind_the_registered_number_is_said_with_its_mend`).
    if view.id != project.repository_id {
        return Standing::new(
            Condition::Failing,
            format!(
                "the provider answers with repository number {} instead of {}",
                view.id, project.repository_id
            ),
            Some(format!(
                "its runs are those of another repository: if it was deleted and made anew, `caretaker project remove {id}` and register it again; if not, look at github.api_url"
            )),
        );
    }
    if view.archived {
        return Standing::new(
            Condition::Archived,
            format!("{known} is archived: it is read-only"),
            Some(format!(
                "unarchive it, or stop watching it with `caretaker project remove {id}`"
            )),
        );
    }
    if view.disabled {
        return Standing::new(
            Condition::Disabled,
            format!("{known} was disabled by the provider"),
            Some("its owner has to ask the provider's support".to_owned()),
        );
    }
    if view.full_name.eq_ignore_ascii_case(known) {
        return Standing::default();
    }
    let owner = |name: &str| name.split('/').next().unwrap_or_default().to_lowercase();
    let (condition, what) = if owner(&view.full_name) == owner(known) {
        (Condition::Renamed, "was renamed to")
    } else {
        (Condition::Transferred, "was transferred to")
    };
    Standing::new(
        condition,
        format!("{known} {what} {}", view.full_name),
        Some(format!(
            "take the new address over with `caretaker project rename {id}` and confirm it; until then its runs are watched, and nothing is pushed or merged"
        )),
    )
}
