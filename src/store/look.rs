//! Which project is looked at next, by whom, and what the last look showed.
//!
//! A project belongs to the worker that looked at it last, so that what that process remembers (pages that have not changed)
//! stays useful; another one takes it over when its worker is late.

use super::project::{self, Project};
use super::statement::statements;
use super::{Store, StoreError, value};
use crate::clock::Millis;
use crate::connector::{Condition, Usage};
use crate::id::ProjectId;

statements! {
    /// A confirmed project is due at once.
    pub(super) ENTER = "INSERT INTO project_watch (project, next_at) VALUES ($1, $2) \
        ON CONFLICT (project) DO UPDATE SET next_at = $2";
    /// Something about a project is another way now: it is looked at at once; where somebody is looking (the next look is the
    /// lease's end), once that has ended. One that was never watched stays so.
    pub(super) NEWS = "UPDATE project_watch SET hinted_at = $2, next_at = CASE WHEN next_at = lease_until OR next_at < $2 \
        THEN next_at ELSE $2 END WHERE project = $1";
    /// Whether anything is due that this process may take. Asked before the database is locked for writing. Of two questions each
    /// is answered from the index; with one that names both, every project was read at every look, and the time grew with their
    /// square. `CROSS JOIN` keeps SQLite from beginning with the projects.
    ANY_DUE = "SELECT 1 AS due FROM project_watch w CROSS JOIN project p WHERE p.id = w.project AND p.state = 'confirmed' \
        AND p.removed_at IS NULL AND w.next_at <= $2 AND (w.lease_owner IS NULL OR w.lease_owner = $1 OR w.lease_until <= $2) \
        AND (w.looked_at IS NULL OR w.looked_at <= $3 OR w.looked_at > $4) \
        UNION ALL SELECT 1 AS due FROM project_watch w CROSS JOIN project p WHERE p.id = w.project AND p.state = 'confirmed' \
        AND p.removed_at IS NULL AND w.next_at > $4 AND COALESCE(w.looked_at, p.confirmed_at) > $4 LIMIT 1";
    /// Takes due projects. The conditions stand twice: they are asked again for a row that another process has just taken. One
    /// whose last look and whose next one are both still to come was looked at before the clock was moved back: it is due.
    TAKE_LOOKS = "UPDATE project_watch SET lease_owner = $1, lease_until = $2, next_at = $2 WHERE (next_at <= $3 \
        AND (lease_owner IS NULL OR lease_owner = $1 OR lease_until <= $3) \
        AND (looked_at IS NULL OR looked_at <= $5 OR looked_at > $6) OR next_at > $6) AND project IN \
        (SELECT due.project FROM (SELECT w.project AS project, w.next_at AS next_at FROM project_watch w CROSS JOIN project p \
        WHERE p.id = w.project AND p.state = 'confirmed' AND p.removed_at IS NULL AND w.next_at <= $3 \
        AND (w.lease_owner IS NULL OR w.lease_owner = $1 OR w.lease_until <= $3) \
        AND (w.looked_at IS NULL OR w.looked_at <= $5 OR w.looked_at > $6) \
        UNION ALL SELECT w.project, w.next_at FROM project_watch w CROSS JOIN project p WHERE p.id = w.project \
        AND p.state = 'confirmed' AND p.removed_at IS NULL AND w.next_at > $6 AND COALESCE(w.looked_at, p.confirmed_at) > $6) due \
        ORDER BY due.next_at, due.project LIMIT $4) \
        RETURNING project, condition, since, detail, mend, requests, unchanged, counted_from";
    /// One of them.
    ONE = "SELECT id, organisation, url, repository_id, full_name, host, rules, rules_digest, intent, owner, state, frozen, \
        draft_digest, created_at, confirmed_at, watch, health, schedule, removed_at FROM project \
        WHERE id = $1 AND state = 'confirmed' AND removed_at IS NULL";
    /// What a look showed. Somebody who said meanwhile that there is news is heard at once.
    LOOKED = "UPDATE project_watch SET next_at = CASE WHEN hinted_at > $1 AND hinted_at <= $17 THEN CAST($2 AS BIGINT) ELSE CAST($3 AS BIGINT) END, lease_until = $4, \
        hinted_at = CASE WHEN hinted_at > $1 AND hinted_at <= $17 THEN hinted_at ELSE NULL END, looked_at = $2, \
        answered_at = COALESCE($5, answered_at), condition = $6, since = $7, detail = $8, mend = $9, lag = COALESCE($10, lag), \
        requests = $11, unchanged = $12, counted_from = $13, budget = COALESCE($14, budget) WHERE project = $15 AND lease_owner = $16";
    /// When the next project is due.
    NEXT = "SELECT w.next_at FROM project_watch w CROSS JOIN project p WHERE p.id = w.project AND p.state = 'confirmed' \
        AND p.removed_at IS NULL AND (w.lease_owner IS NULL OR w.lease_owner = $1 OR w.lease_until <= $2) \
        ORDER BY w.next_at LIMIT 1";
    /// The projects of a process that ends are anybody's.
    LEAVE = "UPDATE project_watch SET next_at = CASE WHEN next_at = lease_until THEN $1 ELSE next_at END, lease_owner = NULL, \
        lease_until = NULL WHERE lease_owner = $2";
    /// A look takes its time.
    KEEP_LOOK = "UPDATE project_watch SET lease_until = $1, next_at = $1 WHERE project = $2 AND lease_owner = $3 \
        AND next_at = lease_until";
    /// Every project is due.
    ALL_DUE = "UPDATE project_watch SET next_at = $1, looked_at = NULL, lease_owner = NULL, lease_until = NULL";
    /// It is looked at later; who said that there is news is heard then.
    PUT_OFF = "UPDATE project_watch SET next_at = $1, lease_until = $2 WHERE project = $3 AND lease_owner = $4";
    /// What is known of a project's workflows.
    WORKFLOWS = "SELECT workflow_id, facts FROM workflow_watch WHERE project = $1 ORDER BY workflow_id";
    /// Remembers it.
    KEEP_WORKFLOW = "INSERT INTO workflow_watch (project, workflow_id, facts, updated_at) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (project, workflow_id) DO UPDATE SET facts = $3, updated_at = $4";
}

