//! Statements: in-toto Statement version 1 around our predicates.
//!
//! The subjects of a chain event follow from its predicate and from nothing else, so a subject can be neither missing
//! nor extra nor different, and every digest of it counts.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::dsse::MAX_PAYLOAD;
use super::json::{self, Json, JsonError};
use super::predicate::{
    Approval, ContextManifest, Escalation, EventBlock, Execution, Gap, PolicyDecision,
    PredicateError, Proposal, Target, TestResult,
};
use super::role::{PredicateType, Role};
use super::text::{MAX_ITEMS, shown};
use crate::change::{Oid, Sha256Digest};

/// The `_type` of every statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// Why bytes are not an acceptable statement.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StatementError {
    /// Not strict JSON, or not the shape.
    #[error("reading a statement: {0}")]
    Json(#[from] JsonError),
    /// Another `_type`.
    #[error("reading a statement: its _type is {found}, expected {STATEMENT_TYPE}")]
    Type {
        /// What was found, made printable.
        found: String,
    },
    /// A predicate type that this version does not read.
    #[error("reading a statement: the predicate type {found} is not one that this version knows")]
    PredicateType {
        /// What was found, made printable.
        found: String,
    },
    /// Subjects that do not follow from the predicate.
    #[error("reading a statement: its subjects are {found}, expected {expected}")]
    Subjects {
        /// What the predicate gives.
        expected: String,
        /// What was found, made printable.
        found: String,
    },
    /// A predicate that contradicts itself.
    #[error("reading a {kind} statement: {error}")]
    Predicate {
        /// The kind of statement.
        kind: PredicateType,
        /// The contradiction.
        error: PredicateError,
    },
    /// Too long.
    #[error(
        "a statement of {length} bytes, at most {MAX_PAYLOAD} are signed; put bulk into the evidence store"
    )]
    TooLong {
        /// Length, in bytes.
        length: usize,
    },
}

/// What a statement is about, by digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// A word for it; never compared with anything outside.
    pub name: String,
    /// Digests by in-toto's algorithm names: `sha256`, `gitCommit`, `gitTree`. All of them must match.
    pub digest: BTreeMap<String, String>,
}

impl Subject {
    /// A subject named by SHA-256.
    pub fn sha256(name: &str, digest: Sha256Digest) -> Self {
        Self::new(name, &[("sha256", digest.to_string())])
    }

    /// A commit and its tree.
    pub fn commit(name: &str, commit: Oid, tree: Oid) -> Self {
        Self::new(
            name,
            &[
                ("gitCommit", commit.to_string()),
                ("gitTree", tree.to_string()),
            ],
        )
    }

    fn new(name: &str, digests: &[(&str, String)]) -> Self {
        let digest = digests
            .iter()
            .map(|(algorithm, value)| ((*algorithm).to_owned(), value.clone()));
        Self {
            name: name.to_owned(),
            digest: digest.collect(),
        }
    }

    /// Whether every digest is of a known, sound algorithm and well formed, and there is at least one.
    fn is_sound(&self) -> bool {
        let sound = |(algorithm, value): (&String, &String)| match algorithm.as_str() {
            "sha256" => value.parse::<Sha256Digest>().is_ok(),
            "gitCommit" | "gitTree" => value.parse::<Oid>().is_ok(),
            _ => false,
        };
        !self.digest.is_empty() && self.digest.iter().all(sound)
    }
}

/// A chain event's predicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A proposal.
    Proposal(Box<Proposal>),
    /// A policy decision.
    PolicyDecision(Box<PolicyDecision>),
    /// A person's answer.
    Approval(Box<Approval>),
    /// What landed.
    Execution(Box<Execution>),
    /// Why a person has to look.
    Escalation(Box<Escalation>),
    /// Lost evidence.
    Gap(Box<Gap>),
}

impl Event {
    /// Its kind.
    pub const fn predicate_type(&self) -> PredicateType {
        match self {
            Self::Proposal(_) => PredicateType::Proposal,
            Self::PolicyDecision(_) => PredicateType::PolicyDecision,
            Self::Approval(_) => PredicateType::Approval,
            Self::Execution(_) => PredicateType::Execution,
            Self::Escalation(_) => PredicateType::Escalation,
            Self::Gap(_) => PredicateType::Gap,
        }
    }

    /// What it says about itself.
    pub fn block(&self) -> &EventBlock {
        match self {
            Self::Proposal(event) => &event.event,
            Self::PolicyDecision(event) => &event.event,
            Self::Approval(event) => &event.event,
            Self::Execution(event) => &event.event,
            Self::Escalation(event) => &event.event,
            Self::Gap(event) => &event.event,
        }
    }

