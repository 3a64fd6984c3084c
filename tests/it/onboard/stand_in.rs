//! A provider that says of repository and token what a test wants said, and an installation beside it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use caretaker::approve::Principal;
use caretaker::clock::{FixedClock, Millis};
use caretaker::config::ServiceUrl;
use caretaker::connector::Connector;
use caretaker::connector::github::credential::PersonalToken;
use caretaker::connector::github::{GithubConnector, GithubOptions};
use caretaker::id::{OrganisationId, ProjectId};
use caretaker::onboard::{
    Office, OnboardError, Registered, Registration, Renamed, Replaced, Tending, draft_digest,
    register, rename, replace_credential,
};
use caretaker::signer::{CredentialSeal, system_randomness};
use caretaker::store::{Project, Store, WatchMode};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::{NOW, RULES, confirm, store};
use crate::connector::provider::{Asked, Provider, Reply, json as answered, with_headers};

pub(super) const FIRST: &str = "ghp_first-token-of-the-project";
pub(super) const SECOND: &str = "ghp_second-token-of-the-project";

/// What the provider says.
#[derive(Clone)]
pub(super) struct Said {
    /// The repository that its name leads to.
    pub(super) named: u64,
    /// The repository that its number leads to: it never is another one, unless the provider is none.
    pub(super) numbered: u64,
    /// What the registered repository is called.
    pub(super) full_name: &'static str,
    pub(super) scopes: &'static str,
    pub(super) ends: Option<&'static str>,
}

impl Said {
    fn answer(&self, asked: &Asked) -> Reply {
        let repository = |number: u64, name: &str| {
            let body = json!({
                "id": number, "full_name": name, "default_branch": "main", "private": true,
                "permissions": {"push": true},
            });
            answered(200, &body)
        };
        let tail = asked.target.split('?').next().unwrap_or_default();
        match tail.strip_prefix("/api/v3").unwrap_or(tail) {
            "/rate_limit" => {
                let mut headers = vec![("x-oauth-scopes", self.scopes)];
                headers.extend(
                    self.ends
                        .map(|ends| ("github-authentication-token-expiration", ends)),
                );
                with_headers(200, &headers, &json!({}))
            }
            "/repos/octo/widget" if self.named == 42 && self.full_name != "octo/widget" => {
                let here = [("location", "/api/v3/repositories/42")];
                with_headers(301, &here, &json!({"message": "Moved Permanently"}))
            }
            "/repos/octo/widget" => repository(self.named, "octo/widget"),
            "/repositories/42" => repository(self.numbered, self.full_name),
            path if path.ends_with("/git/ref/heads/main") || path.ends_with("/branches/main") => {
                let commit = "1".repeat(40);
                answered(
                    200,
                    &json!({
                        "name": "main", "ref": "refs/heads/main", "commit": {"sha": commit},
                        "object": {"type": "commit", "sha": commit},
                    }),
                )
            }
            _ => answered(404, &json!({"message": "Not Found"})),
        }
    }
}

pub(super) struct Place {
    pub(super) said: Arc<Mutex<Said>>,
    pub(super) store: Store,
    pub(super) organisation: OrganisationId,
    pub(super) seal: CredentialSeal,
    pub(super) folder: tempfile::TempDir,
    origin: String,
    base: ServiceUrl,
    by: Principal,
}

/// A connector with a credential; with a number, for the registered repository.
fn connector(
    origin: &str,
    full_name: &str,
    number: Option<String>,
    token: SecretString,
) -> Result<Arc<dyn Connector>, String> {
    let (owner, name) = full_name.split_once('/').unwrap();
    let options = GithubOptions {
        api_url: format!("{origin}/api/v3"),
        web_url: origin.to_owned(),
        git_url: origin.to_owned(),
        owner: owner.to_owned(),
        name: name.to_owned(),
        credential: Arc::new(PersonalToken::new(token)),
        expected_repository_id: number,
        deadline: std::time::Duration::from_secs(20),
    };
    let made = GithubConnector::alone(options, Arc::new(FixedClock::at(NOW)));
    made.map(|made| Arc::new(made) as Arc<dyn Connector>)
        .map_err(|error| error.to_string())
}

