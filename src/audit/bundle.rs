//! A self-contained copy of one incident's ledger, and its verification without database, network or clock.
//!
//! Nothing in a bundle is trusted by itself. The trust root is the one that is pinned; of the versions that the bundle brings,
//! only those count that follow from it. Format: `docs/log.md`.

mod consistency;
mod contents;
mod judged;
mod trust;

use serde::Serialize;
use thiserror::Error;

use super::archive::{Archive, ArchiveError};
use super::cosigned::Cosignature;
use super::report::{Failure, Report, Rule};
use super::timestamp::{BroughtTimestamp, TimestampRoots};
use crate::attest::chain::{Expectation, Prepared, Verdict, verify_prepared};
use crate::attest::text::shown;
use crate::attest::{Event, TrustRoot, TrustRootError};
use crate::change::Sha256Digest;
use crate::log::{AuditorPolicy, SignedCheckpoint};
use judged::{Judged, Proof};
use trust::MAX_ROOTS;

pub(super) use consistency::{NotOneLog, number, one_log};
pub use contents::BundleContents;
pub use trust::{log_keys, log_origin, log_policy, reference, trust_from};

/// The longest bundle that is read, in bytes.
pub const MAX_BUNDLE: usize = 256 << 20;
/// The most events that a bundle may hold.
const MAX_EVENTS: usize = 4_096;
/// What the member `format` says.
const FORMAT: &[u8] = b"caretaker-bundle/v1\n";

/// What a verifier holds from elsewhere.
#[derive(Debug, Clone)]
pub enum Pin {
    /// A version of the trust root, whole.
    Root(Box<TrustRoot>),
    /// The digest of one, which the bundle has to bring.
    Digest(Sha256Digest),
}

/// Why nothing could be judged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BundleError {
    /// Not a bundle.
    #[error("reading the bundle: {0}")]
    Archive(#[from] ArchiveError),
    /// Longer than what is read.
    #[error("reading the bundle: it has {length} bytes, at most {MAX_BUNDLE} are read")]
    TooLong {
        /// Bytes.
        length: usize,
    },
    /// A later format, or another one.
    #[error(
        "reading the bundle: its format is {found}, this version reads caretaker-bundle/v1; verify it with a newer one"
    )]
    Format {
        /// What it says, made printable.
        found: String,
    },
    /// The pinned trust root is not there.
    #[error(
        "the trust root sha256:{pinned} that you pin is not in the bundle; give the file that `caretaker keys export-trust-root` wrote"
    )]
    NotThere {
        /// What is pinned.
        pinned: Sha256Digest,
    },
    /// More versions than are looked at.
    #[error("the bundle brings more than {MAX_ROOTS} versions of the trust root")]
    TooManyRoots,
    /// A version under another number.
    #[error(
        "the bundle's {member} holds version {version} of the trust root, which belongs under its own number"
    )]
    Misnamed {
        /// The member.
        member: String,
        /// The version it holds.
        version: u64,
    },
    /// Another document of the pinned version's number.
    #[error(
        "the bundle's {member} is not the trust root that you pin: its digest is {found}, yours is {pinned}"
    )]
    Swapped {
        /// The member.
        member: String,
        /// What is pinned.
        pinned: Sha256Digest,
        /// What was found.
        found: Sha256Digest,
    },
    /// A version of the trust root does not follow from the pinned one.
    #[error("the bundle's {member}: {reason}")]
    TrustRoot {
        /// The member.
        member: String,
        /// Why.
        reason: TrustRootError,
    },
}

impl BundleError {
    /// What it means for the bundle: one that was damaged or made up is not merely unverifiable.
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Archive(_)
            | Self::TrustRoot { .. }
            | Self::TooManyRoots
            | Self::Misnamed { .. }
            | Self::Swapped { .. } => Verdict::Invalid,
            Self::TooLong { .. } | Self::Format { .. } | Self::NotThere { .. } => {
                Verdict::CannotVerify
            }
        }
    }
}

/// Whether more can have happened in the incident than the bundle shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Its last event ends the incident: a merge, or a refusal.
    Finished,
    /// It does not. Events that were left out at the end would not be noticed here; an audit of the whole log would.
    Open,
}

/// What verification says about a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleReport {
    /// What it says about the ledger.
    #[serde(flatten)]
    pub report: Report,
    /// The incident, as the events name it.
    pub incident: Option<String>,
    /// Whether it ends with what is shown.
    pub ending: Ending,
    /// The trust root versions that were held.
    pub trust_roots: Vec<u64>,
    /// Who cosigned the checkpoint, of the witnesses of the policy that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosignatures: Option<Vec<Cosignature>>,
    /// Timestamps of checkpoints of its log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timestamps: Vec<BroughtTimestamp>,
}