    /// The subjects of its statement.
    pub fn subjects(&self) -> Vec<Subject> {
        match self {
            Self::Proposal(proposal) => target_subjects(&proposal.target),
            Self::PolicyDecision(decision) => {
                let mut subjects = vec![Subject::sha256("proposal", decision.proposal.sha256)];
                subjects.extend(target_subjects(&decision.target));
                subjects
            }
            Self::Approval(approval) => {
                let binding = &approval.binding;
                vec![
                    Subject::sha256("proposal", approval.proposal.sha256),
                    Subject::sha256("change", binding.change.sha256),
                    Subject::commit("head", binding.head_commit, binding.head_tree),
                ]
            }
            Self::Execution(execution) => vec![
                Subject::commit("landed", execution.landed.commit, execution.landed.tree),
                Subject::sha256("change", execution.observed_change.sha256),
            ],
            // About the incident, which has no bytes of its own but its id.
            Self::Escalation(_) | Self::Gap(_) => {
                let id = self.block().incident.as_str();
                vec![Subject::sha256("incident", Sha256Digest::of(id.as_bytes()))]
            }
        }
    }

    fn check(&self) -> Result<(), PredicateError> {
        self.block().check(self.predicate_type().role())?;
        match self {
            Self::Proposal(proposal) => proposal.check(),
            Self::PolicyDecision(decision) => decision.check(),
            Self::Approval(approval) => approval.check(),
            Self::Execution(execution) => execution.check(),
            Self::Escalation(_) | Self::Gap(_) => Ok(()),
        }
    }
}

fn target_subjects(target: &Target) -> Vec<Subject> {
    match target {
        Target::Commit { change, head } => {
            vec![
                Subject::sha256("change", change.sha256),
                Subject::commit("head", head.commit, head.tree),
            ]
        }
        Target::Files(files) => vec![Subject::sha256("files", files.sha256)],
    }
}

/// An evidence document's predicate: signed, named by digest, without a position in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// What a diagnosis was fed.
    ContextManifest(Box<ContextManifest>),
    /// A test run.
    TestResult(Box<TestResult>),
}

impl Evidence {
    /// Its kind.
    pub const fn predicate_type(&self) -> PredicateType {
        match self {
            Self::ContextManifest(_) => PredicateType::ContextManifest,
            Self::TestResult(_) => PredicateType::TestResult,
        }
    }

    fn check(&self) -> Result<(), PredicateError> {
        let role = self.predicate_type().role();
        match self {
            Self::ContextManifest(manifest) if manifest.document.role != role => {
                Err(PredicateError {
                    member: "document.role",
                    problem: format!("must be {role}"),
                })
            }
            Self::ContextManifest(_) | Self::TestResult(_) => Ok(()),
        }
    }
}

/// What a statement says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Predicate {
    /// An event of an incident's chain.
    Event(Event),
    /// An evidence document.
    Evidence(Evidence),
}

/// A statement that is known to be sound: its predicate does not contradict itself, and its subjects are right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    subjects: Vec<Subject>,
    predicate: Predicate,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire<P> {
    #[serde(rename = "_type")]
    statement_type: String,
    subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: P,
}

impl Statement {
    /// The statement of a chain event.
    pub fn event(event: Event) -> Result<Self, StatementError> {
        Self::checked(event.subjects(), Predicate::Event(event))
    }

    /// The statement of an evidence document about `subjects`.
    pub fn evidence(subjects: Vec<Subject>, evidence: Evidence) -> Result<Self, StatementError> {
        Self::checked(subjects, Predicate::Evidence(evidence))
    }

    /// Reads a statement, refusing everything that this version does not define.
    pub fn parse(bytes: &[u8]) -> Result<Self, StatementError> {
        let document = json::read(bytes, MAX_PAYLOAD)?;
        let found = document.text_member("_type").unwrap_or_default();
        if found != STATEMENT_TYPE {
            return Err(StatementError::Type {
                found: shown(found),
            });
        }
        let uri = document.text_member("predicateType").unwrap_or_default();
        let unknown = || StatementError::PredicateType { found: shown(uri) };
        let source = Source {
            bytes,
            document: &document,
        };
        match PredicateType::from_uri(uri).ok_or_else(unknown)? {
            PredicateType::Proposal => source.event(Event::Proposal),
            PredicateType::PolicyDecision => source.event(Event::PolicyDecision),
            PredicateType::Approval => source.event(Event::Approval),
            PredicateType::Execution => source.event(Event::Execution),
            PredicateType::Escalation => source.event(Event::Escalation),
            PredicateType::Gap => source.event(Event::Gap),
            PredicateType::ContextManifest => source.evidence(Evidence::ContextManifest),
            PredicateType::TestResult => source.evidence(Evidence::TestResult),
            PredicateType::GateOutcome
            | PredicateType::IntentScore
            | PredicateType::PolicyVersion
            | PredicateType::Unfreeze
            | PredicateType::BreakGlass
            | PredicateType::Enrolment => Err(unknown()),
        }
    }

