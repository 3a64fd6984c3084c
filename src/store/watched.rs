//! What the poll saw: failures become incidents, successes end them.

use super::project::Project;
use super::statement::statements;
use super::{Store, StoreError, Work, value};
use crate::clock::Millis;
use crate::id::{IncidentId, OrganisationId, ProjectId};
use crate::incident::{AuditEvent, Fact, Failure, Notice, NoticeEvent, Stage};

statements! {
    /// A failed job is turned into an incident once.
    MARK_JOB = "INSERT INTO seen_job (project, run_id, attempt, job, seen_at) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (project, run_id, attempt, job) DO NOTHING";
    /// Whether the owner's silence or refusal still stands.
    QUIET = "SELECT COUNT(*) AS found FROM incident WHERE project = $1 AND organisation = $2 AND failure_key = $3 AND quiet = 1";
    /// The silence ends with a success.
    END_QUIET = "UPDATE incident SET quiet = 0 WHERE project = $1 AND organisation = $2 AND failure_key = $3 AND quiet = 1";
    /// Unless one is open.
    OPEN = "INSERT INTO incident (id, organisation, project, project_url, repository_id, failure_key, failure, newest_run, stage, \
        opened_at, updated_at, wake_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $10) \
        ON CONFLICT (project, failure_key) WHERE stage NOT IN ('resolved', 'closed') DO NOTHING";
    /// Its chain.
    OPEN_CHAIN = "INSERT INTO chain (incident) VALUES ($1)";
    /// The open one takes the failure.
    ATTACH = "UPDATE incident SET newest_run = CASE WHEN newest_run < $1 THEN $1 ELSE newest_run END, updated_at = $2 \
        WHERE project = $3 AND organisation = $4 AND failure_key = $5 AND stage NOT IN ('resolved', 'closed') RETURNING id";
    /// Locks the open incident whose newest failure is not newer than the success.
    LOCK_OPEN = "UPDATE incident SET updated_at = updated_at WHERE project = $1 AND organisation = $2 AND failure_key = $3 \
        AND newest_run <= $4 AND stage NOT IN ('resolved', 'closed') RETURNING id";
    /// Whether the poll is done with a run.
    SEEN_RUN = "SELECT COUNT(*) AS found FROM seen_run WHERE project = $1 AND run_id = $2 AND attempt = $3";
    /// The poll is done with a run.
    MARK_RUN = "INSERT INTO seen_run (project, run_id, attempt, seen_at) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (project, run_id, attempt) DO NOTHING";
}

/// How often opening and attaching are tried in turn while incidents of the key close under our hands.
const TURNS: usize = 3;

/// What became of an observed failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Observed {
    /// It is a new incident.
    Opened(IncidentId),
    /// It belongs to one that is open.
    Attached(IncidentId),
    /// It was observed before.
    Known,
    /// The owner rejected the fix of this failure, or did not answer; nothing is raised until it succeeds once.
    Suppressed,
}

impl Store {
    /// A failed job of a run. Opens an incident under `id`, or attaches to the open one of the same key; the same failure
    /// again changes nothing, however many processes observe it.
    pub async fn observe(
        &self,
        project: &Project,
        failure: &Failure,
        id: &IncidentId,
        now: Millis,
    ) -> Result<Observed, StoreError> {
        let run = value::bigint("the run's number", failure.run_id)?;
        let mut work = self.writing("observing a failure").await?;
        let mark = sqlx::query(MARK_JOB)
            .bind(project.id.as_str())
            .bind(run)
            .bind(value::bigint("the run's attempt", failure.attempt)?)
            .bind(value::exact(
                "the job's name",
                failure.job.as_deref().unwrap_or("-"),
            )?)
            .bind(now.0);
        if work.execute(mark).await? == 0 {
            return Ok(Observed::Known);
        }
        let key = failure.key(&project.id);
        let key = value::exact("the failure's key", &key)?;
        for _ in 0..TURNS {
            if work.is_quiet(project, key).await? {
                work.commit().await?;
                return Ok(Observed::Suppressed);
            }
            if work.open(project, failure, key, id, run, now).await? {
                work.commit_and_nudge().await?;
                return Ok(Observed::Opened(id.clone()));
            }
            if let Some(open) = work.attach(project, failure, key, run, now).await? {
                work.commit().await?;
                return Ok(Observed::Attached(open));
            }
        }
        Err(StoreError::Refused {
            doing: "observing a failure",
            reason: "incidents of the same key kept opening and closing meanwhile; the next poll tries again".to_owned(),
        })
    }

