//! Everything in which the two databases differ. All other statements are the same text for both.

use super::statement::statements;

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Embedded, one file.
    Sqlite,
    /// Shared, any number of processes.
    Postgres,
}

statements! {
    /// One due incident that nobody holds, of a project that is there and confirmed. SQLite has one writer
    /// at a time, so there is nothing to skip.
    pub(super) SQLITE_CLAIM = "UPDATE incident SET lease_owner = $1, lease_until = $2, attempts = attempts + 1 \
        WHERE id = (SELECT i.id FROM incident i WHERE i.wake_at <= $3 AND (i.lease_until IS NULL OR i.lease_until <= $3) \
        AND EXISTS (SELECT 1 FROM project p WHERE p.id = i.project AND p.removed_at IS NULL AND p.state <> 'draft') \
        ORDER BY i.wake_at, i.id LIMIT 1) RETURNING id, organisation, project, attempts";
    /// Whether a project was not removed. Nobody else writes meanwhile.
    pub(super) SQLITE_STILL_THERE = "SELECT 1 AS there FROM project WHERE id = $1 AND removed_at IS NULL";
    /// The machine's clock.
    pub(super) SQLITE_NOW = "SELECT CAST(ROUND(unixepoch('now', 'subsec') * 1000) AS INTEGER) AS now";
    /// Brings everything from the write-ahead file into the database and empties it, unless others still read from it.
    pub(super) SQLITE_FORGET = "PRAGMA wal_checkpoint(TRUNCATE)";
    /// Whether this database was ever migrated.
    pub(super) SQLITE_MIGRATED = "SELECT COUNT(*) AS found FROM sqlite_master WHERE type = 'table' AND name = 'meta'";
}

/// The statements that only PostgreSQL understands.
pub(super) mod postgres {
    use super::statements;

    statements! {
        /// One due incident that nobody holds and nobody is claiming, of a project that is there and confirmed.
        pub(in crate::store) CLAIM = "UPDATE incident SET lease_owner = $1, lease_until = $2, attempts = attempts + 1 \
            WHERE id = (SELECT i.id FROM incident i WHERE i.wake_at <= $3 AND (i.lease_until IS NULL OR i.lease_until <= $3) \
            AND EXISTS (SELECT 1 FROM project p WHERE p.id = i.project AND p.removed_at IS NULL AND p.state <> 'draft') \
            ORDER BY i.wake_at, i.id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, organisation, project, attempts";
        /// Whether a project was not removed; it is not removed before this transaction has ended.
        pub(in crate::store) STILL_THERE = "SELECT 1 AS there FROM project WHERE id = $1 AND removed_at IS NULL FOR SHARE";
        /// The server's clock: workers need not agree on the time.
        pub(in crate::store) NOW = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now";
        /// Whether this schema was ever migrated.
        pub(in crate::store) MIGRATED = "SELECT COUNT(*) AS found FROM information_schema.tables \
            WHERE table_schema = current_schema() AND table_name = 'meta'";
        /// One migration at a time in a database; ends with the transaction.
        pub(in crate::store) MIGRATION_LOCK = "SELECT 1 AS locked FROM pg_advisory_xact_lock(4988071520263)";
        /// Delivered when the transaction commits, to whoever listens. This version's workers poll; the nudge is for other programs.
        pub(in crate::store) NUDGE = "SELECT 1 AS nudged FROM pg_notify('caretaker_work', '')";
    }
}

impl Dialect {
    /// Takes one due incident and the lease on it.
    pub(super) const fn claim(self) -> &'static str {
        match self {
            Self::Sqlite => SQLITE_CLAIM,
            Self::Postgres => postgres::CLAIM,
        }
    }

    /// Whether a project is still there, so that it stays until the transaction ends.
    pub(super) const fn still_there(self) -> &'static str {
        match self {
            Self::Sqlite => SQLITE_STILL_THERE,
            Self::Postgres => postgres::STILL_THERE,
        }
    }

    /// The database's clock, in milliseconds.
    pub(super) const fn now(self) -> &'static str {
        match self {
            Self::Sqlite => SQLITE_NOW,
            Self::Postgres => postgres::NOW,
        }
    }

    /// Begins a transaction that writes. On SQLite the write lock is taken at once: a transaction that first reads and then
    /// writes would fail instead of waiting.
    pub(super) const fn begin_writing(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// Begins a transaction whose reads all see one moment.
    pub(super) const fn begin_reading(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN",
            Self::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }

    /// Wakes sleeping workers when the transaction commits.
    pub(super) const fn nudge(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(postgres::NUDGE),
        }
    }

    /// Overwrites what was deleted, to be run outside transactions; on PostgreSQL the server's own cleaning does.
    pub(super) const fn forget(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => Some(SQLITE_FORGET),
            Self::Postgres => None,
        }
    }

    /// Counts the table that every migrated database has.
    pub(super) const fn migrated(self) -> &'static str {
        match self {
            Self::Sqlite => SQLITE_MIGRATED,
            Self::Postgres => postgres::MIGRATED,
        }
    }

    /// Excludes other processes that migrate; on SQLite the write lock does.
    pub(super) const fn migration_lock(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(postgres::MIGRATION_LOCK),
        }
    }

    /// Statements that only this database understands.
    pub(super) const fn own_statements(self) -> &'static [super::Statement] {
        match self {
            Self::Sqlite => STATEMENTS,
            Self::Postgres => postgres::STATEMENTS,
        }
    }
}
