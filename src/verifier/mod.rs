//! Verifying what an auditor was given: files in, a verdict out. No database, no network, no clock, nothing written.
//!
//! `caretaker verify` and the small program `caretaker-verify` are both this.

mod command;
mod folder;
mod log_folder;
mod report;
mod timestamps;

pub use command::{Arguments, ArgumentsError, HELP};
pub use folder::FolderReport;
pub use log_folder::LogFolder;

use std::fs::File;
use std::io::{self, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

use crate::attest::chain::Verdict;
use crate::attest::dsse::MAX_ENVELOPE;
use crate::attest::text::shown;
use crate::attest::{TrustRoot, TrustRootError};
use crate::audit::{
    BundleError, BundleReport, MAX_BUNDLE, Pin, TimestampRoots, verify_bundle_with,
};
use crate::change::Sha256Digest;
use crate::log::{
    AuditorPolicy, AuditorPolicyError, CheckpointError, MAX_NOTE, MAX_POLICY, SignedCheckpoint,
};

/// What to verify, and against what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// A bundle, or a folder with a whole log.
    pub bundle: PathBuf,
    /// A file with a trust root, or the SHA-256 of one.
    pub trust_root: String,
    /// A file with a checkpoint of the log that was seen before.
    pub checkpoint: Option<PathBuf>,
    /// A file with the witnesses that have to have cosigned (C2SP tlog-policy).
    pub policy: Option<PathBuf>,
    /// Where the verifier keeps what it has verified of a whole log, so that the next time only what is new is. The one file
    /// that is ever written.
    pub state: Option<PathBuf>,
}

/// Why there is no report.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// A file.
    #[error("reading {what} {path}: {cause}")]
    File {
        /// What is in it.
        what: &'static str,
        /// Where.
        path: String,
        /// What the system says.
        cause: io::Error,
    },
    /// Neither a digest nor a file with a trust root.
    #[error("the trust root to pin, {path}: {cause}")]
    TrustRoot {
        /// Where.
        path: String,
        /// Why not.
        cause: TrustRootError,
    },
    /// No checkpoint.
    #[error("the checkpoint {path}: {cause}")]
    Checkpoint {
        /// Where.
        path: String,
        /// Why not.
        cause: CheckpointError,
    },
    /// No policy.
    #[error("the policy {path}: {cause}")]
    Policy {
        /// Where.
        path: String,
        /// Why not.
        cause: AuditorPolicyError,
    },
    /// The trust root lists no key of the log.
    #[error("the checkpoint cannot be judged: {reason}")]
    NoLogKey {
        /// Why not.
        reason: String,
    },
    /// A checkpoint that is not this log's.
    #[error("the checkpoint {path} does not count: {reason}")]
    Untrusted {
        /// Where.
        path: String,
        /// Why not.
        reason: String,
    },
    /// There are no roots to hold timestamps against.
    #[error("{reason}")]
    TimestampRoots {
        /// Why not.
        reason: String,
    },
    /// What was remembered is not readable.
    #[error(
        "{path} does not hold what was verified before ({reason}); move it away to verify everything anew"
    )]
    Memory {
        /// Where.
        path: String,
        /// Why not.
        reason: String,
    },
    /// The verifier itself failed.
    #[error(
        "the verifier itself failed, which is a fault of this program: report it with what is on standard error"
    )]
    Fault,
    /// No bundle.
    #[error("{path}: {cause}")]
    Bundle {
        /// Where.
        path: String,
        /// Why not.
        cause: BundleError,
    },
}

impl VerifyError {
    /// What it means for what was to be verified: something that was damaged or made up is not merely unverifiable.
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Bundle { cause, .. } => cause.verdict(),
            Self::Untrusted { .. } => Verdict::Invalid,
            _ => Verdict::CannotVerify,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Verified {
    /// Of one incident.
    Bundle(Box<BundleReport>),
    /// Of a whole log.
    Folder(Box<FolderReport>),
}

impl Verified {
    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Bundle(verified) => verified.report.verdict,
            Self::Folder(verified) => verified.report.verdict,
        }
    }

    /// Verifies the timestamps in it: one that does not hold makes the verdict invalid.
    pub fn check_timestamps(&mut self, roots: &dyn TimestampRoots) {
        match self {
            Self::Bundle(verified) => verified.check_timestamps(roots),
            Self::Folder(verified) => verified.check_timestamps(roots),
        }
    }
}

/// Verifies.
///
/// # Errors
/// A file cannot be read, or is not what it should be.
pub fn verify(request: &Request) -> Result<Verified, VerifyError> {
    if request.bundle.is_dir() {
        return Ok(Verified::Folder(Box::new(folder::verify(request)?)));
    }
    let pin = pin(&request.trust_root)?;
    let seen = request.checkpoint.as_deref().map(checkpoint).transpose()?;
    let policy = request.policy.as_deref().map(policy).transpose()?;
    let bytes = read(&request.bundle, "the bundle", MAX_BUNDLE as u64)?;
    let verified = verify_bundle_with(&bytes, &pin, seen.as_ref(), policy.as_ref());
    let verified = verified.map_err(|cause| VerifyError::Bundle {
        path: shown(&request.bundle.display().to_string()),
        cause,
    })?;
    Ok(Verified::Bundle(Box::new(verified)))
}

