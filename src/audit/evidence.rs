//! The evidence store's side of a ledger: whether what signed events name is still there.

mod listed;

use std::collections::{BTreeMap, BTreeSet};

use super::LedgerRow;
use super::report::{Report, Rule};
use crate::attest::chain::{EventReport, Verdict};
use crate::attest::statement::Predicate;
use crate::attest::{
    Envelope, Event, Evidence, PredicateType, SignedDocument, Statement, TrustHistory, authenticate,
};
use crate::change::Sha256Digest;
use crate::incident::Snapshot;

/// What the evidence store holds of what one incident's events name, by every name that it has there: the digest of its bytes,
/// and of a signed document the digest by which statements name it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptEvidence {
    plain: BTreeSet<Sha256Digest>,
    signed: BTreeMap<Sha256Digest, Envelope>,
    altered: BTreeSet<Sha256Digest>,
    /// The names of signed documents, by the digest of their bytes.
    by_bytes: BTreeMap<Sha256Digest, Sha256Digest>,
    /// Documents that are lists of such digests.
    lists: BTreeMap<Sha256Digest, Vec<Sha256Digest>>,
}

impl KeptEvidence {
    /// Takes a document that is kept under `key`.
    pub fn add(&mut self, key: Sha256Digest, bytes: &[u8]) {
        if Sha256Digest::of(bytes) != key {
            self.altered.insert(key);
            return;
        }
        self.plain.insert(key);
        if let Ok(envelope) = Envelope::parse(bytes) {
            self.by_bytes.insert(key, envelope.digest());
            self.signed.insert(envelope.digest(), envelope);
        } else if let Some(list) = listed::read(bytes) {
            self.lists.insert(key, list);
        }
    }

    /// Every document that is here, by the digest of its bytes.
    pub const fn documents(&self) -> &BTreeSet<Sha256Digest> {
        &self.plain
    }

    /// Digests, of bytes, under which the store would hold what the events of these rows name. Statements name a signed document
    /// by another digest than that of its bytes; the incident's facts have the latter.
    pub fn wanted(rows: &[LedgerRow], snapshot: &Snapshot) -> BTreeSet<Sha256Digest> {
        let events = rows.iter().filter_map(|row| event_of(&row.envelope));
        let mut wanted: BTreeSet<Sha256Digest> = events
            .flat_map(|event| named_by(&event))
            .filter(|named| named.kind.is_none())
            .map(|named| named.name)
            .collect();
        wanted.extend(snapshot.diagnosis().map(|diagnosis| diagnosis.manifest));
        wanted.extend(snapshot.fix().into_iter().flat_map(|fix| fix.tests.iter()));
        wanted
    }

    /// Digests that the signed documents and lists held so far name, and that nothing was added for yet.
    pub fn wanted_further(&self) -> BTreeSet<Sha256Digest> {
        let named = self.signed.values().filter_map(|envelope| {
            let bytes = envelope.to_bytes().ok()?;
            let document = SignedDocument::parse(&bytes).ok()?;
            Statement::parse(document.unverified_payload()).ok()
        });
        named
            .flat_map(|statement| named_inside(&statement))
            .map(|named| named.name)
            .chain(self.lists.values().flatten().copied())
            .filter(|name| !self.plain.contains(name) && !self.altered.contains(name))
            .collect()
    }

    /// What it comes to that nothing is held under a name.
    fn missing(
        &self,
        gone: &BTreeSet<Sha256Digest>,
        name: &Sha256Digest,
    ) -> Result<(), (Verdict, String)> {
        if self.altered.contains(name) {
            Err((Verdict::Invalid, "other bytes under that digest".to_owned()))
        } else if gone.contains(name) {
            Ok(())
        } else {
            Err((
                Verdict::CannotVerify,
                "nothing in the evidence store, and no gap that says so".to_owned(),
            ))
        }
    }
}

/// A document that something signed names.
struct Named {
    what: &'static str,
    name: Sha256Digest,
    /// Of a signed document, its kind; the name is then that of its pre-authentication encoding.
    kind: Option<PredicateType>,
}

