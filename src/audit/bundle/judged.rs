//! A verification under way: what a bundle brings, looked at part by part.

use super::super::archive::Archive;
use super::super::cosigned::{ASKED, Cosignature, cosigned};
use super::super::report::{Report, Rule};
use super::super::timestamp::{self, BroughtTimestamp};
use super::consistency::{NotOneLog, hashes, number, one_log, range};
use super::trust::{log_policy, reference};
use crate::attest::TrustHistory;
use crate::attest::chain::Verdict;
use crate::attest::text::shown;
use crate::change::Sha256Digest;
use crate::log::{
    AuditorPolicy, Included, LogPolicy, LogProof, SignedCheckpoint, TrustedCheckpoint,
};

/// What a bundle brings to show that an event was logged.
pub(super) enum Proof {
    Missing(String),
    Wrong(String),
    Included(Box<Included>, Witnesses),
}

/// What the policy says of a proof's checkpoint; nothing without one.
type Witnesses = Option<Result<Vec<Cosignature>, (Verdict, String)>>;

impl Proof {
    pub(super) fn read(
        archive: &Archive<'_>,
        seq: usize,
        envelope: &[u8],
        policy: Option<&LogPolicy>,
        asked: Option<&AuditorPolicy>,
    ) -> Self {
        let name = format!("proofs/{seq}.tlog-proof");
        let (Some(proof), Some(policy)) = (archive.member(&name), policy) else {
            return Self::Missing(format!("no {name}"));
        };
        let read = LogProof::parse(proof).and_then(|proof| {
            let included = proof.verify(envelope, policy)?;
            Ok((
                included,
                asked.map(|asked| cosigned(asked, proof.checkpoint())),
            ))
        });
        match read {
            Ok((included, witnesses)) => Self::Included(Box::new(included), witnesses),
            Err(error) => Self::Wrong(error.to_string()),
        }
    }

    /// Where in the log the event is, once that is proven.
    pub(super) fn index(&self) -> Option<u64> {
        match self {
            Self::Included(included, _) => Some(included.index()),
            Self::Missing(_) | Self::Wrong(_) => None,
        }
    }
}

/// A verification under way.
pub(super) struct Judged<'a> {
    pub(super) report: Report,
    pub(super) trust: &'a TrustHistory,
}

impl Judged<'_> {
    pub(super) fn refuse(&mut self, rule: Rule, expected: &str, found: &str) {
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
    pub(super) fn check_members(&mut self, archive: &Archive<'_>, events: usize) {
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
                "timestamps" => !timestamp::is_member(rest),
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
    pub(super) fn check_log(
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
                Proof::Included(included, _) => included,
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

    /// The checkpoint of each proof that holds meets the policy; who cosigned the first.
    pub(super) fn check_witnesses(&mut self, proofs: &[Proof]) -> Vec<Cosignature> {
        let mut first = None;
        for (seq, proof) in proofs.iter().enumerate() {
            let Proof::Included(_, Some(witnesses)) = proof else {
                continue;
            };
            // Break it: look at the first alone and `audit::cosigned::a_changed_line_of_a_known_witness_is_invalid` fails.
            if let Err((verdict, found)) = witnesses {
                let (expected, found) = (ASKED.to_owned(), shown(found));
                self.report
                    .fail_event(seq, *verdict, Rule::Witness, expected, found);
            }
            first.get_or_insert_with(|| witnesses.clone().unwrap_or_default());
        }
        first.unwrap_or_default()
    }

    fn fail_event(&mut self, seq: usize, expected: &str, found: &str) {
        self.report
            .fail_row(seq, Rule::Log, expected.to_owned(), shown(found));
    }

    /// The log that the verifier has seen and the bundle's are one log.
    pub(super) fn check_seen(
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
        match one_log(archive, seen, head) {
            Ok(()) => {}
            Err(NotOneLog::OtherRoot) => {
                let found = "another root over as many leaves: there are two histories";
                self.refuse(Rule::Checkpoint, "the log that you saw", found);
            }
            Err(NotOneLog::NoProof(name)) => {
                let expected = "a proof that the bundle's log and the one you saw are one";
                let found = format!("no {name}; export the bundle again with --checkpoint");
                self.cannot_tell(Rule::Checkpoint, expected, &found);
            }
            Err(NotOneLog::NoHashes(_)) => {
                let expected = "the log that you saw, with more leaves";
                self.refuse(Rule::Checkpoint, expected, "lines that are no hashes");
            }
            Err(NotOneLog::NotProven(found)) => {
                let expected = "the log that you saw, with more leaves";
                self.refuse(Rule::Checkpoint, expected, &found);
            }
        }
    }

    /// Timestamps are of checkpoints of this log. Whether they hold is for whoever has the roots to say.
    pub(super) fn check_timestamps(
        &mut self,
        archive: &Archive<'_>,
        checkpoint: Option<&TrustedCheckpoint>,
        places: &[u64],
    ) -> Vec<BroughtTimestamp> {
        let (Some(checkpoint), Ok(policy)) = (checkpoint, log_policy(self.trust)) else {
            return Vec::new();
        };
        let (brought, faults) = timestamp::of_bundle(archive, &policy, &checkpoint.head(), places);
        for (verdict, expected, found) in faults {
            let expected = expected.to_owned();
            self.report
                .fail_whole(verdict, Rule::Timestamp, expected, found);
        }
        brought
    }

    /// Documents are named by their digest. Those that are not there are counted, not missed: they may be confidential.
    pub(super) fn check_evidence(&mut self, archive: &Archive<'_>) {
        for (name, bytes) in archive.folder("evidence") {
            let found = Sha256Digest::of(bytes).to_string();
            if found != name {
                let expected = format!("a document with the digest {}", shown(name));
                self.refuse(Rule::Evidence, &expected, &found);
            }
        }
    }
}
