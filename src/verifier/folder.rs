//! A whole log as files: `checkpoint`, `tile/…` (C2SP tlog-tiles) and `root/<version>.json` in one folder.

use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::timestamps::{self, Held};
use super::{Request, VerifyError, checkpoint, pin, policy, read};
use crate::attest::chain::Verdict;
use crate::attest::dsse::MAX_ENVELOPE;
use crate::attest::predicate::CheckpointRef;
use crate::attest::text::shown;
use crate::audit::{
    ASKED, BroughtTimestamp, Cosignature, Failure, LogFiles, LogMemory, LogReport, Rule,
    TimestampRoots, cosigned, log_policy, reference, trust_from, verify_log,
};
use crate::log::{
    AuditorPolicy, HashTile, MAX_BUNDLE, SignedCheckpoint, TILE_WIDTH, TileId, TileKind,
    read_entries, write_entries,
};

/// More versions than an organisation makes.
const MAX_ROOTS: usize = 1_000;
/// The longest memory that is read, in bytes.
const MAX_MEMORY: u64 = 1 << 30;

/// What verification says about a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FolderReport {
    /// What it says about the log.
    #[serde(flatten)]
    pub report: LogReport,
    /// The checkpoint it is under.
    pub checkpoint: CheckpointRef,
    /// Who cosigned it, of the witnesses of the policy that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosignatures: Option<Vec<Cosignature>>,
    /// Timestamps of its checkpoints.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timestamps: Vec<BroughtTimestamp>,
}

impl FolderReport {
    /// Verifies its timestamps: one that does not hold makes the verdict invalid.
    pub(super) fn check_timestamps(&mut self, roots: &dyn TimestampRoots) {
        for found in &mut self.timestamps {
            if let Err(found) = found.check(roots) {
                let expected = "a timestamp under the roots that you trust";
                timestamps::add(&mut self.report, Verdict::Invalid, expected, found);
            }
        }
    }
}

/// Verifies a folder.
pub(super) fn verify(request: &Request) -> Result<FolderReport, VerifyError> {
    let folder = &request.bundle;
    let brought = roots(folder)?;
    let brought = brought
        .iter()
        .map(|(name, bytes)| (name.clone(), bytes.as_slice()));
    let failed = |cause| VerifyError::Bundle {
        path: shown(&folder.display().to_string()),
        cause,
    };
    let trust = trust_from(brought, &pin(&request.trust_root)?).map_err(failed)?;
    let asked = request.policy.as_deref().map(policy).transpose()?;
    let policy = log_policy(&trust).map_err(|reason| VerifyError::NoLogKey { reason })?;
    let place = folder.join("checkpoint");
    let refused = |path: &Path, reason: String| VerifyError::Untrusted {
        path: shown(&path.display().to_string()),
        reason,
    };
    let signed = checkpoint(&place)?;
    let trusted = policy.verify(&signed);
    let trusted = trusted.map_err(|error| refused(&place, error.to_string()))?;
    let seen = match &request.checkpoint {
        None => None,
        Some(path) => {
            let seen = policy.verify(&checkpoint(path)?);
            Some(
                seen.map_err(|error| refused(path, error.to_string()))?
                    .head(),
            )
        }
    };
    let files = Files { folder };
    let memory = request
        .state
        .as_deref()
        .map(remembered)
        .transpose()?
        .flatten();
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let size = trusted.head().size();
    let mut progress = Progress::new(size);
    let (mut report, memory) = verify_log(
        &files,
        &trust,
        trusted.head(),
        seen,
        memory,
        workers,
        &mut |done| progress.show(done),
    );
    progress.clear();
    let cosignatures = witnesses(asked.as_ref(), &signed, &mut report);
    // What the witnesses have not seen is not what the next log has to extend.
    if let (Some(memory), Some(path), Ok(_)) = (memory, &request.state, &cosignatures) {
        remember(path, &memory)?;
    }
    let cosignatures = cosignatures.unwrap_or_else(|()| Some(Vec::new()));
    let held = Held {
        files: &files,
        trust: &trust,
        policy: &policy,
        head: trusted.head(),
    };
    let timestamps = timestamps::of_folder(folder, &held, &mut report)?;
    Ok(FolderReport {
        cosignatures,
        report,
        checkpoint: reference(&trusted),
        timestamps,
    })
}

