//! The repositories of one forge, by number and by name.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::super::error::ForgeError;
use super::super::git::{FileEdit, Git, Person};
use super::super::server::LogLinks;
use super::super::time::{Now, START};
use super::super::traffic::Traffic;
use super::{Ci, Identifiers, MergeMethods, PERSON, Repository, RepositoryState, locked};

/// The branch that every repository starts with.
const FIRST_BRANCH: &str = "main";

/// Everything the listeners and the handles share.
pub(crate) struct Shared {
    /// Where the API, git and the pages are found; no slash at its end.
    pub(crate) url: String,
    /// Where logs are downloaded from: another origin.
    pub(crate) logs_url: String,
    pub(crate) token: String,
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
    repositories: Vec<Arc<Repository>>,
    names: HashMap<(String, String), u64>,
    former_names: HashMap<(String, String), u64>,
    owners: HashMap<String, u64>,
}

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
        locked(&self.registry).repositories.clone()
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
        let owner_id = *registry
            .owners
            .entry(owner.to_lowercase())
            .or_insert_with(|| self.ids.next());
        let git = Git::initialise(&self.directory.join(format!("{id}.git")), FIRST_BRANCH)?;
        let person = Person {
            name: PERSON.login.to_owned(),
            email: PERSON.email.to_owned(),
        };
        let first = git.commit_edits(&[], files, &person, START, "First commit\n")?;
        let branch = format!("refs/heads/{FIRST_BRANCH}");
        git.force_reference(&branch, &first)?;
        let mut state = new_state(owner, owner_id, name, (self.now)());
        state.references.insert(branch, first);
        let repository = Arc::new(Repository {
            id,
            git,
            now: Arc::clone(&self.now),
            ids: Arc::clone(&self.ids),
            state: Mutex::new(state),
            comparisons: Mutex::new(HashMap::new()),
        });
        registry.repositories.push(Arc::clone(&repository));
        registry.names.insert(key(owner, name), id);
        registry.former_names.remove(&key(owner, name));
        Ok(repository)
    }

    /// Gives a repository another name; the old one then redirects.
    pub(crate) fn rename(&self, repository: &Repository, name: &str) -> Result<(), ForgeError> {
        let mut registry = locked(&self.registry);
        let mut state = repository.remembered();
        if registry.names.contains_key(&key(&state.owner, name)) {
            return Err(ForgeError::Exists {
                what: format!("the repository {}/{name}", state.owner),
            });
        }
        let old = key(&state.owner, &state.name);
        registry.names.remove(&old);
        registry.former_names.insert(old, repository.id);
        registry
            .names
            .insert(key(&state.owner, name), repository.id);
        name.clone_into(&mut state.name);
        Ok(())
    }
}

impl Registry {
    fn by_id(&self, id: u64) -> Option<Arc<Repository>> {
        self.repositories
            .iter()
            .find(|repository| repository.id == id)
            .map(Arc::clone)
    }
}

fn new_state(owner: &str, owner_id: u64, name: &str, now: u64) -> RepositoryState {
    RepositoryState {
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
        references: std::collections::BTreeMap::new(),
        reference_changes: Vec::new(),
        renamed_branches: HashMap::new(),
        pulls: Vec::new(),
        comments: Vec::new(),
        runs: Vec::new(),
        check_runs: Vec::new(),
        statuses: Vec::new(),
    }
}
