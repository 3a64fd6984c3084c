//! The signed word that a project's rules come into force.

use super::{Confirmation, OnboardError};
use crate::attest::chain::authenticate;
use crate::attest::dsse::Envelope;
use crate::attest::predicate::{
    OrganisationBlock, PolicyVersion, Producer, Project as WatchedProject,
};
use crate::attest::statement::Predicate;
use crate::attest::{Label, OrganisationEvent, Role, Statement, Text};
use crate::clock::Millis;
use crate::id::{Entropy, EventId};
use crate::log::Leaf;
use crate::store::{Project, Store};

/// The next version of the rules of a project's repository, signed; none where these rules are in force already.
pub(super) async fn version(
    store: &Store,
    project: &Project,
    confirmation: &Confirmation<'_>,
    now: Millis,
) -> Result<Option<Leaf>, OnboardError> {
    let watched = watched(project).map_err(|reason| unsigned(project, &reason))?;
    let newest = newest(store, project, &watched, confirmation).await?;
    let policy = project.rules_digest.into();
    if newest
        .as_ref()
        .is_some_and(|newest| newest.policy == policy)
    {
        return Ok(None);
    }
    let mut entropy = Entropy::default();
    (confirmation.random)(&mut entropy).map_err(|error| unsigned(project, &error))?;
    let version = PolicyVersion {
        event: OrganisationBlock {
            id: EventId::new(now, entropy),
            project: Some(watched),
            role: Role::Policy,
            occurred_at: now,
            trust_root: confirmation.trust.newest().reference(),
            producer: Producer {
                id: Text::clipped("urn:caretaker:onboard"),
                version: Label::fixed(env!("CARGO_PKG_VERSION")),
            },
        },
        version: newest.as_ref().map_or(1, |newest| newest.version + 1),
        policy,
        bytes: project.rules.len() as u64,
        previous: newest.map(|newest| newest.policy),
        intent_document: None,
        changed_by: Text::clipped(confirmation.by.as_str()),
    };
    let leaf = signed(version, confirmation).map_err(|reason| unsigned(project, &reason))?;
    Ok(Some(leaf))
}

/// The version that the log has last of this repository's. What is not signed by policy is nobody's.
async fn newest(
    store: &Store,
    project: &Project,
    watched: &WatchedProject,
    confirmation: &Confirmation<'_>,
) -> Result<Option<PolicyVersion>, OnboardError> {
    let scoped = store.within(&project.organisation);
    let statements = scoped.logged_statements().await?;
    let versions = statements.iter().filter_map(|entry| {
        let attested = authenticate(confirmation.trust, &Envelope::parse(entry).ok()?).ok()?;
        match attested.into_statement().into_predicate() {
            Predicate::Organisation(OrganisationEvent::PolicyVersion(version)) => Some(*version),
            _ => None,
        }
    });
    Ok(versions
        .filter(|version| {
            let of = version.event.project.as_ref();
            of.is_some_and(|of| of.place() == watched.place())
        })
        .max_by_key(|version| version.version))
}

fn watched(project: &Project) -> Result<WatchedProject, String> {
    Ok(WatchedProject {
        uri: Text::new(&project.url).map_err(|error| error.to_string())?,
        repository_id: Label::new(&project.repository_id).map_err(|error| error.to_string())?,
    })
}

fn signed(version: PolicyVersion, confirmation: &Confirmation<'_>) -> Result<Leaf, String> {
    let event = OrganisationEvent::PolicyVersion(Box::new(version));
    let statement = Statement::organisation(event).and_then(|statement| statement.draft());
    let statement = statement.map_err(|error| error.to_string())?;
    let envelope = confirmation.signer.sign(&statement);
    envelope
        .map(Leaf::Statement)
        .map_err(|error| error.to_string())
}

fn unsigned(project: &Project, reason: &impl ToString) -> OnboardError {
    OnboardError::Unsigned {
        project: project.id.clone(),
        reason: reason.to_string(),
    }
}
