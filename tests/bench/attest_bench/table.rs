//! All measurements, one after another, as the tables of `docs/performance.md`.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::bundle::Bundle;
use super::child::{Cost, run, told};
use super::folder::{at, write};
use super::raw::Limit;
use crate::Tried;

/// Events of a small bundle and of a large one.
const BUNDLES: [usize; 2] = [4, 20];

/// Measures a log at each of `sizes` and after `new` more events, and prints.
pub(crate) fn print(place: &Path, sizes: &[u64], new: u64) -> Tried<()> {
    let last = sizes.last().copied().ok_or("no sizes")?;
    let mut all = sizes.to_vec();
    all.push(last + new);
    write(place, &all)?;
    let lines = cold(place, sizes)?;
    warm(place, [last, last + new])?;
    bundles()?;
    python(place, &lines)
}

/// Everything, from the files to the verdict, beside the signatures alone before and after it.
fn cold(place: &Path, sizes: &[u64]) -> Tried<Vec<Cost>> {
    let mut out = std::io::stdout();
    let folder = place.to_string_lossy();
    let before: Limit = run(&["raw", &folder])?;
    let mut lines = Vec::new();
    for size in sizes {
        let cost: Cost = run(&["cold", &at(place, *size).to_string_lossy()])?;
        lines.push(cost);
    }
    let after: Limit = run(&["raw", &folder])?;
    writeln!(
        out,
        "{} cores; envelopes of {} bytes on average, statements of {}\n\
         signatures alone, before and after: verify_strict {:.0} and {:.0}, verify {:.0} and {:.0} a second\n",
        before.cores,
        before.envelope_bytes,
        before.payload_bytes,
        before.strict,
        after.strict,
        before.plain,
        after.plain
    )?;
    writeln!(
        out,
        "| events | seconds | events a second | of verify_strict | of verify | processor (s) | processor (µs an event) | peak memory (MB) |\n|---|---|---|---|---|---|---|---|"
    )?;
    let strict = f64::midpoint(before.strict, after.strict);
    let plain = f64::midpoint(before.plain, after.plain);
    for cost in &lines {
        writeln!(out, "{}", line(cost, strict, plain))?;
    }
    Ok(lines)
}

/// The same with what is remembered: first nothing, then all but the last events.
fn warm(place: &Path, sizes: [u64; 2]) -> Tried<()> {
    let mut out = std::io::stdout();
    let state = place.join("state.json");
    drop(std::fs::remove_file(&state));
    let state = state.to_string_lossy();
    writeln!(
        out,
        "\n| with `--state` | new events | seconds | processor (s) | peak memory (MB) |\n|---|---|---|---|---|"
    )?;
    for (events, words) in sizes
        .into_iter()
        .zip(["nothing remembered", "the log has grown"])
    {
        let cost: Cost = run(&["warm", &at(place, events).to_string_lossy(), &state])?;
        writeln!(
            out,
            "| {words} | {} | {:.2} | {:.2} | {:.0} |",
            cost.events, cost.seconds, cost.processor_seconds, cost.peak_megabytes
        )?;
    }
    Ok(())
}

fn bundles() -> Tried<()> {
    let mut out = std::io::stdout();
    writeln!(
        out,
        "\n| bundle of | bytes | median (ms) | 98th of 100 (ms) |\n|---|---|---|---|"
    )?;
    for events in BUNDLES {
        let bundle: Bundle = run(&["bundle", &events.to_string()])?;
        writeln!(
            out,
            "| {} events | {} | {:.2} | {:.2} |",
            bundle.events, bundle.bytes, bundle.median_millis, bundle.slow_millis
        )?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn line(cost: &Cost, strict: f64, plain: f64) -> String {
    let events = cost.events as f64;
    let rate = events / cost.seconds;
    format!(
        "| {} | {:.2} | {rate:.0} | {:.2} | {:.2} | {:.2} | {:.1} | {:.0} |",
        cost.events,
        cost.seconds,
        rate / strict,
        rate / plain,
        cost.processor_seconds,
        cost.processor_seconds * 1e6 / events,
        cost.peak_megabytes
    )
}

/// What another program takes for the signatures alone.
#[derive(Deserialize)]
struct Other {
    version: String,
    events: u64,
    seconds: f64,
    processes: u64,
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn python(place: &Path, lines: &[Cost]) -> Tried<()> {
    let mut out = std::io::stdout();
    let Some(python) = std::env::var_os("CARETAKER_INTEROP_PYTHON") else {
        writeln!(
            out,
            "\nsecuresystemslib: CARETAKER_INTEROP_PYTHON names no Python"
        )?;
        return Ok(());
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/speed.py");
    let other: Other = told(Command::new(python).arg(script).arg(place))?;
    let rate = other.events as f64 / other.seconds;
    let last = lines.last().ok_or("no measurement")?;
    let own = last.events as f64 / last.seconds;
    writeln!(
        out,
        "\nsecuresystemslib {}: {} envelopes (signatures alone, no chain, no tree) in {:.2} s in {} processes, {rate:.0} a second; ours, everything: {:.2} times as fast",
        other.version,
        other.events,
        other.seconds,
        other.processes,
        own / rate
    )?;
    Ok(())
}
