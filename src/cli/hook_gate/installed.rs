//! What a hook's answer takes from the installation when no worker answers: its configuration, its audit stream, and its queue.

use std::sync::Arc;

use crate::approvals::Approvals;
use crate::audit_stream::{AuditStream, FOLDER};
use crate::clock::SystemClock;
use crate::config::{Configuration, Environment};
use crate::events::{Event, EventSink, SinkError};
use crate::hook_gate::{
    Approver, Configured, Found, Home, People, Registered, Scoring, SessionId, look_up,
};
use crate::signer::system_randomness;
use crate::store::Store;
use crate::tool_gate::{Answer, Call, Decision};

/// The installation of this process's environment.
pub(super) struct Installed {
    configuration: Configuration,
    pub(super) configured: Configured,
    pub(super) events: Arc<dyn EventSink>,
}

/// A stream that cannot be written: the receipts are what proves a decision, so it holds none up.
struct NoStream;

impl EventSink for NoStream {
    fn record(&self, _event: &Event) -> Result<(), SinkError> {
        Ok(())
    }
}

impl Installed {
    /// Reads the configuration, which is the usual one where there is no file.
    pub(super) fn load() -> anyhow::Result<Self> {
        let environment = Environment::of_process()?;
        let configuration = Configuration::load(None, &environment)?;
        let scoring = if configuration.intent_alignment.is_some() {
            Scoring::Elsewhere
        } else {
            Scoring::Off
        };
        let folder = configuration.home.join(FOLDER);
        let stream = AuditStream::open(&folder, Arc::new(SystemClock), &mut system_randomness);
        let events: Arc<dyn EventSink> = match stream {
            Ok(stream) => Arc::new(stream),
            Err(error) => {
                super::super::complain(&format!("warning: {error}"));
                Arc::new(NoStream)
            }
        };
        Ok(Self {
            configured: Configured::new(&configuration, scoring),
            configuration,
            events,
        })
    }

    /// What the session was registered for.
    pub(super) fn intent(&self, home: &Home, session: &str) -> Option<String> {
        // Looked up only where it is asked for.
        if self.configuration.deny_prompts.is_empty() {
            return None;
        }
        let id = SessionId::parse(session).ok()?;
        match look_up(home, &id) {
            Found::Registered(registered) => registered.intent,
            _ => None,
        }
    }

    /// Who is asked.
    pub(super) fn people(&self, role: &str) -> Queue<'_> {
        Queue {
            installed: self,
            role: role.to_owned(),
        }
    }
}

/// The queue, opened when somebody is asked and not before: most calls need no database.
pub(super) struct Queue<'a> {
    installed: &'a Installed,
    role: String,
}

impl Queue<'_> {
    fn open(&self) -> anyhow::Result<(tokio::runtime::Runtime, Approvals)> {
        let configuration = &self.installed.configuration;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let opened = runtime.block_on(async {
            let store = Store::open_existing(configuration.database.secret()).await?;
            let organisation = store.organisation().await?;
            anyhow::Ok((store, organisation))
        });
        let (store, organisation) = opened?;
        let organisation = organisation.ok_or_else(|| {
            anyhow::anyhow!("the database holds no organisation; run `caretaker keys init`")
        })?;
        let approvals = Approvals::new(
            store,
            organisation,
            Arc::clone(&self.installed.events),
            Arc::new(SystemClock),
            system_randomness,
            configuration.approvals.timeout_seconds,
        );
        Ok((runtime, approvals))
    }
}

impl Approver for Queue<'_> {
    fn wait(&self, session: &Registered, call: &Call, asked: &Decision) -> Decision {
        match self.open() {
            Ok((runtime, approvals)) => {
                let people = People {
                    approvals,
                    runtime: runtime.handle().clone(),
                    role: self.role.clone(),
                };
                people.wait(session, call, asked)
            }
            Err(error) => Decision {
                answer: Answer::Deny,
                code: "nobody-to-ask",
                reason: Some(format!(
                    "approval gate: nobody can be asked about {}: {error}",
                    call.tool
                )),
                ..asked.clone()
            },
        }
    }
}
