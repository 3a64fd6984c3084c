//! Registered repositories with their policy.

use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;

use super::statement::statements;
use super::{Store, StoreError, look, value};
use crate::approve::Principal;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::{OrganisationId, ProjectId};
use crate::log::{Leaf, Record};

statements! {
    /// A new draft.
    INSERT = "INSERT INTO project (id, organisation, url, repository_id, full_name, host, rules, rules_digest, intent, owner, \
        state, frozen, draft_digest, credential, created_at, confirmed_at, watch, health, schedule) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)";
    /// Another project that watches the same repository.
    TWIN = "SELECT id FROM project WHERE organisation = $1 AND host = $2 AND repository_id = $3 AND state <> 'draft' \
        AND removed_at IS NULL AND id <> $4";
    /// A draft becomes watched, if it still is the one that was shown.
    CONFIRM = "UPDATE project SET state = 'confirmed', confirmed_at = $1 \
        WHERE id = $2 AND organisation = $3 AND state = 'draft' AND draft_digest = $4 AND removed_at IS NULL";
    /// Pauses or resumes.
    SET_STATE = "UPDATE project SET state = $1 WHERE id = $2 AND organisation = $3 AND state <> 'draft' \
        AND removed_at IS NULL";
    /// Lets merges go on.
    UNFREEZE = "UPDATE project SET frozen = NULL WHERE id = $1 AND organisation = $2";
    /// Incidents that rest look again.
    pub(super) WAKE = "UPDATE incident SET wake_at = $1 WHERE project = $2 AND organisation = $3 AND wake_at > $1";
    /// The sealed credential.
    CREDENTIAL = "SELECT credential FROM project WHERE id = $1";
    /// The project of a repository: one that is or was watched before a draft, and the newest of several.
    OF_REPOSITORY = "SELECT id FROM project WHERE organisation = $1 AND repository_id = $2 AND removed_at IS NULL \
        ORDER BY CASE WHEN state = 'draft' THEN 1 ELSE 0 END, id DESC LIMIT 1";
}

/// Where a project is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProjectState {
    /// Registered; its policy waits for a person's confirmation.
    Draft,
    /// Watched.
    Confirmed,
    /// Not watched for now.
    Paused,
}

impl ProjectState {
    /// The word used in tables, pages and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Confirmed => "confirmed",
            Self::Paused => "paused",
        }
    }
}

/// What of a project is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchMode {
    /// CI runs.
    #[default]
    Ci,
    /// Health endpoints.
    Health,
}

impl WatchMode {
    /// The word used in tables, pages and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ci => "ci",
            Self::Health => "health",
        }
    }
}

/// A registered repository. Its credential is read apart, with [`Store::credential`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The project.
    pub id: ProjectId,
    /// Whose it is.
    pub organisation: OrganisationId,
    /// Address of the repository.
    pub url: String,
    /// The provider's own number of the repository, as text; names can be transferred, numbers cannot.
    pub repository_id: String,
    /// `owner/name` at the provider.
    pub full_name: String,
    /// Host name of the provider.
    pub host: String,
    /// The rules and settings, as YAML source.
    pub rules: String,
    /// SHA-256 of the rules as they are signed.
    pub rules_digest: Sha256Digest,
    /// The intent document.
    pub intent: String,
    /// Who answers for it.
    pub owner: Principal,
    /// Where it is.
    pub state: ProjectState,
    /// Why nothing is merged until a person lifts it.
    pub frozen: Option<String>,
    /// Digest of the draft that a person confirms.
    pub draft_digest: Sha256Digest,
    /// When it was registered.
    pub created_at: Millis,
    /// When a person confirmed it.
    pub confirmed_at: Option<Millis>,
    /// What of it is watched.
    pub watch: WatchMode,
    /// The health endpoints that are watched, as a JSON list; `[]` for none.
    pub health: String,
    /// When it is looked at, as a cron expression with seconds; the configured default where none.
    pub schedule: Option<String>,
    /// When it was removed; its credential is gone since then.
    pub removed_at: Option<Millis>,
}

pub(super) fn from_row(row: &AnyRow) -> Result<Project, StoreError> {
    Ok(Project {
        id: value::parsed(row, "id")?,
        organisation: value::parsed(row, "organisation")?,
        url: value::text(row, "url")?,
        repository_id: value::text(row, "repository_id")?,
        full_name: value::text(row, "full_name")?,
        host: value::text(row, "host")?,
        rules: value::text(row, "rules")?,
        rules_digest: value::parsed(row, "rules_digest")?,
        intent: value::text(row, "intent")?,
        owner: value::parsed(row, "owner")?,
        state: value::word(row, "state")?,
        frozen: value::optional_text(row, "frozen")?,
        draft_digest: value::parsed(row, "draft_digest")?,
        created_at: Millis(value::integer(row, "created_at")?),
        confirmed_at: value::optional_integer(row, "confirmed_at")?.map(Millis),
        watch: value::word(row, "watch")?,
        health: value::text(row, "health")?,
        schedule: value::optional_text(row, "schedule")?,
        removed_at: value::optional_integer(row, "removed_at")?.map(Millis),
    })
}

