//! External coding clients as coders: `agent.adapter: claude | codex | gemini | qwen | copilot | opencode | goose`.
//!
//! A client is another's program with a loop and tools of its own. It runs in our sandbox, in a private home with our hooks in it, so
//! that each call of its tools is asked for at the session's gate. Its model is reached through [`proxy`], which listens at a Unix
//! socket outside of the sandbox and holds the key; [`crate::sandbox::bridge`] leads there from the client's private loopback.
//! `docs/clients.md` says what is promised and what is not.

pub mod launch;
mod place;
mod program;
mod prompt;
pub mod proxy;
mod stream;
mod table;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

pub use self::program::Program;
pub use self::prompt::{Job, LONGEST_PROMPT, prompt};
use self::proxy::{Allowance, ModelProxy, Upstream, Used};
pub use self::stream::last_message;
pub use self::table::Client;
use super::command::{answer, end_of_stderr, in_words};
use super::{
    AgentDescription, AgentSession, Coder, CoderError, CoderTask, Diagnosis, FixSummary,
    Governance, SessionReport,
};
use crate::incident::MoneyBudget;
use crate::sandbox::{Command, Limits, Outcome, Sandbox, Status, bridge};

/// The port of the private loopback behind which the model is. Nothing else is there, so that one number is as good as another.
const PORT: u16 = 8137;
/// Most bytes of a client's stream of events.
const LARGEST_STREAM: u64 = 32 << 20;
/// Where Linux keeps what does not last; Codex does not work in a home there.
const TEMPORARY: &str = "/tmp";

/// What the gate's side gives a client.
pub trait ClientHooks: Send + Sync {
    /// The client's configuration of hooks for a session whose gate answers at `socket`.
    fn render(&self, client: Client, session: &str, socket: &Path) -> String;

    /// Our own program, which those hooks run.
    fn program(&self) -> &Path;

    /// The calls of tools in the client's stream of events.
    ///
    /// # Errors
    /// The stream cannot be read, in words.
    fn count_calls(&self, client: Client, stream: &[u8]) -> Result<u64, String>;
}

/// What one task may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientBudget {
    /// Requests to the model.
    pub requests: u64,
    /// Calls of tools. The gate refuses those beyond; a client that goes on calling all the same has its answer not counted.
    pub tool_calls: u64,
    /// Tokens sent and received.
    pub tokens: u64,
    /// Money; none where no prices are configured.
    pub money: Option<MoneyBudget>,
    /// Time on the wall.
    pub wall: Duration,
}

/// What a client coder is made of.
#[derive(Debug, Clone)]
pub struct ClientSetup {
    /// Which client.
    pub client: Client,
    /// The configured words, or none for the client's own name.
    pub command: Vec<String>,
    /// `PATH`, where a program is looked up.
    pub search: Option<OsString>,
    /// The model's name.
    pub model: String,
    /// Its server.
    pub upstream: Upstream,
    /// What one task may use.
    pub budget: ClientBudget,
    /// `CARETAKER_HOME`, below which each task gets a private folder.
    pub home: PathBuf,
}

/// Why there is no such coder.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The sandbox gives no loopback.
    #[error(
        "running {client} needs a network interface that nothing else can reach, which the sandbox {sandbox} cannot give; install bubblewrap (0.8 or newer), allow unprivileged user namespaces, and set sandbox.mode to auto or bubblewrap"
    )]
    Sandbox {
        /// The client.
        client: &'static str,
        /// What confines programs.
        sandbox: &'static str,
    },
    /// The program.
    #[error("reading agent.command: {0}")]
    Program(String),
    /// The model's server speaks something else.
    #[error(
        "{client} cannot speak to this model: set agent.model.provider to {providers}, with a base_url that speaks so"
    )]
    Protocol {
        /// The client.
        client: &'static str,
        /// What it speaks.
        providers: &'static str,
    },
    /// Codex in a home that does not last.
    #[error(
        "Codex does not work in a home below {TEMPORARY}, and CARETAKER_HOME is {home}; set it to another folder"
    )]
    Home {
        /// `CARETAKER_HOME`.
        home: String,
    },
}

/// A client in the sandbox.
pub struct ClientCoder {
    setup: ClientSetup,
    program: Program,
    sandbox: Arc<Sandbox>,
    hooks: Arc<dyn ClientHooks>,
}

