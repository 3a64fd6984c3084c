//! The baseline: the same envelopes into a table with nothing but a key, each in a transaction of its own.

use std::time::{Duration, Instant};

use sqlx::{AnyConnection, Connection as _};

use super::place::Place;
use super::store::envelopes;

/// INSERTs a second, of all writers together.
pub(crate) async fn measured(place: &Place, writers: usize, time: Duration) -> anyhow::Result<f64> {
    let table = if place.is_sqlite() {
        "CREATE TABLE bare (writer BIGINT, number BIGINT, envelope BLOB, PRIMARY KEY (writer, number))"
    } else {
        "CREATE TABLE bare (writer BIGINT, number BIGINT, envelope BYTEA, PRIMARY KEY (writer, number))"
    };
    let mut first = open(place).await?;
    sqlx::raw_sql(table).execute(&mut first).await?;
    let envelopes = envelopes();
    let begin = Instant::now();
    let mut tasks = Vec::new();
    for writer in 0..writers {
        let mut connection = open(place).await?;
        let envelopes = envelopes.clone();
        tasks.push(tokio::spawn(async move {
            let mut number = 0_i64;
            let mut turns = envelopes.iter().cycle();
            while let Some(envelope) = turns.next().filter(|_| begin.elapsed() < time) {
                sqlx::query("INSERT INTO bare (writer, number, envelope) VALUES ($1, $2, $3)")
                    .bind(i64::try_from(writer)?)
                    .bind(number)
                    .bind(envelope.as_slice())
                    .execute(&mut connection)
                    .await?;
                number += 1;
            }
            connection.close().await?;
            anyhow::Ok(u32::try_from(number)?)
        }));
    }
    let mut written = 0.0;
    for task in tasks {
        written += f64::from(task.await??);
    }
    let rate = written / begin.elapsed().as_secs_f64();
    sqlx::raw_sql("DROP TABLE bare").execute(&mut first).await?;
    first.close().await?;
    Ok(rate)
}

/// As the store opens its own.
async fn open(place: &Place) -> anyhow::Result<AnyConnection> {
    let url = if place.is_sqlite() {
        format!("{}?mode=rwc", place.url)
    } else {
        place.url.clone()
    };
    let mut connection = AnyConnection::connect(&url).await?;
    if place.is_sqlite() {
        let settings = "PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON";
        sqlx::raw_sql(settings).execute(&mut connection).await?;
    }
    Ok(connection)
}
