//! Sealed credentials: replaced, sealed anew, and gone with their project.

use super::approval::LOCK;
use super::commit::REVOKE;
use super::project::{self, Project, WAKE};
use super::statement::statements;
use super::{Store, StoreError, Work, look, value};
use crate::clock::Millis;
use crate::id::{IncidentId, OrganisationId, ProjectId};
use crate::incident::{AuditEvent, ClosedReason, Fact, Snapshot};

statements! {
    /// Every project with its credential.
    SEALED = "SELECT id, organisation, url, repository_id, full_name, host, rules, rules_digest, intent, owner, state, frozen, \
        draft_digest, created_at, confirmed_at, watch, health, schedule, removed_at, credential FROM project \
        WHERE removed_at IS NULL ORDER BY id";
    /// How many there are.
    COUNT_SEALED = "SELECT COUNT(*) AS found FROM project WHERE removed_at IS NULL";
    /// Another credential in the place of the one that was read.
    SWAP = "UPDATE project SET credential = $1 WHERE id = $2 AND organisation = $3 AND credential = $4 AND removed_at IS NULL";
    /// Another draft in the place of the one that was read; a person confirms it.
    REDRAFT = "UPDATE project SET url = $1, full_name = $2, draft_digest = $3, state = 'draft', confirmed_at = NULL \
        WHERE id = $4 AND organisation = $5 AND draft_digest = $6 AND removed_at IS NULL";
    /// Nothing is left of the credential.
    REMOVE = "UPDATE project SET credential = $1, removed_at = $2, merge_holder = NULL \
        WHERE id = $3 AND organisation = $4 AND removed_at IS NULL";
    /// Its open incidents.
    OPEN = "SELECT id FROM incident WHERE project = $1 AND organisation = $2 AND stage NOT IN ('resolved', 'closed') ORDER BY id";
    /// Nobody works on it any more.
    LAY_DOWN = "UPDATE incident SET version = version + 1, wake_at = NULL, wait_reason = NULL, lease_owner = NULL, \
        lease_until = NULL WHERE id = $1 AND organisation = $2";
    /// It is not looked at any more.
    FORGET_WATCH = "DELETE FROM project_watch WHERE project = $1";
    /// Nor its workflows.
    FORGET_WORKFLOWS = "DELETE FROM workflow_watch WHERE project = $1";
    /// Nor its endpoints.
    FORGET_HEALTH = "DELETE FROM health_watch WHERE project = $1";
    /// Answers that the approver has not looked at yet. It compares them with what follows from the key.
    UNSIGNED_ANSWERS = "SELECT COUNT(*) AS found FROM fact c JOIN incident i ON i.id = c.incident WHERE c.kind = 'consumed' \
        AND i.stage NOT IN ('blocked', 'resolved', 'escalated', 'closed') \
        AND NOT EXISTS (SELECT 1 FROM fact d WHERE d.incident = c.incident AND d.kind = 'approval-drafted')";
    /// Questions whose links follow from the older key, also those whose link is only being made.
    FENCE_ASKED = "UPDATE incident SET version = version + 1, updated_at = $1, wake_at = $1, wait_reason = NULL \
        WHERE stage = 'awaiting-approval' RETURNING id, organisation, project";
    /// Their links.
    REVOKE_EVERY = "UPDATE approval SET revoked_at = $1 WHERE revoked_at IS NULL AND consumed_at IS NULL";
}

/// A credential that takes the place of another one.
#[derive(Debug, Clone)]
pub struct Swap {
    /// The project as it was read.
    pub project: Project,
    /// The sealed bytes that were read.
    pub before: Vec<u8>,
    /// Those that take their place.
    pub after: Vec<u8>,
}

/// What became of a removed project's open incidents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removal {
    /// These were closed: superseded.
    pub closed: Vec<IncidentId>,
    /// These stay as they are, for ever, and why.
    pub left: Vec<(IncidentId, &'static str)>,
    /// Pages of pull requests that were open when last looked at; nobody closes them.
    pub pulls: Vec<String>,
}

impl Store {
    /// Every project that is there with its sealed credential.
    pub async fn sealed_credentials(&self) -> Result<Vec<(Project, Vec<u8>)>, StoreError> {
        let mut work = self.reading("reading the credentials").await?;
        let rows = work.all(sqlx::query(SEALED)).await?;
        let one = |row| Ok((project::from_row(row)?, value::bytes(row, "credential")?));
        rows.iter().map(one).collect()
    }

