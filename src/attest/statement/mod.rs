//! Statements: in-toto Statement version 1 around our predicates.
//!
//! The subjects of a chain event follow from its predicate and from nothing else, so a subject can be neither missing
//! nor extra nor different, and every digest of it counts.

mod event;
mod evidence;
mod organisation;
mod subject;

pub use event::Event;
pub use evidence::Evidence;
pub use organisation::OrganisationEvent;
pub use subject::Subject;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

use super::dsse::MAX_PAYLOAD;
use super::json::{self, Json, JsonError};
use super::predicate::{PredicateError, TrustRootRef};
use super::role::{PredicateType, Role};
use super::text::{MAX_ITEMS, shown};
use crate::clock::Millis;
use subject::{Derived, listed};

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

/// What a statement says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Predicate {
    /// An event of an incident's chain.
    Event(Event),
    /// An evidence document.
    Evidence(Evidence),
    /// An event of the organisation's log.
    Organisation(OrganisationEvent),
}

impl Predicate {
    const fn predicate_type(&self) -> PredicateType {
        match self {
            Self::Event(event) => event.predicate_type(),
            Self::Evidence(evidence) => evidence.predicate_type(),
            Self::Organisation(event) => event.predicate_type(),
        }
    }

    fn check(&self) -> Result<(), PredicateError> {
        match self {
            Self::Event(event) => event.check(),
            Self::Evidence(evidence) => evidence.check(),
            Self::Organisation(event) => event.check(),
        }
    }

    /// The subjects that follow from it, if they do.
    fn subjects(&self) -> Option<Vec<Subject>> {
        match self {
            Self::Event(event) => Some(event.subjects()),
            Self::Evidence(evidence) => evidence.subjects(),
            Self::Organisation(event) => Some(event.subjects()),
        }
    }
}

/// A statement that is known to be sound: its predicate does not contradict itself, and its subjects are right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// None where they follow from the predicate.
    stated: Vec<Subject>,
    predicate: Predicate,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire<S, T, P> {
    #[serde(rename = "_type")]
    statement_type: T,
    subject: Vec<S>,
    #[serde(rename = "predicateType")]
    predicate_type: T,
    predicate: P,
}

/// The statement of an event as it is read when only its predicate matters: everything else of it is written anew and compared.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AroundPredicate<P> {
    #[serde(rename = "_type")]
    _statement_type: IgnoredAny,
    #[serde(rename = "subject")]
    _subject: IgnoredAny,
    #[serde(rename = "predicateType")]
    _predicate_type: IgnoredAny,
    predicate: P,
}

/// The statement of an event as it is written.
struct EventWire<'a>(&'a Event);

impl Serialize for EventWire<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Event::Proposal(predicate) => self.around(predicate, serializer),
            Event::PolicyDecision(predicate) => self.around(predicate, serializer),
            Event::Approval(predicate) => self.around(predicate, serializer),
            Event::Execution(predicate) => self.around(predicate, serializer),
            Event::Escalation(predicate) => self.around(predicate, serializer),
            Event::Gap(predicate) => self.around(predicate, serializer),
        }
    }
}

impl EventWire<'_> {
    fn around<P: Serialize, S: Serializer>(
        &self,
        predicate: &P,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let wire: Wire<Derived, &str, &P> = Wire {
            statement_type: STATEMENT_TYPE,
            subject: self.0.derived(),
            predicate_type: self.0.predicate_type().uri(),
            predicate,
        };
        wire.serialize(serializer)
    }
}

/// What begins the member that names the kind, in the compact form.
const BEFORE_KIND: &str = "],\"predicateType\":\"";

impl Statement {
    /// The statement of a chain event.
    pub fn event(event: Event) -> Result<Self, StatementError> {
        Self::checked(event.subjects(), Predicate::Event(event))
    }

    /// The statement of an evidence document about `subjects`.
    pub fn evidence(subjects: Vec<Subject>, evidence: Evidence) -> Result<Self, StatementError> {
        Self::checked(subjects, Predicate::Evidence(evidence))
    }

    /// The statement of an event of the organisation's log.
    pub fn organisation(event: OrganisationEvent) -> Result<Self, StatementError> {
        Self::checked(event.subjects(), Predicate::Organisation(event))
    }

    /// Reads a statement, refusing everything that this version does not define.
    pub fn parse(bytes: &[u8]) -> Result<Self, StatementError> {
        if let Some(statement) = Self::exact(bytes)? {
            return Ok(statement);
        }
        let document = json::read(bytes, MAX_PAYLOAD)?;
        let found = document.text_member("_type").unwrap_or_default();
        if found != STATEMENT_TYPE {
            return Err(StatementError::Type {
                found: shown(found),
            });
        }
        let uri = document.text_member("predicateType").unwrap_or_default();
        let kind = PredicateType::from_uri(uri);
        let kind = kind.ok_or_else(|| StatementError::PredicateType { found: shown(uri) })?;
        Source::Strict(bytes, &document)
            .statement(kind)?
            .ok_or(StatementError::Json(JsonError::NotExact))
    }

