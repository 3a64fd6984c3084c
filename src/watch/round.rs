//! Every watched project, again and again: the ones that are due are taken from the database, looked at side by side, and given
//! back with what was seen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::look::{Finished, KEEP_EVERY, LimitsTold, Means, Watched, look};
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

/// Whether the allowance of requests counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Insistence {
    WithinAllowance,
    Whatever,
}

/// The watch of one process.
pub struct Watch {
    means: Arc<Means>,
    /// The name under which projects are taken.
    owner: String,
    projects: BTreeMap<ProjectId, Watched>,
    under_way: JoinSet<Finished>,
    /// The projects that are being looked at, each with the task that does.
    taken: BTreeMap<ProjectId, Id>,
}

/// Looks at every confirmed project when it is due, until it is told to stop. Whatever goes wrong is logged and shown with the
/// project; it never ends the watch.
pub async fn run(mut watch: Watch, stop: CancellationToken) {
    let watching = async {
        loop {
            if let Err(error) = watch.turn().await {
                tracing::error!(%error, "the watched projects cannot be looked at");
                tokio::time::sleep(DATABASE_PAUSE).await;
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
                keep_every: KEEP_EVERY,
                limits_told: Arc::new(LimitsTold::default()),
            }),
            owner,
            projects: BTreeMap::new(),
            under_way: JoinSet::new(),
            taken: BTreeMap::new(),
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

    /// The same watch, in which a look that goes on says so this often, that no other process takes its project over.
    #[must_use]
    pub fn keeping_every(mut self, pause: Duration) -> Self {
        let means = Means {
            keep_every: pause,
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
        self.look_at_taken(now, Insistence::Whatever).await
    }

    /// Looks at every project that is due at `now`, and waits for the end of each look.
    ///
    /// # Errors
    /// The database fails.
    pub async fn look_at_due(
        &mut self,
        now: Millis,
    ) -> Result<Vec<(ProjectId, PollReport)>, StoreError> {
        self.look_at_taken(now, Insistence::WithinAllowance).await
    }

    async fn look_at_taken(
        &mut self,
        now: Millis,
        insistence: Insistence,
    ) -> Result<Vec<(ProjectId, PollReport)>, StoreError> {
        let mut reports = Vec::new();
        loop {
            self.take(now, insistence).await?;
            if self.under_way.is_empty() {
                return Ok(reports);
            }
            let ended = self.under_way.join_next().await;
            reports.extend(self.gather(ended).await?);
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

    /// Takes what is due, and waits until a look ends or something else may be due.
    async fn turn(&mut self) -> Result<(), StoreError> {
        let now = self.means.now().await?;
        self.take(now, Insistence::WithinAllowance).await?;
        let pause = if self.under_way.is_empty() {
            let next = self.next_due(now).await?;
            let left = next.map_or(i64::MAX, |next| next.0.saturating_sub(now.0).max(10));
            let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
            left.min(TICK)
        } else {
            TICK
        };
        // Break it: wait for the end of a look only; one provider that trickles then stops all other projects
        // (`watch::side_by_side::a_look_that_does_not_end_keeps_no_other_project_waiting`).
        tokio::select! {
            ended = self.under_way.join_next(), if !self.under_way.is_empty() => {
                self.gather(ended).await.map(drop)
            }
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }

    /// Takes projects that are due, as many as there is room for.
    async fn take(&mut self, now: Millis, insistence: Insistence) -> Result<(), StoreError> {
        let room = SIDE_BY_SIDE.saturating_sub(self.under_way.len());
        let Some(room) = u32::try_from(room).ok().filter(|room| *room > 0) else {
            return Ok(());
        };
        for taken in self.means.store.take_looks(&self.owner, now, room).await? {
            let id = taken.project.id.clone();
            if self.taken.contains_key(&id) {
                // Somebody said that there is news while it is being looked at: it is due again when that look ends.
                continue;
            }
            let watched = self.projects.remove(&id).unwrap_or_default();
            // Break it: look all the same; whoever sends webhooks then decides how many requests are sent
            // (`watch::leases::a_flood_of_hints_does_not_cost_more_than_the_allowance`).
            let allowed_at = watched.allowed_at(&self.means.poll, &taken.project, now);
            if allowed_at > now && insistence == Insistence::WithinAllowance {
                self.projects.insert(id.clone(), watched);
                let store = &self.means.store;
                let owner = &self.owner;
                store.put_off_look(owner, &id, allowed_at, now).await?;
                continue;
            }
            let look = look(Arc::clone(&self.means), taken, watched, now);
            self.taken.insert(id, self.under_way.spawn(look).id());
        }
        Ok(())
    }

    /// Gives back the look that ended and all others that have ended by now.
    async fn gather(
        &mut self,
        ended: Option<Result<Finished, JoinError>>,
    ) -> Result<Vec<(ProjectId, PollReport)>, StoreError> {
        let mut looks: Vec<(Look, Looked)> = Vec::new();
        let mut reports = Vec::new();
        let mut next = ended;
        while let Some(finished) = next {
            match finished {
                Ok(finished) => {
                    let id = finished.look.project.id.clone();
                    self.taken.remove(&id);
                    self.projects.insert(id.clone(), finished.watched);
                    reports.extend(finished.report.map(|report| (id, report)));
                    looks.push((finished.look, finished.looked));
                }
                Err(error) => {
                    // Its project is due again when its time is over.
                    tracing::error!(%error, "a look at a project ended badly");
                    // Break it: leave it among those that are taken;
                    // `watch::side_by_side::a_look_that_broke_off_is_made_again_while_another_goes_on` then fails.
                    self.taken.retain(|_, task| *task != error.id());
                }
            }
            next = self.under_way.try_join_next();
        }
        self.means.store.looked(&self.owner, &looks).await?;
        Ok(reports)
    }
}
