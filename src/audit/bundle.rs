//! A self-contained copy of one incident's ledger, and its verification without database, network or clock.
//!
//! Nothing in a bundle is trusted by itself. The trust root is the one that is pinned; of the versions that the bundle brings,
//! only those count that follow from it. Format: `docs/log.md`.

use std::collections::BTreeMap;

use serde::Serialize;
use thiserror::Error;

use super::archive::{self, Archive, ArchiveError};
use super::report::{Failure, Report, Rule};
use crate::attest::chain::{Expectation, Prepared, Verdict, verify_prepared};
use crate::attest::predicate::CheckpointRef;
use crate::attest::text::{Text, shown};
use crate::attest::{Event, KeyUse, TrustHistory, TrustRoot, TrustRootError};
use crate::change::Sha256Digest;
use crate::log::{
    Included, KeyName, LogPolicy, LogProof, MAX_PROOF, SignatureType, SignedCheckpoint, TreeHash,
    TrustedCheckpoint, VerifierKey, verify_consistency,
};

/// The longest bundle that is read, in bytes.
pub const MAX_BUNDLE: usize = 256 << 20;
/// The most events that a bundle may hold.
const MAX_EVENTS: usize = 4_096;
/// The most versions of the trust root that are looked at: each costs signatures.
const MAX_ROOTS: usize = 64;
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
        .map(|(seq, envelope)| Proof::read(&archive, seq, envelope, policy.as_ref().ok()))
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
    let checkpoint = judged.check_log(policy.err(), proofs);
    judged.check_seen(&archive, checkpoint.as_ref(), seen);
    judged.check_evidence(&archive);
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
        report,
    })
}

/// The versions of a trust root that follow from the pinned one, of those that were brought along under some name.
///
/// # Errors
/// The pinned one is not there, or one that is does not follow from it.
pub fn trust_from<'a>(
    members: impl Iterator<Item = (String, &'a [u8])>,
    pin: &Pin,
) -> Result<TrustHistory, BundleError> {
    let mut brought = BTreeMap::new();
    for (count, (member, bytes)) in members.enumerate() {
        if count >= MAX_ROOTS {
            return Err(BundleError::TooManyRoots);
        }
        let root = TrustRoot::parse_unpinned(bytes);
        let root = root.map_err(|reason| BundleError::TrustRoot {
            member: member.clone(),
            reason,
        })?;
        let version = root.document().version;
        // Each under its own number, so that none is there twice.
        if member != format!("root/{version}.json") {
            return Err(BundleError::Misnamed { member, version });
        }
        brought.insert(version, (member, bytes, root.digest()));
    }
    let pinned = match pin {
        Pin::Root(root) => root.as_ref().clone(),
        Pin::Digest(pinned) => {
            let found = brought.values().find(|(_, _, digest)| digest == pinned);
            let (member, bytes, _) = found.ok_or(BundleError::NotThere { pinned: *pinned })?;
            let root = TrustRoot::parse_pinned(bytes, pinned);
            root.map_err(|reason| BundleError::TrustRoot {
                member: member.clone(),
                reason,
            })?
        }
    };
    let version = pinned.document().version;
    // Break it: pass over it; a trust map that was swapped then travels along unnoticed
    // (`audit::bundle::another_trust_root_of_the_pinned_number_is_refused`).
    if let Some((member, _, found)) = brought.get(&version)
        && *found != pinned.digest()
    {
        return Err(BundleError::Swapped {
            member: member.clone(),
            pinned: pinned.digest(),
            found: *found,
        });
    }
    let mut history = TrustHistory::from(pinned);
    let older = brought.range(..version).rev();
    let newer = brought.range(version.saturating_add(1)..);
    // Break it: start from the bundle's own first version; whoever makes a bundle then says whose keys count
    // (`audit::bundle::a_bundle_with_a_trust_root_of_its_own_is_refused`).
    for (_, (member, bytes, _)) in older {
        let added = history.add_older(bytes);
        added.map_err(|reason| BundleError::TrustRoot {
            member: member.clone(),
            reason,
        })?;
    }
    for (_, (member, bytes, _)) in newer {
        let added = history.add_newer(bytes);
        added.map_err(|reason| BundleError::TrustRoot {
            member: member.clone(),
            reason,
        })?;
    }
    Ok(history)
}

