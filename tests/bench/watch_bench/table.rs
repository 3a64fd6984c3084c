//! All measurements, one after another, as the table of `docs/performance.md`.

use std::io::Write as _;
use std::process::Command;

use anyhow::Context as _;

use super::hour::Measured;

/// Projects and way of every line.
const LINES: [(usize, &str); 4] = [
    (10, "watch"),
    (100, "watch"),
    (1000, "watch"),
    (1000, "stateless"),
];

/// Measures and prints.
pub(crate) fn print() -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| projects | way | requests per hour and project | not modified | counted by the limit | failures found | lag p50 / p95 / max (s) | processor (s) | peak memory (MB) |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|")?;
    for (projects, way) in LINES {
        let measured = measured(projects, way)?;
        writeln!(out, "{}", line(&measured))?;
    }
    Ok(())
}

fn measured(projects: usize, way: &str) -> anyhow::Result<Measured> {
    let output = Command::new(std::env::current_exe()?)
        .args(["measure", &projects.to_string(), way])
        .stderr(std::process::Stdio::inherit())
        .output()?;
    anyhow::ensure!(output.status.success(), "measuring {projects} {way} failed");
    let text = String::from_utf8(output.stdout)?;
    serde_json::from_str(text.trim()).context("reading a measurement")
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of an hour are far below 2^52"
)]
fn line(measured: &Measured) -> String {
    let projects = measured.projects as f64;
    let requests = measured.requests as f64;
    let share = 100.0 * measured.unchanged as f64 / requests.max(1.0);
    let [middle, most, largest] = measured.lag.map(|lag| lag as f64 / 1000.0);
    format!(
        "| {} | {} | {:.1} | {share:.1} % | {} | {} of {} | {middle:.0} / {most:.0} / {largest:.0} | {:.1} | {:.0} |",
        measured.projects,
        measured.way,
        requests / projects,
        measured.requests - measured.unchanged,
        measured.found,
        measured.failures,
        measured.processor_seconds,
        measured.peak_megabytes
    )
}
