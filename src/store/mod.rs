//! The database: the only place that holds SQL, and the one where everything that is known is kept.
//!
//! One set of statements serves SQLite (embedded, one file) and PostgreSQL (shared); the private `dialect` module holds the only
//! differences. A worker [`Store::claim`]s an incident, reads its snapshot through [`Store::within`], and writes what a
//! step gave with [`Store::commit`]: one transaction, conditional on the version read and on the lease.
//!
//! Everything that one organisation may read is read through [`Scoped`], whose statements all name the organisation.

mod address;
mod approval;
mod bundle;
mod by_hand;
mod call_pattern;
mod commit;
mod connect;
mod cosigned;
mod credential;
mod dialect;
mod error;
mod evidence;
mod health;
mod hook;
mod incident;
mod ledger;
mod log;
mod look;
mod migrate;
mod organisation;
mod outbox;
mod project;
mod scoped;
mod statement;
mod tile;
mod timestamp;
mod tool_call;
mod value;
mod watch_state;
mod watched;
mod work;

use sqlx::any::{Any, AnyArguments, AnyRow};
use sqlx::{AnyPool, Row as _, Transaction};

pub use approval::{ApprovalRow, ApprovalState, ApprovalView, Consumed};
pub use by_hand::{LocalAnswer, Woken};
pub use call_pattern::AllowedPattern;
pub use commit::Commit;
pub use connect::Patience;
pub use credential::{Removal, Swap};
pub use error::StoreError;
pub use health::{HealthClaim, HealthRow};
pub use hook::{Heard, HookDelivery, HookObject, HookVersion};
pub use incident::IncidentRow;
pub use log::{StoredAnchor, StoredCheckpoint, StoredLeaf};
pub use look::{Look, Looked};
pub use outbox::StoredNotice;
pub use project::{Project, ProjectState, WatchMode};
pub use scoped::Scoped;
pub use statement::Statement;
pub use timestamp::Stamp;
pub use tool_call::{
    AlwaysAllowed, CallAnswer, CallDecision, NewCall, Recording, Resolution, Resolved, ToolCall,
};
pub use watch_state::WatchState;
pub use watched::Observed;
pub use work::Claim;

use crate::clock::Millis;
use dialect::Dialect;

/// A statement with its values.
type Query<'q> = sqlx::query::Query<'q, Any, AnyArguments>;

/// An open database. Clones share its connections.
#[derive(Clone)]
pub struct Store {
    pool: AnyPool,
    dialect: Dialect,
    /// The database as messages name it, without password.
    place: std::sync::Arc<str>,
}

/// Shows the place only: the pool knows the password.
impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.place)
    }
}

impl Store {
    /// The present moment by the database's clock: the machine's own for SQLite, the server's for PostgreSQL.
    pub async fn now(&self) -> Result<Millis, StoreError> {
        let mut work = self.reading("reading the clock").await?;
        let row = work.one(sqlx::query(self.dialect.now())).await?;
        Ok(Millis(value::integer(&row, "now")?))
    }

    /// Whether the database can be written: begins a transaction that writes, and leaves nothing behind.
    ///
    /// # Errors
    /// It cannot be reached, or not be locked for writing.
    pub async fn ready(&self) -> Result<(), StoreError> {
        const DOING: &str = "asking whether the database can be written";
        // Break it: only read (`store::opening::a_database_that_can_only_be_read_is_not_ready`).
        let work = self.writing(DOING).await?;
        let ended = work.transaction.rollback().await;
        ended.map_err(|error| self.translated(DOING, &error))
    }

    /// The database as messages name it: without user, password and parameters.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Closes every connection; what was committed stays.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Asks the database to prepare every statement of the store, and says how many there are. A schema that does not fit
    /// this program fails here instead of in the middle of the work.
    pub async fn prepare_every_statement(&self) -> Result<usize, StoreError> {
        use sqlx::{Executor as _, SqlSafeStr as _};
        let mut work = self.reading("preparing the statements").await?;
        let every = Self::statements().chain(self.dialect.own_statements().iter().copied());
        let mut count = 0;
        for statement in every {
            let prepared = (&mut *work.transaction).prepare(statement.text.into_sql_str());
            if let Err(error) = prepared.await {
                let place = format!("{} ({})", self.place, statement.name);
                return Err(error::translated(&place, work.doing, &error));
            }
            count += 1;
        }
        Ok(count)
    }