    /// Puts a credential in the place of the one that was read. What rests looks again. With `redraft`, the project becomes
    /// the draft that it shows, and a person confirms it.
    ///
    /// # Errors
    /// The database; or the project or its credential is another one by now: [`StoreError::Refused`].
    pub async fn replace_credential(
        &self,
        swap: &Swap,
        redraft: Option<&Project>,
        event: &AuditEvent,
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("replacing a credential").await?;
        let project = &swap.project;
        work.swap(swap).await?;
        if let Some(after) = redraft {
            let draft = sqlx::query(REDRAFT)
                .bind(value::exact("the project's address", &after.url)?)
                .bind(value::exact("the repository's name", &after.full_name)?)
                .bind(after.draft_digest.to_string())
                .bind(project.id.as_str())
                .bind(project.organisation.as_str())
                .bind(project.draft_digest.to_string());
            if work.execute(draft).await? == 0 {
                return Err(changed_meanwhile(work.doing, project));
            }
        }
        let wake = sqlx::query(WAKE)
            .bind(now.0)
            .bind(project.id.as_str())
            .bind(project.organisation.as_str());
        work.execute(wake).await?;
        // Break it: leave this out; `store::credential::with_another_credential_a_project_is_looked_at_at_once` then fails.
        let news = sqlx::query(look::NEWS)
            .bind(project.id.as_str())
            .bind(now.0);
        work.execute(news).await?;
        let whose = (&project.organisation, &project.id);
        work.audit(whose.0, None, Some(whose.1), event, now).await?;
        work.commit_and_nudge().await?;
        self.forget().await.map(drop)
    }

    /// Puts other sealed bytes in the place of every credential, all or none. Since approval links follow from the key that
    /// sealed them, every link that was not used is revoked and its question asked anew. Gives the incidents of those.
    ///
    /// # Errors
    /// The database; or a credential is another one by now, a project was registered meanwhile, or an answer waits for the
    /// approver: [`StoreError::Refused`]. Nothing was written then.
    pub async fn reseal_credentials(
        &self,
        swaps: &[Swap],
        organisation: &OrganisationId,
        event: &AuditEvent,
        now: Millis,
    ) -> Result<Vec<IncidentId>, StoreError> {
        let mut work = self.writing("sealing the credentials anew").await?;
        for swap in swaps {
            work.swap(swap).await?;
        }
        let refused = |reason: &str| {
            Err(StoreError::Refused {
                doing: "sealing the credentials anew",
                reason: reason.to_owned(),
            })
        };
        let there = work.count(sqlx::query(COUNT_SEALED)).await?;
        if usize::try_from(there).ok() != Some(swaps.len()) {
            return refused(
                "a project was registered or removed meanwhile; nothing was written, try again",
            );
        }
        // Break it: leave this question out; `store::credential::an_answer_that_waits_for_its_signature_holds_the_rotation_up` fails.
        if work.count(sqlx::query(UNSIGNED_ANSWERS)).await? > 0 {
            return refused(
                "a person's answer waits for its signature, which needs the present key; nothing was written. Let a worker run for a moment, then try again",
            );
        }
        let renewed = work.renew_links(now).await?;
        work.audit(organisation, None, None, event, now).await?;
        for Swap { project, .. } in swaps {
            work.audit(&project.organisation, None, Some(&project.id), event, now)
                .await?;
        }
        work.commit_and_nudge().await?;
        self.forget().await?;
        Ok(renewed)
    }

    /// Empties a project's credential and ends everything about the project; its history and its ledgers stay. `false`: an
    /// older copy of the credential, still sealed, lies in SQLite's write-ahead file until others are done reading.
    ///
    /// # Errors
    /// The database; or the project is removed already: [`StoreError::Refused`].
    pub async fn remove_project(
        &self,
        project: &Project,
        by: &str,
        now: Millis,
    ) -> Result<(Removal, bool), StoreError> {
        let mut work = self.writing("removing a project").await?;
        let (organisation, id) = (&project.organisation, &project.id);
        let mut removal = Removal::default();
        // Before the project: whoever takes both locks takes them in one order.
        work.end_open(project, by, now, &mut removal).await?;
        // Break it: leave the credential as it is; `onboard::removal::nothing_of_the_credential_is_left_in_the_files` fails.
        let remove = sqlx::query(REMOVE)
            .bind(&[][..])
            .bind(now.0)
            .bind(id.as_str())
            .bind(organisation.as_str());
        if work.execute(remove).await? == 0 {
            return Err(StoreError::Refused {
                doing: work.doing,
                reason: format!("{id} is removed already"),
            });
        }
        // What was observed until now. Nothing is, from here on.
        // Break it: leave this out; on PostgreSQL, where transactions run beside each other,
        // `store::watched::what_is_observed_while_a_project_is_removed_does_not_stay_open` then fails in most runs.
        work.end_open(project, by, now, &mut removal).await?;
        for forget in [FORGET_WATCH, FORGET_WORKFLOWS, FORGET_HEALTH] {
            work.execute(sqlx::query(forget).bind(id.as_str())).await?;
        }
        let event = AuditEvent {
            kind: "project-removed",
            detail: format!("by {by}; {}", in_words(&removal)),
        };
        work.audit(organisation, None, Some(id), &event, now)
            .await?;
        let text = format!(
            "{} is not watched any more: {by} removed the project",
            project.full_name
        );
        work.notify_of_project(organisation, id, &text, now).await?;
        work.commit_and_nudge().await?;
        let forgotten = self.forget().await?;
        Ok((removal, forgotten))
    }