impl BundleReport {
    /// Verifies its timestamps: one that does not hold makes the verdict invalid.
    pub fn check_timestamps(&mut self, roots: &dyn TimestampRoots) {
        for found in &mut self.timestamps {
            // Break it: pass over it (`audit::timestamps::a_timestamp_that_does_not_hold_is_invalid`).
            if let Err(found) = found.check(roots) {
                let expected = "a timestamp under the roots that you trust".to_owned();
                self.report
                    .fail_whole(Verdict::Invalid, Rule::Timestamp, expected, found);
            }
        }
    }
}

/// Verifies a bundle against what the verifier holds from elsewhere: a trust root and, if there is one, the last checkpoint of
/// the log that was seen.
///
/// # Errors
/// It is no bundle, or the trust roots it brings do not follow from the pinned one, so that nothing can be said about it.
pub fn verify_bundle(
    bytes: &[u8],
    pin: &Pin,
    seen: Option<&SignedCheckpoint>,
) -> Result<BundleReport, BundleError> {
    verify_bundle_with(bytes, pin, seen, None)
}

/// As [`verify_bundle`], and with a policy: the witnesses it asks for have to have cosigned. A policy makes no verdict better.
///
/// # Errors
/// As of [`verify_bundle`].
pub fn verify_bundle_with(
    bytes: &[u8],
    pin: &Pin,
    seen: Option<&SignedCheckpoint>,
    asked: Option<&AuditorPolicy>,
) -> Result<BundleReport, BundleError> {
    if bytes.len() > MAX_BUNDLE {
        return Err(BundleError::TooLong {
            length: bytes.len(),
        });
    }
    let archive = Archive::parse(bytes)?;
    let format = archive.member("format").unwrap_or_default();
    if format != FORMAT {
        let found = String::from_utf8_lossy(format);
        return Err(BundleError::Format {
            found: shown(found.trim_end()),
        });
    }
    let brought = archive
        .folder("root")
        .map(|(name, bytes)| (format!("root/{name}"), bytes));
    let trust = trust_from(brought, pin)?;
    let events = events(&archive);
    let policy = log_policy(&trust);
    let proofs: Vec<Proof> = events
        .iter()
        .enumerate()
        .map(|(seq, envelope)| Proof::read(&archive, seq, envelope, policy.as_ref().ok(), asked))
        .collect();
    // The places come first: where the trust root ends a key at one, it is the place that decides.
    let prepared = events.iter().zip(&proofs);
    let prepared =
        prepared.map(|(envelope, proof)| Prepared::logged(&trust, envelope, proof.index()));
    let mut judged = Judged {
        report: verify_prepared(&Expectation::default(), prepared).into(),
        trust: &trust,
    };
    if events.len() >= MAX_EVENTS {
        let found = format!("{} or more", events.len());
        judged.refuse(Rule::Bundle, "fewer than 4,096 events", &found);
    }
    judged.check_members(&archive, events.len());
    let cosignatures = asked.map(|_| judged.check_witnesses(&proofs));
    let places: Vec<u64> = proofs.iter().filter_map(Proof::index).collect();
    let checkpoint = judged.check_log(policy.err(), proofs);
    judged.check_seen(&archive, checkpoint.as_ref(), seen);
    judged.check_evidence(&archive);
    let timestamps = judged.check_timestamps(&archive, checkpoint.as_ref(), &places);
    let Judged { report, .. } = judged;
    Ok(BundleReport {
        incident: report
            .events
            .iter()
            .find_map(|event| Some(event.event.as_ref()?.block().incident.to_string())),
        ending: ending(&report),
        trust_roots: trust
            .versions()
            .map(|root| root.document().version)
            .collect(),
        cosignatures,
        timestamps,
        report,
    })
}

/// The envelopes, a line each. Each line ends with a line break, so that there is one way to write them.
fn events<'a>(archive: &Archive<'a>) -> Vec<&'a [u8]> {
    let text = archive.member("events.jsonl").unwrap_or_default();
    if text.is_empty() {
        return Vec::new();
    }
    // What is behind the last line break is nothing, or refused by who asks for the line break. A line break alone ends a line
    // that is empty, which is an envelope no less than any other.
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|byte| *byte == b'\n').take(MAX_EVENTS).collect()
}

/// Whether the last event ends the incident.
fn ending(report: &Report) -> Ending {
    let events = report.events.iter().rev();
    let mut events = events.skip_while(|event| matches!(event.event, Some(Event::Gap(_))));
    let last = events.next().and_then(|event| event.event.as_ref());
    let finished = match last {
        Some(Event::Execution(_)) => true,
        Some(Event::PolicyDecision(decision)) => decision.terminal,
        _ => false,
    };
    if finished {
        Ending::Finished
    } else {
        Ending::Open
    }
}

impl From<BundleError> for Failure {
    /// As the one failure of a report: nothing else could be looked at.
    fn from(error: BundleError) -> Self {
        Self {
            seq: 0,
            rule: Rule::Bundle,
            expected: "a bundle that follows from the pinned trust root".to_owned(),
            found: error.to_string(),
        }
    }
}
