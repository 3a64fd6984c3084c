//! What happened to tokens, written into the history of the project that they were for.

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::connector::github::app::{TokenEvent, TokenSink};
use crate::id::{OrganisationId, ProjectId};
use crate::store::Store;

/// Writes events down as they come.
pub struct Recorder {
    events: UnboundedReceiver<TokenEvent>,
}

/// A sink for events, which never waits, and the recorder that it feeds.
pub fn token_recorder() -> (TokenSink, Recorder) {
    let (sender, events) = unbounded_channel();
    let sink = std::sync::Arc::new(move |event| {
        // Without a recorder there is nobody to tell, as at the end of the process.
        drop(sender.send(event));
    });
    (sink, Recorder { events })
}

impl Recorder {
    /// Writes until every sink is gone. `project_of` finds the project of a repository, by the provider's number; an event of
    /// a repository that is no project's is the organisation's alone. A store that fails costs the event and is logged.
    pub async fn run(
        mut self,
        store: Store,
        organisation: OrganisationId,
        project_of: impl Fn(u64) -> Option<ProjectId>,
    ) {
        while let Some(event) = self.events.recv().await {
            let project = project_of(event.record().repository);
            let audit = event.audit();
            let written = async {
                let now = store.now().await?;
                store
                    .record(&organisation, None, project.as_ref(), &audit, now)
                    .await
            };
            if let Err(error) = written.await {
                tracing::warn!(%error, kind = audit.kind, "what happened to a token was not recorded");
            }
        }
    }
}
