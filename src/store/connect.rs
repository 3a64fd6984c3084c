//! Opening a database, making it where that is asked for.

use std::path::Path;
use std::time::Duration;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyConnection, ConnectOptions as _, Connection as _};

use super::address::Address;
use super::dialect::Dialect;
use super::{Store, StoreError, error};

/// How long a server may take to answer the first connection.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a statement waits for a free connection. Longer than any statement waits for a lock.
const FREE_CONNECTION: Duration = Duration::from_secs(15);
/// SQLite has one writer; a few more connections read beside it.
const EMBEDDED_CONNECTIONS: u32 = 4;
/// For one process of several on a PostgreSQL server, whose default is 100 for all.
const SHARED_CONNECTIONS: u32 = 8;

/// How long to wait for another process that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patience {
    /// Five seconds on SQLite, ten on PostgreSQL.
    #[default]
    Usual,
    /// A twentieth of a second: for a command that would rather fail than wait.
    Short,
}

impl Patience {
    /// What each connection is told before it is used. Foreign keys and triggers are off by default in SQLite, per
    /// connection; `FULL` makes a commit last through a loss of power, and what is deleted (a credential, say) is overwritten.
    const fn settings(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (Dialect::Sqlite, Self::Usual) => {
                "PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON"
            }
            (Dialect::Sqlite, Self::Short) => {
                "PRAGMA busy_timeout = 50; PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON"
            }
            (Dialect::Postgres, Self::Usual) => "SET lock_timeout = '10s'",
            (Dialect::Postgres, Self::Short) => "SET lock_timeout = '50ms'",
        }
    }
}

impl Store {
    /// Opens a database and brings its schema up to date; an SQLite file that does not exist is made, readable by its
    /// owner only, with the folders to it.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        Self::open_with(url, Patience::Usual).await
    }

    /// Like [`Self::open`], with a say in how long others are waited for.
    pub async fn open_with(url: &str, patience: Patience) -> Result<Self, StoreError> {
        let address = Address::parse(url)?;
        if let Some(file) = &address.file {
            create(file)?;
        }
        connect(address, patience).await
    }

    /// Opens a database that must exist already.
    pub async fn open_existing(url: &str) -> Result<Self, StoreError> {
        let address = Address::parse(url)?;
        if let Some(file) = &address.file
            && !exists(file)?
        {
            return Err(StoreError::Missing { path: file.clone() });
        }
        connect(address, Patience::Usual).await
    }
}

/// Whether the file is there, in whatever state; a folder in its place is refused.
fn exists(file: &Path) -> Result<bool, StoreError> {
    match std::fs::metadata(file) {
        Ok(found) if found.is_dir() => Err(StoreError::Address {
            reason: "the path of the SQLite file is a folder",
        }),
        Ok(_) => Ok(true),
        Err(reason) if reason.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(reason) => Err(StoreError::Create {
            path: file.to_owned(),
            reason,
        }),
    }
}

/// Makes the empty file before SQLite would, since SQLite would make it readable for everyone. Its two companions take the
/// file's mode.
fn create(file: &Path) -> Result<(), StoreError> {
    if exists(file)? {
        return Ok(());
    }
    let refused = |reason| StoreError::Create {
        path: file.to_owned(),
        reason,
    };
    if let Some(folder) = file.parent() {
        private_folder(folder).map_err(refused)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(file) {
        Ok(_) => Ok(()),
        // Another process was faster.
        Err(reason) if reason.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(reason) => Err(refused(reason)),
    }
}

fn private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

async fn connect(address: Address, patience: Patience) -> Result<Store, StoreError> {
    sqlx::any::install_default_drivers();
    let options: AnyConnectOptions =
        address
            .driver_url()
            .parse()
            .map_err(|_| StoreError::Address {
                reason: "database.url is not an address",
            })?;
    // The pool tries again and again where one connection says at once what is wrong.
    let opening = "opening the connection";
    let failed = |error: sqlx::Error| error::translated(&address.shown, opening, &error);
    let first = tokio::time::timeout(ANSWER, options.connect()).await;
    let mut first = first
        .map_err(|_| StoreError::Unreachable {
            doing: opening,
            place: address.shown.clone(),
            reason: format!("no answer within {} seconds", ANSWER.as_secs()),
        })?
        .map_err(failed)?;
    let settings = patience.settings(address.dialect);
    set(&mut first, settings).await.map_err(failed)?;
    if address.dialect == Dialect::Sqlite {
        write_ahead(&mut first).await.map_err(failed)?;
    }
    first.close().await.map_err(failed)?;
    let connections = match address.dialect {
        Dialect::Sqlite => EMBEDDED_CONNECTIONS,
        Dialect::Postgres => SHARED_CONNECTIONS,
    };
    let pool = AnyPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(FREE_CONNECTION)
        .after_connect(move |connection, _| Box::pin(set(connection, settings)))
        // SQLite ends a transaction by itself when the disk is full; the driver then counts one that is not there, and fails
        // whatever comes next.
        // Break it: answer true; one moment without space then fails every later one
        // (`store::opening::a_transaction_that_the_database_ended_by_itself_is_forgotten`).
        .before_acquire(|connection, _| {
            let clean = !connection.is_in_transaction();
            Box::pin(async move { Ok(clean) })
        })
        .connect_lazy_with(options);
    let store = Store {
        pool,
        dialect: address.dialect,
        place: address.shown.into(),
    };
    store.migrate().await?;
    Ok(store)
}

async fn set(connection: &mut AnyConnection, settings: &'static str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(settings).execute(connection).await?;
    Ok(())
}

/// Makes readers and the writer independent. The file remembers it. SQLite does not wait here when another process is
/// doing the same to a new file, so this does, for a second.
async fn write_ahead(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    for _ in 0..50 {
        match set(connection, "PRAGMA journal_mode = WAL").await {
            Err(sqlx::Error::Database(answer)) if answer.code().is_some_and(|code| code == "5") => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
    set(connection, "PRAGMA journal_mode = WAL").await
}