    /// The fixed compact bytes that are signed.
    pub fn draft(&self) -> Result<Vec<u8>, StatementError> {
        let bytes = match &self.predicate {
            Predicate::Event(Event::Proposal(predicate)) => self.wire(predicate),
            Predicate::Event(Event::PolicyDecision(predicate)) => self.wire(predicate),
            Predicate::Event(Event::Approval(predicate)) => self.wire(predicate),
            Predicate::Event(Event::Execution(predicate)) => self.wire(predicate),
            Predicate::Event(Event::Escalation(predicate)) => self.wire(predicate),
            Predicate::Event(Event::Gap(predicate)) => self.wire(predicate),
            Predicate::Evidence(Evidence::ContextManifest(predicate)) => self.wire(predicate),
            Predicate::Evidence(Evidence::TestResult(predicate)) => self.wire(predicate),
        }?;
        if bytes.len() > MAX_PAYLOAD {
            return Err(StatementError::TooLong {
                length: bytes.len(),
            });
        }
        // Catches what the types let through, such as an integer beyond 2^53-1, before it is signed.
        json::read(&bytes, MAX_PAYLOAD)?;
        Ok(bytes)
    }

    /// Its kind.
    pub const fn predicate_type(&self) -> PredicateType {
        match &self.predicate {
            Predicate::Event(event) => event.predicate_type(),
            Predicate::Evidence(evidence) => evidence.predicate_type(),
        }
    }

    /// The role that signs it.
    pub const fn role(&self) -> Role {
        self.predicate_type().role()
    }

    /// What it is about.
    pub fn subjects(&self) -> &[Subject] {
        &self.subjects
    }

    /// What it says.
    pub const fn predicate(&self) -> &Predicate {
        &self.predicate
    }

    /// The chain event, if it is one.
    pub const fn as_event(&self) -> Option<&Event> {
        match &self.predicate {
            Predicate::Event(event) => Some(event),
            Predicate::Evidence(_) => None,
        }
    }

    fn checked(subjects: Vec<Subject>, predicate: Predicate) -> Result<Self, StatementError> {
        let (kind, sound) = match &predicate {
            Predicate::Event(event) => (event.predicate_type(), event.check()),
            Predicate::Evidence(evidence) => (evidence.predicate_type(), evidence.check()),
        };
        sound.map_err(|error| StatementError::Predicate { kind, error })?;
        let expected = match &predicate {
            Predicate::Event(event) => {
                let expected = event.subjects();
                (expected != subjects).then(|| listed(&expected))
            }
            Predicate::Evidence(_) => {
                let sound = (1..=MAX_ITEMS).contains(&subjects.len())
                    && subjects.iter().all(Subject::is_sound);
                (!sound).then(|| {
                    "1 to 20 subjects, each by whole sha256, gitCommit or gitTree digests"
                        .to_owned()
                })
            }
        };
        match expected {
            None => Ok(Self {
                subjects,
                predicate,
            }),
            Some(expected) => Err(StatementError::Subjects {
                expected,
                found: listed(&subjects),
            }),
        }
    }

    fn wire<P: Serialize>(&self, predicate: &P) -> Result<Vec<u8>, JsonError> {
        json::to_bytes(&Wire {
            statement_type: STATEMENT_TYPE.to_owned(),
            subject: self.subjects.clone(),
            predicate_type: self.predicate_type().uri().to_owned(),
            predicate,
        })
    }
}

/// Bytes and their strict reading, on the way to a typed statement.
struct Source<'a> {
    bytes: &'a [u8],
    document: &'a Json,
}

impl Source<'_> {
    fn event<P: Serialize + DeserializeOwned>(
        &self,
        wrap: impl FnOnce(Box<P>) -> Event,
    ) -> Result<Statement, StatementError> {
        let wire: Wire<Box<P>> = json::typed(self.bytes, self.document)?;
        Statement::checked(wire.subject, Predicate::Event(wrap(wire.predicate)))
    }

    fn evidence<P: Serialize + DeserializeOwned>(
        &self,
        wrap: impl FnOnce(Box<P>) -> Evidence,
    ) -> Result<Statement, StatementError> {
        let wire: Wire<Box<P>> = json::typed(self.bytes, self.document)?;
        Statement::checked(wire.subject, Predicate::Evidence(wrap(wire.predicate)))
    }
}

/// Subjects for a message.
fn listed(subjects: &[Subject]) -> String {
    let words: Vec<String> = subjects
        .iter()
        .map(|subject| format!("{} {:?}", subject.name, subject.digest))
        .collect();
    if words.is_empty() {
        "none".to_owned()
    } else {
        shown(&words.join(", "))
    }
}
