//! The repositories of one forge, by number and by name.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::super::Profile;
use super::super::error::ForgeError;
use super::super::git::{CommitFacts, FileEdit, Git, Person};
use super::super::render;
use super::super::server::LogLinks;
use super::super::time::{Now, START};
use super::super::traffic::Traffic;
use super::{
    Answers, Apps, Ci, Grant, Identifiers, MergeMethods, Meter, Outbox, PERSON, Repository,
    RepositoryState, Token, Tokens, locked,
};

/// The branch that every repository starts with.
const FIRST_BRANCH: &str = "main";

/// Everything the listeners and the handles share.
pub(crate) struct Shared {
    /// Where the API, git and the pages are found; no slash at its end.
    pub(crate) url: String,
    /// Where logs are downloaded from: another origin.
    pub(crate) logs_url: String,
    /// The token that may do everything.
    pub(crate) token: String,
    pub(crate) profile: Profile,
    pub(crate) tokens: Tokens,
    pub(crate) apps: Arc<Apps>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) meter: Meter,
    pub(crate) now: Now,
    pub(crate) directory: PathBuf,
    pub(crate) traffic: Traffic,
    pub(crate) log_links: LogLinks,
    pub(crate) ids: Arc<Identifiers>,
    /// Whether pages open without the token: on loopback, for the browser of whoever runs the forge.
    pub(crate) open_pages: bool,
    /// Requests answered so far.
    pub(crate) spent: AtomicU64,
    pub(crate) registry: Mutex<Registry>,
}

/// Names and owners.
#[derive(Default)]
pub(crate) struct Registry {
    repositories: BTreeMap<u64, Arc<Repository>>,
    /// Bare repositories as they were just after their first commit, by its files: copying is faster than running git.
    seeds: Vec<Seed>,
    /// How many seeds were made.
    sown: u64,
    names: HashMap<(String, String), u64>,
    former_names: HashMap<(String, String), u64>,
    owners: HashMap<String, u64>,
}

/// A bare repository with one commit that nobody changes.
struct Seed {
    files: Vec<(String, FileEdit)>,
    directory: PathBuf,
    first: Arc<CommitFacts>,
}

/// How many seeds are looked through; with more, the oldest is forgotten.
const SEEDS: usize = 16;

/// Where a name leads.
pub(crate) enum Location {
    Here(Arc<Repository>),
    /// It is the former name of this repository.
    Moved(Arc<Repository>),
    Nowhere,
}

/// GitHub compares owners and names without regard to case.
fn key(owner: &str, name: &str) -> (String, String) {
    (owner.to_lowercase(), name.to_lowercase())
}

impl Shared {
    /// Takes so many requests from the rate limit; how many are used up. It never runs dry by itself: a test that wants
    /// that plans it as a fault.
    pub(crate) fn spend(&self, requests: u64) -> u64 {
        (self.spent.fetch_add(requests, Ordering::Relaxed) + requests) % 4_000
    }

    pub(crate) fn locate(&self, owner: &str, name: &str) -> Location {
        let registry = locked(&self.registry);
        let key = key(owner, name);
        match (registry.names.get(&key), registry.former_names.get(&key)) {
            (Some(id), _) => registry
                .by_id(*id)
                .map_or(Location::Nowhere, Location::Here),
            (None, Some(id)) => registry
                .by_id(*id)
                .map_or(Location::Nowhere, Location::Moved),
            (None, None) => Location::Nowhere,
        }
    }

    pub(crate) fn by_id(&self, id: u64) -> Option<Arc<Repository>> {
        locked(&self.registry).by_id(id)
    }

    pub(crate) fn repositories(&self) -> Vec<Arc<Repository>> {
        locked(&self.registry)
            .repositories
            .values()
            .cloned()
            .collect()
    }

    /// Makes a repository with one commit on `main`.
    pub(crate) fn create(
        &self,
        owner: &str,
        name: &str,
        files: &[(String, FileEdit)],
    ) -> Result<Arc<Repository>, ForgeError> {
        for word in [owner, name] {
            let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
            if word.is_empty()
                || word.len() > 100
                || !word.chars().all(allowed)
                || word.starts_with('.')
            {
                let reason = "a name has 1 to 100 letters, digits, dots, dashes and underscores and begins with no dot".to_owned();
                return Err(ForgeError::Refused {
                    act: format!("naming a repository {owner}/{name}"),
                    reason,
                });
            }
        }
        let mut registry = locked(&self.registry);
        if registry.names.contains_key(&key(owner, name)) {
            return Err(ForgeError::Exists {
                what: format!("the repository {owner}/{name}"),
            });
        }
        let id = self.ids.next();
        let owner_id = registry.owner_id(owner, &self.ids);
        let (seed, first) = registry.seed(&self.directory, files)?;
        let git = Git::copied_from(&seed, &self.directory.join(format!("{id}.git")))?;
        let branch = format!("refs/heads/{FIRST_BRANCH}");
        let mut state = new_state(owner, owner_id, name, (self.now)());
        state.api_path = self.profile.api_path();
        state.references.insert(branch, first.id.clone());
        let repository = Arc::new(Repository {
            id,
            git,
            now: Arc::clone(&self.now),
            ids: Arc::clone(&self.ids),
            url: self.url.clone(),
            outbox: Arc::clone(&self.outbox),
            apps: Arc::clone(&self.apps),
            state: Mutex::new(state),
            comparisons: Mutex::new(HashMap::new()),
            commits: Mutex::new(HashMap::from([(first.id.clone(), first)])),
            answers: Answers::default(),
        });
        registry.repositories.insert(id, Arc::clone(&repository));
        registry.names.insert(key(owner, name), id);
        registry.former_names.remove(&key(owner, name));
        Ok(repository)
    }

