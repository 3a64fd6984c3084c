//! The connector of each project, made from its stored credential.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::hosting::Hosting;
use crate::change::Sha256Digest;
use crate::connector::Connector;
use crate::id::ProjectId;
use crate::onboard::draft_digest;
use crate::signer::Keyring;
use crate::store::{Project, Store};
use crate::worker::Connectors;

/// The connector of each project, with the draft and the sealed credential that it was made from: a project that is another in any
/// way gets another.
type Made = BTreeMap<ProjectId, ((Sha256Digest, Sha256Digest), Arc<dyn Connector>)>;

/// Makes GitHub connectors from stored credentials.
pub(super) struct GithubConnectors {
    hosting: Hosting,
    store: Store,
    keys: Arc<Keyring>,
    made: Mutex<Made>,
}

impl GithubConnectors {
    pub(super) fn new(hosting: Hosting, store: &Store, keys: &Arc<Keyring>) -> Self {
        Self {
            hosting,
            store: store.clone(),
            keys: Arc::clone(keys),
            made: Mutex::default(),
        }
    }
}

#[async_trait]
impl Connectors for GithubConnectors {
    async fn of(&self, project: &Project) -> Result<Arc<dyn Connector>, String> {
        let sealed = self.store.credential(&project.id).await;
        let sealed = sealed.map_err(|error| error.to_string())?.ok_or_else(|| {
            format!(
                "project {} has no stored credential; register it again",
                project.id
            )
        })?;
        // Computed from the row as it is now, whatever digest stands there: rules and owner count only as they were confirmed.
        let draft = draft_digest(project);
        let from = (draft, Sha256Digest::of(&sealed));
        let lock = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, made)) = lock().get(&project.id)
            && *known == from
        {
            return Ok(Arc::clone(made));
        }
        let credential = self.keys.credentials().open(&project.id, &draft, &sealed);
        let credential = credential.map_err(|error| error.to_string())?;
        let connector = self.hosting.connector_of(project, credential)?;
        // Break it: keep it beside the one before; a process then remembers every token that a project ever had
        // (`cli::connectors::tests::the_connector_of_a_replaced_token_is_forgotten`).
        lock().insert(project.id.clone(), (from, Arc::clone(&connector)));
        Ok(connector)
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::cli::installation::Installation;
    use crate::clock::Millis;
    use crate::config::{Configuration, Environment};
    use crate::incident::AuditEvent;
    use crate::signer::system_randomness;
    use crate::store::{ProjectState, Swap, WatchMode};

    const NOW: Millis = Millis(1_800_000_000_000);

    fn project(keys: &Keyring) -> Project {
        Project {
            id: ProjectId::new(NOW, [2; 10]),
            organisation: keys.organisation().clone(),
            url: "https://github.com/acme/widget".to_owned(),
            repository_id: "42".to_owned(),
            full_name: "acme/widget".to_owned(),
            host: "github.com".to_owned(),
            rules: "denied: []\n".to_owned(),
            rules_digest: Sha256Digest::of(b"denied: []\n"),
            intent: String::new(),
            owner: "local:ada".parse().unwrap(),
            state: ProjectState::Draft,
            frozen: None,
            draft_digest: Sha256Digest::of(b"draft"),
            created_at: NOW,
            confirmed_at: None,
            watch: WatchMode::Ci,
            health: "[]".to_owned(),
            schedule: None,
            removed_at: None,
        }
    }

    #[tokio::test]
    async fn the_connector_of_a_replaced_token_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().display().to_string();
        let environment = Environment::new([("CARETAKER_HOME", home)], folder.path());
        let installation = Installation {
            configuration: Configuration::load(None, &environment).unwrap(),
            environment,
        };
        let keys = Arc::new(Keyring::in_memory(None, NOW, &mut system_randomness).unwrap());
        let address = format!("sqlite://{}", folder.path().join("caretaker.db").display());
        let store = Store::open(&address).await.unwrap();
        let project = project(&keys);
        let organisation = &project.organisation;
        let ensured = store.ensure_organisation(organisation, "acme", NOW);
        ensured.await.unwrap();
        let seal = |token: &str| {
            let (draft, token) = (draft_digest(&project), SecretString::from(token));
            let sealed =
                keys.credentials()
                    .seal(&project.id, &draft, &token, &mut system_randomness);
            sealed.unwrap()
        };
        let mut before = seal("ghp_first");
        store.insert_project(&project, &before).await.unwrap();
        let (hosting, _recorder) = Hosting::of(&installation);
        let connectors = GithubConnectors::new(hosting, &store, &keys);
        let mut last = connectors.of(&project).await.unwrap();
        for number in 0..3 {
            let same = connectors.of(&project).await.unwrap();
            assert!(Arc::ptr_eq(&last, &same), "made once");
            drop(same);
            let after = seal(&format!("ghp_{number}"));
            let event = AuditEvent {
                kind: "credential-replaced",
                detail: String::new(),
            };
            let swap = Swap {
                project: project.clone(),
                before,
                after: after.clone(),
            };
            let replaced = store.replace_credential(&swap, None, &event, NOW);
            replaced.await.unwrap();
            before = after;
            let replaced = Arc::downgrade(&last);
            last = connectors.of(&project).await.unwrap();
            assert!(
                replaced.upgrade().is_none(),
                "nobody holds the token that was replaced"
            );
        }
    }
}
