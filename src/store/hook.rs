//! Webhook deliveries: which were heard already, and whom they make due.

use super::statement::statements;
use super::{Store, StoreError, Work, value};
use crate::clock::Millis;
use crate::id::OrganisationId;

statements! {
    /// A delivery is noted once.
    NOTE = "INSERT INTO hook_delivery (delivery, received_at) VALUES ($1, $2) ON CONFLICT (delivery) DO NOTHING";
    /// Forgets some of the oldest. They are found by their time, so that two processes take them in the same order.
    FORGET_DELIVERIES = "DELETE FROM hook_delivery WHERE received_at < $1 AND received_at <= \
        (SELECT MAX(old.received_at) FROM (SELECT received_at FROM hook_delivery ORDER BY received_at LIMIT 100) old)";
    /// The same of objects.
    FORGET_OBJECTS = "DELETE FROM hook_object WHERE received_at < $1 AND received_at <= \
        (SELECT MAX(old.received_at) FROM (SELECT received_at FROM hook_object ORDER BY received_at LIMIT 100) old)";
    /// Whether anybody watches the repository.
    WATCHED = "SELECT COUNT(*) AS found FROM project WHERE organisation = $1 AND host = $2 AND repository_id = $3 \
        AND state = 'confirmed' AND removed_at IS NULL";
    /// A later version of an object. The versions of one object are digits of one length.
    ADVANCE = "INSERT INTO hook_object (object, version, received_at) VALUES ($1, $2, $3) ON CONFLICT (object) \
        DO UPDATE SET version = EXCLUDED.version, received_at = EXCLUDED.received_at WHERE hook_object.version < EXCLUDED.version";
    /// Another version of an object whose versions have no order.
    REPLACE = "INSERT INTO hook_object (object, version, received_at) VALUES ($1, $2, $3) ON CONFLICT (object) \
        DO UPDATE SET version = EXCLUDED.version, received_at = EXCLUDED.received_at WHERE hook_object.version <> EXCLUDED.version";
    /// Whoever watches the repository looks now; where somebody is looking (the next look is the lease's end), once that has
    /// ended.
    HINT = "INSERT INTO project_watch (project, next_at, hinted_at, counted_from) \
        SELECT p.id, CAST($1 AS BIGINT), CAST($1 AS BIGINT), CAST($1 AS BIGINT) FROM project p WHERE p.organisation = $2 \
        AND p.host = $3 AND p.repository_id = $4 AND p.state = 'confirmed' AND p.removed_at IS NULL \
        ON CONFLICT (project) DO UPDATE SET hinted_at = EXCLUDED.hinted_at, \
        next_at = CASE WHEN project_watch.next_at = project_watch.lease_until OR project_watch.next_at < EXCLUDED.next_at \
        THEN project_watch.next_at ELSE EXCLUDED.next_at END";
    /// When anything was heard last.
    NEWEST = "SELECT MAX(received_at) AS newest FROM hook_delivery";
}

/// How long deliveries and versions are remembered, in milliseconds: the provider sends again what is up to three days old.
const REMEMBERED_MILLIS: i64 = 3 * 24 * 60 * 60 * 1000;

/// A delivery whose signature was right.
#[derive(Debug, Clone, Copy)]
pub struct HookDelivery<'a> {
    /// Its identifier.
    pub id: &'a str,
    /// What names its body: the identifier is not signed, so the same body under another one is the same delivery.
    pub body: &'a str,
    /// The provider's host.
    pub host: &'a str,
    /// The provider's numbers of the repositories that it says to look at, ascending.
    pub repositories: &'a [u64],
    /// The object that it tells of.
    pub object: Option<HookObject<'a>>,
}

/// An object in one of its versions.
#[derive(Debug, Clone, Copy)]
pub struct HookObject<'a> {
    /// Which one.
    pub name: &'a str,
    /// The version.
    pub version: HookVersion<'a>,
}