/// The envelopes, a line each. Each line ends with a line break, so that there is one way to write them.
fn events<'a>(archive: &Archive<'a>) -> Vec<&'a [u8]> {
    let text = archive.member("events.jsonl").unwrap_or_default();
    // What is behind the last line break is nothing, or refused by who asks for the line break.
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
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

/// What a bundle brings to show that an event was logged.
enum Proof {
    Missing(String),
    Wrong(String),
    Included(Box<Included>),
}

impl Proof {
    fn read(
        archive: &Archive<'_>,
        seq: usize,
        envelope: &[u8],
        policy: Option<&LogPolicy>,
    ) -> Self {
        let name = format!("proofs/{seq}.tlog-proof");
        let (Some(proof), Some(policy)) = (archive.member(&name), policy) else {
            return Self::Missing(format!("no {name}"));
        };
        match LogProof::parse(proof).and_then(|proof| proof.verify(envelope, policy)) {
            Ok(included) => Self::Included(Box::new(included)),
            Err(error) => Self::Wrong(error.to_string()),
        }
    }

    /// Where in the log the event is, once that is proven.
    fn index(&self) -> Option<u64> {
        match self {
            Self::Included(included) => Some(included.index()),
            Self::Missing(_) | Self::Wrong(_) => None,
        }
    }
}

/// A verification under way.
struct Judged<'a> {
    report: Report,
    trust: &'a TrustHistory,
}