    /// Brings what was deleted out of SQLite's write-ahead file. PostgreSQL has its own times for that.
    async fn forget(&self) -> Result<bool, StoreError> {
        let Some(statement) = self.dialect.forget() else {
            return Ok(true);
        };
        let row = sqlx::query(statement).fetch_one(&self.pool).await;
        let row = row.map_err(|error| self.translated("emptying the write-ahead file", &error))?;
        Ok(value::integer(&row, "busy")? == 0)
    }
}

fn changed_meanwhile(doing: &'static str, project: &Project) -> StoreError {
    let reason = format!(
        "{} or its credential was changed meanwhile; nothing was written. Look at it with `caretaker project show {}`, then try again",
        project.id, project.id
    );
    StoreError::Refused { doing, reason }
}

fn in_words(removal: &Removal) -> String {
    format!(
        "its credential is gone, {} incidents were closed and {} stay as they are",
        removal.closed.len(),
        removal.left.len()
    )
}

/// Why an open incident cannot be ended from outside, if so: its ledger would then say less than what happened.
fn unfinished(snapshot: &Snapshot) -> Option<&'static str> {
    if snapshot.active_merge().is_some() && snapshot.escalation().is_none() {
        Some("a merge was begun, and whether it landed is not known")
    } else if snapshot.ledger.appended < snapshot.ledger.drafted {
        Some("an event was drafted and not signed yet")
    } else {
        None
    }
}

impl Work {
    async fn swap(&mut self, swap: &Swap) -> Result<(), StoreError> {
        let project = &swap.project;
        let query = sqlx::query(SWAP)
            .bind(swap.after.as_slice())
            .bind(project.id.as_str())
            .bind(project.organisation.as_str())
            .bind(swap.before.as_slice());
        if self.execute(query).await? == 0 {
            return Err(changed_meanwhile(self.doing, project));
        }
        Ok(())
    }

    async fn renew_links(&mut self, now: Millis) -> Result<Vec<IncidentId>, StoreError> {
        let event = AuditEvent {
            kind: "link-renewed",
            detail: "the key from which links follow was rotated; an older link no longer works and another one is sent".to_owned(),
        };
        // The incidents before their links: whoever takes both locks takes them in one order.
        let asked = self.all(sqlx::query(FENCE_ASKED).bind(now.0)).await?;
        let mut renewed = Vec::new();
        for row in &asked {
            let incident: IncidentId = value::parsed(row, "id")?;
            let organisation: OrganisationId = value::parsed(row, "organisation")?;
            let project: ProjectId = value::parsed(row, "project")?;
            self.audit(&organisation, Some(&incident), Some(&project), &event, now)
                .await?;
            renewed.push(incident);
        }
        self.execute(sqlx::query(REVOKE_EVERY).bind(now.0)).await?;
        Ok(renewed)
    }

    /// Ends every open incident of a project that is being removed and was not dealt with yet.
    async fn end_open(
        &mut self,
        project: &Project,
        by: &str,
        now: Millis,
        removal: &mut Removal,
    ) -> Result<(), StoreError> {
        let open = sqlx::query(OPEN)
            .bind(project.id.as_str())
            .bind(project.organisation.as_str());
        for row in self.all(open).await? {
            let incident: IncidentId = value::parsed(&row, "id")?;
            if removal.left.iter().all(|(left, _)| *left != incident) {
                let organisation = &project.organisation;
                self.end(organisation, &incident, by, now, removal).await?;
            }
        }
        Ok(())
    }

    /// Ends an open incident of a project that is being removed, or lays it down as it is.
    async fn end(
        &mut self,
        organisation: &OrganisationId,
        incident: &IncidentId,
        by: &str,
        now: Millis,
        removal: &mut Removal,
    ) -> Result<(), StoreError> {
        let lock = sqlx::query(LOCK)
            .bind(incident.as_str())
            .bind(organisation.as_str());
        self.execute(lock).await?;
        let Some(snapshot) = self.snapshot(organisation, incident, now).await? else {
            return Ok(());
        };
        if snapshot.landed().is_none()
            && let Some(page) = snapshot.pull_request_url()
        {
            removal.pulls.push(page.to_owned());
        }
        if let Some(why) = unfinished(&snapshot) {
            let detail = format!(
                "{by} removed the project, and nobody works on this any more. It stays as it is: {why}"
            );
            let event = AuditEvent {
                kind: "project-removed",
                detail,
            };
            let project = Some(&snapshot.project);
            self.audit(organisation, Some(incident), project, &event, now)
                .await?;
            removal.left.push((incident.clone(), why));
        } else {
            let fact = Fact::Closed {
                reason: ClosedReason::Superseded,
                detail: format!("{by} removed the project"),
            };
            self.add_fact(organisation, incident, &fact, now).await?;
            removal.closed.push(incident.clone());
        }
        let revoke = sqlx::query(REVOKE)
            .bind(now.0)
            .bind(incident.as_str())
            .bind(organisation.as_str());
        self.execute(revoke).await?;
        let lay_down = sqlx::query(LAY_DOWN)
            .bind(incident.as_str())
            .bind(organisation.as_str());
        self.execute(lay_down).await.map(|_| ())
    }
}
