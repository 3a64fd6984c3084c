//! One measurement in a process of its own, and what the system says about that process.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use caretaker::attest::chain::Verdict;
use caretaker::verifier::{Request, Verified, verify};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::incidents::trust_root;
use crate::Tried;

/// What a verification of a folder cost.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Signed statements that were verified.
    pub(crate) events: u64,
    /// Wall clock.
    pub(crate) seconds: f64,
    /// On all cores.
    pub(crate) processor_seconds: f64,
    /// The most memory that was held.
    pub(crate) peak_megabytes: f64,
}

/// Verifies a folder as `caretaker verify FOLDER --trust-root SHA256 [--state FILE]` does.
pub(crate) fn verified(folder: &Path, state: Option<&str>) -> Tried<Cost> {
    let request = Request {
        bundle: folder.to_owned(),
        trust_root: trust_root()?.digest().to_string(),
        checkpoint: None,
        state: state.map(Into::into),
        policy: None,
    };
    let begin = Instant::now();
    let verified = verify(&request)?;
    let seconds = begin.elapsed().as_secs_f64();
    let Verified::Folder(report) = &verified else {
        return Err("not a folder".into());
    };
    if verified.verdict() != Verdict::Valid {
        let first = report.report.failures.first();
        return Err(first.map_or_else(String::new, ToString::to_string).into());
    }
    Ok(Cost {
        events: report.report.events,
        seconds,
        processor_seconds: processor_seconds()?,
        peak_megabytes: peak_megabytes()?,
    })
}

/// Runs this program anew with other words, and reads what it says.
pub(crate) fn run<T: DeserializeOwned>(words: &[&str]) -> Tried<T> {
    let mut command = Command::new(std::env::current_exe()?);
    told(command.args(words))
}

/// Runs a program that writes one JSON document.
pub(crate) fn told<T: DeserializeOwned>(command: &mut Command) -> Tried<T> {
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{command:?} failed").into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Processor time of this process so far (proc(5): user and system time in hundredths of a second).
pub(crate) fn processor_seconds() -> Tried<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("reading /proc/self/stat")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let field = |place: usize| -> Tried<f64> {
        let text = fields.get(place).ok_or("reading /proc/self/stat")?;
        Ok(text.parse()?)
    };
    Ok((field(11)? + field(12)?) / 100.0)
}

/// The most memory that this process held.
pub(crate) fn peak_megabytes() -> Tried<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_ascii_whitespace().next());
    let kilobytes: f64 = kilobytes.ok_or("reading /proc/self/status")?.parse()?;
    Ok(kilobytes / 1024.0)
}