impl ClientCoder {
    /// A coder that runs the client.
    ///
    /// # Errors
    /// The sandbox, the program, the model or the home will not do: [`ClientError`].
    pub fn new(
        setup: ClientSetup,
        sandbox: Arc<Sandbox>,
        hooks: Arc<dyn ClientHooks>,
    ) -> Result<Self, ClientError> {
        let client = setup.client;
        // Break it: leave this out; `agent::client::scripted::without_a_private_loopback_there_is_no_client` fails.
        if !sandbox.gives_loopback() {
            return Err(ClientError::Sandbox {
                client: client.shown(),
                sandbox: sandbox.describe(),
            });
        }
        if !client.speaks(setup.upstream.protocol) {
            return Err(ClientError::Protocol {
                client: client.shown(),
                providers: client.providers(),
            });
        }
        let home = std::fs::canonicalize(&setup.home).unwrap_or_else(|_| setup.home.clone());
        if client == Client::Codex && home.starts_with(TEMPORARY) {
            return Err(ClientError::Home {
                home: home.display().to_string(),
            });
        }
        let program = Program::find(client, &setup.command, setup.search.as_deref())
            .map_err(ClientError::Program)?;
        Ok(Self {
            setup,
            program,
            sandbox,
            hooks,
        })
    }

    fn unavailable(&self, reason: String) -> CoderError {
        CoderError::Unavailable {
            coder: self.setup.client.name().to_owned(),
            reason,
        }
    }

    fn unusable(&self, job: Job, reason: String) -> CoderError {
        CoderError::Answer {
            coder: self.setup.client.name().to_owned(),
            task: job.name(),
            reason,
        }
    }

