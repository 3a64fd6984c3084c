//! What a running worker answers hooks with.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::alignment::Alignment;
use crate::approvals::Approvals;
use crate::cli::installation::Installation;
use crate::clock::SystemClock;
use crate::events::EventSink;
use crate::hook_gate::{Configured, ConfiguredAnswers, Home, Scoring};

/// Answers of an installation; called where the worker's runtime is.
///
/// # Errors
/// The embedder cannot be set up.
pub(in crate::cli) fn answers(
    installation: &Installation,
    approvals: Approvals,
    events: Arc<dyn EventSink>,
) -> anyhow::Result<ConfiguredAnswers> {
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
    Ok(ConfiguredAnswers {
        home: Home::new(&configuration.home),
        configured: Configured::new(configuration, scoring),
        approvals,
        runtime,
        events,
        clock: Arc::new(SystemClock),
        profile: configuration.agent.profile.clone(),
        launcher: std::env::current_exe()?,
        within: Duration::from_secs(configuration.approvals.timeout_seconds.into()),
    })
}
