//! What a person changes of a project that is registered: its credential, its address, or that it is there at all.

use std::sync::Arc;

use secrecy::SecretString;

use super::access::{replacing, sufficient};
use super::{OnboardError, draft_digest, find};
use crate::approve::Principal;
use crate::attest::keys::Fill;
use crate::clock::Millis;
use crate::config::ServiceUrl;
use crate::connector::{Connector, RepositoryView};
use crate::id::{OrganisationId, ProjectId};
use crate::incident::AuditEvent;
use crate::signer::{CredentialSeal, fingerprint};
use crate::store::{Project, ProjectState, Removal, Store, Swap};

/// Makes a connector for a registered project and a credential; an error says what is wrong, in words.
pub type ConnectTo<'a> =
    &'a (dyn Fn(&Project, SecretString) -> Result<Arc<dyn Connector>, String> + Send + Sync);

/// Where projects are tended, and by whom.
pub struct Tending<'a> {
    /// The database.
    pub store: &'a Store,
    /// Whose projects these are.
    pub organisation: &'a OrganisationId,
    /// The configured provider's pages.
    pub web_url: &'a ServiceUrl,
    /// Reaches the configured provider.
    pub connect: ConnectTo<'a>,
    /// Seals credentials.
    pub seal: &'a CredentialSeal,
    /// Who does it.
    pub by: &'a Principal,
}

/// A credential that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The project as it is now.
    pub project: Project,
    /// Fingerprint of the token that was there, when it could still be opened. Where it could not, nothing shows any more that
    /// the project is what was confirmed, so that it is a draft again.
    pub before: Option<String>,
    /// Fingerprint of the one that is there now.
    pub after: String,
    /// What a person should know of it, in words.
    pub notes: Vec<String>,
}

/// A project with another address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// The project as it was.
    pub before: Project,
    /// The draft that waits for confirmation.
    pub after: Project,
}

/// A project that is there.
///
/// # Errors
/// There is none, it was removed, or the store fails.
pub async fn find_present(
    store: &Store,
    organisation: &OrganisationId,
    id: &ProjectId,
) -> Result<Project, OnboardError> {
    let project = find(store, organisation, id).await?;
    match project.removed_at {
        Some(at) => Err(OnboardError::Removed {
            project: project.id,
            at,
        }),
        None => Ok(project),
    }
}

/// Puts another token in the place of a project's, after the provider has shown that it serves the registered repository.
///
/// # Errors
/// The provider refuses the token, it lacks something, or it reaches another repository; the project was removed, changed or
/// changed meanwhile. The old token is still there then.
pub async fn replace_credential(
    tending: &Tending<'_>,
    id: &ProjectId,
    token: &SecretString,
    fill: Fill<'_>,
    now: Millis,
) -> Result<Replaced, OnboardError> {
    let project = find_present(tending.store, tending.organisation, id).await?;
    let draft = draft_digest(&project);
    if draft != project.draft_digest {
        return Err(OnboardError::Changed {
            project: project.id,
        });
    }
    let sealed = tending.sealed(&project).await?;
    let opened = tending.seal.open(id, &draft, &sealed).ok();
    let before = opened.as_ref().map(fingerprint);
    let connector = tending.connect(&project, token.clone())?;
    let (replace, otherwise) = (replacing(id), "give that one");
    let name = &project.full_name;
    let mut notes = sufficient(&*connector, name, now, &replace, otherwise).await?;
    let seen = tending.registered(&*connector, &project).await?;
    if seen.full_name != project.full_name {
        notes.push(format!(
            "the repository is called {} by now; `caretaker project rename {id}` takes the name over",
            seen.full_name
        ));
    }
    let after = fingerprint(token);
    // Break it: never redraft; rules that were exchanged in the database would then be sealed as if a person had seen them, and
    // `onboard::credential::what_cannot_be_shown_to_be_confirmed_is_confirmed_again` fails.
    let redraft = before.is_none().then(|| drafted(&project));
    let swap = Swap {
        after: tending.seal.seal(id, &draft, token, fill)?,
        before: sealed,
        project,
    };
    let event = AuditEvent {
        kind: "credential-replaced",
        detail: replaced_in_words(tending.by, before.as_deref(), &after),
    };
    let store = tending.store;
    store
        .replace_credential(&swap, redraft.as_ref(), &event, now)
        .await?;
    Ok(Replaced {
        project: find(store, tending.organisation, id).await?,
        before,
        after,
        notes,
    })
}