/// A version of an object.
#[derive(Debug, Clone, Copy)]
pub enum HookVersion<'a> {
    /// Greater ones are later. All versions of one object have the same number of digits.
    Ordered {
        /// The digits.
        digits: &'a str,
        /// The provider's time of it.
        at: Millis,
    },
    /// Any other than the last one is news.
    Other(&'a str),
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Heard {
    /// So many projects are looked at now.
    Hinted(u64),
    /// It was heard before.
    Known,
    /// A version of its object that is as new was heard before.
    Stale,
    /// Nobody watches its repositories.
    Unwatched,
    /// It is noted; there is nothing to look at.
    Noted,
}

impl Store {
    /// Notes a delivery and, when it is news, makes those projects of the organisation due that watch its repositories. The
    /// delivery, the version and the hint are written together or not at all.
    ///
    /// A project is due as often as it is hinted at; how often it is looked at is for whoever looks to limit.
    pub async fn hear(
        &self,
        organisation: &OrganisationId,
        delivery: &HookDelivery<'_>,
        now: Millis,
    ) -> Result<Heard, StoreError> {
        let mut work = self.writing("noting a webhook delivery").await?;
        // Break it: note the identifier alone; `hooks::http::a_replay_under_another_identifier_hints_nobody` then fails.
        let mut known = false;
        for name in [delivery.id, delivery.body] {
            known |= !work.note_hook(organisation, name, now).await?;
        }
        // Break it: go on although it is known; `hooks::store::a_delivery_is_heard_once` then fails.
        if known {
            work.commit().await?;
            return Ok(Heard::Known);
        }
        // Before anything else is locked, and oldest first: two processes then wait for each other in one direction only.
        work.forget_hooks(now).await?;
        let heard = work.hint(organisation, delivery, now).await?;
        if matches!(heard, Heard::Hinted(_)) {
            work.commit_and_nudge().await?;
        } else {
            work.commit().await?;
        }
        Ok(heard)
    }

    /// When the last delivery was heard.
    pub async fn last_hook_delivery(&self) -> Result<Option<Millis>, StoreError> {
        let mut work = self
            .reading("looking for the last webhook delivery")
            .await?;
        let row = work.one(sqlx::query(NEWEST)).await?;
        Ok(value::optional_integer(&row, "newest")?.map(Millis))
    }
}

/// A name within an organisation: what one organisation was sent is not known to another.
fn within(organisation: &OrganisationId, name: &str) -> Result<String, StoreError> {
    let name = value::exact("the webhook delivery's name", name)?;
    Ok(format!("{organisation} {name}"))
}

impl Work {
    /// False when the name is known.
    async fn note_hook(
        &mut self,
        organisation: &OrganisationId,
        name: &str,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let name = within(organisation, name)?;
        let note = sqlx::query(NOTE).bind(&name).bind(now.0);
        Ok(self.execute(note).await? == 1)
    }

    /// Forgets what is too old to come again; a few each time, so that no delivery waits long for it.
    async fn forget_hooks(&mut self, now: Millis) -> Result<(), StoreError> {
        let horizon = now.plus_millis(-REMEMBERED_MILLIS).0;
        for forget in [FORGET_DELIVERIES, FORGET_OBJECTS] {
            self.execute(sqlx::query(forget).bind(horizon)).await?;
        }
        Ok(())
    }

    async fn hint(
        &mut self,
        organisation: &OrganisationId,
        delivery: &HookDelivery<'_>,
        now: Millis,
    ) -> Result<Heard, StoreError> {
        if delivery.repositories.is_empty() {
            return Ok(Heard::Noted);
        }
        let mut watched = 0;
        for repository in delivery.repositories {
            let watching = sqlx::query(WATCHED)
                .bind(organisation.as_str())
                .bind(delivery.host)
                .bind(repository.to_string());
            watched += self.count(watching).await?;
        }
        if watched == 0 {
            return Ok(Heard::Unwatched);
        }
        if let Some(object) = &delivery.object
            && !self.advance(organisation, delivery, object, now).await?
        {
            return Ok(Heard::Stale);
        }
        let mut hinted = 0;
        for repository in delivery.repositories {
            let hint = sqlx::query(HINT)
                .bind(now.0)
                .bind(organisation.as_str())
                .bind(delivery.host)
                .bind(repository.to_string());
            hinted += self.execute(hint).await?;
        }
        Ok(Heard::Hinted(hinted))
    }

    /// Remembers a version of an object; false when one as new is known, or would be forgotten already.
    async fn advance(
        &mut self,
        organisation: &OrganisationId,
        delivery: &HookDelivery<'_>,
        object: &HookObject<'_>,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let name = within(organisation, &format!("{} {}", delivery.host, object.name))?;
        let (remember, version) = match object.version {
            // Break it: drop this arm; `hooks::store::what_is_older_than_the_memory_is_no_news` then fails.
            HookVersion::Ordered { at, .. } if at < now.plus_millis(-REMEMBERED_MILLIS) => {
                return Ok(false);
            }
            // Break it: use REPLACE here too; `hooks::store::an_older_version_hints_nobody` then fails.
            HookVersion::Ordered { digits, .. } => (ADVANCE, digits),
            HookVersion::Other(name) => (REPLACE, name),
        };
        let remember = sqlx::query(remember)
            .bind(&name)
            .bind(value::exact("the object's version", version)?)
            .bind(now.0);
        Ok(self.execute(remember).await? == 1)
    }
}