    /// Gives a repository another owner and name; the old address then redirects.
    pub(crate) fn relocate(
        &self,
        repository: &Repository,
        owner: &str,
        name: &str,
    ) -> Result<(), ForgeError> {
        let mut registry = locked(&self.registry);
        let owner_id = registry.owner_id(owner, &self.ids);
        let mut state = repository.remembered();
        if registry.names.contains_key(&key(owner, name)) {
            return Err(ForgeError::Exists {
                what: format!("the repository {owner}/{name}"),
            });
        }
        let (owner_before, name_before) = (state.owner.clone(), state.name.clone());
        let old_owner_id = state.owner_id;
        let old = key(&owner_before, &name_before);
        registry.names.remove(&old);
        registry.former_names.insert(old, repository.id);
        registry.former_names.remove(&key(owner, name));
        registry.names.insert(key(owner, name), repository.id);
        name.clone_into(&mut state.name);
        owner.clone_into(&mut state.owner);
        state.owner_id = owner_id;
        drop(registry);
        if owner_before == owner {
            let changes = json!({"repository": {"name": {"from": name_before}}});
            repository.tell_repository(&state, "renamed", &changes);
        } else {
            let user = render::user(&self.url, &owner_before, old_owner_id);
            let changes = json!({"owner": {"from": {"user": user}}});
            repository.tell_repository(&state, "transferred", &changes);
        }
        Ok(())
    }

    /// Forgets a repository: no name, no number leads to it any more.
    pub(crate) fn delete(&self, repository: &Repository) {
        let mut registry = locked(&self.registry);
        registry.repositories.remove(&repository.id);
        registry.names.retain(|_, id| *id != repository.id);
        registry.former_names.retain(|_, id| *id != repository.id);
        drop(registry);
        repository.tell_repository(&repository.remembered(), "deleted", &Value::Null);
    }

    /// The number of an owner.
    pub(crate) fn owner_id(&self, owner: &str) -> u64 {
        locked(&self.registry).owner_id(owner, &self.ids)
    }

    /// Whether a token may know that a repository exists.
    pub(crate) fn sees(&self, token: &Token, repository: &Repository) -> bool {
        let chosen = token
            .repositories
            .as_ref()
            .is_none_or(|chosen| chosen.contains(&repository.id));
        chosen
            && match &token.grant {
                Grant::Classic { scopes } => scopes
                    .iter()
                    .any(|scope| ["repo", "repo:status", "admin:repo_hook"].contains(&&**scope)),
                Grant::FineGrained { .. } => true,
                Grant::Installation { id, .. } => {
                    self.apps.installation(*id).is_some_and(|installation| {
                        installation.reaches(repository.id, &repository.remembered().owner)
                    })
                }
            }
    }

    /// Where the API lies; no slash at its end.
    pub(crate) fn api(&self) -> String {
        format!("{}{}", self.url, self.profile.api_path())
    }
}

impl Registry {
    fn owner_id(&mut self, owner: &str, ids: &Identifiers) -> u64 {
        *self
            .owners
            .entry(owner.to_lowercase())
            .or_insert_with(|| ids.next())
    }

    /// A bare repository whose first commit has these files, and that commit.
    fn seed(
        &mut self,
        directory: &Path,
        files: &[(String, FileEdit)],
    ) -> Result<(PathBuf, Arc<CommitFacts>), ForgeError> {
        if let Some(seed) = self.seeds.iter().find(|seed| seed.files == files) {
            return Ok((seed.directory.clone(), Arc::clone(&seed.first)));
        }
        let place = directory.join(format!("seed-{}.git", self.sown));
        self.sown += 1;
        let git = Git::initialise(&place, FIRST_BRANCH)?;
        let person = Person {
            name: PERSON.login.to_owned(),
            email: PERSON.email.to_owned(),
        };
        let first = git.commit_edits(&[], files, &person, START, "First commit\n")?;
        git.force_reference(&format!("refs/heads/{FIRST_BRANCH}"), &first)?;
        let first = Arc::new(git.commit(&first)?);
        if self.seeds.len() == SEEDS {
            self.seeds.remove(0);
        }
        self.seeds.push(Seed {
            files: files.to_vec(),
            directory: place.clone(),
            first: Arc::clone(&first),
        });
        Ok((place, first))
    }

    fn by_id(&self, id: u64) -> Option<Arc<Repository>> {
        self.repositories.get(&id).map(Arc::clone)
    }
}

fn new_state(owner: &str, owner_id: u64, name: &str, now: u64) -> RepositoryState {
    RepositoryState {
        api_path: "",
        owner: owner.to_owned(),
        owner_id,
        name: name.to_owned(),
        default_branch: FIRST_BRANCH.to_owned(),
        created_at: now,
        pushed_at: now,
        archived: false,
        allowed: MergeMethods {
            merge: true,
            squash: true,
            rebase: true,
        },
        delete_branch_on_merge: false,
        ci: Ci::Off,
        version: 0,
        stamp: None,
        references: BTreeMap::new(),
        reference_changes: Vec::new(),
        renamed_branches: HashMap::new(),
        pulls: Vec::new(),
        comments: Vec::new(),
        workflows: Vec::new(),
        runs: Vec::new(),
        protections: BTreeMap::new(),
        rules: Vec::new(),
        check_runs: Vec::new(),
        statuses: Vec::new(),
    }
}
