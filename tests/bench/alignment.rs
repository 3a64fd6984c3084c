//! What scoring a call costs: `cargo bench --bench alignment`.
//!
//! First a call whose embedding is kept, at 1,536 numbers, with and without drift, beside a plain dot product of the same vectors in f64;
//! then, where `CARETAKER_TEST_MINILM` names the folder of its weights, one text by the model that runs in this process.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use caretaker::alignment::{Alignment, Parts, Scoring};
use caretaker::clock::SystemClock;
use caretaker::config::DenyPrompts;
use caretaker::embedder::embedded::EmbeddedEmbedder;
use caretaker::embedder::{EmbedError, Embedder};
use caretaker::events::{Event, EventSink, SinkError};
use caretaker::intent::{DriftRule, EmbedderId, Thresholds};

type Tried<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Numbers of a vector, as `text-embedding-3-small` has.
const DIMENSION: u16 = 1536;
/// Measurements, of which the median and the best are told.
const ROUNDS: usize = 31;
/// Calls of one measurement.
const CALLS: u32 = 20_000;
/// A tool's description, and arguments as agents send them.
const DESCRIPTION: &str = "Run a shell command in the sandboxed worktree and return its output.";
const ARGUMENTS: &str = r#"{"command":"cargo test parse_duration_rejects_negative"}"#;

/// Answers at once.
struct Instantly(EmbedderId);

#[async_trait]
impl Embedder for Instantly {
    fn id(&self) -> &EmbedderId {
        &self.0
    }

    fn dimension(&self) -> Option<usize> {
        Some(DIMENSION.into())
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|text| vector(text.len())).collect())
    }
}

/// Keeps nothing of what it is given.
struct Nowhere;

impl EventSink for Nowhere {
    fn record(&self, event: &Event) -> Result<(), SinkError> {
        black_box(event);
        Ok(())
    }
}

fn vector(seed: usize) -> Vec<f32> {
    let seed = u16::try_from(seed % 97).unwrap_or(0);
    (0..DIMENSION)
        .map(|place| 1.0 + f32::from((place * 7 + seed) % 13) / 13.0)
        .collect()
}

fn engine(drift: Option<DriftRule>) -> Tried<Alignment> {
    let (soft, hard) = Thresholds::DEFAULT;
    Ok(Alignment::new(Parts {
        scoring: Some(Scoring {
            embedder: Arc::new(Instantly("openai:text-embedding-3-small".parse()?)),
            thresholds: Thresholds::new(soft, hard)?,
            cache_size: 1024,
            exempt: BTreeSet::new(),
            drift,
        }),
        deny_prompts: DenyPrompts::default(),
        intents: None,
        sink: Arc::new(Nowhere),
        clock: Arc::new(SystemClock),
    }))
}

/// Median and best time of one call.
fn measured(mut calls: impl FnMut() -> Duration) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| calls()).collect();
    times.sort_unstable();
    let at = |place: usize| times.get(place).copied().unwrap_or_default();
    (at(ROUNDS / 2), at(0))
}

fn say(what: &str, (median, best): (Duration, Duration), goal: &str) -> Tried<()> {
    let show = |time: Duration| match time.as_nanos() {
        nanos if nanos < 1_000_000 => format!("{:.2} µs", time.as_secs_f64() * 1e6),
        _ => format!("{:.1} ms", time.as_secs_f64() * 1e3),
    };
    writeln!(
        std::io::stdout(),
        "{what:<48} median {:>9}, best {:>9}  {goal}",
        show(median),
        show(best)
    )?;
    Ok(())
}

fn main() -> Tried<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    plain()?;
    let drift = DriftRule::new(5, 0.35, 3)?;
    for (what, drift) in [
        ("kept embedding", None),
        ("kept embedding, with drift", Some(drift)),
    ] {
        let engine = engine(drift)?;
        let times = runtime.block_on(async {
            engine.begin("task", "mend the parser").await?;
            engine
                .score("task", "shell", Some(DESCRIPTION), ARGUMENTS)
                .await;
            let mut all = Vec::with_capacity(ROUNDS);
            for _ in 0..ROUNDS {
                let begin = Instant::now();
                for _ in 0..CALLS {
                    let scored = engine.score("task", "shell", Some(DESCRIPTION), ARGUMENTS);
                    black_box(scored.await);
                }
                all.push(begin.elapsed() / CALLS);
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(all)
        })?;
        let mut times = times.into_iter();
        say(
            what,
            measured(|| times.next().unwrap_or_default()),
            "goal ≤ 2 µs",
        )?;
    }
    match std::env::var_os("CARETAKER_TEST_MINILM") {
        Some(folder) => embedded(&PathBuf::from(folder)),
        None => Ok(()),
    }
}

/// What no scoring can do without: one sum over both vectors in f64, one number after another.
fn plain() -> Tried<()> {
    let (one, other) = (vector(3), vector(11));
    let times = measured(|| {
        let begin = Instant::now();
        for _ in 0..CALLS {
            let pairs = black_box(&one).iter().zip(black_box(&other));
            let sum: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            black_box(sum);
        }
        begin.elapsed() / CALLS
    });
    say("plain dot product, 1,536 numbers, f64", times, "baseline")
}

fn embedded(folder: &std::path::Path) -> Tried<()> {
    let begin = Instant::now();
    let embedder = EmbeddedEmbedder::load(folder)?;
    let loaded = begin.elapsed();
    say(
        "MiniLM: loading and checking the weights",
        (loaded, loaded),
        "",
    )?;
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let text = format!("{DESCRIPTION}\n\nargs: {ARGUMENTS}");
    let times = measured(|| {
        let begin = Instant::now();
        black_box(runtime.block_on(embedder.embed(&[&text])).is_ok());
        begin.elapsed()
    });
    say("MiniLM: one text of about 40 pieces", times, "goal ≤ 40 ms")?;
    let long = "word ".repeat(300);
    let times = measured(|| {
        let begin = Instant::now();
        black_box(runtime.block_on(embedder.embed(&[&long])).is_ok());
        begin.elapsed()
    });
    say("MiniLM: the longest text, 256 pieces", times, "")?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
    writeln!(std::io::stdout(), "{}", peak.unwrap_or_default())?;
    Ok(())
}