/// Verifies and says what came of it: the text, or one JSON document; and the exit code, 0 valid, 1 invalid, 3 cannot tell.
/// Timestamps are told, not checked.
pub fn answer(request: &Request, json: bool) -> (String, u8) {
    answer_to(|| verify(request), json)
}

/// The same for any verification. One that panics has verified nothing, and that is said.
pub fn answer_to(
    verify: impl FnOnce() -> Result<Verified, VerifyError>,
    json: bool,
) -> (String, u8) {
    told(&caught(verify), json, false)
}

/// [`answer`], with timestamps checked by whoever can.
pub fn answer_with(
    request: &Request,
    json: bool,
    roots: Option<&dyn TimestampRoots>,
) -> (String, u8) {
    let verified = caught(|| {
        let mut verified = verify(request)?;
        if let Some(roots) = roots {
            verified.check_timestamps(roots);
        }
        Ok(verified)
    });
    told(&verified, json, roots.is_some())
}

/// The answer when the roots of timestamps cannot be had, in the words of whoever tried: nothing was verified.
pub fn answer_without_roots(reason: String, json: bool) -> (String, u8) {
    told(&Err(VerifyError::TimestampRoots { reason }), json, true)
}

fn caught(verify: impl FnOnce() -> Result<Verified, VerifyError>) -> Result<Verified, VerifyError> {
    // Break it: call it directly; a fault then ends without a verdict (`faults::a_verifier_that_fails_says_so`).
    catch_unwind(AssertUnwindSafe(verify)).unwrap_or(Err(VerifyError::Fault))
}

fn told(verified: &Result<Verified, VerifyError>, json: bool, roots: bool) -> (String, u8) {
    let verdict = match verified {
        Ok(verified) => verified.verdict(),
        Err(error) => error.verdict(),
    };
    let text = if json {
        report::document(verified)
    } else {
        report::text(verified, roots)
    };
    let code = match verdict {
        Verdict::Valid => 0,
        Verdict::Invalid => 1,
        Verdict::CannotVerify => 3,
    };
    (text, code)
}

/// A digest is a pin by itself; anything else names a file.
fn pin(trust_root: &str) -> Result<Pin, VerifyError> {
    let hexadecimal = trust_root.strip_prefix("sha256:").unwrap_or(trust_root);
    if let Ok(digest) = hexadecimal.parse::<Sha256Digest>() {
        return Ok(Pin::Digest(digest));
    }
    let path = Path::new(trust_root);
    let bytes = read(path, "the trust root", MAX_ENVELOPE as u64)?;
    let root = TrustRoot::parse_unpinned(&bytes);
    let root = root.map_err(|cause| VerifyError::TrustRoot {
        path: shown(trust_root),
        cause,
    })?;
    Ok(Pin::Root(Box::new(root)))
}

fn checkpoint(path: &Path) -> Result<SignedCheckpoint, VerifyError> {
    let bytes = read(path, "the checkpoint", MAX_NOTE as u64)?;
    SignedCheckpoint::parse(&bytes).map_err(|cause| VerifyError::Checkpoint {
        path: shown(&path.display().to_string()),
        cause,
    })
}

fn policy(path: &Path) -> Result<AuditorPolicy, VerifyError> {
    let bytes = read(path, "the policy", MAX_POLICY as u64)?;
    AuditorPolicy::parse(&bytes).map_err(|cause| VerifyError::Policy {
        path: shown(&path.display().to_string()),
        cause,
    })
}

/// Reads an ordinary file of at most `limit` bytes.
///
/// # Errors
/// It is not there, no ordinary file, or longer.
pub fn read(path: &Path, what: &'static str, limit: u64) -> Result<Vec<u8>, VerifyError> {
    let failed = |cause| VerifyError::File {
        what,
        path: shown(&path.display().to_string()),
        cause,
    };
    // Asked before opening: opening a pipe would wait for a writer.
    let found = std::fs::metadata(path).map_err(failed)?;
    if !found.is_file() {
        return Err(failed(io::Error::other("it is not an ordinary file")));
    }
    let too_long = || failed(io::Error::other(format!("it is longer than {limit} bytes")));
    // Break it: leave this out; a gigabyte is then read before it is refused (`faults::hostile::no_file_takes_memory_or_time`).
    if found.len() > limit {
        return Err(too_long());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0));
    let file = File::open(path).map_err(failed)?;
    // It may have grown meanwhile.
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(too_long());
    }
    Ok(bytes)
}