fn replaced_in_words(by: &Principal, before: Option<&str>, after: &str) -> String {
    match before {
        Some(before) => format!("by {by}: the token {before}… was replaced by {after}…"),
        None => format!(
            "by {by}: a token that could not be opened any more was replaced by {after}…; the project waits for confirmation again"
        ),
    }
}

/// Takes over the name that the registered repository has today. The project becomes a draft again; its incidents wait for
/// the confirmation and go on.
///
/// # Errors
/// The repository has its registered name, cannot be read, or the project was removed or changed meanwhile.
pub async fn rename(
    tending: &Tending<'_>,
    id: &ProjectId,
    fill: Fill<'_>,
    now: Millis,
) -> Result<Renamed, OnboardError> {
    let project = find_present(tending.store, tending.organisation, id).await?;
    let sealed = tending.sealed(&project).await?;
    let token = tending.seal.open(id, &draft_digest(&project), &sealed)?;
    let connector = tending.connect(&project, token.clone())?;
    let seen = tending.registered(&*connector, &project).await?;
    let url = format!("{}/{}", tending.web_url, seen.full_name);
    if seen.full_name == project.full_name && url == project.url {
        return Err(OnboardError::NotRenamed {
            project: project.id,
            full_name: seen.full_name,
        });
    }
    let mut after = Project {
        url,
        full_name: seen.full_name,
        ..drafted(&project)
    };
    after.draft_digest = draft_digest(&after);
    let swap = Swap {
        after: tending.seal.seal(id, &after.draft_digest, &token, fill)?,
        before: sealed,
        project,
    };
    let event = AuditEvent {
        kind: "project-renamed",
        detail: format!(
            "by {}: {} is {} by now (repository number {}); it waits for confirmation",
            tending.by, swap.project.full_name, after.full_name, after.repository_id
        ),
    };
    let store = tending.store;
    store
        .replace_credential(&swap, Some(&after), &event, now)
        .await?;
    Ok(Renamed {
        before: swap.project,
        after: find(store, tending.organisation, id).await?,
    })
}

/// The project as a draft that waits for confirmation.
fn drafted(project: &Project) -> Project {
    Project {
        state: ProjectState::Draft,
        confirmed_at: None,
        ..project.clone()
    }
}

/// Ends everything about a project and empties its credential. Its history and its ledgers stay; the repository can be
/// registered again. `false`: a sealed copy may still lie in SQLite's write-ahead file.
///
/// # Errors
/// There is no such project, or it is removed already.
pub async fn remove(
    store: &Store,
    project: &Project,
    by: &Principal,
    now: Millis,
) -> Result<(Removal, bool), OnboardError> {
    Ok(store.remove_project(project, by.as_str(), now).await?)
}

impl Tending<'_> {
    async fn sealed(&self, project: &Project) -> Result<Vec<u8>, OnboardError> {
        let sealed = self.store.credential(&project.id).await?;
        sealed.ok_or_else(|| OnboardError::Absent(project.id.clone()))
    }

    fn connect(
        &self,
        project: &Project,
        token: SecretString,
    ) -> Result<Arc<dyn Connector>, OnboardError> {
        (self.connect)(project, token).map_err(|reason| OnboardError::Connector {
            repository: project.full_name.clone(),
            reason,
        })
    }

    /// The repository that a credential reaches, which must be the registered one: names can be given away.
    async fn registered(
        &self,
        connector: &dyn Connector,
        project: &Project,
    ) -> Result<RepositoryView, OnboardError> {
        let seen = connector.repository().await;
        let seen = seen.map_err(|source| OnboardError::Provider {
            repository: project.full_name.clone(),
            source,
        })?;
        // Break it: drop this comparison; `onboard::credential::a_token_for_another_repository_is_not_taken` then fails.
        if seen.id != project.repository_id {
            return Err(OnboardError::OtherRepository {
                project: project.id.clone(),
                expected: project.repository_id.clone(),
                found: seen.id,
            });
        }
        Ok(seen)
    }
}
