//! Bringing the schema up to date, under a lock of our own: SQLite's write lock, PostgreSQL's advisory lock.

use super::statement::statements;
use super::{Dialect, Store, StoreError, Work, value};

/// One change of the schema; the same numbers and names on both databases.
struct Migration {
    sqlite: &'static str,
    postgres: &'static str,
}

/// In order; the number of one is its place, from 1.
const MIGRATIONS: &[Migration] = &[
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0001_main_job.sql"),
        postgres: include_str!("../../migrations/postgres/0001_main_job.sql"),
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0002_watching.sql"),
        postgres: include_str!("../../migrations/postgres/0002_watching.sql"),
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0003_due.sql"),
        postgres: include_str!("../../migrations/postgres/0003_due.sql"),
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0004_log.sql"),
        postgres: include_str!("../../migrations/postgres/0004_log.sql"),
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0005_evidence.sql"),
        postgres: include_str!("../../migrations/postgres/0005_evidence.sql"),
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0006_tool_calls.sql"),
        postgres: include_str!("../../migrations/postgres/0006_tool_calls.sql"),
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0007_call_patterns.sql"),
        postgres: include_str!("../../migrations/postgres/0007_call_patterns.sql"),
    },
];

statements! {
    /// The version of the schema.
    VERSION = "SELECT CAST(value AS BIGINT) AS version FROM meta WHERE name = 'schema'";
    /// Remembers it.
    SET_VERSION = "UPDATE meta SET value = $1 WHERE name = 'schema'";
}

/// What every database has before the first migration.
const BOOTSTRAP: &str = "CREATE TABLE meta (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL); \
    INSERT INTO meta (name, value) VALUES ('schema', '0')";

impl Store {
    /// Applies what is missing, all of it or nothing. Only when something is missing is a lock taken, so that opening does
    /// not wait for others' writing.
    pub(super) async fn migrate(&self) -> Result<(), StoreError> {
        let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
        let mut looking = self.reading("reading the schema's version").await?;
        let found = version(&mut looking).await?.unwrap_or(0);
        drop(looking);
        self.refuse_newer(found, known)?;
        if found == known {
            return Ok(());
        }
        let mut work = self.writing("migrating the schema").await?;
        if let Some(lock) = self.dialect.migration_lock() {
            work.one(sqlx::query(lock)).await?;
        }
        // Another process may have migrated while this one waited for the lock.
        let found = if let Some(found) = version(&mut work).await? {
            found
        } else {
            work.script(BOOTSTRAP).await?;
            0
        };
        self.refuse_newer(found, known)?;
        let done = usize::try_from(found).unwrap_or(0);
        for migration in MIGRATIONS.iter().skip(done) {
            work.script(match self.dialect {
                Dialect::Sqlite => migration.sqlite,
                Dialect::Postgres => migration.postgres,
            })
            .await?;
        }
        work.execute(sqlx::query(SET_VERSION).bind(known.to_string()))
            .await?;
        work.commit().await
    }

    fn refuse_newer(&self, found: i64, known: i64) -> Result<(), StoreError> {
        if found > known {
            return Err(StoreError::Newer {
                place: self.place().to_owned(),
                found,
                known,
            });
        }
        Ok(())
    }
}

/// The version found; none in a database that was never migrated.
async fn version(work: &mut Work) -> Result<Option<i64>, StoreError> {
    let migrated = work.store.dialect.migrated();
    if work.count(sqlx::query(migrated)).await? == 0 {
        return Ok(None);
    }
    let row = work.optional(sqlx::query(VERSION)).await?;
    row.map(|row| value::integer(&row, "version")).transpose()
}

impl Work {
    /// Several statements without values.
    async fn script(&mut self, script: &'static str) -> Result<(), StoreError> {
        let result = sqlx::raw_sql(script).execute(&mut *self.transaction).await;
        result
            .map(|_| ())
            .map_err(|error| self.store.translated(self.doing, &error))
    }
}