/// How long a look may take before another process may take the project over, in seconds.
const LOOK_SECONDS: i64 = 60;
/// How far ahead the last look, or news, must be for the clock to have been moved back, in seconds: more than processes differ by,
/// and more than a look may take.
const AHEAD_SECONDS: i64 = 120;
/// How late the owner of a project may be before another process takes it over, in seconds.
const LATE_SECONDS: i64 = 10;
/// How long the owner of a project keeps it at most while it does not look, in seconds: when that process was killed, news of the
/// project waits as long.
const KEPT_SECONDS: i64 = 600;
/// The shortest time between two looks at a project, whoever says that there is news, in milliseconds.
const SHORTEST_GAP: i64 = 1_000;
/// Length of the window in which requests are counted, in milliseconds.
const WINDOW: i64 = 3_600_000;

/// A project whose turn it is.
#[derive(Debug, Clone)]
pub struct Look {
    /// The project.
    pub project: Project,
    /// How it could be reached at the last look.
    pub condition: Condition,
    /// Since when.
    pub since: Option<Millis>,
    /// The provider's words then.
    pub detail: Option<String>,
    /// What to do about it.
    pub mend: Option<String>,
    requests: i64,
    unchanged: i64,
    counted_from: Millis,
    /// Who took it.
    owner: String,
}

/// What a look showed.
#[derive(Debug, Clone)]
pub struct Looked {
    /// When it began.
    pub began: Millis,
    /// When it ended.
    pub now: Millis,
    /// When the next one is due.
    pub next_at: Millis,
    /// Whether the provider answered.
    pub answered: bool,
    /// How the repository can be reached.
    pub condition: Condition,
    /// The provider's words, where there is something to say.
    pub detail: Option<String>,
    /// What to do about it.
    pub mend: Option<String>,
    /// How old the newest failure was when it was seen, in milliseconds.
    pub lag: Option<i64>,
    /// Requests that were sent.
    pub requests: u64,
    /// Those of them that were answered with "not modified".
    pub unchanged: u64,
    /// What is left of the credential's limits.
    pub budget: Usage,
}

