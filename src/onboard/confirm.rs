//! What a person confirms, and what they do with a project afterwards.

use serde::Serialize;

use super::{OnboardError, find_present, policy};
use crate::approve::Principal;
use crate::attest::keys::FillError;
use crate::attest::{Signer, TrustHistory};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::{OrganisationId, ProjectId};
use crate::incident::AuditEvent;
use crate::store::{Project, ProjectState, Store, WatchMode};

/// Everything that a person confirms. Its members stand in alphabetical order, so that its JSON is canonical.
#[derive(Serialize)]
struct DraftDocument<'a> {
    full_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<&'a str>,
    host: &'a str,
    intent: &'a str,
    organisation: &'a str,
    owner: &'a str,
    project: &'a str,
    repository_id: &'a str,
    rules: Sha256Digest,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a str>,
    url: &'a str,
    watch: &'static str,
}

/// SHA-256 over the canonical JSON of what a person confirms: members sorted, no white space.
pub fn draft_digest(project: &Project) -> Sha256Digest {
    let document = DraftDocument {
        full_name: &project.full_name,
        health: (project.watch == WatchMode::Health).then_some(project.health.as_str()),
        host: &project.host,
        intent: &project.intent,
        organisation: project.organisation.as_str(),
        owner: project.owner.as_str(),
        project: project.id.as_str(),
        repository_id: &project.repository_id,
        // Break it: take the stored `rules_digest` instead; rules that were changed in the database are then confirmed
        // (`onboard::a_project_changed_in_the_database_has_no_credential`).
        rules: Sha256Digest::of(project.rules.as_bytes()),
        schedule: project.schedule.as_deref(),
        url: &project.url,
        watch: project.watch.as_str(),
    };
    // Text and digests always serialise; were that ever untrue, no digest would match.
    Sha256Digest::of(&serde_json::to_vec(&document).unwrap_or_default())
}

/// A project of this organisation, also one that was removed.
///
/// # Errors
/// There is none, or the store fails.
pub async fn find(
    store: &Store,
    organisation: &OrganisationId,
    id: &ProjectId,
) -> Result<Project, OnboardError> {
    let found = store.within(organisation).project(id).await?;
    found.ok_or_else(|| OnboardError::Absent(id.clone()))
}

/// A person's word, and what signs that the rules come into force by it.
pub struct Confirmation<'a> {
    /// The digest of the draft that the person has seen, when they name one.
    pub shown: Option<&'a Sha256Digest>,
    /// The person.
    pub by: &'a Principal,
    /// The signer of policy.
    pub signer: &'a dyn Signer,
    /// Whose signatures count.
    pub trust: &'a TrustHistory,
    /// Fills a buffer with random bytes.
    pub random: fn(&mut [u8]) -> Result<(), FillError>,
}

/// Makes a draft a watched project, and logs its rules as the ones in force, signed, at once.
///
/// # Errors
/// There is no such draft, it is another one than was shown, it was changed in the store, its repository is watched already, or
/// policy does not sign.
pub async fn confirm(
    store: &Store,
    organisation: &OrganisationId,
    id: &ProjectId,
    confirmation: &Confirmation<'_>,
    now: Millis,
) -> Result<Project, OnboardError> {
    let project = find_present(store, organisation, id).await?;
    if let Some(expected) = confirmation.shown
        && *expected != project.draft_digest
    {
        return Err(OnboardError::OtherDraft {
            project: project.id,
            expected: *expected,
            found: project.draft_digest,
        });
    }
    let rules = Sha256Digest::of(project.rules.as_bytes());
    if draft_digest(&project) != project.draft_digest || rules != project.rules_digest {
        return Err(OnboardError::Changed {
            project: project.id,
        });
    }
    let version = policy::version(store, &project, confirmation, now).await?;
    store
        .confirm_project(&project, version.as_ref(), now)
        .await?;
    find(store, organisation, id).await
}

/// Stops watching a project; incidents under way go on.
///
/// # Errors
/// There is no such project, or it is not confirmed.
pub async fn pause(
    store: &Store,
    organisation: &OrganisationId,
    id: &ProjectId,
) -> Result<Project, OnboardError> {
    set(store, organisation, id, ProjectState::Paused).await
}

/// Watches a paused project again.
///
/// # Errors
/// There is no such project, or it was never confirmed.
pub async fn resume(
    store: &Store,
    organisation: &OrganisationId,
    id: &ProjectId,
) -> Result<Project, OnboardError> {
    set(store, organisation, id, ProjectState::Confirmed).await
}

/// Lets a frozen project merge again, on the word of `by`. The history shows who and when.
///
/// # Errors
/// There is no such project, it is not frozen, or the store fails.
pub async fn unfreeze(
    store: &Store,
    organisation: &OrganisationId,
    id: &ProjectId,
    by: &Principal,
) -> Result<Project, OnboardError> {
    let project = find_present(store, organisation, id).await?;
    let Some(reason) = &project.frozen else {
        return Err(OnboardError::NotFrozen(project.id));
    };
    let now = store.now().await?;
    let event = AuditEvent {
        kind: "unfrozen-by-hand",
        detail: format!("{by} lifted the freeze: {reason}"),
    };
    store
        .record(organisation, None, Some(id), &event, now)
        .await?;
    store.unfreeze(&project, now).await?;
    find(store, organisation, id).await
}

async fn set(
    store: &Store,
    organisation: &OrganisationId,
    id: &ProjectId,
    state: ProjectState,
) -> Result<Project, OnboardError> {
    let project = find_present(store, organisation, id).await?;
    let now = store.now().await?;
    store.set_project_state(&project, state, now).await?;
    find(store, organisation, id).await
}
