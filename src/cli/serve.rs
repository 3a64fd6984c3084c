//! `caretaker serve`, `worker` and `web`: all parts in one process, or one each.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::assembly;
use super::hook_gate::answers;
use super::hosting::Hosting;
use super::installation::Installation;
use super::runtime::{block_on, stop_on_signal};
use super::{Verdict, print};
use crate::approvals::Approvals;
use crate::clock::{Clock as _, SystemClock};
use crate::config::Configuration;
use crate::hook_gate::{self, ConfiguredAnswers, service::GateService};
use crate::id::OrganisationId;
use crate::onboard::app::Recorder;
use crate::signer::{system_randomness, trust_history};
use crate::store::Store;
use crate::watch::{self, Watch, health::HealthWatch};
use crate::web::{self, WebState};
use crate::worker;

/// Incidents that one process works on at a time.
const WORKERS: usize = 2;
/// How often tool calls are ended that nobody answered and whose agents are gone.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

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
        let mut running = Running::new(stop);
        if parts.work {
            start(&mut running, parts, &installation).await?;
        } else {
            // Break it: open the keys here too; whoever gets into the process that faces people can then sign
            // (`serve::logging::pages_alone_need_no_secret_that_signs`).
            let history = trust_history(&installation.configuration)?;
            let organisation = assembly::organisation(&history)?;
            let store = assembly::open_store(&installation.configuration, &organisation).await?;
            let mut state = WebState::new(store, organisation, history);
            state.webhooks = assembly::webhooks(&installation)?;
            let (store, organisation) = (state.store.clone(), state.organisation.clone());
            state.tool_calls = Some(assembly::tool_calls(&installation, store, organisation)?);
            let (listener, address) = listen(&installation.configuration).await?;
            say_where(&address)?;
            state.public_url = configured_url(&installation.configuration).or(Some(address));
            running.serve(listener, state);
        }
        running.until_stopped().await?;
        Ok(Verdict::Done)
    })
}

/// Starts the worker and the watch, and the pages with them when both run in this process.
async fn start(
    running: &mut Running,
    parts: Parts,
    installation: &Installation,
) -> anyhow::Result<()> {
    let configuration = &installation.configuration;
    // Break it: leave this out; no project is then ever looked at, and nothing says so
    // (`serve::bad_input::a_schedule_that_has_passed_ends_the_start_with_the_mend`).
    if let Some(schedule) = &configuration.poll.schedule {
        let comes = schedule.comes_after(SystemClock.now());
        comes.context("reading poll.schedule")?;
    }
    let keys = assembly::open_keys(installation)?;
    let mut public_url = configured_url(configuration);
    let listen_port = configuration.server.listen.0.port();
    anyhow::ensure!(
        parts.pages || public_url.is_some() || listen_port != 0,
        "server.listen takes any free port, so nobody knows where approval links should lead; set server.public_url to the address of the pages"
    );
    let store = assembly::open_store(configuration, keys.organisation()).await?;
    let mut pages = None;
    let mut webhooks = None;
    if parts.pages {
        webhooks = assembly::webhooks(installation)?;
        let (listener, address) = listen(configuration).await?;
        public_url.get_or_insert_with(|| address.clone());
        pages = Some((listener, address, store.clone()));
    }
    let public_url =
        public_url.unwrap_or_else(|| format!("http://{}", configuration.server.listen));
    // Made before anything runs: what is missing here ends the command with nothing begun.
    let (hosting, recorder) = Hosting::of(installation);
    hosting.usable()?;
    let engine = assembly::engine(
        installation,
        store,
        Arc::clone(&keys),
        hosting,
        public_url.clone(),
    );
    let mut engine = engine.await?;
    let approvals = assembly::approvals(
        installation,
        engine.store.clone(),
        keys.organisation().clone(),
    )?;
    let gate = answers(installation, approvals.clone(), Arc::clone(&engine.events))?;
    let gate = Arc::new(gate);
    engine.gate = Some(Arc::clone(&gate));
    let health = assembly::health(configuration, &engine)?;
    say_what_confines(&engine);
    if let Some((listener, address, store)) = pages {
        say_where(&address)?;
        let organisation = keys.organisation().clone();
        let mut state = WebState::new(store, organisation.clone(), keys.history().clone());
        state.public_url = Some(public_url);
        state.webhooks = webhooks;
        state.tool_calls = Some(assembly::tool_calls(
            installation,
            engine.store.clone(),
            organisation,
        )?);
        running.serve(listener, state);
    }
    let recorder = recorder.telling(Arc::clone(&engine.events));
    running.record(recorder, engine.store.clone(), keys.organisation().clone());
    running.gate(&configuration.home, gate)?;
    running.sweep(approvals);
    running.work(&Arc::new(engine), configuration, health)?;
    Ok(())
}

fn configured_url(configuration: &Configuration) -> Option<String> {
    let url = configuration.server.public_url.as_ref();
    url.map(|url| url.as_str().to_owned())
}

