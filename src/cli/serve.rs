//! `caretaker serve`, `worker` and `web`: all parts in one process, or one each.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::assembly::{self, GithubConnectors};
use super::installation::Installation;
use super::runtime::{block_on, stop_on_signal};
use super::{Verdict, print};
use crate::config::Configuration;
use crate::signer::{Keyring, system_randomness};
use crate::store::Store;
use crate::watch;
use crate::web::{self, WebState};
use crate::worker;

/// Incidents that one process works on at a time.
const WORKERS: usize = 2;

/// Which parts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    work: bool,
    pages: bool,
}

impl Parts {
    pub(super) const ALL: Self = Self {
        work: true,
        pages: true,
    };
    pub(super) const WORKER: Self = Self {
        work: true,
        pages: false,
    };
    pub(super) const WEB: Self = Self {
        work: false,
        pages: true,
    };
}

pub(super) fn run(parts: Parts, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let installation = Installation::load(config)?;
    block_on(async {
        let stop = stop_on_signal()?;
        let keys = assembly::open_keys(&installation)?;
        let configuration = &installation.configuration;
        let store = assembly::open_store(configuration, &keys).await?;
        let mut running = Running::new(stop.clone());
        let mut public_url = configured_url(configuration);
        if parts.pages {
            let listener = listen(configuration).await?;
            let address = format!("http://{}", listener.local_addr()?);
            print(&format!("caretaker: pages at {address}"))?;
            public_url.get_or_insert(address);
            running.pages(listener, &store, &keys, public_url.clone());
        }
        if parts.work {
            let listening = format!("http://{}", configuration.server.listen);
            let public_url = public_url.unwrap_or(listening);
            let engine = assembly::engine(configuration, store, keys, public_url).await?;
            say_what_confines(&engine);
            running.work(&Arc::new(engine), configuration);
        }
        running.until_stopped().await;
        Ok(Verdict::Done)
    })
}

fn configured_url(configuration: &Configuration) -> Option<String> {
    let url = configuration.server.public_url.as_ref();
    url.map(|url| url.as_str().to_owned())
}

async fn listen(configuration: &Configuration) -> anyhow::Result<tokio::net::TcpListener> {
    let address = configuration.server.listen.0;
    tokio::net::TcpListener::bind(address).await.with_context(|| {
        format!(
            "listening on {address} for pages: is it in use? name another address under server.listen"
        )
    })
}

fn say_what_confines(engine: &worker::Engine) {
    if !engine.sandbox.confines() {
        tracing::warn!("tests and agents run without a sandbox, as the configuration says");
    }
    if engine.coder.is_none() {
        tracing::warn!("no coder is configured: failures are reproduced and reported, not fixed");
    }
    if engine.notifiers.is_empty() {
        tracing::warn!("no notifier is configured: approval links reach nobody");
    }
}

/// The tasks of this process. When one ends by a panic, so does the process.
pub(super) struct Running {
    tasks: tokio::task::JoinSet<()>,
    stop: CancellationToken,
}

impl Running {
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self {
            tasks: tokio::task::JoinSet::new(),
            stop,
        }
    }

    /// Serves pages.
    pub(super) fn pages(
        &mut self,
        listener: tokio::net::TcpListener,
        store: &Store,
        keys: &Arc<Keyring>,
        public_url: Option<String>,
    ) {
        let organisation = keys.organisation().clone();
        let mut state = WebState::new(store.clone(), organisation, keys.history().clone());
        state.public_url = public_url;
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            if let Err(error) = web::serve(listener, state, stop.clone().cancelled_owned()).await {
                tracing::error!(%error, "the pages ended");
                stop.cancel();
            }
        });
    }

    /// Watches and works.
    pub(super) fn work(&mut self, engine: &Arc<worker::Engine>, configuration: &Configuration) {
        for number in 0..WORKERS {
            let (engine, stop) = (Arc::clone(engine), self.stop.clone());
            let name = format!("{}-{number}", std::process::id());
            self.tasks
                .spawn(async move { worker::run(engine, &name, stop).await });
        }
        let connectors =
            GithubConnectors::new(configuration.github.clone(), &engine.store, &engine.keys);
        let (schedule, stop) = (configuration.poll.schedule.clone(), self.stop.clone());
        let store = engine.store.clone();
        self.tasks.spawn(async move {
            watch::run(
                store,
                Arc::new(connectors),
                schedule,
                system_randomness,
                stop,
            )
            .await;
        });
    }

    /// Waits for the end of every task after a signal, or for the first that ends by itself.
    pub(super) async fn until_stopped(mut self) {
        self.stop.cancelled().await;
        while self.tasks.join_next().await.is_some() {}
    }
}
