//! What happened to tokens, written into the history of the project that they were for.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc::{Receiver, channel};

use crate::connector::github::app::{Target, TokenEvent, TokenSink};
use crate::events::{Event, EventSink};
use crate::id::{OrganisationId, ProjectId};
use crate::store::{Store, StoreError};

/// Writes events down as they come.
pub struct Recorder {
    events: Receiver<TokenEvent>,
    dropped: Arc<AtomicU64>,
    stream: Option<Arc<dyn EventSink>>,
}

/// A sink for events, which never waits, and the recorder that it feeds. At most `places` events wait between them; what comes
/// beyond that is lost, counted and logged.
pub fn token_recorder(places: usize) -> (TokenSink, Recorder) {
    let (sender, events) = channel(places);
    let dropped = Arc::new(AtomicU64::new(0));
    let lost = Arc::clone(&dropped);
    let sink = Arc::new(move |event| {
        // Break it: send without a limit; `app::record::a_full_recorder_loses_events_and_says_how_many` then fails.
        if sender.try_send(event).is_err() {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    });
    let recorder = Recorder {
        events,
        dropped,
        stream: None,
    };
    (sink, recorder)
}

impl Recorder {
    /// The same, which tells the audit stream, too.
    #[must_use]
    pub fn telling(self, stream: Arc<dyn EventSink>) -> Self {
        Self {
            stream: Some(stream),
            ..self
        }
    }

    /// Writes until every sink is gone, or until `stop` and then what is there by then. A store that fails costs the event and
    /// is logged.
    pub async fn run(
        &mut self,
        store: &Store,
        organisation: &OrganisationId,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = pin!(stop);
        loop {
            let event = tokio::select! {
                biased;
                event = self.events.recv() => event,
                () = &mut stop => break,
            };
            match event {
                Some(event) => self.write(store, organisation, &event).await,
                None => break,
            }
        }
        self.flush(store, organisation).await;
    }

    /// Writes what is there.
    pub async fn flush(&mut self, store: &Store, organisation: &OrganisationId) {
        while let Ok(event) = self.events.try_recv() {
            self.write(store, organisation, &event).await;
        }
        self.tell_dropped();
    }

    /// How many events were lost since this was last asked.
    pub fn dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }

    fn tell_dropped(&self) {
        let count = self.dropped();
        if count > 0 {
            tracing::warn!(
                count,
                "events about tokens were lost: they come faster than the database writes them"
            );
        }
    }

    fn tell(&self, project: Option<&ProjectId>, event: &TokenEvent) {
        let Some(stream) = &self.stream else {
            return;
        };
        let project = project.map(ProjectId::as_str);
        if let Err(error) = stream.record(&credential_event(project.unwrap_or_default(), event)) {
            tracing::warn!(%error, "what happened to a token is not in the audit stream");
        }
    }

    async fn write(&self, store: &Store, organisation: &OrganisationId, event: &TokenEvent) {
        let audit = event.audit();
        let written = async {
            let project = project_of(store, organisation, event).await?;
            self.tell(project.as_ref(), event);
            let now = store.now().await?;
            store
                .record(organisation, None, project.as_ref(), &audit, now)
                .await
        };
        if let Err(error) = written.await {
            tracing::warn!(%error, kind = audit.kind, "what happened to a token was not recorded");
        }
        self.tell_dropped();
    }
}

/// What the audit stream is told of a token: never the token, only what names it.
fn credential_event(project: &str, event: &TokenEvent) -> Event {
    let name = match event {
        TokenEvent::Issued(_) => "credential_issued",
        TokenEvent::Expired(_) => "credential_expired",
        TokenEvent::Revoked(..) => "credential_revoked",
    };
    let record = event.record();
    let fields = [
        ("kind", "installation-token".to_owned()),
        ("fingerprint", record.fingerprint.clone()),
        ("role", record.task.role().to_owned()),
        ("repository", record.repository.to_string()),
        ("permissions", record.permissions.to_string()),
        ("expires_at", record.expires_at.to_string()),
    ];
    let fields = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()));
    Event::new(name, project, fields.collect())
}

/// The project whose repository a token opens; an event of a repository that is no project's is the organisation's alone.
async fn project_of(
    store: &Store,
    organisation: &OrganisationId,
    event: &TokenEvent,
) -> Result<Option<ProjectId>, StoreError> {
    match event.record().repository {
        Target::Number(number) => store.project_of_repository(organisation, number).await,
        Target::Name(_) => Ok(None),
    }
}