/// Listens for pages.
async fn listen(
    configuration: &Configuration,
) -> anyhow::Result<(tokio::net::TcpListener, String)> {
    let address = configuration.server.listen.0;
    let listening = || {
        format!(
            "listening on {address} for pages: is it in use? name another address under server.listen"
        )
    };
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(listening)?;
    let url = format!("http://{}", listener.local_addr().with_context(listening)?);
    Ok((listener, url))
}

/// Said once everything is there that can be missing: who waits for this line may use the pages.
fn say_where(address: &str) -> anyhow::Result<()> {
    print(&format!("caretaker: pages at {address}"))
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

/// The tasks of this process. When one fails or panics, all end, and so does the process: whoever supervises it starts it
/// again, while a process that lost a part and runs on would look healthy.
pub(super) struct Running {
    tasks: JoinSet<anyhow::Result<()>>,
    stop: CancellationToken,
    /// Writes what happens to tokens, until everything else has ended.
    recording: Option<(CancellationToken, JoinHandle<()>)>,
}

impl Running {
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self {
            tasks: JoinSet::new(),
            stop,
            recording: None,
        }
    }

    /// Writes what happens to tokens into the history.
    fn record(&mut self, mut recorder: Recorder, store: Store, organisation: OrganisationId) {
        let ended = CancellationToken::new();
        let stop = ended.clone();
        let task = tokio::spawn(async move {
            recorder.run(&store, &organisation, stop.cancelled()).await;
        });
        self.recording = Some((ended, task));
    }

    /// Serves these pages.
    pub(super) fn serve(&mut self, listener: tokio::net::TcpListener, state: WebState) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let serving = web::serve(listener, state, stop.cancelled_owned());
            serving.await.context("serving pages")
        });
    }

    /// Answers hooks at the socket in `CARETAKER_HOME`.
    ///
    /// # Errors
    /// The socket cannot be used.
    fn gate(&mut self, home: &Path, answers: Arc<ConfiguredAnswers>) -> anyhow::Result<()> {
        let path = home.join(hook_gate::service::SOCKET);
        let service = GateService::bind(&path)
            .with_context(|| format!("listening for hooks at {}", path.display()))?;
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            service.serve(answers, Arc::new(SystemClock), stop).await;
            Ok(())
        });
        Ok(())
    }

    /// Ends the questions about tool calls whose agents are gone.
    fn sweep(&mut self, approvals: Approvals) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            loop {
                if let Err(error) = approvals.sweep().await {
                    tracing::warn!(%error, "overdue tool calls could not be ended");
                }
                tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    () = tokio::time::sleep(SWEEP_EVERY) => {}
                }
            }
        });
    }

    /// Watches and works.
    ///
    /// # Errors
    /// There is no randomness.
    fn work(
        &mut self,
        engine: &Arc<worker::Engine>,
        configuration: &Configuration,
        health: HealthWatch,
    ) -> anyhow::Result<()> {
        for number in 0..WORKERS {
            let (engine, stop) = (Arc::clone(engine), self.stop.clone());
            let name = format!("{}-{number}", std::process::id());
            self.tasks.spawn(async move {
                worker::run(engine, &name, stop).await;
                Ok(())
            });
        }
        let (logging, log_stop) = (Arc::clone(engine), self.stop.clone());
        self.tasks.spawn(async move {
            worker::keep_log(logging, log_stop).await;
            Ok(())
        });
        let (anchoring, anchor_stop) = (Arc::clone(engine), self.stop.clone());
        self.tasks.spawn(async move {
            worker::keep_anchors(anchoring, anchor_stop).await;
            Ok(())
        });
        let connectors = Arc::clone(&engine.connectors);
        let (store, poll) = (engine.store.clone(), configuration.poll.clone());
        let health_stop = self.stop.clone();
        self.tasks.spawn(async move {
            watch::health::run(health, health_stop).await;
            Ok(())
        });
        // Unlike every other process's, on whatever machine.
        let mut owner = [0; 8];
        system_randomness(&mut owner)?;
        let owner = format!("watch-{}", hex::encode(owner));
        let watch = Watch::new(store, connectors, system_randomness, poll, owner);
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            watch::run(watch, stop).await;
            Ok(())
        });
        Ok(())
    }

    /// Waits for the end of every task: after a signal, or after one of them failed.
    ///
    /// # Errors
    /// The first task that failed or panicked.
    pub(super) async fn until_stopped(mut self) -> anyhow::Result<()> {
        let mut result = Ok(());
        while let Some(ended) = self.tasks.join_next().await {
            let ended = ended.context("a part of caretaker stopped working");
            if let Err(error) = ended.and_then(|ended| ended) {
                self.stop.cancel();
                result = result.and(Err(error));
            }
        }
        if let Some((ended, task)) = self.recording {
            ended.cancel();
            let recorded = task.await.context("recording what happens to tokens");
            result = result.and(recorded);
        }
        result
    }
}
