//! An hour of watching, in simulated time: requests, share of "not modified", lag, processor time and memory, for ten, a hundred
//! and a thousand projects, beside polling that remembers nothing. `cargo bench --bench watch`.
//!
//! The forge runs in a process of its own, so that its processor time is not counted; each measurement does too, so that peaks of
//! memory do not mix. Nothing waits: the clock jumps from one event to the next.

mod watch_bench {
    pub(super) mod forge;
    pub(super) mod hour;
    pub(super) mod projects;
    pub(super) mod table;
}

use std::io::Write as _;

use anyhow::Context as _;
use watch_bench::{forge, hour, table};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["forge", folder] => runtime()?.block_on(forge::serve(folder)),
        ["measure", count, way] => {
            let count = count.parse().context("reading the number of projects")?;
            let measured = runtime()?.block_on(hour::measure(count, way))?;
            writeln!(std::io::stdout(), "{}", serde_json::to_string(&measured)?)?;
            Ok(())
        }
        _ => table::print(),
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(2).enable_all().build()?)
}
