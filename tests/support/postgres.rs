//! A PostgreSQL schema for each test.

use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AnyConnection, Connection as _, SqlSafeStr as _};

/// Names the server that `tests/run` starts.
const VARIABLE: &str = "CARETAKER_TEST_POSTGRES_URL";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The address of a schema that no other test uses. Without a server this is said in one loud line and the test counts as
/// skipped; in CI it fails.
pub(crate) async fn schema() -> Option<String> {
    let Ok(server) = std::env::var(VARIABLE) else {
        assert!(
            std::env::var_os("CI").is_none(),
            "{VARIABLE} is not set in CI"
        );
        eprintln!("SKIPPED on PostgreSQL: {VARIABLE} names no server; tests/run starts one");
        return None;
    };
    sqlx::any::install_default_drivers();
    let name = format!(
        "caretaker_{}_{}",
        std::process::id(),
        NUMBER.fetch_add(1, Ordering::SeqCst)
    );
    let mut connection = AnyConnection::connect(&server).await.unwrap();
    for statement in [
        format!("DROP SCHEMA IF EXISTS {name} CASCADE"),
        format!("CREATE SCHEMA {name}"),
    ] {
        #[expect(
            clippy::disallowed_methods,
            reason = "a schema has no placeholder; its name is a number"
        )]
        let statement = sqlx::AssertSqlSafe(statement).into_sql_str();
        sqlx::raw_sql(statement)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    connection.close().await.unwrap();
    let joint = if server.contains('?') { '&' } else { '?' };
    Some(format!("{server}{joint}options[search_path]={name}"))
}