/// Until when a project that is due then stays with its process.
fn kept_until(next_at: Millis, now: Millis) -> Millis {
    // Break it: always until a little after the next look, which may be a day off;
    // `watch::leases::a_hint_for_a_project_with_a_schedule_is_heard_after_its_process_was_killed` then fails.
    let next_at = next_at.min(now.plus_seconds(KEPT_SECONDS));
    next_at.plus_seconds(LATE_SECONDS)
}

impl Store {
    /// Takes up to `limit` projects that are due, for the process named `owner`. Each is to be given back with
    /// [`Self::looked`]; otherwise it is due again after a minute.
    pub async fn take_looks(
        &self,
        owner: &str,
        now: Millis,
        limit: u32,
    ) -> Result<Vec<Look>, StoreError> {
        const DOING: &str = "taking projects to look at";
        // Break it: leave the question out; whoever looks for work then waits for whoever writes
        // (`store::watched::while_nothing_is_due_nobody_waits_for_the_lock`).
        let mut work = self.reading(DOING).await?;
        let due = sqlx::query(ANY_DUE)
            .bind(owner)
            .bind(now.0)
            .bind(now.plus_millis(-SHORTEST_GAP).0)
            .bind(now.plus_seconds(AHEAD_SECONDS).0);
        if work.optional(due).await?.is_none() {
            return Ok(Vec::new());
        }
        drop(work);
        let mut work = self.writing(DOING).await?;
        let take = sqlx::query(TAKE_LOOKS)
            .bind(owner)
            .bind(now.plus_seconds(LOOK_SECONDS).0)
            .bind(now.0)
            .bind(i64::from(limit))
            .bind(now.plus_millis(-SHORTEST_GAP).0)
            .bind(now.plus_seconds(AHEAD_SECONDS).0);
        let mut looks = Vec::new();
        for row in work.all(take).await? {
            let id = value::text(&row, "project")?;
            let Some(found) = work.optional(sqlx::query(ONE).bind(&id)).await? else {
                continue;
            };
            looks.push(Look {
                project: project::from_row(&found)?,
                condition: value::word(&row, "condition")?,
                since: value::optional_integer(&row, "since")?.map(Millis),
                detail: value::optional_text(&row, "detail")?,
                mend: value::optional_text(&row, "mend")?,
                requests: value::integer(&row, "requests")?,
                unchanged: value::integer(&row, "unchanged")?,
                counted_from: Millis(value::integer(&row, "counted_from")?),
                owner: owner.to_owned(),
            });
        }
        work.commit().await?;
        Ok(looks)
    }

    /// A look under way goes on: nobody else takes the project over for another minute. False when somebody has already.
    pub async fn keep_look(&self, look: &Look, now: Millis) -> Result<bool, StoreError> {
        let mut work = self.writing("going on with a look").await?;
        // Break it: leave this out (`watch::leases::a_look_that_takes_its_time_keeps_its_project_and_is_shown`).
        let keep = sqlx::query(KEEP_LOOK)
            .bind(now.plus_seconds(LOOK_SECONDS).0)
            .bind(look.project.id.as_str())
            .bind(&look.owner);
        let ours = work.execute(keep).await? == 1;
        work.commit().await?;
        Ok(ours)
    }

