//! The hour itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use caretaker::clock::{Clock, FixedClock, Millis};
use caretaker::config::Poll;
use caretaker::connector::github::GithubClient;
use caretaker::signer::system_randomness;
use caretaker::store::Store;
use caretaker::watch::Watch;
use caretaker::worker::Time;
use serde::{Deserialize, Serialize};

use super::forge::ForgeProcess;
use super::projects::{confirmed, connector};

/// 2026-11-30 12:00:00 UTC.
const START: Millis = Millis(1_796_040_000_000);
/// The hour, after a quarter in which every page is read for the first time.
const WARM_UP: i64 = 15 * 60_000;
const HOUR: i64 = 60 * 60_000;
/// How long a run takes.
const RUN: i64 = 4 * 60_000;

/// What was measured.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) projects: usize,
    pub(crate) way: String,
    pub(crate) requests: u64,
    pub(crate) unchanged: u64,
    pub(crate) failures: usize,
    pub(crate) found: usize,
    /// Milliseconds: median, 95th percentile, largest.
    pub(crate) lag: [i64; 3],
    pub(crate) processor_seconds: f64,
    pub(crate) peak_megabytes: f64,
}

/// Something that happens at a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Begin,
    End { fails: bool },
}

/// A number that follows from the last one, the same in every run (Knuth's MMIX constants).
fn next_number(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Two runs in the hour for each project, at moments of chance; every fifth project's last one fails.
fn happenings(count: usize) -> BinaryHeap<Reverse<(i64, usize, Happening)>> {
    let mut state = 42;
    let mut all = BinaryHeap::new();
    for place in 0..count {
        let half = (HOUR - 4 * RUN) / 2;
        for run in 0..2 {
            let chance = i64::try_from(next_number(&mut state)).unwrap_or_default() % half;
            let begin = START.0 + WARM_UP + run * (half + RUN) + chance;
            let fails = run == 1 && place % 5 == 0;
            all.push(Reverse((begin, place, Happening::Begin)));
            all.push(Reverse((begin + RUN, place, Happening::End { fails })));
        }
    }
    all
}

/// Watches `count` projects for an hour.
pub(crate) async fn measure(count: usize, way: &str) -> anyhow::Result<Measured> {
    let folder = tempfile::tempdir()?;
    let place = folder.path().join("forge");
    let forge = ForgeProcess::start(&place.display().to_string(), count, START.0)?;
    let mut measured = match way {
        "watch" => watched(forge, count, folder.path()).await?,
        "stateless" => stateless(forge, count).await?,
        other => anyhow::bail!("{other:?} is neither watch nor stateless"),
    };
    measured.peak_megabytes = peak_megabytes()?;
    Ok(measured)
}

async fn watched(
    mut forge: ForgeProcess,
    count: usize,
    folder: &std::path::Path,
) -> anyhow::Result<Measured> {
    let clock = Arc::new(FixedClock::at(START));
    let shared: Arc<dyn Clock> = Arc::<FixedClock>::clone(&clock);
    let client = GithubClient::of_system(Arc::clone(&shared));
    let database = format!("sqlite://{}", folder.join("caretaker.db").display());
    let store = Store::open(&database).await?;
    let connectors = Arc::new(confirmed(&store, &client, &forge, START).await?);
    let all = Arc::clone(&connectors);
    let mut watch = Watch::new(
        store,
        all,
        system_randomness,
        Poll::default(),
        "bench".to_owned(),
    )
    .by(Time::Clock(shared));
    let spent = || {
        let usages = connectors.0.values().map(|connector| connector.usage());
        usages.fold((0, 0), |sum, usage| {
            (sum.0 + usage.requests, sum.1 + usage.unchanged)
        })
    };
    let mut happenings = happenings(count);
    let failures = happenings
        .iter()
        .filter(|Reverse((_, _, what))| *what == Happening::End { fails: true })
        .count();
    let (mut lags, mut found, mut before) = (Vec::new(), 0, None);
    let mut now = START;
    while now.0 < START.0 + WARM_UP + HOUR {
        if before.is_none() && now.0 >= START.0 + WARM_UP {
            before = Some((spent(), processor_seconds()?));
        }
        happen(&mut forge, &mut happenings, now)?;
        for (_, report) in watch.look_at_due(now).await? {
            found += report.opened.len() + report.attached.len();
            lags.extend(report.lag);
        }
        let due = watch.next_due(now).await?.map_or(i64::MAX, |due| due.0);
        let event = happenings.peek().map_or(i64::MAX, |Reverse((at, ..))| *at);
        let next = due.min(event).max(now.0 + 1);
        clock.advance_millis(next - now.0);
        now = Millis(next);
    }
    let ((requests, unchanged), processor) = before.context("the hour never began")?;
    let after = spent();
    Ok(Measured {
        projects: count,
        way: "watch".to_owned(),
        requests: after.0 - requests,
        unchanged: after.1 - unchanged,
        failures,
        found,
        lag: percentiles(lags),
        processor_seconds: processor_seconds()? - processor,
        peak_megabytes: 0.0,
    })
}

/// Lets happen what is due at the forge.
fn happen(
    forge: &mut ForgeProcess,
    happenings: &mut BinaryHeap<Reverse<(i64, usize, Happening)>>,
    now: Millis,
) -> anyhow::Result<()> {
    while let Some(Reverse((at, place, what))) = happenings.peek().copied() {
        if at > now.0 {
            break;
        }
        happenings.pop();
        forge.order(&format!("at {at}"))?;
        let order = match what {
            Happening::Begin => format!("begin {place}"),
            Happening::End { fails: true } => format!("end {place} failure"),
            Happening::End { fails: false } => format!("end {place} success"),
        };
        forge.order(&order)?;
    }
    Ok(())
}

/// The baseline: every minute the first page of every repository is fetched and read whole by a client that remembers nothing, and
/// the jobs of its newest run when that failed and was not seen before.
async fn stateless(mut forge: ForgeProcess, count: usize) -> anyhow::Result<Measured> {
    let clock: Arc<dyn Clock> = Arc::new(FixedClock::at(START));
    let mut happenings = happenings(count);
    let (mut seen, mut lags) = (std::collections::BTreeSet::new(), Vec::new());
    let sent = AtomicU64::new(0);
    let processor = processor_seconds()?;
    let mut failures = 0;
    for minute in 0..60 {
        let now = Millis(START.0 + WARM_UP + minute * 60_000);
        failures += happenings
            .iter()
            .filter(|Reverse((at, _, what))| {
                *at <= now.0 && *what == Happening::End { fails: true }
            })
            .count();
        happen(&mut forge, &mut happenings, now)?;
        let client = GithubClient::of_system(Arc::clone(&clock));
        for place in 0..count {
            let connector = connector(&client, &forge, place)?;
            let page = connector.runs(1).await?;
            if let Some(newest) = page.runs.first()
                && newest.conclusion.as_deref() == Some("failure")
                && seen.insert((place, newest.id))
            {
                connector.jobs(newest.id, newest.attempt).await?;
                lags.extend(newest.updated_at.map(|ended| now.0 - ended.0));
            }
            sent.fetch_add(connector.usage().requests, Ordering::Relaxed);
        }
    }
    Ok(Measured {
        projects: count,
        way: "stateless".to_owned(),
        requests: sent.into_inner(),
        unchanged: 0,
        failures,
        found: seen.len(),
        lag: percentiles(lags),
        processor_seconds: processor_seconds()? - processor,
        peak_megabytes: 0.0,
    })
}

fn percentiles(mut lags: Vec<i64>) -> [i64; 3] {
    lags.sort_unstable();
    let at = |part: usize| {
        let place = (lags.len() * part / 100).min(lags.len().saturating_sub(1));
        lags.get(place).copied().unwrap_or_default()
    };
    [at(50), at(95), at(100)]
}

/// Processor time of this process so far (proc(5): user and system time in hundredths of a second).
fn processor_seconds() -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').context("reading /proc/self/stat")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let field = |place: usize| -> anyhow::Result<f64> {
        let text = fields.get(place).context("reading /proc/self/stat")?;
        Ok(text.parse()?)
    };
    Ok((field(11)? + field(12)?) / 100.0)
}

/// The most memory that this process held.
fn peak_megabytes() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_ascii_whitespace().next());
    let kilobytes: f64 = kilobytes.context("reading /proc/self/status")?.parse()?;
    Ok(kilobytes / 1024.0)
}