    /// Runs the client to its end and returns its last message.
    async fn run(
        &self,
        job: Job,
        task: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<String, CoderError> {
        // Break it: run without one; `agent::client::scripted::without_a_session_nothing_is_run` fails.
        let session = session.ok_or_else(|| {
            self.unavailable(
                "it was given no session, and without one nothing gates its tools".to_owned(),
            )
        })?;
        let (outcome, used) = self.ended(job, task, tree, session).await?;
        let calls = self
            .hooks
            .count_calls(self.setup.client, &outcome.stdout.bytes);
        // Where calls cannot be counted nothing is reported, and the session counts as ungated.
        if let Ok(calls) = calls {
            session.report(SessionReport {
                calls,
                requests: used.requests,
                input_tokens: used.input,
                output_tokens: used.output,
                cost: used.cost,
            });
        }
        self.check_end(job, &outcome)?;
        let calls = calls.map_err(|reason| self.unusable(job, reason))?;
        let most = self.setup.budget.tool_calls;
        if calls > most {
            return Err(self.failed(
                job,
                format!("{calls} calls of tools, more than the {most} of its budget"),
                String::new(),
            ));
        }
        last_message(self.setup.client, &outcome.stdout.bytes)
            .map_err(|reason| self.unusable(job, reason))
    }

    /// How the client ended, and what its model cost. Its place and its proxy are gone then.
    async fn ended(
        &self,
        job: Job,
        task: &CoderTask,
        tree: &Path,
        session: &AgentSession,
    ) -> Result<(Outcome, Used), CoderError> {
        let unavailable = |reason: String| self.unavailable(reason);
        let prompt = prompt(job, task).map_err(unavailable)?;
        proxy::check_length(&session.socket).map_err(unavailable)?;
        let place = place::Place::create(&self.setup.home).map_err(unavailable)?;
        let client = self.setup.client;
        let hooks = self.hooks.render(client, &session.id, &session.socket);
        let home = place.home();
        let start = launch::Start {
            home: &home,
            tree,
            port: PORT,
            model: &self.setup.model,
            hooks: &hooks,
            prompt: &prompt,
            job,
        };
        let launch = start.launch(client).map_err(unavailable)?;
        place.write(&launch).map_err(unavailable)?;
        let command = self.command(job, &launch, &place, tree, session);
        let budget = self.setup.budget;
        let allowance = Allowance {
            requests: budget.requests,
            tokens: budget.tokens,
            money: budget.money,
            deadline: Instant::now() + budget.wall,
        };
        let proxy = ModelProxy::start(&place.socket(), self.setup.upstream.clone(), allowance)
            .map_err(|error| self.unavailable(error.to_string()))?;
        let outcome = self.sandbox.run(&command).await;
        let used = proxy.finish().await;
        let outcome = outcome.map_err(|error| self.unavailable(error.to_string()))?;
        Ok((outcome, used))
    }

    /// The client beside its bridge, and everything that it sees.
    fn command(
        &self,
        job: Job,
        launch: &launch::Launch,
        place: &place::Place,
        tree: &Path,
        session: &AgentSession,
    ) -> Command {
        let (home, socket) = (place.home(), place.socket());
        let launcher = self.sandbox.launcher();
        let words = self.program.argv.iter().cloned();
        let argv = words.chain(launch.arguments.iter().map(OsString::from));
        let line = bridge::command_line(launcher, PORT, &socket, argv);
        let mut command = Command::new(line, tree);
        // Break it: leave the tree writable; `agent::client::scripted::a_diagnosis_may_read_the_tree_but_not_change_it` fails.
        if job == Job::Diagnose {
            command.writable.clear();
            command.readable.push(tree.to_owned());
        }
        command.writable.push(home.clone());
        command
            .writable
            .extend(launch.folders.iter().map(|folder| home.join(folder)));
        // Break it: leave this out; `agent::client::scripted::a_client_cannot_change_its_own_hooks` fails.
        command
            .readable
            .extend(launch.sealed.iter().map(|sealed| home.join(sealed)));
        command
            .readable
            .extend(self.program.readable.iter().cloned());
        command.readable.extend([socket, session.socket.clone()]);
        for own in [launcher, self.hooks.program()] {
            if !command.readable.iter().any(|path| path == own) {
                command.readable.push(own.to_owned());
            }
        }
        // Break it: leave this out; `agent::client::scripted::the_repositorys_own_configuration_is_not_seen` fails.
        command.hidden.extend(
            self.setup
                .client
                .configuration_in_repositories()
                .iter()
                .map(|name| tree.join(name)),
        );
        command.environment.clone_from(&launch.environment);
        command.private_loopback = true;
        command.limits = Limits {
            wall: self.setup.budget.wall,
            output: LARGEST_STREAM,
            ..Limits::default()
        };
        command
    }

    fn check_end(&self, job: Job, outcome: &Outcome) -> Result<(), CoderError> {
        if outcome.status.success() {
            return Ok(());
        }
        let limits = Limits {
            wall: self.setup.budget.wall,
            output: LARGEST_STREAM,
            ..Limits::default()
        };
        let mut status = in_words(outcome.status, &limits);
        // Where a client says in its stream why it ended, that says more than its exit code.
        if matches!(outcome.status, Status::Exited(_))
            && let Err(reason) = last_message(self.setup.client, &outcome.stdout.bytes)
        {
            status = format!("{status}; {reason}");
        }
        Err(self.failed(job, status, end_of_stderr(outcome)))
    }

    fn failed(&self, job: Job, status: String, stderr: String) -> CoderError {
        CoderError::Failed {
            coder: self.setup.client.name().to_owned(),
            task: job.name(),
            status,
            stderr,
        }
    }
}

#[async_trait]
impl Coder for ClientCoder {
    fn describe(&self) -> AgentDescription {
        AgentDescription {
            id: self.setup.client.name().to_owned(),
            model: Some(self.setup.model.clone()),
            remark: format!(
                "Runs {} in the sandbox: its hooks ask the gate before each call of a tool, and its model is reached through a proxy that holds the key.",
                self.setup.client.shown()
            ),
        }
    }

    fn governance(&self) -> Governance {
        Governance::Gated(self.setup.client.tools())
    }

    fn most_calls(&self) -> Option<u64> {
        Some(self.setup.budget.tool_calls)
    }

    async fn diagnose(
        &self,
        task: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<Diagnosis, CoderError> {
        let said = self.run(Job::Diagnose, task, tree, session).await?;
        answer::diagnosis(said.as_bytes()).map_err(|reason| self.unusable(Job::Diagnose, reason))
    }

    async fn fix(
        &self,
        task: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<FixSummary, CoderError> {
        let said = self.run(Job::Fix, task, tree, session).await?;
        answer::fix_summary(said.as_bytes()).map_err(|reason| self.unusable(Job::Fix, reason))
    }
}
