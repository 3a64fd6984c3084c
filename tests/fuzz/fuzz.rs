//! Changes good documents at random and hands them to every reader, for as long as is wanted:
//! `cargo bench --bench fuzz --profile dev -- --seconds 300`. A short run of the same is in the tests (`fuzz`).
//!
//! `--target NAME` reads one kind of document only, `--seed N` begins elsewhere, `--found FOLDER` says where an input is kept that
//! a reader fails on. Nothing but stable Rust is needed: what steers the changes is not coverage but the words of the refusals, since
//! an input that is refused in new words, or taken, is changed further.

mod change;
mod run;
mod targets;

#[allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_imports,
    reason = "the ledgers of the tests, of which only sound ones are wanted here"
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
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let after = |name: &str| {
        let place = words.iter().position(|word| word == name)?;
        words.get(place + 1).map(String::as_str)
    };
    let seconds: u64 = after("--seconds").unwrap_or("60").parse()?;
    let seed: u64 = after("--seed").unwrap_or("1").parse()?;
    let folder = after("--found").unwrap_or("target/fuzz");
    let mut targets = targets::all();
    if let Some(name) = after("--target") {
        targets.retain(|target| target.name == name);
    }
    let share = Duration::from_secs(seconds) / u32::try_from(targets.len())?.max(1);
    let mut failed = 0;
    for target in targets {
        let (name, end) = (target.name, Instant::now() + share);
        let ran = run::run(&target, seed, |_| Instant::now() < end);
        let mut out = std::io::stdout();
        writeln!(
            out,
            "{name:<12} {:>9} inputs, {:>7} taken, {:>4} outcomes, slowest {:>6} µs",
            ran.inputs,
            ran.taken,
            ran.outcomes,
            ran.slowest.as_micros()
        )?;
        if let Some(failure) = ran.failure {
            failed += 1;
            std::fs::create_dir_all(folder)?;
            let path = format!("{folder}/{name}");
            std::fs::write(&path, &failure.input)?;
            writeln!(out, "  FAILED: {}; the input is in {path}", failure.why)?;
        }
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
    writeln!(std::io::stdout(), "{}", peak.unwrap_or_default())?;
    if failed > 0 {
        return Err(format!("{failed} readers failed").into());
    }
    Ok(())
}