impl Store {
    /// Keeps a new project with its sealed credential.
    pub async fn insert_project(
        &self,
        project: &Project,
        credential: &[u8],
    ) -> Result<(), StoreError> {
        let mut work = self.writing("registering a project").await?;
        let insert = sqlx::query(INSERT)
            .bind(project.id.as_str())
            .bind(project.organisation.as_str())
            .bind(value::exact("the project's address", &project.url)?)
            .bind(value::exact(
                "the repository's number",
                &project.repository_id,
            )?)
            .bind(value::exact("the repository's name", &project.full_name)?)
            .bind(value::exact("the provider's host", &project.host)?)
            .bind(value::exact("the rules", &project.rules)?)
            .bind(project.rules_digest.to_string())
            .bind(value::exact("the intent document", &project.intent)?)
            .bind(project.owner.as_str())
            .bind(project.state.as_str())
            .bind(project.frozen.as_deref())
            .bind(project.draft_digest.to_string())
            .bind(credential)
            .bind(project.created_at.0)
            .bind(project.confirmed_at.map(|at| at.0))
            .bind(project.watch.as_str())
            .bind(value::exact("the health endpoints", &project.health)?)
            .bind(project.schedule.as_deref());
        work.execute(insert).await?;
        work.commit().await
    }

    /// A person confirmed the draft as it was shown (`project` as it was read then): it is watched from now on. A repository
    /// is watched by one project of an organisation. `version` is the signed word that its rules come into force; none where they
    /// already are.
    pub async fn confirm_project(
        &self,
        project: &Project,
        version: Option<&Leaf>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let doing = "confirming a project";
        let mut work = self.writing(doing).await?;
        let twin = sqlx::query(TWIN)
            .bind(project.organisation.as_str())
            .bind(&project.host)
            .bind(&project.repository_id)
            .bind(project.id.as_str());
        if let Some(row) = work.optional(twin).await? {
            let twin = value::text(&row, "id")?;
            let reason = format!(
                "{} is watched by {twin} already; pause or change that one",
                project.full_name
            );
            return Err(StoreError::Refused { doing, reason });
        }
        let confirm = sqlx::query(CONFIRM)
            .bind(now.0)
            .bind(project.id.as_str())
            .bind(project.organisation.as_str())
            .bind(project.draft_digest.to_string());
        if work.execute(confirm).await? == 0 {
            let reason = format!(
                "{} is no draft any more, or not the one that was shown; look at it again with `caretaker project list`",
                project.id
            );
            return Err(StoreError::Refused { doing, reason });
        }
        let enter = sqlx::query(look::ENTER)
            .bind(project.id.as_str())
            .bind(now.0);
        work.execute(enter).await?;
        let rules = Record::Rules {
            sha256: project.rules_digest,
            bytes: project.rules.len() as u64,
        };
        work.log_record(&project.organisation, rules, now).await?;
        if let Some(version) = version {
            work.log_leaf(&project.organisation, version, now).await?;
        }
        work.commit().await
    }

    /// Pauses a confirmed project or resumes a paused one, which is looked at at once.
    pub async fn set_project_state(
        &self,
        project: &Project,
        state: ProjectState,
        now: Millis,
    ) -> Result<(), StoreError> {
        let doing = "pausing or resuming a project";
        let mut work = self.writing(doing).await?;
        let set = sqlx::query(SET_STATE)
            .bind(state.as_str())
            .bind(project.id.as_str())
            .bind(project.organisation.as_str());
        if state == ProjectState::Draft || work.execute(set).await? == 0 {
            let reason = format!(
                "{} is not confirmed; `caretaker project confirm {}` first",
                project.id, project.id
            );
            return Err(StoreError::Refused { doing, reason });
        }
        if state == ProjectState::Confirmed {
            let news = sqlx::query(look::NEWS)
                .bind(project.id.as_str())
                .bind(now.0);
            work.execute(news).await?;
        }
        work.commit().await
    }

    /// A person looked at what landed: merges go on, and resting incidents look again.
    pub async fn unfreeze(&self, project: &Project, now: Millis) -> Result<(), StoreError> {
        let mut work = self.writing("unfreezing a project").await?;
        let wake = sqlx::query(WAKE)
            .bind(now.0)
            .bind(project.id.as_str())
            .bind(project.organisation.as_str());
        work.execute(wake).await?;
        let unfreeze = sqlx::query(UNFREEZE)
            .bind(project.id.as_str())
            .bind(project.organisation.as_str());
        work.execute(unfreeze).await?;
        work.commit_and_nudge().await
    }

    /// The project that a repository is registered as, by the provider's number of it; none when it is not, or was removed.
    pub async fn project_of_repository(
        &self,
        organisation: &OrganisationId,
        repository: u64,
    ) -> Result<Option<ProjectId>, StoreError> {
        let mut work = self.reading("looking for a repository's project").await?;
        let select = sqlx::query(OF_REPOSITORY)
            .bind(organisation.as_str())
            .bind(repository.to_string());
        let row = work.optional(select).await?;
        row.map(|row| value::parsed(&row, "id")).transpose()
    }

    /// The sealed credential of a project.
    pub async fn credential(&self, project: &ProjectId) -> Result<Option<Vec<u8>>, StoreError> {
        let mut work = self.reading("reading a project's credential").await?;
        let row = work
            .optional(sqlx::query(CREDENTIAL).bind(project.as_str()))
            .await?;
        row.map(|row| value::bytes(&row, "credential")).transpose()
    }
}
