//! Every watched project, again and again: the ones that are due are taken from the database, looked at side by side, and given
//! back with what was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::look::{Finished, Means, Watched, look};
use super::poll::PollReport;
use crate::attest::keys::FillError;
use crate::clock::Millis;
use crate::config::Poll;
use crate::id::ProjectId;
use crate::store::{Look, Looked, Store, StoreError};
use crate::worker::{Connectors, Time};

/// How long to wait when the database fails.
const DATABASE_PAUSE: Duration = Duration::from_secs(10);
/// How often the database is asked for news while nothing is due: somebody may say that a project has some.
const TICK: Duration = Duration::from_secs(1);
/// How many projects are looked at side by side.
const SIDE_BY_SIDE: usize = 16;

/// The watch of one process.
pub struct Watch {
    means: Arc<Means>,
    /// The name under which projects are taken.
    owner: String,
    projects: BTreeMap<ProjectId, Watched>,
    under_way: JoinSet<Finished>,
    taken: BTreeSet<ProjectId>,
}

/// Looks at every confirmed project when it is due, until it is told to stop. Whatever goes wrong is logged and shown with the
/// project; it never ends the watch.
pub async fn run(mut watch: Watch, stop: CancellationToken) {
    let watching = async {
        loop {
            let pause = match watch.turn().await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::error!(%error, "the watched projects cannot be looked at");
                    DATABASE_PAUSE
                }
            };
            if watch.under_way.is_empty() {
                tokio::time::sleep(pause).await;
            }
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = watching => {}
    }
    if let Err(error) = watch.leave().await {
        tracing::warn!(%error, "other processes take this one's projects over a little later");
    }
}

impl Watch {
    /// A watch that has seen nothing yet, under the name `owner`; `random` fills a buffer for identifiers and for chance.
    pub fn new(
        store: Store,
        connectors: Arc<dyn Connectors>,
        random: fn(&mut [u8]) -> Result<(), FillError>,
        poll: Poll,
        owner: String,
    ) -> Self {
        Self {
            means: Arc::new(Means {
                store,
                connectors,
                random,
                poll,
                time: Time::Database,
            }),
            owner,
            projects: BTreeMap::new(),
            under_way: JoinSet::new(),
            taken: BTreeSet::new(),
        }
    }

    /// The same watch by another clock.
    #[must_use]
    pub fn by(mut self, time: Time) -> Self {
        let means = Means {
            time,
            ..(*self.means).clone()
        };
        self.means = Arc::new(means);
        self
    }

    /// Looks at every confirmed project now, whether it is due or not. What each look did is given back; what went wrong with
    /// one is shown with the project and does not keep the others from being looked at.
    ///
    /// # Errors
    /// The database fails.
    pub async fn round(&mut self) -> Result<Vec<(ProjectId, PollReport)>, StoreError> {
        let now = self.means.now().await?;
        self.means.store.look_at_all(now).await?;
        self.look_at_due(now).await
    }

    /// Looks at every project that is due at `now`, and waits for the end of each look.
    ///
    /// # Errors
    /// The database fails.
    pub async fn look_at_due(
        &mut self,
        now: Millis,
    ) -> Result<Vec<(ProjectId, PollReport)>, StoreError> {
        let mut reports = Vec::new();
        loop {
            self.take(now).await?;
            if self.under_way.is_empty() {
                return Ok(reports);
            }
            reports.extend(self.reap().await?);
        }
    }

    /// When the next project is due; none while nothing is watched.
    ///
    /// # Errors
    /// The database fails.
    pub async fn next_due(&self, now: Millis) -> Result<Option<Millis>, StoreError> {
        self.means.store.next_look(&self.owner, now).await
    }

    /// Leaves the projects to other processes.
    async fn leave(mut self) -> Result<(), StoreError> {
        self.under_way.shutdown().await;
        let now = self.means.now().await?;
        self.means.store.leave_looks(&self.owner, now).await
    }

    /// Takes what is due and waits for a look that ends, if there is one; how long nothing is due after that.
    async fn turn(&mut self) -> Result<Duration, StoreError> {
        let now = self.means.now().await?;
        self.take(now).await?;
        if !self.under_way.is_empty() {
            self.reap().await?;
            return Ok(Duration::ZERO);
        }
        let next = self.next_due(now).await?;
        let left = next.map_or(i64::MAX, |next| next.0.saturating_sub(now.0).max(10));
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
        Ok(left.min(TICK))
    }

    /// Takes projects that are due, as many as there is room for.
    async fn take(&mut self, now: Millis) -> Result<(), StoreError> {
        let room = SIDE_BY_SIDE.saturating_sub(self.under_way.len());
        let Some(room) = u32::try_from(room).ok().filter(|room| *room > 0) else {
            return Ok(());
        };
        for taken in self.means.store.take_looks(&self.owner, now, room).await? {
            let id = taken.project.id.clone();
            if !self.taken.insert(id.clone()) {
                // Somebody said that there is news while it is being looked at: it is due again when that look ends.
                continue;
            }
            let watched = self.projects.remove(&id).unwrap_or_default();
            self.under_way
                .spawn(look(Arc::clone(&self.means), taken, watched, now));
        }
        Ok(())
    }

    /// Waits for a look that ends, and gives back it and all others that have ended by then.
    async fn reap(&mut self) -> Result<Vec<(ProjectId, PollReport)>, StoreError> {
        let mut ended: Vec<(Look, Looked)> = Vec::new();
        let mut reports = Vec::new();
        let mut next = self.under_way.join_next().await;
        while let Some(finished) = next {
            match finished {
                Ok(finished) => {
                    let id = finished.look.project.id.clone();
                    self.taken.remove(&id);
                    self.projects.insert(id.clone(), finished.watched);
                    reports.extend(finished.report.map(|report| (id, report)));
                    ended.push((finished.look, finished.looked));
                }
                Err(error) => {
                    // Its project is due again when its time is over.
                    tracing::error!(%error, "a look at a project ended badly");
                }
            }
            next = self.under_way.try_join_next();
        }
        if self.under_way.is_empty() {
            // What ended badly is not remembered as taken for ever.
            self.taken.clear();
        }
        self.means.store.looked(&self.owner, &ended).await?;
        Ok(reports)
    }
}
