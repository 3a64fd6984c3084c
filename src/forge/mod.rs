//! A local GitHub-compatible server over real bare repositories, for trying caretaker out and for its tests.
//!
//! Everything git-shaped in its answers is computed by the git executable, and it shares no code with the modules that
//! judge those answers. Pull requests, runs and checks live in memory; a repository's objects and references live in a
//! bare repository that clients clone from and push to. [`Forge`] and [`RepositoryHandle`] play everybody else: people who
//! push, merge or retarget, apps that report, and a network that fails ([`Fault`], [`Forge::on`]).

mod access;
mod api;
mod encoding;
mod error;
mod git;
mod handle;
mod hooks;
mod notices;
mod plants;
mod render;
mod server;
mod state;
mod time;
mod traffic;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use state::{Apps, Identifiers, Location, Meter, Outbox, Registry, Shared, Tokens};
use traffic::Traffic;

pub use error::ForgeError;
pub use git::{FileEdit, ObjectId};
pub use handle::{
    NewCheckRun, NewJob, NewRun, NewStep, NewWorkflow, PullSummary, RepositoryHandle,
};
pub use plants::{Plant, Planted};
pub use state::{
    AppFromManifest, Ci, Delivery, HookFaults, Limits, MergeMethods, NewApp, NewHook, NewToken,
    Protection, ReferenceChange, TokenForm, TokenKind,
};
pub use time::Now;
pub use traffic::{Fault, FaultAction, Moment, Origin, RequestRecord};

/// The token of a forge that was started without one. Everybody can read it here, so it works on loopback only.
const PUBLISHED_TOKEN: &str = "ghp_0f0r9e0f0r9e0f0r9e0f0r9e0f0r9e0f0r9e";

/// Where a forge lives.
#[derive(Clone, Debug)]
pub struct ForgeOptions {
    /// The folder of its repositories; it is made, and must be empty.
    pub directory: PathBuf,
    /// Where the API, git and the pages are found; port 0 takes any free port. Logs get a port of their own beside it.
    pub listen: SocketAddr,
    /// What it is like.
    pub profile: Profile,
}

/// Which of GitHub's forms a forge has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// github.com, which answers in API version 2022-11-28 where a request names none.
    #[default]
    Github20221128,
    /// github.com, which answers in API version 2026-03-10 where a request names none.
    Github20260310,
    /// GitHub Enterprise Server: the API lies below `/api/v3`, git and pages at the host itself; no limits.
    EnterpriseServer,
}

impl Profile {
    /// What follows the host in addresses of the API.
    pub(crate) fn api_path(self) -> &'static str {
        match self {
            Self::EnterpriseServer => "/api/v3",
            Self::Github20221128 | Self::Github20260310 => "",
        }
    }
}

/// What a forge takes from outside, so that nothing in it depends on chance.
#[derive(Clone)]
pub struct Sources {
    /// The present time.
    pub now: Now,
    /// The token that clients must show.
    pub token: String,
}

impl ForgeOptions {
    /// A forge that is like GitHub itself, in this folder and at this address.
    pub fn new(directory: impl Into<PathBuf>, listen: SocketAddr) -> Self {
        Self {
            directory: directory.into(),
            listen,
            profile: Profile::default(),
        }
    }
}

impl Default for Sources {
    /// A time that starts in January 2026 and moves on a second with every look, and the published token.
    fn default() -> Self {
        Self {
            now: time::counting(),
            token: PUBLISHED_TOKEN.to_owned(),
        }
    }
}

/// A running forge. It stops when it is dropped.
pub struct Forge {
    shared: Arc<Shared>,
    stopping: watch::Sender<bool>,
    listeners: Vec<JoinHandle<()>>,
}

/// Starts a forge whose times and token are the same in every run.
pub async fn start(options: ForgeOptions) -> Result<Forge, ForgeError> {
    start_with(options, Sources::default()).await
}

/// Starts a forge with a clock and a token of the caller's. Needs a tokio runtime with time and I/O. Its pages open without
/// the token, so there are none beyond loopback.
pub async fn start_with(options: ForgeOptions, sources: Sources) -> Result<Forge, ForgeError> {
    // Security: break this check and the published token would open a forge to the whole network.
    if !options.listen.ip().is_loopback() && sources.token == PUBLISHED_TOKEN {
        return Err(ForgeError::PublishedToken {
            address: options.listen,
        });
    }
    let directory = empty_folder(&options.directory)?;
    server::install_hook(&directory).map_err(|source| ForgeError::Folder {
        path: directory.clone(),
        source,
    })?;
    let (main, address) = bound(options.listen).await?;
    let (logs, logs_address) = bound(SocketAddr::new(options.listen.ip(), 0)).await?;
    let shared = Arc::new(Shared {
        url: format!("http://{address}"),
        logs_url: format!("http://{logs_address}"),
        tokens: Tokens::with(&sources.token),
        apps: Arc::new(Apps::default()),
        outbox: Arc::new(Outbox::default()),
        meter: Meter::default(),
        profile: options.profile,
        token: sources.token,
        now: sources.now,
        directory,
        traffic: Traffic::default(),
        log_links: server::LogLinks::default(),
        ids: Arc::new(Identifiers::new()),
        open_pages: options.listen.ip().is_loopback(),
        spent: AtomicU64::new(0),
        registry: Mutex::new(Registry::default()),
    });
    let (stopping, stopped) = watch::channel(false);
    let listeners = vec![
        server::serve(Arc::clone(&shared), main, Origin::Main, stopped.clone()),
        server::serve(Arc::clone(&shared), logs, Origin::Logs, stopped),
    ];
    Ok(Forge {
        shared,
        stopping,
        listeners,
    })
}

