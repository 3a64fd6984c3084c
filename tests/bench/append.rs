//! How many signed events a second the store appends, with the tree of the log kept and a checkpoint made every second, beside bare
//! INSERTs of the same envelopes into the same kind of database in the same run. `cargo bench --bench append`.
//!
//! On SQLite in a temporary folder, and on PostgreSQL where `CARETAKER_TEST_POSTGRES_URL` names a server: in a schema that is made
//! for it and dropped.

mod append_bench {
    pub(super) mod bare;
    pub(super) mod place;
    pub(super) mod store;
}

#[allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_imports,
    reason = "the ledgers of the tests, of which a benchmark needs only sound ones"
)]
#[path = "../it/attest/ledger.rs"]
mod ledger;
#[allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the ledgers name it; nothing is asked of it here"
)]
#[path = "../it/twin.rs"]
mod twin;

use std::io::Write as _;
use std::time::Duration;

use append_bench::place::Place;
use append_bench::{bare, store};

/// How long each measurement lasts at most.
const WHILE: Duration = Duration::from_secs(10);
/// Who write side by side.
const WRITERS: [usize; 2] = [1, 8];

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(table())
}

async fn table() -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| database | writers | events a second | checkpoints | slowest checkpoint (ms) | bare INSERTs a second | share |\n|---|---|---|---|---|---|---|"
    )?;
    for kind in ["SQLite", "PostgreSQL"] {
        for writers in WRITERS {
            let Some(place) = Place::new(kind).await? else {
                continue;
            };
            let inserts = bare::measured(&place, writers, WHILE).await?;
            let appended = store::measured(&place, writers, WHILE).await?;
            place.gone().await?;
            writeln!(
                out,
                "| {kind} | {writers} | {:.0} | {} | {:.1} | {inserts:.0} | {:.2} |",
                appended.events_per_second,
                appended.checkpoints,
                appended.slowest_checkpoint_millis,
                appended.events_per_second / inserts
            )?;
        }
    }
    Ok(())
}