    /// The compact form, as it is written here; none of any other bytes, which the strict reading then takes or refuses.
    fn exact(bytes: &[u8]) -> Result<Option<Self>, StatementError> {
        let text = str::from_utf8(bytes).ok();
        let text = text.filter(|text| text.len() <= MAX_PAYLOAD);
        // Only a guess: the reading compares it with what it finds.
        let guess = text.and_then(|text| {
            let (_, behind) = text.split_once(BEFORE_KIND)?;
            PredicateType::from_uri(behind.split_once('"')?.0)
        });
        match (text, guess) {
            (Some(text), Some(kind)) => Source::Exact(text, kind).statement(kind),
            _ => Ok(None),
        }
    }

    /// The fixed compact bytes that are signed.
    pub fn draft(&self) -> Result<Vec<u8>, StatementError> {
        let bytes = match &self.predicate {
            Predicate::Event(event) => json::to_bytes(&EventWire(event)),
            Predicate::Evidence(evidence) => self.evidence_bytes(evidence),
            Predicate::Organisation(event) => self.organisation_bytes(event),
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
        self.predicate.predicate_type()
    }

    /// The role that signs it.
    pub const fn role(&self) -> Role {
        self.predicate_type().role()
    }

    /// What it is about.
    pub fn subjects(&self) -> Vec<Subject> {
        let derived = self.predicate.subjects();
        derived.unwrap_or_else(|| self.stated.clone())
    }

    /// What it says.
    pub const fn predicate(&self) -> &Predicate {
        &self.predicate
    }

    /// The chain event, if it is one.
    pub const fn as_event(&self) -> Option<&Event> {
        match &self.predicate {
            Predicate::Event(event) => Some(event),
            Predicate::Evidence(_) | Predicate::Organisation(_) => None,
        }
    }

    /// What it says, to keep.
    pub fn into_predicate(self) -> Predicate {
        self.predicate
    }

    /// The chain event, if it is one, to keep.
    pub fn into_event(self) -> Option<Event> {
        match self.predicate {
            Predicate::Event(event) => Some(event),
            Predicate::Evidence(_) | Predicate::Organisation(_) => None,
        }
    }

    /// The trust root and the moment that it names; in-toto's test result has no place for them.
    pub fn claims(&self) -> Option<(TrustRootRef, Millis)> {
        match &self.predicate {
            Predicate::Event(event) => {
                let block = event.block();
                Some((block.trust_root, block.occurred_at))
            }
            Predicate::Organisation(event) => {
                let block = event.block();
                Some((block.trust_root, block.occurred_at))
            }
            Predicate::Evidence(evidence) => evidence
                .block()
                .map(|block| (block.trust_root, block.occurred_at)),
        }
    }

    fn checked(subjects: Vec<Subject>, predicate: Predicate) -> Result<Self, StatementError> {
        let kind = predicate.predicate_type();
        predicate
            .check()
            .map_err(|error| StatementError::Predicate { kind, error })?;
        let sound =
            (1..=MAX_ITEMS).contains(&subjects.len()) && subjects.iter().all(Subject::is_sound);
        let derived = predicate.subjects();
        let follow = derived.is_some();
        let expected = match derived {
            // Break it: compare with `any` instead of the whole list; `attest::predicates::every_digest_of_every_subject_counts`
            // then fails.
            Some(expected) => (expected != subjects).then(|| listed(&expected)),
            None => (!sound).then(|| {
                "1 to 20 subjects, each by whole sha256, gitCommit or gitTree digests".to_owned()
            }),
        };
        match expected {
            None => Ok(Self {
                stated: if follow { Vec::new() } else { subjects },
                predicate,
            }),
            Some(expected) => Err(StatementError::Subjects {
                expected,
                found: listed(&subjects),
            }),
        }
    }

    fn evidence_bytes(&self, evidence: &Evidence) -> Result<Vec<u8>, JsonError> {
        match evidence {
            Evidence::ContextManifest(predicate) => self.wire(predicate),
            Evidence::TestResult(predicate) => self.wire(predicate),
            Evidence::GateOutcome(predicate) => self.wire(predicate),
            Evidence::IntentScore(predicate) => self.wire(predicate),
        }
    }

    fn organisation_bytes(&self, event: &OrganisationEvent) -> Result<Vec<u8>, JsonError> {
        match event {
            OrganisationEvent::PolicyVersion(predicate) => self.wire(predicate),
            OrganisationEvent::Unfreeze(predicate) => self.wire(predicate),
            OrganisationEvent::BreakGlass(predicate) => self.wire(predicate),
            OrganisationEvent::Enrolment(predicate) => self.wire(predicate),
        }
    }

    fn wire<P: Serialize>(&self, predicate: &P) -> Result<Vec<u8>, JsonError> {
        json::to_bytes(&Wire {
            statement_type: STATEMENT_TYPE,
            subject: self.subjects(),
            predicate_type: self.predicate_type().uri(),
            predicate,
        })
    }
}

/// Bytes on the way to a typed statement.
enum Source<'a> {
    /// With their strict reading.
    Strict(&'a [u8], &'a Json<'a>),
    /// Perhaps the compact form of a statement of that kind.
    Exact(&'a str, PredicateType),
}

impl Source<'_> {
    fn wire<P: Serialize + DeserializeOwned>(
        &self,
    ) -> Result<Option<Wire<Subject, String, Box<P>>>, JsonError> {
        match self {
            Self::Strict(bytes, document) => json::typed(bytes, document).map(Some),
            Self::Exact(text, kind) => {
                let wire: Option<Wire<Subject, String, Box<P>>> = json::exact(text);
                // Break it: leave this out (`attest::exact::what_stands_in_a_string_is_not_the_kind`).
                Ok(wire.filter(|wire| {
                    wire.statement_type == STATEMENT_TYPE && wire.predicate_type == kind.uri()
                }))
            }
        }
    }

    fn statement(&self, kind: PredicateType) -> Result<Option<Statement>, StatementError> {
        match kind {
            PredicateType::Proposal => self.event(Event::Proposal),
            PredicateType::PolicyDecision => self.event(Event::PolicyDecision),
            PredicateType::Approval => self.event(Event::Approval),
            PredicateType::Execution => self.event(Event::Execution),
            PredicateType::Escalation => self.event(Event::Escalation),
            PredicateType::Gap => self.event(Event::Gap),
            PredicateType::ContextManifest => self.evidence(Evidence::ContextManifest),
            PredicateType::TestResult => self.evidence(Evidence::TestResult),
            PredicateType::GateOutcome => self.evidence(Evidence::GateOutcome),
            PredicateType::IntentScore => self.evidence(Evidence::IntentScore),
            PredicateType::PolicyVersion => self.organisation(OrganisationEvent::PolicyVersion),
            PredicateType::Unfreeze => self.organisation(OrganisationEvent::Unfreeze),
            PredicateType::BreakGlass => self.organisation(OrganisationEvent::BreakGlass),
            PredicateType::Enrolment => self.organisation(OrganisationEvent::Enrolment),
        }
    }

    fn event<P: Serialize + DeserializeOwned>(
        &self,
        wrap: impl FnOnce(Box<P>) -> Event,
    ) -> Result<Option<Statement>, StatementError> {
        let Self::Exact(text, _) = self else {
            return self.checked(|predicate| Predicate::Event(wrap(predicate)));
        };
        let Some(read) = json::guessed::<AroundPredicate<Box<P>>>(text) else {
            return Ok(None);
        };
        let event = wrap(read.predicate);
        // Type, kind and subjects follow from the event, so that comparing the bytes compares them, too.
        // Break it: leave this out (`attest::exact::what_is_read_exactly_is_what_is_read_strictly`,
        // `attest::predicates::every_digest_of_every_subject_counts`).
        if !json::is_written(text, &EventWire(&event)) {
            return Ok(None);
        }
        let kind = event.predicate_type();
        let checked = event.check();
        checked.map_err(|error| StatementError::Predicate { kind, error })?;
        Ok(Some(Statement {
            stated: Vec::new(),
            predicate: Predicate::Event(event),
        }))
    }

    fn evidence<P: Serialize + DeserializeOwned>(
        &self,
        wrap: impl FnOnce(Box<P>) -> Evidence,
    ) -> Result<Option<Statement>, StatementError> {
        self.checked(|predicate| Predicate::Evidence(wrap(predicate)))
    }

    fn organisation<P: Serialize + DeserializeOwned>(
        &self,
        wrap: impl FnOnce(Box<P>) -> OrganisationEvent,
    ) -> Result<Option<Statement>, StatementError> {
        self.checked(|predicate| Predicate::Organisation(wrap(predicate)))
    }

    fn checked<P: Serialize + DeserializeOwned>(
        &self,
        wrap: impl FnOnce(Box<P>) -> Predicate,
    ) -> Result<Option<Statement>, StatementError> {
        let wire = self.wire()?;
        wire.map(|wire| Statement::checked(wire.subject, wrap(wire.predicate)))
            .transpose()
    }
}
