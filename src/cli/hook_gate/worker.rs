//! What a running worker answers hooks with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::alignment::Alignment;
use crate::approvals::Approvals;
use crate::cli::installation::Installation;
use crate::events::EventSink;
use crate::hook_gate::service::Answers;
use crate::hook_gate::{
    Configured, Found, Home, HookGate, People, Question, Reply, Scoring, SessionId, look_up,
};

/// Answers with everything that is configured.
pub(in crate::cli) struct WorkerAnswers {
    home: Home,
    configured: Configured,
    approvals: Approvals,
    runtime: Handle,
    events: Arc<dyn EventSink>,
    launcher: PathBuf,
    within: Duration,
}

impl WorkerAnswers {
    /// Of an installation; called where the worker's runtime is.
    ///
    /// # Errors
    /// The embedder cannot be set up.
    pub(in crate::cli) fn new(
        installation: &Installation,
        approvals: Approvals,
        events: Arc<dyn EventSink>,
    ) -> anyhow::Result<Self> {
        let configuration = &installation.configuration;
        let runtime = Handle::current();
        let scoring = if configuration.intent_alignment.is_some() {
            let sink = Arc::clone(&events);
            let made = Alignment::configured(configuration, &installation.environment, sink)?;
            made.map_or(Scoring::Off, |made| {
                Scoring::Here(Arc::new(made), runtime.clone())
            })
        } else {
            Scoring::Off
        };
        Ok(Self {
            home: Home::new(&configuration.home),
            configured: Configured::new(configuration, scoring),
            approvals,
            runtime,
            events,
            launcher: std::env::current_exe()?,
            within: Duration::from_secs(configuration.approvals.timeout_seconds.into()),
        })
    }
}

impl Answers for WorkerAnswers {
    fn answer(&self, question: &Question<'_>) -> Reply {
        let registered = SessionId::parse(question.session)
            .ok()
            .map(|id| look_up(&self.home, &id));
        let intent = match registered {
            Some(Found::Registered(session)) => session.intent,
            _ => None,
        };
        let stages = self
            .configured
            .of_session(question.session, intent.as_deref());
        let people = People {
            approvals: self.approvals.clone(),
            runtime: self.runtime.clone(),
            role: question.role.to_owned(),
        };
        let gate = HookGate {
            stages: &stages,
            approver: &people,
            ..HookGate::plain(&self.home, self.events.as_ref())
        };
        gate.reply(question, &self.launcher, self.within)
    }
}