/// Makes the folder; its path without links.
fn empty_folder(path: &Path) -> Result<PathBuf, ForgeError> {
    let folder = |source| ForgeError::Folder {
        path: path.to_path_buf(),
        source,
    };
    std::fs::create_dir_all(path).map_err(folder)?;
    if std::fs::read_dir(path).map_err(folder)?.next().is_some() {
        return Err(ForgeError::FolderNotEmpty {
            path: path.to_path_buf(),
        });
    }
    path.canonicalize().map_err(folder)
}

async fn bound(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ForgeError> {
    let listen = |source| ForgeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listen)?;
    let local = listener.local_addr().map_err(listen)?;
    Ok((listener, local))
}

impl Forge {
    /// The base address of the API, of git and of the pages, such as `http://127.0.0.1:4000`.
    pub fn url(&self) -> &str {
        &self.shared.url
    }

    /// The base address of the API: the same, except that an Enterprise Server's lies below `/api/v3`.
    pub fn api_url(&self) -> String {
        self.shared.api()
    }

    /// The base address of the log downloads.
    pub fn logs_url(&self) -> &str {
        &self.shared.logs_url
    }

    /// The token that clients must show.
    pub fn token(&self) -> &str {
        &self.shared.token
    }

    /// A new repository with one commit on `main`. Author and date are fixed: the same files give the same id.
    pub fn create_repository(
        &self,
        owner: &str,
        name: &str,
        files: &[(&str, FileEdit)],
    ) -> Result<RepositoryHandle, ForgeError> {
        let files: Vec<(String, FileEdit)> = files
            .iter()
            .map(|(path, edit)| ((*path).to_owned(), edit.clone()))
            .collect();
        let repository = self.shared.create(owner, name, &files)?;
        Ok(RepositoryHandle::new(Arc::clone(&self.shared), repository))
    }

    /// The repository of this name.
    pub fn repository(&self, owner: &str, name: &str) -> Result<RepositoryHandle, ForgeError> {
        match self.shared.locate(owner, name) {
            Location::Here(repository) => {
                Ok(RepositoryHandle::new(Arc::clone(&self.shared), repository))
            }
            Location::Moved(_) | Location::Nowhere => Err(ForgeError::Absent {
                what: format!("the repository {owner}/{name}"),
            }),
        }
    }

    /// Makes a repository with a known defect and the failed run that tells of it.
    pub fn plant(&self, plant: Plant) -> Result<Planted, ForgeError> {
        plants::plant(self, plant)
    }

    /// Every request so far, oldest first (the last 20,000), at both origins.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.shared.traffic.records()
    }

    /// Plans a fault.
    pub fn fault(&self, fault: Fault) {
        self.shared.traffic.plan_fault(fault);
    }

    /// Plans an act for the nth request from now on, counted from 1, whose method is this (`*`: any) and whose path
    /// contains this: somebody does something just before or just after that request takes effect. An act that fails makes
    /// the request fail with 500.
    pub fn on(
        &self,
        method: &str,
        path: &str,
        nth: usize,
        moment: Moment,
        act: impl FnOnce() -> Result<(), ForgeError> + Send + 'static,
    ) {
        self.shared
            .traffic
            .plan_act(method, path, nth, moment, Box::new(act));
    }

    /// Changes what answers with JSON say from now on, where the method (`*`: any) and a part of the path fit: odd items that
    /// GitHub's description does not allow, as they happen. The change is made before the answer gets its `ETag`.
    pub fn distort(
        &self,
        method: &str,
        path: &str,
        change: impl Fn(&mut serde_json::Value) + Send + Sync + 'static,
    ) {
        self.shared
            .traffic
            .plan_distortion(method, path, Box::new(change));
    }

    /// Makes the links to logs that were given out so far worthless.
    pub fn expire_log_links(&self) {
        self.shared.log_links.expire();
    }

    /// Stops both listeners, cuts what is under way and waits until nothing is left.
    pub async fn stop(self) {
        let Self {
            stopping,
            listeners,
            ..
        } = self;
        drop(stopping);
        for listener in listeners {
            // A listener that panicked has stopped as well.
            drop(listener.await);
        }
    }
}

impl std::fmt::Debug for Forge {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Forge")
            .field("url", &self.shared.url)
            .finish_non_exhaustive()
    }
}
