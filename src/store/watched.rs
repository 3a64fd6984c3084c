//! What the poll saw: failures become incidents, successes end them.

use std::collections::BTreeSet;

use super::project::Project;
use super::statement::statements;
use super::{Store, StoreError, Work, value};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::{IncidentId, OrganisationId, ProjectId};
use crate::incident::{AuditEvent, Fact, Failure, Notice, NoticeEvent, Stage};

statements! {
    /// A failed job is turned into an incident once.
    MARK_JOB = "INSERT INTO seen_job (project, run_id, attempt, job, seen_at) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (project, run_id, attempt, job) DO NOTHING";
    /// Whether the owner's silence or refusal still stands for this error.
    QUIET = "SELECT COUNT(*) AS found FROM incident WHERE project = $1 AND organisation = $2 AND quiet = 1 AND (failure_key = $3 \
        OR linked_to IN (SELECT i.id FROM incident i WHERE i.project = $1 AND i.organisation = $2 AND i.failure_key = $3)) \
        AND (signature IS NULL OR CAST($4 AS TEXT) IS NULL OR signature = $4)";
    /// The silence ends with a success.
    END_QUIET = "UPDATE incident SET quiet = 0 WHERE project = $1 AND organisation = $2 AND quiet = 1 AND (failure_key = $3 \
        OR linked_to IN (SELECT i.id FROM incident i WHERE i.project = $1 AND i.organisation = $2 AND i.failure_key = $3))";
    /// Unless one is open.
    OPEN = "INSERT INTO incident (id, organisation, project, project_url, repository_id, failure_key, failure, newest_run, stage, \
        opened_at, updated_at, wake_at, signature, linked_to) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $10, $11, $12) \
        ON CONFLICT (project, failure_key) WHERE stage NOT IN ('resolved', 'closed') DO NOTHING";
    /// Its chain.
    OPEN_CHAIN = "INSERT INTO chain (incident) VALUES ($1)";
    /// The open one takes the failure.
    ATTACH = "UPDATE incident SET newest_run = CASE WHEN newest_run < $1 THEN $1 ELSE newest_run END, updated_at = $2 \
        WHERE project = $3 AND organisation = $4 AND failure_key = $5 AND stage NOT IN ('resolved', 'closed') RETURNING id";
    /// The open incident of the key, and what a failure of another error does to it: nothing, once it is being proposed.
    OPEN_NOW = "SELECT id, stage, signature FROM incident WHERE project = $1 AND organisation = $2 AND failure_key = $3 \
        AND stage NOT IN ('resolved', 'closed')";
    /// An incident without a signature takes that of a failure.
    SIGN = "UPDATE incident SET signature = $1 WHERE id = $2 AND signature IS NULL";
    /// Locks the open incident whose newest failure is not newer than the success, and those that are linked to it.
    LOCK_OPEN = "UPDATE incident SET updated_at = updated_at WHERE project = $1 AND organisation = $2 AND (failure_key = $3 \
        OR linked_to IN (SELECT i.id FROM incident i WHERE i.project = $1 AND i.organisation = $2 AND i.failure_key = $3)) \
        AND newest_run <= $4 AND stage NOT IN ('resolved', 'closed') RETURNING id";
    /// The runs from this one on that the poll is done with.
    SEEN_RUNS = "SELECT run_id, attempt FROM seen_run WHERE project = $1 AND run_id >= $2";
    /// Whether the poll is done with any.
    ANY_RUN = "SELECT run_id FROM seen_run WHERE project = $1 LIMIT 1";
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
    /// A failed job of a run, with its normalised error where its log tells one. Opens an incident under `id`, or attaches to the
    /// open one of the same key; the same failure again changes nothing, however many processes observe it. Another error of
    /// the same key, while a fix is proposed already, is an incident of its own that names the first. Of a project that was
    /// removed meanwhile nothing is written.
    pub async fn observe(
        &self,
        project: &Project,
        failure: &Failure,
        signature: Option<&Sha256Digest>,
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
        let seen = Seen {
            project,
            failure,
            key: value::exact("the failure's key", &key)?,
            signature: signature.map(Sha256Digest::to_string),
            run,
            now,
        };
        for _ in 0..TURNS {
            if work.is_quiet(&seen).await? {
                work.commit().await?;
                return Ok(Observed::Suppressed);
            }
            let (own_key, linked_to) = work.place(&seen).await?;
            let place = (own_key.as_str(), linked_to.as_ref());
            let observed = if work.open(&seen, place, id).await? {
                Observed::Opened(id.clone())
            } else if let Some(open) = work.attach(&seen, &own_key).await? {
                Observed::Attached(open)
            } else {
                continue;
            };
            // After the incident: whoever takes both locks takes them in one order.
            // Break it: leave this out; `store::watched::of_a_project_that_was_removed_nothing_is_raised` then fails.
            if !work.still_there(&project.id).await? {
                return Ok(Observed::Known);
            }
            work.commit_and_nudge().await?;
            return Ok(observed);
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
        for row in work.all(lock).await? {
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

    /// The runs numbered `from` and above, each with an attempt, that the poll is done with.
    pub async fn seen_runs(
        &self,
        project: &ProjectId,
        from: u64,
    ) -> Result<BTreeSet<(u64, u64)>, StoreError> {
        let mut work = self.reading("looking for runs").await?;
        let seen = sqlx::query(SEEN_RUNS)
            .bind(project.as_str())
            .bind(value::bigint("the run's number", from)?);
        let rows = work.all(seen).await?;
        let read = |row| Ok((value::count(row, "run_id")?, value::count(row, "attempt")?));
        rows.iter().map(read).collect()
    }

    /// Whether the poll is done with any run of the project.
    pub async fn has_seen_runs(&self, project: &ProjectId) -> Result<bool, StoreError> {
        let mut work = self.reading("looking for any run").await?;
        let any = sqlx::query(ANY_RUN).bind(project.as_str());
        Ok(work.optional(any).await?.is_some())
    }

    /// The poll is done with these attempts of runs.
    pub async fn mark_seen(
        &self,
        project: &ProjectId,
        runs: &[(u64, u64)],
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("marking runs as seen").await?;
        for (run, attempt) in runs {
            let mark = sqlx::query(MARK_RUN)
                .bind(project.as_str())
                .bind(value::bigint("the run's number", *run)?)
                .bind(value::bigint("the run's attempt", *attempt)?)
                .bind(now.0);
            work.execute(mark).await?;
        }
        work.commit().await
    }
}

/// A failure on its way into the database.
struct Seen<'a> {
    project: &'a Project,
    failure: &'a Failure,
    key: &'a str,
    signature: Option<String>,
    run: i64,
    now: Millis,
}

impl Work {
    /// Whether the project was not removed; it stays until this transaction ends.
    async fn still_there(&mut self, project: &ProjectId) -> Result<bool, StoreError> {
        let there = sqlx::query(self.store.dialect.still_there()).bind(project.as_str());
        Ok(self.optional(there).await?.is_some())
    }

    async fn is_quiet(&mut self, seen: &Seen<'_>) -> Result<bool, StoreError> {
        let quiet = sqlx::query(QUIET)
            .bind(seen.project.id.as_str())
            .bind(seen.project.organisation.as_str())
            .bind(seen.key)
            .bind(seen.signature.as_deref());
        Ok(self.count(quiet).await? > 0)
    }

    /// The key under which a failure is kept, and the incident that it is linked to.
    async fn place(&mut self, seen: &Seen<'_>) -> Result<(String, Option<IncidentId>), StoreError> {
        let usual = (seen.key.to_owned(), None);
        let open = sqlx::query(OPEN_NOW)
            .bind(seen.project.id.as_str())
            .bind(seen.project.organisation.as_str())
            .bind(seen.key);
        let Some(row) = self.optional(open).await? else {
            return Ok(usual);
        };
        let (Some(signature), Some(known)) = (
            seen.signature.as_deref(),
            value::optional_text(&row, "signature")?,
        ) else {
            return Ok(usual);
        };
        let stage: Stage = value::word(&row, "stage")?;
        if signature == known || !stage.is_proposed_or_later() {
            return Ok(usual);
        }
        let key = format!("{}#{signature}", seen.key);
        Ok((key, Some(value::parsed(&row, "id")?)))
    }

    /// Opens an incident; false when one of the key is open.
    async fn open(
        &mut self,
        seen: &Seen<'_>,
        (key, linked_to): (&str, Option<&IncidentId>),
        id: &IncidentId,
    ) -> Result<bool, StoreError> {
        let project = seen.project;
        let open = sqlx::query(OPEN)
            .bind(id.as_str())
            .bind(project.organisation.as_str())
            .bind(project.id.as_str())
            .bind(&project.url)
            .bind(&project.repository_id)
            .bind(key)
            .bind(value::json("the failure", seen.failure)?)
            .bind(seen.run)
            .bind(Stage::Detected.as_str())
            .bind(seen.now.0)
            .bind(seen.signature.as_deref())
            .bind(linked_to.map(IncidentId::as_str));
        if self.execute(open).await? == 0 {
            return Ok(false);
        }
        self.execute(sqlx::query(OPEN_CHAIN).bind(id.as_str()))
            .await?;
        let other = linked_to.map_or_else(String::new, |first| {
            format!("; another error than that of {first}, whose fix is proposed already")
        });
        let notice = Notice {
            event: NoticeEvent::IncidentOpened,
            text: format!("{}{other}", described(project, seen.failure)),
        };
        self.notify(&project.organisation, id, &notice, seen.now)
            .await?;
        Ok(true)
    }

    /// Attaches to the open incident of the key; none when it has closed meanwhile.
    async fn attach(
        &mut self,
        seen: &Seen<'_>,
        key: &str,
    ) -> Result<Option<IncidentId>, StoreError> {
        let Seen { project, now, .. } = *seen;
        let organisation: &OrganisationId = &project.organisation;
        let attach = sqlx::query(ATTACH)
            .bind(seen.run)
            .bind(now.0)
            .bind(project.id.as_str())
            .bind(organisation.as_str())
            .bind(key);
        let Some(row) = self.optional(attach).await? else {
            return Ok(None);
        };
        let incident: IncidentId = value::parsed(&row, "id")?;
        if let Some(signature) = &seen.signature {
            let sign = sqlx::query(SIGN).bind(signature).bind(incident.as_str());
            self.execute(sign).await?;
        }
        let event = AuditEvent {
            kind: "failure-attached",
            detail: described(project, seen.failure),
        };
        self.audit(
            organisation,
            Some(&incident),
            Some(&project.id),
            &event,
            now,
        )
        .await?;
        self.recur(organisation, &incident, seen.failure, now)
            .await?;
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
    let name = &project.full_name;
    if let Some(detail) = &failure.detail {
        let what = failure.workflow.as_deref().or(failure.job.as_deref());
        return format!(
            "{name}: {}: {detail} ({})",
            what.unwrap_or("-"),
            failure.kind
        );
    }
    let job = match &failure.job {
        Some(job) => format!("job {job:?}"),
        None => "a run without jobs".to_owned(),
    };
    format!(
        "{name}: {job} failed on {} (run {}, attempt {}, {})",
        failure.base_ref, failure.run_id, failure.attempt, failure.kind
    )
}
