//! `caretaker intent calibrate`.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};

use super::super::arguments::Format;
use super::super::{Verdict, print};
use super::plot;
use crate::intent::{Calibration, Decision, FEWEST_SCORES, Score, Suggestion};

/// Parts of the histogram: a twentieth each.
pub(super) const BINS: usize = 40;
/// What is told of a distribution, in thousandths.
const QUANTILES: [u16; 11] = [0, 10, 50, 100, 250, 500, 750, 900, 950, 990, 1000];
/// Buffer of a stream, in bytes.
const BUFFER: usize = 256 * 1024;

/// Which streams.
#[derive(Debug, Args)]
pub(in super::super) struct CalibrateArguments {
    /// Audit streams (NDJSON); - reads standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the histogram as a picture (SVG).
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

pub(super) fn run(arguments: &CalibrateArguments) -> anyhow::Result<Verdict> {
    let mut observed = Calibration::default();
    for file in &arguments.files {
        read(&mut observed, file)
            .with_context(|| format!("reading the audit stream {}", file.display()))?;
    }
    let suggestion = Suggestion::from(&observed);
    if let Some(file) = &arguments.plot {
        let picture = plot::picture(&observed.histogram(BINS), suggestion.as_ref());
        std::fs::write(file, picture)
            .with_context(|| format!("writing the plot {}", file.display()))?;
    }
    print(&if arguments.format.json {
        as_json(&observed, suggestion.as_ref()).to_string()
    } else {
        as_lines(&observed, suggestion.as_ref()).join("\n")
    })?;
    Ok(if observed.scored() == 0 {
        Verdict::CannotTell
    } else {
        Verdict::Done
    })
}

fn read(observed: &mut Calibration, file: &Path) -> std::io::Result<()> {
    if file.as_os_str() == "-" {
        let mut input = std::io::stdin().lock();
        // An empty input is one without scores.
        input.fill_buf()?;
        return observed.read(&mut input);
    }
    let opened = File::open(file)?;
    observed.read(&mut BufReader::with_capacity(BUFFER, opened))
}

fn as_json(observed: &Calibration, suggestion: Option<&Suggestion>) -> Value {
    let quantiles = QUANTILES.iter().filter_map(|thousandths| {
        let score = observed.quantile(*thousandths)?;
        Some(json!({"thousandths": thousandths, "score_micro": score.micro()}))
    });
    let histogram = observed.histogram(BINS);
    let histogram = histogram.iter().enumerate().map(|(part, count)| {
        json!({"from_micro": edge(part), "to_micro": edge(part + 1), "count": count})
    });
    json!({
        "scores": observed.scored(),
        "decisions": {
            "allow": observed.decided(Decision::Allow),
            "warn": observed.decided(Decision::Warn),
            "deny": observed.decided(Decision::Deny),
        },
        "without_score": observed.unscored(),
        "other_events": observed.others(),
        "unreadable_lines": observed.unreadable(),
        "quantiles": quantiles.collect::<Vec<_>>(),
        "histogram": histogram.collect::<Vec<_>>(),
        "suggested": suggestion.map(|floors| json!({
            "threshold_micro": floors.threshold.micro(),
            "hard_threshold_micro": floors.hard_threshold.micro(),
            "drift_threshold_micro": floors.drift_threshold.micro(),
        })),
    })
}

fn as_lines(observed: &Calibration, suggestion: Option<&Suggestion>) -> Vec<String> {
    let decided = |decision| observed.decided(decision);
    let mut lines = vec![
        format!("scores         {}", observed.scored()),
        format!(
            "decisions      {} allow, {} warn, {} deny",
            decided(Decision::Allow),
            decided(Decision::Warn),
            decided(Decision::Deny)
        ),
        format!("without score  {}", observed.unscored()),
        format!("other events   {}", observed.others()),
        format!("unreadable     {}", observed.unreadable()),
    ];
    if observed.scored() == 0 {
        lines.push(String::new());
        lines.push(
            "there are no scores: is this the audit stream, and is security.intent_alignment on?"
                .to_owned(),
        );
        return lines;
    }
    lines.extend([String::new(), "quantile   score".to_owned()]);
    for thousandths in QUANTILES {
        let score = observed.quantile(thousandths).map(shown);
        let name = match thousandths {
            0 => "least".to_owned(),
            1000 => "most".to_owned(),
            _ => format!("{} %", thousandths / 10),
        };
        lines.push(format!("{name:<8}  {}", score.unwrap_or_default()));
    }
    lines.push(String::new());
    lines.extend(plot::text(&observed.histogram(BINS)));
    lines.push(String::new());
    match suggestion {
        Some(floors) => lines.extend([
            "suggested, if this was normal traffic of one embedder:".to_owned(),
            format!("  threshold        {}", shown(floors.threshold)),
            format!("  hard_threshold   {}", shown(floors.hard_threshold)),
            format!("  drift_threshold  {}", shown(floors.drift_threshold)),
        ]),
        None => lines.push(format!(
            "nothing is suggested before there are {FEWEST_SCORES} scores"
        )),
    }
    lines
}

/// With room for a sign, so that columns stand.
fn shown(score: Score) -> String {
    format!("{:>6}", score.to_string())
}

/// Where a part of the histogram begins, in millionths.
pub(super) fn edge(part: usize) -> i64 {
    let part = i64::try_from(part).unwrap_or(i64::MAX);
    let bins = i64::try_from(BINS).unwrap_or(1);
    part * 2_000_000 / bins - 1_000_000
}