impl Judged<'_> {
    fn refuse(&mut self, rule: Rule, expected: &str, found: &str) {
        let (expected, found) = (expected.to_owned(), shown(found));
        self.report
            .fail_whole(Verdict::Invalid, rule, expected, found);
    }

    fn cannot_tell(&mut self, rule: Rule, expected: &str, found: &str) {
        let (expected, found) = (expected.to_owned(), shown(found));
        self.report
            .fail_whole(Verdict::CannotVerify, rule, expected, found);
    }

    /// Everything in the bundle has a meaning here: what is carried along unread could be taken for verified.
    fn check_members(&mut self, archive: &Archive<'_>, events: usize) {
        let unknown = |name: &str| {
            let (folder, rest) = name.split_once('/').unwrap_or((name, ""));
            match folder {
                "format" | "events.jsonl" => !rest.is_empty(),
                "root" => rest.strip_suffix(".json").and_then(number).is_none(),
                "proofs" => rest
                    .strip_suffix(".tlog-proof")
                    .and_then(number)
                    .is_none_or(|seq| seq >= events as u64),
                "consistency" => range(rest).is_none(),
                "evidence" => rest.parse::<Sha256Digest>().is_err(),
                _ => true,
            }
        };
        let text = archive.member("events.jsonl").unwrap_or_default();
        if !text.is_empty() && !text.ends_with(b"\n") {
            let expected = "a line break after the last event";
            self.refuse(Rule::Bundle, expected, "none");
        }
        for (name, proof) in archive.folder("consistency") {
            if hashes(proof).is_none() {
                let found = format!("consistency/{name}");
                self.refuse(Rule::Bundle, "a hash a line in every proof", &found);
            }
        }
        let names: Vec<_> = archive.members().map(|(name, _)| name).collect();
        for name in names.into_iter().filter(|name| unknown(name)) {
            self.refuse(Rule::Bundle, "a member that a bundle has", name);
        }
    }

    /// Each event is a leaf of one log, whose checkpoint the log's key signed, in the order of the chain.
    fn check_log(
        &mut self,
        no_policy: Option<String>,
        proofs: Vec<Proof>,
    ) -> Option<TrustedCheckpoint> {
        if let Some(reason) = no_policy {
            self.cannot_tell(Rule::Log, "a key of the log in the trust root", &reason);
            return None;
        }
        let mut checkpoint: Option<TrustedCheckpoint> = None;
        let mut before: Option<u64> = None;
        for (seq, proof) in proofs.into_iter().enumerate() {
            let included = match proof {
                Proof::Included(included) => included,
                Proof::Missing(found) => {
                    let expected = "a proof that the event was logged".to_owned();
                    self.report
                        .fail_event(seq, Verdict::CannotVerify, Rule::Log, expected, found);
                    continue;
                }
                Proof::Wrong(found) => {
                    self.fail_event(seq, "a proof that the event is in the log", &found);
                    continue;
                }
            };
            let index = included.index();
            if before.is_some_and(|before| before >= index) {
                self.fail_event(seq, "a place after the event before", &index.to_string());
            }
            before = Some(index);
            let found = included.checkpoint();
            match &checkpoint {
                None => checkpoint = Some(found.clone()),
                Some(first) if first.head() == found.head() => {}
                Some(_) => {
                    self.fail_event(seq, "the same checkpoint for all events", "another one");
                }
            }
        }
        self.report.checkpoint = checkpoint.as_ref().map(reference);
        checkpoint
    }

    fn fail_event(&mut self, seq: usize, expected: &str, found: &str) {
        self.report
            .fail_row(seq, Rule::Log, expected.to_owned(), shown(found));
    }

    /// The log that the verifier has seen and the bundle's are one log.
    fn check_seen(
        &mut self,
        archive: &Archive<'_>,
        checkpoint: Option<&TrustedCheckpoint>,
        seen: Option<&SignedCheckpoint>,
    ) {
        let (Some(seen), Some(checkpoint)) = (seen, checkpoint) else {
            return;
        };
        let trusted = log_policy(self.trust)
            .and_then(|policy| policy.verify(seen).map_err(|error| error.to_string()));
        let seen = match trusted {
            Ok(trusted) => trusted.head(),
            Err(reason) => {
                self.cannot_tell(
                    Rule::Checkpoint,
                    "a checkpoint of this log to compare with",
                    &reason,
                );
                return;
            }
        };
        let head = checkpoint.head();
        let (older, newer) = if seen.size() <= head.size() {
            (seen, head)
        } else {
            (head, seen)
        };
        if older.size() == newer.size() {
            // Break it: drop this comparison; a log that was written anew then passes
            // (`audit::bundle::a_log_that_was_written_anew_does_not_extend_the_one_that_was_seen`).
            if older.root() != newer.root() {
                let found = "another root over as many leaves: there are two histories";
                self.refuse(Rule::Checkpoint, "the log that you saw", found);
            }
            return;
        }
        let name = format!("consistency/{}-{}", older.size(), newer.size());
        let Some(proof) = archive.member(&name) else {
            let expected = "a proof that the bundle's log and the one you saw are one";
            self.cannot_tell(
                Rule::Checkpoint,
                expected,
                &format!("no {name}; export the bundle again with --checkpoint"),
            );
            return;
        };
        let proven = hashes(proof)
            .ok_or_else(|| "lines that are no hashes".to_owned())
            .and_then(|proof| {
                verify_consistency(&older, &newer, &proof).map_err(|error| error.to_string())
            });
        if let Err(found) = proven {
            self.refuse(
                Rule::Checkpoint,
                "the log that you saw, with more leaves",
                &found,
            );
        }
    }

    /// Documents are named by their digest. Those that are not there are counted, not missed: they may be confidential.
    fn check_evidence(&mut self, archive: &Archive<'_>) {
        for (name, bytes) in archive.folder("evidence") {
            let found = Sha256Digest::of(bytes).to_string();
            if found != name {
                let expected = format!("a document with the digest {}", shown(name));
                self.refuse(Rule::Evidence, &expected, &found);
            }
        }
    }
}