    /// Gives projects back with what was seen, all in one transaction. A project that another process has taken over meanwhile
    /// is left alone.
    pub async fn looked(&self, owner: &str, looks: &[(Look, Looked)]) -> Result<(), StoreError> {
        if looks.is_empty() {
            return Ok(());
        }
        let mut work = self
            .writing("giving back projects that were looked at")
            .await?;
        for (look, looked) in looks {
            let fresh = looked.now.0.saturating_sub(look.counted_from.0) >= WINDOW;
            let sum = |before: i64, more: u64| {
                let more = i64::try_from(more).unwrap_or(i64::MAX);
                if fresh {
                    more
                } else {
                    before.saturating_add(more)
                }
            };
            let same = look.condition == looked.condition;
            let since = if same { look.since } else { None };
            let update = sqlx::query(LOOKED)
                .bind(looked.began.0)
                .bind(looked.now.0)
                .bind(looked.next_at.0)
                .bind(kept_until(looked.next_at, looked.now).0)
                .bind(looked.answered.then_some(looked.now.0))
                .bind(looked.condition.as_str())
                .bind(since.unwrap_or(looked.now).0)
                .bind(
                    looked
                        .detail
                        .as_deref()
                        .map(|text| value::message(text).into_owned()),
                )
                .bind(looked.mend.as_deref())
                .bind(looked.lag)
                .bind(sum(look.requests, looked.requests))
                .bind(sum(look.unchanged, looked.unchanged))
                .bind(if fresh {
                    looked.now.0
                } else {
                    look.counted_from.0
                })
                .bind(value::json("the budget", &looked.budget)?)
                .bind(look.project.id.as_str())
                .bind(owner)
                .bind(looked.now.plus_seconds(AHEAD_SECONDS).0);
            work.execute(update).await?;
        }
        work.commit().await
    }

    /// Puts a project that was taken at `now` off until then.
    pub async fn put_off_look(
        &self,
        owner: &str,
        project: &ProjectId,
        until: Millis,
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("putting a look off").await?;
        let put_off = sqlx::query(PUT_OFF)
            .bind(until.0)
            .bind(kept_until(until, now).0)
            .bind(project.as_str())
            .bind(owner);
        work.execute(put_off).await?;
        work.commit().await
    }

    /// Leaves every project of this process to others; those that were being looked at are due.
    pub async fn leave_looks(&self, owner: &str, now: Millis) -> Result<(), StoreError> {
        let mut work = self.writing("leaving projects to others").await?;
        work.execute(sqlx::query(LEAVE).bind(now.0).bind(owner))
            .await?;
        work.commit().await
    }

    /// When the next project is due for this process; none while nothing is watched.
    pub async fn next_look(&self, owner: &str, now: Millis) -> Result<Option<Millis>, StoreError> {
        let mut work = self.reading("looking when a project is due").await?;
        let row = work
            .optional(sqlx::query(NEXT).bind(owner).bind(now.0))
            .await?;
        row.map(|row| value::integer(&row, "next_at").map(Millis))
            .transpose()
    }

    /// Makes every project due, whoever looked at it last.
    pub async fn look_at_all(&self, now: Millis) -> Result<(), StoreError> {
        let mut work = self.writing("making every project due").await?;
        work.execute(sqlx::query(ALL_DUE).bind(now.0)).await?;
        work.commit().await
    }

    /// What is known of a project's workflows: their numbers and a document each.
    pub async fn workflow_facts(
        &self,
        project: &ProjectId,
    ) -> Result<Vec<(u64, String)>, StoreError> {
        let mut work = self.reading("reading what is known of workflows").await?;
        let rows = work
            .all(sqlx::query(WORKFLOWS).bind(project.as_str()))
            .await?;
        let read = |row| {
            Ok((
                value::count(row, "workflow_id")?,
                value::text(row, "facts")?,
            ))
        };
        rows.iter().map(read).collect()
    }

    /// Remembers what is known of some of its workflows.
    pub async fn keep_workflow_facts(
        &self,
        project: &ProjectId,
        facts: &[(u64, String)],
        now: Millis,
    ) -> Result<(), StoreError> {
        if facts.is_empty() {
            return Ok(());
        }
        let mut work = self
            .writing("remembering what is known of workflows")
            .await?;
        for (workflow, facts) in facts {
            let keep = sqlx::query(KEEP_WORKFLOW)
                .bind(project.as_str())
                .bind(value::bigint("the workflow's number", *workflow)?)
                .bind(value::message(facts).into_owned())
                .bind(now.0);
            work.execute(keep).await?;
        }
        work.commit().await
    }
}
