//! Patterns of calls that a person allows always, each in one project or worktree.

use super::statement::statements;
use super::{Store, StoreError, Work, value};
use crate::clock::Millis;
use crate::id::{AlwaysId, IncidentId, OrganisationId, ProjectId};
use crate::tool_gate::decider::Decider;

statements! {
    /// Allows a pattern from now on.
    ALLOW = "INSERT INTO call_pattern (id, organisation, scope, tool, pattern, decider, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7) \
        ON CONFLICT (organisation, scope, tool, pattern) WHERE revoked_at IS NULL DO NOTHING";
    /// Those that may stand for a call.
    IN_FORCE = "SELECT id, pattern FROM call_pattern WHERE organisation = $1 AND scope = $2 AND tool = $3 AND revoked_at IS NULL \
        ORDER BY created_at, id LIMIT 200";
    /// All of them.
    PATTERNS = "SELECT id, scope, tool, pattern, decider, created_at, revoked_by, revoked_at FROM call_pattern WHERE organisation = $1 \
        ORDER BY created_at, id LIMIT 1000";
    /// Takes one back.
    REVOKE = "UPDATE call_pattern SET revoked_at = $1, revoked_by = $2 WHERE organisation = $3 AND id = $4 AND revoked_at IS NULL";
    /// Whose incident it is.
    PROJECT_OF = "SELECT project FROM incident WHERE organisation = $1 AND id = $2";
}

/// A pattern that stands for calls, or did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedPattern {
    /// Its name.
    pub id: AlwaysId,
    /// The project or the worktree that it counts in.
    pub scope: String,
    /// The tool.
    pub tool: String,
    /// The pattern, as a person wrote it.
    pub pattern: String,
    /// Who allowed it.
    pub decider: Decider,
    /// When.
    pub created_at: Millis,
    /// Who took it back and when.
    pub revoked: Option<(Decider, Millis)>,
}

impl Store {
    /// The patterns in force for a tool in a project or worktree, at most 200, the oldest first.
    ///
    /// # Errors
    /// The database.
    pub async fn call_patterns(
        &self,
        organisation: &OrganisationId,
        scope: &str,
        tool: &str,
    ) -> Result<Vec<(AlwaysId, String)>, StoreError> {
        let mut work = self.reading("looking for patterns of tool calls").await?;
        let found = sqlx::query(IN_FORCE)
            .bind(organisation.as_str())
            .bind(value::exact("the scope", scope)?)
            .bind(value::exact("the tool's name", tool)?);
        let rows = work.all(found).await?;
        rows.iter()
            .map(|row| Ok((value::parsed(row, "id")?, value::text(row, "pattern")?)))
            .collect()
    }

    /// Every pattern, oldest first.
    ///
    /// # Errors
    /// The database.
    pub async fn pattern_list(
        &self,
        organisation: &OrganisationId,
    ) -> Result<Vec<AllowedPattern>, StoreError> {
        let mut work = self.reading("listing the patterns of tool calls").await?;
        let query = sqlx::query(PATTERNS).bind(organisation.as_str());
        let rows = work.all(query).await?;
        let read = |row| {
            let revoked = match value::optional_integer(row, "revoked_at")? {
                Some(at) => Some((value::document(row, "revoked_by")?, Millis(at))),
                None => None,
            };
            Ok(AllowedPattern {
                id: value::parsed(row, "id")?,
                scope: value::text(row, "scope")?,
                tool: value::text(row, "tool")?,
                pattern: value::text(row, "pattern")?,
                decider: value::document(row, "decider")?,
                created_at: Millis(value::integer(row, "created_at")?),
                revoked,
            })
        };
        rows.iter().map(read).collect()
    }

    /// Takes a pattern back. False when there is none that is in force.
    ///
    /// # Errors
    /// The database.
    pub async fn revoke_pattern(
        &self,
        organisation: &OrganisationId,
        id: &AlwaysId,
        decider: &Decider,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let mut work = self.writing("taking back a pattern of tool calls").await?;
        let revoke = sqlx::query(REVOKE)
            .bind(now.0)
            .bind(value::json("the decider", decider)?)
            .bind(organisation.as_str())
            .bind(id.as_str());
        let revoked = work.execute(revoke).await? == 1;
        work.commit().await?;
        Ok(revoked)
    }

    /// The project of an incident, if there is such an incident.
    ///
    /// # Errors
    /// The database.
    pub async fn project_of_incident(
        &self,
        organisation: &OrganisationId,
        incident: &IncidentId,
    ) -> Result<Option<ProjectId>, StoreError> {
        let mut work = self.reading("looking for an incident's project").await?;
        let query = sqlx::query(PROJECT_OF)
            .bind(organisation.as_str())
            .bind(incident.as_str());
        let row = work.optional(query).await?;
        row.map(|row| value::parsed(&row, "project")).transpose()
    }
}

/// A pattern that is about to count.
pub(super) struct NewPattern<'a> {
    pub(super) id: &'a AlwaysId,
    pub(super) scope: &'a str,
    pub(super) tool: &'a str,
    pub(super) pattern: &'a str,
    /// The decider, as it is stored.
    pub(super) decider: &'a str,
}

impl Work {
    pub(super) async fn allow_pattern(
        &mut self,
        organisation: &OrganisationId,
        new: &NewPattern<'_>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let allow = sqlx::query(ALLOW)
            .bind(new.id.as_str())
            .bind(organisation.as_str())
            .bind(value::exact("the scope", new.scope)?)
            .bind(new.tool)
            .bind(value::exact("the pattern", new.pattern)?)
            .bind(new.decider)
            .bind(now.0);
        self.execute(allow).await.map(|_| ())
    }
}