impl Place {
    pub(super) async fn new() -> Self {
        let said = Arc::new(Mutex::new(Said {
            named: 42,
            numbered: 42,
            full_name: "octo/widget",
            scopes: "repo",
            ends: None,
        }));
        let telling = Arc::clone(&said);
        let provider = Provider::start(move |asked| telling.lock().unwrap().answer(asked)).await;
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path()).await;
        let organisation = OrganisationId::new(NOW, [3; 10]);
        let ensured = store.ensure_organisation(&organisation, "example", NOW);
        ensured.await.unwrap();
        Self {
            said,
            store,
            organisation,
            seal: CredentialSeal::new([9; 32]),
            folder,
            base: provider.origin.parse().unwrap(),
            origin: provider.origin.clone(),
            by: "local:ada".parse().unwrap(),
        }
    }

    pub(super) fn say(&self, bend: impl FnOnce(&mut Said)) {
        bend(&mut self.said.lock().unwrap());
    }

    pub(super) async fn register(&self, number: u8) -> Result<Registered, OnboardError> {
        let connect = |full_name: &str, token| connector(&self.origin, full_name, None, token);
        let office = Office {
            store: &self.store,
            organisation: &self.organisation,
            web_url: &self.base,
            connect: &connect,
            seal: &self.seal,
        };
        let url = format!("{}/octo/widget", self.origin);
        let registration = Registration {
            url: &url,
            token: FIRST.to_owned().into(),
            watch: WatchMode::Ci,
            health: &[],
            schedule: None,
            rules: RULES.as_bytes(),
            rules_file: "rules.yaml",
            intent: "Keep it correct.\n",
            owner: "mailto:owner@example.org".parse().unwrap(),
        };
        let id = ProjectId::new(NOW, [number; 10]);
        register(&office, &registration, id, &mut system_randomness, NOW).await
    }

    /// A project that is watched.
    pub(super) async fn confirmed(&self, number: u8) -> Project {
        let id = self.register(number).await.unwrap().project.id;
        let confirmed = confirm(&self.store, &self.organisation, &id, None, NOW);
        confirmed.await.unwrap()
    }

    pub(super) async fn replace(
        &self,
        id: &ProjectId,
        token: &str,
    ) -> Result<Replaced, OnboardError> {
        let connect = |project: &Project, token| {
            let number = Some(project.repository_id.clone());
            connector(&self.origin, &project.full_name, number, token)
        };
        let tending = self.tending(&connect);
        let token = SecretString::from(token);
        replace_credential(&tending, id, &token, &mut system_randomness, NOW).await
    }

    pub(super) async fn rename(&self, id: &ProjectId) -> Result<Renamed, OnboardError> {
        let connect = |project: &Project, token| {
            let number = Some(project.repository_id.clone());
            connector(&self.origin, &project.full_name, number, token)
        };
        rename(&self.tending(&connect), id, &mut system_randomness, NOW).await
    }

    fn tending<'a>(&'a self, connect: caretaker::onboard::ConnectTo<'a>) -> Tending<'a> {
        Tending {
            store: &self.store,
            organisation: &self.organisation,
            web_url: &self.base,
            connect,
            seal: &self.seal,
            by: &self.by,
        }
    }

    pub(super) async fn project(&self, id: &ProjectId) -> Project {
        let scoped = self.store.within(&self.organisation);
        scoped.project(id).await.unwrap().unwrap()
    }

    pub(super) async fn sealed(&self, id: &ProjectId) -> Vec<u8> {
        self.store.credential(id).await.unwrap().unwrap()
    }

    /// The token that the project has, as whoever acts for it opens it.
    pub(super) async fn token(&self, id: &ProjectId) -> Option<String> {
        let draft = draft_digest(&self.project(id).await);
        let opened = self.seal.open(id, &draft, &self.sealed(id).await);
        opened.ok().map(|token| token.expose_secret().to_owned())
    }

    /// The newest event of the project's history.
    pub(super) async fn event(&self, id: &ProjectId) -> (String, String) {
        let scoped = self.store.within(&self.organisation);
        let events = scoped.project_events(id, 1).await.unwrap();
        (events[0].kind.clone(), events[0].detail.clone())
    }

    pub(super) fn database(&self) -> PathBuf {
        self.folder.path().join("caretaker.db")
    }

    /// Whether any file of the database holds these bytes.
    pub(super) fn stored(&self, bytes: &[u8]) -> bool {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        files
            .filter(|path| path.to_string_lossy().contains("caretaker.db"))
            .any(|path| {
                let content = std::fs::read(path).unwrap();
                content.windows(bytes.len()).any(|piece| piece == bytes)
            })
    }

    /// Does what nobody should.
    pub(super) async fn by_hand(&self, statement: &'static str) {
        use sqlx::Connection as _;
        let address = format!("sqlite://{}", self.database().display());
        let mut raw = sqlx::AnyConnection::connect(&address).await.unwrap();
        sqlx::raw_sql(statement).execute(&mut raw).await.unwrap();
        raw.close().await.unwrap();
    }
}

/// A day after the beginning of every story, as the provider writes moments.
pub(super) const TOMORROW: &str = "2026-09-22 14:13:20 UTC";
/// The beginning of every story.
pub(super) const BEGINNING: Millis = NOW;
