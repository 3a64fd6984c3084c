//! What the provider says of a credential, in words for whoever gave it.

use super::OnboardError;
use crate::clock::Millis;
use crate::connector::{Access, Connector};
use crate::id::ProjectId;

/// A credential that ends sooner than this is worth a remark: 14 days, in milliseconds.
const SOON_MILLIS: i64 = 14 * DAY_MILLIS;
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// What is worth saying of a credential that was found good enough.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessNotes {
    /// What it lacks, with the mend; none when nothing is known to be missing.
    pub missing: Option<String>,
    /// What it may do and need not, with the mend.
    pub unneeded: Option<String>,
    /// That it ends soon, or has ended, with the mend.
    pub ending: Option<String>,
    /// What cannot be told.
    pub untold: Vec<String>,
}

/// Puts into words what the provider says. `replace` is what to do with another credential, for the mends.
pub fn access_notes(access: &Access, now: Millis, replace: &str) -> AccessNotes {
    let kind = &access.kind;
    let list = |words: &[String]| words.join(", ");
    if let Some(page) = &access.changed_at {
        return AccessNotes {
            missing: (!access.missing.is_empty()).then(|| {
                format!(
                    "the App's installation lacks {}; add it to the App's permissions, then let the owner accept the change at {page}",
                    list(&access.missing)
                )
            }),
            unneeded: (!access.unneeded.is_empty()).then(|| {
                format!(
                    "the App's installation may do more than is needed: {}; take it out of the App's permissions. Tokens are made without it in any case",
                    list(&access.unneeded)
                )
            }),
            ending: None,
            untold: access.untold.clone(),
        };
    }
    AccessNotes {
        missing: (!access.missing.is_empty()).then(|| {
            format!(
                "the {kind} lacks {}; make one that has it at the provider and {replace}",
                list(&access.missing)
            )
        }),
        unneeded: (!access.unneeded.is_empty()).then(|| {
            format!(
                "the {kind} may do more than is needed: {}; make one without at the provider and {replace}",
                list(&access.unneeded)
            )
        }),
        ending: access
            .expires_at
            .and_then(|end| ending(kind, end, now, replace)),
        untold: access.untold.clone(),
    }
}

/// What to do with another credential of a project that is registered.
pub fn replacing(project: &ProjectId) -> String {
    format!("replace it with `caretaker project credential {project} --token-env VAR`")
}

fn ending(kind: &str, end: Millis, now: Millis, replace: &str) -> Option<String> {
    let left = end.0.saturating_sub(now.0);
    // Break it: compare with `<= 0`; `onboard::credential::a_token_that_ends_soon_is_said_to` then fails.
    if left >= SOON_MILLIS {
        return None;
    }
    let when = match left / DAY_MILLIS {
        _ if left <= 0 => "has ended".to_owned(),
        0 => "ends within a day".to_owned(),
        1 => "ends in 1 day".to_owned(),
        days => format!("ends in {days} days"),
    };
    Some(format!(
        "the {kind} {when} ({end}); make another one at the provider and {replace}"
    ))
}

impl AccessNotes {
    /// Everything but what is missing, in the order in which it matters.
    pub fn remarks(self) -> Vec<String> {
        let told = [self.ending, self.unneeded].into_iter().flatten();
        told.chain(self.untold).collect()
    }
}

/// Asks the provider what a credential may do. What it is known to lack is an error, whose mend ends with `otherwise`.
pub(super) async fn sufficient(
    connector: &dyn Connector,
    full_name: &str,
    now: Millis,
    replace: &str,
    otherwise: &str,
) -> Result<Vec<String>, OnboardError> {
    let access = connector.access().await;
    let access = access.map_err(|source| OnboardError::Provider {
        repository: full_name.to_owned(),
        source,
    })?;
    // Break it: go on with what is missing;
    // `onboard::credential::a_token_that_lacks_something_is_refused_and_the_old_one_stays` then fails.
    match access_notes(&access, now, otherwise).missing {
        Some(problem) => Err(OnboardError::Lacking {
            repository: full_name.to_owned(),
            problem,
        }),
        None => Ok(access_notes(&access, now, replace).remarks()),
    }
}
