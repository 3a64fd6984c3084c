//! A database with watched projects, and their connectors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caretaker::change::Sha256Digest;
use caretaker::clock::Millis;
use caretaker::connector::Connector;
use caretaker::connector::github::credential::PersonalToken;
use caretaker::connector::github::{GithubClient, GithubConnector, GithubOptions};
use caretaker::id::{OrganisationId, ProjectId};
use caretaker::store::{Project, ProjectState, Store, WatchMode};
use caretaker::worker::Connectors;

use super::forge::ForgeProcess;

/// Connectors of all projects.
pub(crate) struct All(pub(crate) BTreeMap<ProjectId, Arc<dyn Connector>>);

#[async_trait]
impl Connectors for All {
    async fn of(&self, project: &Project) -> Result<Arc<dyn Connector>, String> {
        let found = self.0.get(&project.id).cloned();
        found.ok_or_else(|| format!("no connector for {}", project.id))
    }
}

/// The connector of the repository at this place.
pub(crate) fn connector(
    client: &GithubClient,
    forge: &ForgeProcess,
    place: usize,
) -> anyhow::Result<Arc<dyn Connector>> {
    let number = forge.repositories.get(place).copied().unwrap_or_default();
    let tokens = forge.tokens.len().max(1);
    let token = forge
        .tokens
        .get(place % tokens)
        .cloned()
        .unwrap_or_default();
    let options = GithubOptions {
        api_url: forge.url.clone(),
        web_url: forge.url.clone(),
        git_url: forge.url.clone(),
        owner: "acme".to_owned(),
        name: format!("r{place}"),
        credential: Arc::new(PersonalToken::new(token.into())),
        expected_repository_id: Some(number.to_string()),
        deadline: Duration::from_secs(30),
    };
    Ok(Arc::new(GithubConnector::new(client, options)?))
}

/// Registers and confirms every repository.
pub(crate) async fn confirmed(
    store: &Store,
    client: &GithubClient,
    forge: &ForgeProcess,
    now: Millis,
) -> anyhow::Result<All> {
    let organisation = OrganisationId::new(now, [1; 10]);
    store
        .ensure_organisation(&organisation, "acme", now)
        .await?;
    let mut all = BTreeMap::new();
    for (place, number) in forge.repositories.iter().enumerate() {
        let mut entropy = [2; 10];
        let tail = u32::try_from(place)?.to_be_bytes();
        for (byte, value) in entropy.iter_mut().zip(tail) {
            *byte = value;
        }
        let project = Project {
            id: ProjectId::new(now, entropy),
            organisation: organisation.clone(),
            url: format!("{}/acme/r{place}", forge.url),
            repository_id: number.to_string(),
            full_name: format!("acme/r{place}"),
            host: forge.url.trim_start_matches("http://").to_owned(),
            rules: "denied: []\n".to_owned(),
            rules_digest: Sha256Digest::of(b"denied: []\n"),
            intent: String::new(),
            owner: "mailto:owner@example.org".parse()?,
            state: ProjectState::Draft,
            frozen: None,
            draft_digest: Sha256Digest::of(b"draft"),
            created_at: now,
            confirmed_at: None,
            watch: WatchMode::Ci,
            health: "[]".to_owned(),
            schedule: None,
            removed_at: None,
        };
        store.insert_project(&project, b"sealed").await?;
        store.confirm_project(&project, None, now).await?;
        all.insert(project.id, connector(client, forge, place)?);
    }
    Ok(All(all))
}