/// Whose checkpoints count: the log's keys, past ones included, in the newest trust root that is held, except revoked ones: what
/// a thief signs carries no date that could be believed.
///
/// # Errors
/// There are none, in words.
pub fn log_policy(trust: &TrustHistory) -> Result<LogPolicy, String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let origin = log_origin(trust.newest().document().org.as_str())?;
    let mut keys: Vec<VerifierKey> = Vec::new();
    // Break it: take the keys of every version; a key of the log that was revoked or dropped signs on
    // (`audit::bundle::a_checkpoint_by_a_revoked_key_of_the_log_proves_nothing`).
    for key in trust.newest().side_keys(KeyUse::Log) {
        if key.revoked.is_none() {
            let public = key.public.clone();
            keys.push(VerifierKey::new(origin.clone(), SignatureType::Log, public));
        }
    }
    LogPolicy::new(keys, Vec::new(), 0).map_err(|error| words(&error))
}

/// The name of an organisation's log: no trust root has to say it, since it follows from the organisation's own.
///
/// # Errors
/// The organisation's name does not fit, in words.
pub fn log_origin(organisation: &str) -> Result<KeyName, String> {
    KeyName::new(&format!("caretaker/{organisation}")).map_err(|error| error.to_string())
}

/// How events and reports name a checkpoint.
pub fn reference(checkpoint: &TrustedCheckpoint) -> CheckpointRef {
    CheckpointRef {
        origin: Text::clipped(checkpoint.checkpoint().origin().as_str()),
        size: checkpoint.head().size(),
        root: checkpoint.head().root().to_digest(),
    }
}

/// What an exporter puts into a bundle.
#[derive(Debug, Clone, Default)]
pub struct BundleContents {
    /// Every version of the trust root, by number.
    pub trust_roots: Vec<(u64, Vec<u8>)>,
    /// The envelopes in order, each with the proof that it was logged.
    pub events: Vec<(Vec<u8>, Vec<u8>)>,
    /// Proofs that one log extends another: the sizes, and the hashes.
    pub consistency: Vec<(u64, u64, Vec<TreeHash>)>,
    /// Documents by digest.
    pub evidence: Vec<(Sha256Digest, Vec<u8>)>,
}

impl BundleContents {
    /// The file.
    ///
    /// # Errors
    /// It is too much for one bundle.
    pub fn write(self) -> Result<Vec<u8>, ArchiveError> {
        let mut members = BTreeMap::new();
        members.insert("format".to_owned(), FORMAT.to_vec());
        for (version, bytes) in self.trust_roots {
            members.insert(format!("root/{version}.json"), bytes);
        }
        let mut lines = Vec::new();
        for (seq, (envelope, proof)) in self.events.into_iter().enumerate() {
            lines.extend_from_slice(&envelope);
            lines.push(b'\n');
            members.insert(format!("proofs/{seq}.tlog-proof"), proof);
        }
        members.insert("events.jsonl".to_owned(), lines);
        for (older, newer, proof) in self.consistency {
            let lines: Vec<String> = proof.iter().map(ToString::to_string).collect();
            let text = lines.join("\n") + "\n";
            members.insert(format!("consistency/{older}-{newer}"), text.into_bytes());
        }
        for (digest, bytes) in self.evidence {
            members.insert(format!("evidence/{digest}"), bytes);
        }
        archive::write(&members)
    }
}

/// A number in its one spelling.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn range(text: &str) -> Option<(u64, u64)> {
    let (older, newer) = text.split_once('-')?;
    Some((number(older)?, number(newer)?))
}

/// Hashes, a line each, none of them without its line break; no more than a proof can have.
fn hashes(text: &[u8]) -> Option<Vec<TreeHash>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let text = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let lines: Vec<_> = text.split('\n').take(MAX_PROOF + 1).collect();
    if lines.len() > MAX_PROOF {
        return None;
    }
    lines.into_iter().map(|line| line.parse().ok()).collect()
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