    /// An attempt of a run of a job's key succeeded. Ends the silence after a rejection or an expiry; an open incident that has
    /// not merged and saw no newer failure gets the fact, and is due.
    pub async fn observe_success(
        &self,
        project: &Project,
        key: &str,
        run_id: u64,
        attempt: u64,
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("observing a success").await?;
        let quiet = sqlx::query(END_QUIET)
            .bind(project.id.as_str())
            .bind(project.organisation.as_str())
            .bind(key);
        work.execute(quiet).await?;
        let lock = sqlx::query(LOCK_OPEN)
            .bind(project.id.as_str())
            .bind(project.organisation.as_str())
            .bind(key)
            .bind(value::bigint("the run's number", run_id)?);
        if let Some(row) = work.optional(lock).await? {
            let incident: IncidentId = value::parsed(&row, "id")?;
            let organisation = &project.organisation;
            let snapshot = work.snapshot(organisation, &incident, now).await?;
            let waits = |known: &crate::incident::Snapshot| {
                // An attempt that is not later than one that failed has nothing to say.
                let failed = known.failed_attempts(run_id);
                let later = failed.last().is_none_or(|last| *last < attempt);
                known.landed().is_none() && known.recovered().is_none() && later
            };
            if snapshot.as_ref().is_some_and(waits) {
                let fact = Fact::Recovered { run_id, attempt };
                work.add_fact(organisation, &incident, &fact, now).await?;
            }
        }
        work.commit_and_nudge().await
    }

    /// Whether the poll is done with this attempt of a run.
    pub async fn seen(
        &self,
        project: &ProjectId,
        run: u64,
        attempt: u64,
    ) -> Result<bool, StoreError> {
        let mut work = self.reading("looking for a run").await?;
        let seen = sqlx::query(SEEN_RUN)
            .bind(project.as_str())
            .bind(value::bigint("the run's number", run)?)
            .bind(value::bigint("the run's attempt", attempt)?);
        Ok(work.count(seen).await? > 0)
    }

    /// The poll is done with this attempt of a run.
    pub async fn mark_seen(
        &self,
        project: &ProjectId,
        run: u64,
        attempt: u64,
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("marking a run as seen").await?;
        let mark = sqlx::query(MARK_RUN)
            .bind(project.as_str())
            .bind(value::bigint("the run's number", run)?)
            .bind(value::bigint("the run's attempt", attempt)?)
            .bind(now.0);
        work.execute(mark).await?;
        work.commit().await
    }
}

impl Work {
    async fn is_quiet(&mut self, project: &Project, key: &str) -> Result<bool, StoreError> {
        let quiet = sqlx::query(QUIET)
            .bind(project.id.as_str())
            .bind(project.organisation.as_str())
            .bind(key);
        Ok(self.count(quiet).await? > 0)
    }

    /// Opens an incident; false when one of the key is open.
    async fn open(
        &mut self,
        project: &Project,
        failure: &Failure,
        key: &str,
        id: &IncidentId,
        run: i64,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let open = sqlx::query(OPEN)
            .bind(id.as_str())
            .bind(project.organisation.as_str())
            .bind(project.id.as_str())
            .bind(&project.url)
            .bind(&project.repository_id)
            .bind(key)
            .bind(value::json("the failure", failure)?)
            .bind(run)
            .bind(Stage::Detected.as_str())
            .bind(now.0);
        if self.execute(open).await? == 0 {
            return Ok(false);
        }
        self.execute(sqlx::query(OPEN_CHAIN).bind(id.as_str()))
            .await?;
        let notice = Notice {
            event: NoticeEvent::IncidentOpened,
            text: described(project, failure),
        };
        self.notify(&project.organisation, id, &notice, now).await?;
        Ok(true)
    }

    /// Attaches to the open incident of the key; none when it has closed meanwhile.
    async fn attach(
        &mut self,
        project: &Project,
        failure: &Failure,
        key: &str,
        run: i64,
        now: Millis,
    ) -> Result<Option<IncidentId>, StoreError> {
        let organisation: &OrganisationId = &project.organisation;
        let attach = sqlx::query(ATTACH)
            .bind(run)
            .bind(now.0)
            .bind(project.id.as_str())
            .bind(organisation.as_str())
            .bind(key);
        let Some(row) = self.optional(attach).await? else {
            return Ok(None);
        };
        let incident: IncidentId = value::parsed(&row, "id")?;
        let event = AuditEvent {
            kind: "failure-attached",
            detail: described(project, failure),
        };
        self.audit(
            organisation,
            Some(&incident),
            Some(&project.id),
            &event,
            now,
        )
        .await?;
        self.recur(organisation, &incident, failure, now).await?;
        Ok(Some(incident))
    }

    /// The further failure as a fact, where the incident learns something from it.
    async fn recur(
        &mut self,
        organisation: &OrganisationId,
        incident: &IncidentId,
        failure: &Failure,
        now: Millis,
    ) -> Result<(), StoreError> {
        let known = self.snapshot(organisation, incident, now).await?;
        if known.is_some_and(|known| known.learns_from(failure)) {
            let fact = Fact::Recurred {
                run_id: failure.run_id,
                attempt: failure.attempt,
                job_id: failure.job_id,
            };
            self.add_fact(organisation, incident, &fact, now).await?;
        }
        Ok(())
    }
}

/// One line about a failure, for people.
fn described(project: &Project, failure: &Failure) -> String {
    let job = match &failure.job {
        Some(job) => format!("job {job:?}"),
        None => "a run without jobs".to_owned(),
    };
    format!(
        "{}: {job} failed on {} (run {}, attempt {}, {})",
        project.full_name, failure.base_ref, failure.run_id, failure.attempt, failure.kind
    )
}