/// What an event says is kept as evidence. Digests of what is not kept (a raw log, which may hold secrets; texts that the
/// provider shows) are not among them.
fn named_by(event: &Event) -> Vec<Named> {
    match event {
        Event::Proposal(proposal) => {
            let manifest = Named {
                what: "the context manifest",
                name: proposal.context_manifest.sha256,
                kind: Some(PredicateType::ContextManifest),
            };
            let tests = proposal.tests.iter().map(|test| Named {
                what: "a test result",
                name: test.sha256,
                kind: Some(PredicateType::TestResult),
            });
            let session = proposal.session.iter().flat_map(|session| {
                let scores = session.scores.map(|scores| scores.sha256);
                [
                    (
                        "the receipts of the agent's session",
                        Some(session.record.sha256),
                    ),
                    (
                        "the outcomes of the agent's session",
                        Some(session.outcomes.sha256),
                    ),
                    ("the scores of the agent's session", scores),
                    (
                        "the checks after the agent's session",
                        Some(session.completion.sha256),
                    ),
                ]
            });
            let session = session.filter_map(|(what, name)| {
                Some(Named {
                    what,
                    name: name?,
                    kind: None,
                })
            });
            std::iter::once(manifest)
                .chain(tests)
                .chain(session)
                .collect()
        }
        Event::Approval(approval) => plain("what shows the answer", &approval.evidence),
        Event::Escalation(escalation) => plain("what shows the escalation", &escalation.evidence),
        Event::PolicyDecision(_) | Event::Execution(_) | Event::Gap(_) => Vec::new(),
    }
}

fn plain(what: &'static str, evidence: &[crate::attest::predicate::EvidenceRef]) -> Vec<Named> {
    let named = evidence.iter().map(|named| Named {
        what,
        name: named.sha256,
        kind: None,
    });
    named.collect()
}

/// What a signed document names in turn.
fn named_inside(statement: &Statement) -> Vec<Named> {
    match statement.predicate() {
        Predicate::Evidence(Evidence::ContextManifest(manifest)) => manifest
            .all
            .iter()
            .map(|all| Named {
                what: "the whole list of a context manifest",
                name: all.sha256,
                kind: None,
            })
            .collect(),
        Predicate::Evidence(Evidence::TestResult(result)) => {
            let digests = result.configuration.iter().filter_map(|descriptor| {
                let digest = descriptor.digest.as_ref()?;
                digest.get("sha256")?.parse().ok()
            });
            digests
                .map(|name| Named {
                    what: "the record of a test run",
                    name,
                    kind: None,
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

fn event_of(envelope: &[u8]) -> Option<Event> {
    let document = SignedDocument::parse(envelope).ok()?;
    let statement = Statement::parse(document.unverified_payload()).ok()?;
    statement.as_event().cloned()
}

/// Everything that authentic events name is there, is what it is said to be, or is admitted to be gone by a signed gap.
pub(super) fn check(report: &mut Report, trust: &TrustHistory, kept: &KeptEvidence) {
    let gone = admitted(&report.events);
    let mut failures = Vec::new();
    for (position, event) in report.events.iter().enumerate() {
        let mut open = event.event.as_ref().map(named_by).unwrap_or_default();
        while let Some(named) = open.pop() {
            // Break it: skip names that are not kept; `audit::evidence::evidence_that_is_gone_is_noticed` then fails.
            match examine(trust, kept, &gone, &named) {
                Ok(further) => open.extend(further),
                Err((verdict, found)) => failures.push((
                    position,
                    verdict,
                    format!("{} {}", named.what, named.name),
                    found,
                )),
            }
        }
        if let Some(Event::Proposal(proposal)) = &event.event {
            let faults = listed::faults(trust, kept, &gone, proposal).into_iter();
            failures.extend(
                faults.map(|(verdict, expected, found)| (position, verdict, expected, found)),
            );
        }
    }
    for (position, verdict, expected, found) in failures {
        report.fail_event(position, verdict, Rule::Evidence, expected, found);
    }
}

/// What a document names further, or what is wrong with it.
fn examine(
    trust: &TrustHistory,
    kept: &KeptEvidence,
    gone: &BTreeSet<Sha256Digest>,
    named: &Named,
) -> Result<Vec<Named>, (Verdict, String)> {
    let missing = || kept.missing(gone, &named.name).map(|()| Vec::new());
    let Some(kind) = named.kind else {
        return if kept.plain.contains(&named.name) {
            Ok(Vec::new())
        } else {
            missing()
        };
    };
    let Some(envelope) = kept.signed.get(&named.name) else {
        return missing();
    };
    let attested =
        authenticate(trust, envelope).map_err(|refusal| (refusal.verdict, refusal.to_string()))?;
    let statement = attested.statement();
    if statement.predicate_type() != kind {
        let found = format!("a {} statement", statement.predicate_type());
        return Err((Verdict::Invalid, found));
    }
    Ok(named_inside(statement))
}

/// Every digest that a signed gap of the chain admits to be gone.
fn admitted(events: &[EventReport]) -> BTreeSet<Sha256Digest> {
    let gaps = events.iter().filter_map(|event| match &event.event {
        Some(Event::Gap(gap)) => Some(gap),
        _ => None,
    });
    gaps.flat_map(|gap| gap.evidence.iter())
        .flat_map(|gone| std::iter::once(gone.sha256).chain(gone.signed_as))
        .collect()
}