    /// Every statement that both databases understand.
    pub fn statements() -> impl Iterator<Item = Statement> {
        let modules = [
            approval::STATEMENTS,
            by_hand::STATEMENTS,
            commit::STATEMENTS,
            credential::STATEMENTS,
            evidence::STATEMENTS,
            evidence::RETENTION,
            health::STATEMENTS,
            hook::STATEMENTS,
            incident::STATEMENTS,
            ledger::STATEMENTS,
            log::STATEMENTS,
            log::scoped::STATEMENTS,
            look::STATEMENTS,
            migrate::STATEMENTS,
            organisation::STATEMENTS,
            outbox::STATEMENTS,
            project::STATEMENTS,
            scoped::STATEMENTS,
            timestamp::STATEMENTS,
            call_pattern::STATEMENTS,
            tool_call::STATEMENTS,
            watched::STATEMENTS,
            work::STATEMENTS,
        ];
        modules.into_iter().flatten().copied()
    }

    /// The statements through which an organisation reads; each one names the organisation.
    pub fn scoped_statements() -> &'static [Statement] {
        scoped::STATEMENTS
    }

    /// A transaction that writes. Dropped without a commit, it leaves nothing behind.
    async fn writing(&self, doing: &'static str) -> Result<Work, StoreError> {
        self.begin(self.dialect.begin_writing(), doing).await
    }

    /// A transaction whose reads all see one moment.
    async fn reading(&self, doing: &'static str) -> Result<Work, StoreError> {
        self.begin(self.dialect.begin_reading(), doing).await
    }

    async fn begin(&self, begin: &'static str, doing: &'static str) -> Result<Work, StoreError> {
        let transaction = self.pool.begin_with(begin).await;
        Ok(Work {
            transaction: transaction.map_err(|error| self.translated(doing, &error))?,
            store: self.clone(),
            doing,
        })
    }

    fn translated(&self, doing: &'static str, error: &sqlx::Error) -> StoreError {
        error::translated(&self.place, doing, error)
    }
}

/// One transaction, and what is being done in it.
struct Work {
    transaction: Transaction<'static, Any>,
    store: Store,
    doing: &'static str,
}

impl Work {
    /// The first row, if there is one.
    async fn optional(&mut self, query: Query<'_>) -> Result<Option<AnyRow>, StoreError> {
        let row = query.fetch_optional(&mut *self.transaction).await;
        row.map_err(|error| self.store.translated(self.doing, &error))
    }

    /// The row that must be there.
    async fn one(&mut self, query: Query<'_>) -> Result<AnyRow, StoreError> {
        let row = query.fetch_one(&mut *self.transaction).await;
        row.map_err(|error| self.store.translated(self.doing, &error))
    }

    /// Every row.
    async fn all(&mut self, query: Query<'_>) -> Result<Vec<AnyRow>, StoreError> {
        let rows = query.fetch_all(&mut *self.transaction).await;
        rows.map_err(|error| self.store.translated(self.doing, &error))
    }

    /// How many rows were written.
    async fn execute(&mut self, query: Query<'_>) -> Result<u64, StoreError> {
        let result = query.execute(&mut *self.transaction).await;
        match result {
            Ok(done) => Ok(done.rows_affected()),
            Err(error) => Err(self.store.translated(self.doing, &error)),
        }
    }

    /// A count that the statement names `found`.
    async fn count(&mut self, query: Query<'_>) -> Result<i64, StoreError> {
        let row = self.one(query).await?;
        row.try_get("found")
            .map_err(|error| self.store.translated(self.doing, &error))
    }

    /// Makes it last.
    async fn commit(self) -> Result<(), StoreError> {
        let result = self.transaction.commit().await;
        result.map_err(|error| self.store.translated(self.doing, &error))
    }

    /// Makes it last, and tells whoever listens: there is work now.
    async fn commit_and_nudge(mut self) -> Result<(), StoreError> {
        if let Some(nudge) = self.store.dialect.nudge() {
            self.optional(sqlx::query(nudge)).await?;
        }
        self.commit().await
    }
}
