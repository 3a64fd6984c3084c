//! What verifying costs: a whole log cold and warm and one incident's bundle, beside the raw cost of the signatures and beside
//! securesystemslib, all in one run. `cargo bench --bench attest --no-default-features --features verifier`.
//!
//! The log is made first, in a folder that `--keep FOLDER` names and leaves, so that the next run need not make it again; without
//! it, in a temporary one. A million events take about 2 GB. Every measurement is a process of its own, so that peaks of memory do
//! not mix. `CARETAKER_INTEROP_PYTHON` names a Python that has securesystemslib; without one that line is left out.

mod attest_bench {
    pub(super) mod bundle;
    pub(super) mod child;
    pub(super) mod folder;
    pub(super) mod incidents;
    pub(super) mod raw;
    pub(super) mod table;
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
use std::path::{Path, PathBuf};

use attest_bench::{bundle, child, folder, raw, table};

/// Events that a warm verification finds new.
const NEW: u64 = 10_000;

/// A result of a benchmark, which ends at the first failure.
type Tried<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Tried<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["cold", folder] => say(&child::verified(Path::new(folder), None)?),
        ["warm", folder, state] => say(&child::verified(Path::new(folder), Some(state))?),
        ["bundle", events] => say(&bundle::measured(events.parse()?)?),
        ["raw", folder] => say(&raw::measured(Path::new(folder))?),
        ["write", folder, events] => folder::write(Path::new(folder), &[events.parse()?]),
        words => whole(words),
    }
}

fn say(measured: &impl serde::Serialize) -> Tried<()> {
    writeln!(std::io::stdout(), "{}", serde_json::to_string(measured)?)?;
    Ok(())
}

/// Everything: `[--events N] [--keep FOLDER]`.
fn whole(words: &[&str]) -> Tried<()> {
    let after = |name: &str| {
        let place = words.iter().position(|word| *word == name)?;
        words.get(place + 1).copied()
    };
    let events: u64 = after("--events").unwrap_or("1000000").parse()?;
    let temporary = tempfile::tempdir()?;
    let place = after("--keep").map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let mut sizes = vec![events / 100, events / 10, events];
    sizes.retain(|size| *size > 0);
    table::print(&place, &sizes, NEW)
}
