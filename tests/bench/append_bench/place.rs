//! A database of one's own.

use sqlx::{AnyConnection, Connection as _, SqlSafeStr as _};

/// Names the server that `tests/run` starts.
const SERVER: &str = "CARETAKER_TEST_POSTGRES_URL";

/// Where a database is, and what has to be dropped afterwards.
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) folder: tempfile::TempDir,
    /// Address of the server and name of the schema.
    schema: Option<(String, String)>,
}

impl Place {
    /// A new one; none where there is no server.
    pub(crate) async fn new(kind: &str) -> anyhow::Result<Option<Self>> {
        sqlx::any::install_default_drivers();
        let folder = tempfile::tempdir()?;
        if kind == "SQLite" {
            let url = format!("sqlite://{}", folder.path().join("caretaker.db").display());
            return Ok(Some(Self {
                url,
                folder,
                schema: None,
            }));
        }
        let Ok(server) = std::env::var(SERVER) else {
            return Ok(None);
        };
        let name = format!("append_bench_{}", std::process::id());
        run(&server, format!("DROP SCHEMA IF EXISTS {name} CASCADE")).await?;
        run(&server, format!("CREATE SCHEMA {name}")).await?;
        let joint = if server.contains('?') { '&' } else { '?' };
        Ok(Some(Self {
            url: format!("{server}{joint}options[search_path]={name}"),
            folder,
            schema: Some((server, name)),
        }))
    }

    /// Whether it is a file.
    pub(crate) fn is_sqlite(&self) -> bool {
        self.schema.is_none()
    }

    /// Drops it.
    pub(crate) async fn gone(self) -> anyhow::Result<()> {
        match self.schema {
            Some((server, name)) => run(&server, format!("DROP SCHEMA {name} CASCADE")).await,
            None => Ok(()),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a schema has no placeholder; its name is a number"
)]
async fn run(server: &str, statement: String) -> anyhow::Result<()> {
    let mut connection = AnyConnection::connect(server).await?;
    let statement = sqlx::AssertSqlSafe(statement).into_sql_str();
    sqlx::raw_sql(statement).execute(&mut connection).await?;
    Ok(connection.close().await?)
}