/// Who cosigned, of those that the policy asks for; a policy that is not met is a failure of the report.
fn witnesses(
    asked: Option<&AuditorPolicy>,
    signed: &SignedCheckpoint,
    report: &mut LogReport,
) -> Result<Option<Vec<Cosignature>>, ()> {
    let Some(asked) = asked else {
        return Ok(None);
    };
    cosigned(asked, signed)
        .map(Some)
        .map_err(|(verdict, found)| {
            report.verdict = report.verdict.max(verdict);
            report.failures.push(Failure {
                seq: signed.claimed().head().size(),
                rule: Rule::Witness,
                expected: ASKED.to_owned(),
                found: shown(&found),
            });
        })
}

pub(super) fn roots(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, VerifyError> {
    let place = folder.join("root");
    let failed = |cause| VerifyError::File {
        what: "the trust roots in",
        path: shown(&place.display().to_string()),
        cause,
    };
    let mut roots = Vec::new();
    for entry in std::fs::read_dir(&place).map_err(failed)?.take(MAX_ROOTS) {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = read(&entry.path(), "the trust root", MAX_ENVELOPE as u64)?;
        roots.push((format!("root/{name}"), bytes));
    }
    Ok(roots)
}

/// What the auditor's own file says; nothing the first time.
fn remembered(path: &Path) -> Result<Option<LogMemory>, VerifyError> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = read(path, "what was verified before", MAX_MEMORY)?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|cause| VerifyError::Memory {
            path: shown(&path.display().to_string()),
            reason: cause.to_string(),
        })
}

/// Whole or not at all.
fn remember(path: &Path, memory: &LogMemory) -> Result<(), VerifyError> {
    let failed = |cause| VerifyError::File {
        what: "writing what was verified to",
        path: shown(&path.display().to_string()),
        cause,
    };
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    // Never whole in memory: of a long log it is many megabytes.
    let mut file = BufWriter::new(File::create(&beside).map_err(failed)?);
    serde_json::to_writer(&mut file, memory).map_err(|error| failed(error.into()))?;
    let file = file
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    std::fs::rename(&beside, path).map_err(failed)
}

pub(super) struct Files<'a> {
    pub(super) folder: &'a Path,
}

impl LogFiles for Files<'_> {
    fn file(&self, tile: TileId) -> Result<Vec<u8>, String> {
        let limit = match tile.kind() {
            TileKind::Entries => MAX_BUNDLE as u64,
            TileKind::Hashes { .. } => 32 * u64::from(TILE_WIDTH),
        };
        let place = |tile: TileId| self.folder.join(tile.to_string());
        let own = place(tile);
        if tile.is_full() || own.exists() {
            return read(&own, "the log's file", limit).map_err(|error| error.to_string());
        }
        // A narrower file may be gone once the whole one is there, which begins with it.
        let whole = TileId::new(tile.kind(), tile.index(), TILE_WIDTH)
            .map_err(|error| error.to_string())?;
        let bytes =
            read(&place(whole), "the log's file", limit).map_err(|error| error.to_string())?;
        let words = |error: &dyn std::fmt::Display| format!("{whole}: {error}");
        let width = usize::from(tile.width());
        match tile.kind() {
            TileKind::Entries => {
                let entries = read_entries(&bytes, TILE_WIDTH).map_err(|error| words(&error))?;
                let first = entries.get(..width).unwrap_or(&entries);
                write_entries(first).map_err(|error| words(&error))
            }
            TileKind::Hashes { .. } => {
                HashTile::parse(whole, &bytes).map_err(|error| words(&error))?;
                Ok(bytes.get(..32 * width).unwrap_or_default().to_vec())
            }
        }
    }
}

/// A line on standard error while a person may be waiting there.
struct Progress {
    size: u64,
    shown: Option<u64>,
    visible: bool,
}

impl Progress {
    fn new(size: u64) -> Self {
        Self {
            size,
            shown: None,
            visible: std::io::stderr().is_terminal(),
        }
    }

    fn show(&mut self, done: u64) {
        let hundredths = done
            .saturating_mul(100)
            .checked_div(self.size)
            .unwrap_or(100);
        if self.visible && self.shown != Some(hundredths) {
            self.shown = Some(hundredths);
            let filled = usize::try_from(hundredths / 4).unwrap_or(25);
            let bar = format!("{}{}", "#".repeat(filled), ".".repeat(25 - filled.min(25)));
            let line = format!(
                "\rverifying [{bar}] {hundredths:3} % of {} leaves",
                self.size
            );
            drop(std::io::stderr().write_all(line.as_bytes()));
        }
    }

    fn clear(&self) {
        if self.visible && self.shown.is_some() {
            drop(std::io::stderr().write_all(b"\r\x1b[K"));
        }
    }
}
