//! Organisations: the scope of everything that is read.

use super::statement::statements;
use super::{Store, StoreError, value};
use crate::clock::Millis;
use crate::id::OrganisationId;

statements! {
    /// Makes it known, once.
    INSERT = "INSERT INTO organisation (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING";
    /// Enough to see whether there is exactly one.
    FIRST_TWO = "SELECT id FROM organisation ORDER BY id LIMIT 2";
}

impl Store {
    /// The only organisation; none when there is none, or more than one.
    pub async fn organisation(&self) -> Result<Option<OrganisationId>, StoreError> {
        let mut work = self.reading("looking for the organisation").await?;
        let rows = work.all(sqlx::query(FIRST_TWO)).await?;
        match rows.as_slice() {
            [only] => value::parsed(only, "id").map(Some),
            _ => Ok(None),
        }
    }

    /// Makes an organisation known; one that is known stays as it is.
    pub async fn ensure_organisation(
        &self,
        id: &OrganisationId,
        name: &str,
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("making an organisation known").await?;
        let insert = sqlx::query(INSERT)
            .bind(id.as_str())
            .bind(value::exact("the organisation's name", name)?)
            .bind(now.0);
        work.execute(insert).await?;
        work.commit().await
    }
}
