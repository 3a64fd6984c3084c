//! From an address, a token, rules and an intent to a draft.

use std::sync::Arc;

use secrecy::SecretString;

use super::access::{replacing, sufficient};
use super::{OnboardError, Repository, draft_digest};
use crate::approve::Principal;
use crate::attest::keys::Fill;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::config::{HealthCheck, PollSchedule, RulesFileError, ServiceUrl, rules_from_yaml};
use crate::connector::Connector;
use crate::gate::Rules;
use crate::id::{OrganisationId, ProjectId};
use crate::signer::CredentialSeal;
use crate::store::{Project, ProjectState, Store, WatchMode};

/// Longest intent document, in bytes.
const INTENT_BYTES: usize = 64 * 1024;

/// Makes a connector from `OWNER/NAME` and a credential; an error says what is wrong, in words.
pub type Connect<'a> =
    &'a (dyn Fn(&str, SecretString) -> Result<Arc<dyn Connector>, String> + Send + Sync);

/// Where projects are registered.
pub struct Office<'a> {
    /// The database.
    pub store: &'a Store,
    /// Whose projects these are.
    pub organisation: &'a OrganisationId,
    /// The configured provider's pages: the only place whose repositories are registered.
    pub web_url: &'a ServiceUrl,
    /// Reaches the configured provider.
    pub connect: Connect<'a>,
    /// Seals credentials.
    pub seal: &'a CredentialSeal,
}

/// What a person wants watched.
pub struct Registration<'a> {
    /// Address of the repository.
    pub url: &'a str,
    /// The credential that acts there.
    pub token: SecretString,
    /// What is watched.
    pub watch: WatchMode,
    /// The health checks; none unless they are watched.
    pub health: &'a [HealthCheck],
    /// When it is looked at; the configured default where none.
    pub schedule: Option<&'a PollSchedule>,
    /// The rules and settings: the exact bytes of a YAML file.
    pub rules: &'a [u8],
    /// The name of that file in messages.
    pub rules_file: &'a str,
    /// What the project is for and what must not happen to it; may be empty.
    pub intent: &'a str,
    /// Who answers for it and is asked for approvals.
    pub owner: Principal,
}

/// A draft that waits for confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// The draft as stored.
    pub project: Project,
    /// What a person should look at, in words.
    pub warnings: Vec<String>,
}

/// Checks everything and stores a draft under this id. Nothing is watched yet: see [`super::confirm()`].
///
/// # Errors
/// Whatever would keep the project from working: see [`OnboardError`]. Nothing is stored then.
pub async fn register(
    office: &Office<'_>,
    registration: &Registration<'_>,
    id: ProjectId,
    fill: Fill<'_>,
    now: Millis,
) -> Result<Registered, OnboardError> {
    let health = health(registration)?;
    let repository = Repository::parse(registration.url, office.web_url)?;
    let (source, rules) = checked_rules(registration)?;
    check_intent(registration.intent)?;
    let full_name = repository.full_name();
    let connector = (office.connect)(&full_name, registration.token.clone()).map_err(|reason| {
        OnboardError::Connector {
            repository: full_name.clone(),
            reason,
        }
    })?;
    let (replace, otherwise) = (replacing(&id), "register with that one");
    let remarks = sufficient(&*connector, &full_name, now, &replace, otherwise).await?;
    let found = seen(&*connector, &full_name, &rules).await?;
    let mut project = Project {
        url: format!("{}/{}", office.web_url, found.full_name),
        repository_id: found.id,
        full_name: found.full_name,
        host: connector.host().to_owned(),
        rules: source.to_owned(),
        rules_digest: *rules.digest(),
        intent: registration.intent.to_owned(),
        owner: registration.owner.clone(),
        state: ProjectState::Draft,
        frozen: None,
        draft_digest: Sha256Digest::of(&[]),
        created_at: now,
        confirmed_at: None,
        watch: registration.watch,
        health,
        schedule: registration.schedule.map(ToString::to_string),
        removed_at: None,
        organisation: office.organisation.clone(),
        id,
    };
    project.draft_digest = draft_digest(&project);
    let (id, draft) = (&project.id, &project.draft_digest);
    let sealed = office.seal.seal(id, draft, &registration.token, fill)?;
    office.store.insert_project(&project, &sealed).await?;
    let mut warnings = warnings(&rules, registration.intent);
    warnings.extend(remarks);
    Ok(Registered { project, warnings })
}

/// The health checks as they are stored: with every default written out, so that a person confirms what will be done.
fn health(registration: &Registration<'_>) -> Result<String, OnboardError> {
    let problem = match (registration.watch, registration.health.is_empty()) {
        (WatchMode::Health, true) => {
            "--watch health needs at least one check; give them with --health or --health-file, or under health in the configuration"
        }
        (WatchMode::Ci, false) => {
            "health checks are given, but CI runs are watched; add --watch health"
        }
        _ => {
            return serde_json::to_string(registration.health)
                .map_err(|error| OnboardError::HealthText(error.to_string()));
        }
    };
    Err(OnboardError::Health { problem })
}

/// The rules' text and the rules, exactly as the worker will read them.
fn checked_rules<'a>(registration: &Registration<'a>) -> Result<(&'a str, Rules), OnboardError> {
    let (bytes, file) = (registration.rules, registration.rules_file);
    let document = rules_from_yaml(bytes, file).map_err(RulesFileError::from)?;
    let rules = Rules::compile(document, bytes).map_err(|error| RulesFileError::Rules {
        file: file.to_owned(),
        error,
    })?;
    let source = std::str::from_utf8(bytes).map_err(|_| OnboardError::RulesText {
        file: file.to_owned(),
    })?;
    Ok((source, rules))
}

fn check_intent(intent: &str) -> Result<(), OnboardError> {
    let problem = if intent.len() > INTENT_BYTES {
        format!("has {} bytes; keep it below {INTENT_BYTES}", intent.len())
    } else if intent.contains('\0') {
        "contains a NUL character; remove it".to_owned()
    } else {
        return Ok(());
    };
    Err(OnboardError::Intent { problem })
}

/// The repository as the provider describes it to this credential.
async fn seen(
    connector: &dyn Connector,
    full_name: &str,
    rules: &Rules,
) -> Result<crate::connector::RepositoryView, OnboardError> {
    let failed = |source| OnboardError::Provider {
        repository: full_name.to_owned(),
        source,
    };
    let found = connector.repository().await.map_err(failed)?;
    if found.archived {
        return Err(OnboardError::Archived {
            repository: full_name.to_owned(),
        });
    }
    let base = &rules.document().base.0;
    if connector.branch(base).await.map_err(failed)?.is_none() {
        return Err(OnboardError::Base {
            repository: full_name.to_owned(),
            base: base.clone(),
            default_branch: found.default_branch,
        });
    }
    Ok(found)
}

fn warnings(rules: &Rules, intent: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if rules.denies_nothing() {
        warnings.push(
            "the rules deny no path: every file but the workflows may be changed; list under `denied` what only people may change"
                .to_owned(),
        );
    }
    if intent.trim().is_empty() {
        warnings.push(
            "there is no intent document: whoever diagnoses is told nothing about what the project is for"
                .to_owned(),
        );
    }
    warnings
}
