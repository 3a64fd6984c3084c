//! One pass over a chain.

use std::collections::BTreeSet;

use super::super::dsse::Envelope;
use super::super::keys::KeyId;
use super::super::predicate::Project;
use super::super::statement::{Event, OrganisationEvent, Predicate};
use super::super::text::shown;
use super::super::trust_root::TrustHistory;
use super::Expectation;
use super::attested::{Attested, authenticate_logged};
use super::report::{ChainReport, EventReport, Failure, Head, Refusal, Rule, Verdict};
use super::step::{Place, Step};
use super::story::Story;
use crate::change::Sha256Digest;
use crate::id::{EventId, IncidentId};

/// What was said, as far as it matters beyond itself.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "there are millions of steps one after the other, and few of anything else"
)]
pub enum Word {
    /// An event of an incident: what its chain needs.
    Step(Step),
    /// An event of the organisation.
    Organisation(OrganisationEvent),
    /// A document, which stands for itself.
    Evidence,
}

/// An envelope as far as it can be judged by itself: everything but its place in a chain. Costs nearly all of the time that
/// verifying costs, and can be done for many envelopes at once.
#[derive(Debug, Clone)]
pub struct Prepared {
    keyid: Option<KeyId>,
    digest: Option<Sha256Digest>,
    attested: Result<Attested, Refusal>,
}

impl Prepared {
    /// Reads an envelope and verifies its signature.
    pub fn of(trust: &TrustHistory, bytes: &[u8]) -> Self {
        Self::logged(trust, bytes, None)
    }

    /// The same for one that a log is known to hold at `index`.
    pub fn logged(trust: &TrustHistory, bytes: &[u8], index: Option<u64>) -> Self {
        match Envelope::parse(bytes) {
            Ok(envelope) => Self::read(trust, &envelope, index),
            Err(error) => Self {
                keyid: None,
                digest: None,
                attested: Err(Refusal::invalid(
                    Rule::Envelope,
                    "the stored form of an envelope",
                    error.to_string(),
                )),
            },
        }
    }

    /// The same for one that was read already.
    pub fn read(trust: &TrustHistory, envelope: &Envelope, index: Option<u64>) -> Self {
        let attested = authenticate_logged(trust, envelope, index);
        // What is authentic was hashed to find that out.
        let digest = match &attested {
            Ok(attested) => attested.digest(),
            Err(_) => envelope.digest(),
        };
        Self {
            keyid: Some(envelope.keyid().clone()),
            digest: Some(digest),
            attested,
        }
    }

    /// What was signed and by whom, if it is authentic.
    ///
    /// # Errors
    /// Why it is not.
    pub const fn attested(&self) -> Result<&Attested, &Refusal> {
        self.attested.as_ref()
    }

    /// What others need of it, if it is authentic.
    ///
    /// # Errors
    /// Why it is not authentic.
    pub fn into_word(self) -> Result<Word, Refusal> {
        let attested = self.attested?;
        let digest = attested.digest();
        Ok(match attested.into_statement().into_predicate() {
            Predicate::Event(event) => Word::Step(Step::of(digest, event)),
            Predicate::Organisation(event) => Word::Organisation(event),
            Predicate::Evidence(_) => Word::Evidence,
        })
    }
}

/// What is known about the event before.
#[derive(Clone, Copy)]
enum Before {
    Nothing,
    Digest(Sha256Digest),
    Unreadable,
}

/// The state between two envelopes.
pub(super) struct Walk<'a> {
    expected: &'a Expectation,
    before: Before,
    incident: Option<IncidentId>,
    project: Option<Project>,
    ids: BTreeSet<EventId>,
    story: Story,
    position: u64,
    report: ChainReport,
}

impl<'a> Walk<'a> {
    pub(super) fn new(expected: &'a Expectation) -> Self {
        Self {
            expected,
            before: Before::Nothing,
            incident: expected.incident.clone(),
            project: expected.project.clone(),
            ids: BTreeSet::new(),
            story: Story::default(),
            position: 0,
            report: ChainReport {
                verdict: Verdict::Valid,
                events: Vec::new(),
                failures: Vec::new(),
                head: None,
                gaps: Vec::new(),
            },
        }
    }

    /// Takes the next envelope.
    pub(super) fn take(&mut self, prepared: Prepared) {
        let mut event = EventReport {
            seq: self.position,
            kind: None,
            role: None,
            keyid: None,
            digest: None,
            verdict: Verdict::Valid,
            reason: None,
            event: None,
        };
        match self.examine(prepared, &mut event) {
            Ok(refusals) => refusals
                .into_iter()
                .for_each(|refusal| self.refuse(&mut event, &refusal)),
            Err(refusal) => {
                if let (Verdict::CannotVerify, Some(digest)) = (refusal.verdict, event.digest) {
                    self.story.pass_over(digest);
                }
                self.refuse(&mut event, &refusal);
            }
        }
        self.before = event.digest.map_or(Before::Unreadable, Before::Digest);
        self.report.head = event.digest.map(|digest| Head {
            events: self.position + 1,
            digest,
        });
        self.report.events.push(event);
        self.position += 1;
    }

    /// Whether an event may be the next one, after envelopes that hold.
    pub(super) fn may_follow(mut self, event: &Event, digest: Sha256Digest) -> Result<(), Refusal> {
        if let Some(failure) = self.report.failures.first() {
            let found = format!("event {}: {}", failure.seq, failure.found);
            return Err(Refusal::invalid(
                failure.rule,
                failure.expected.as_str(),
                found,
            ));
        }
        let refusals = self.fit(Step::of(digest, event.clone()));
        refusals.into_iter().next().map_or(Ok(()), Err)
    }

    /// Takes the next event of a chain that is verified as it grows, and says what does not fit.
    pub(super) fn step(&mut self, step: Step) -> Vec<Refusal> {
        let digest = step.digest;
        let refusals = self.fit(step);
        self.before = Before::Digest(digest);
        self.position += 1;
        refusals
    }

    /// What does not fit about an event at this place.
    fn fit(&mut self, step: Step) -> Vec<Refusal> {
        let Step {
            digest,
            place,
            tale,
        } = step;
        let mut refusals = self.check_place(&place);
        refusals.extend(self.story.take(digest, tale, &place.project));
        self.incident.get_or_insert(place.incident);
        self.project.get_or_insert(place.project);
        refusals
    }

    /// The worst verdict on an event since the last call, and what does not hold. The reports on single events are forgotten, so that a chain of any length costs
    /// the same memory.
    pub(super) fn drain(&mut self) -> (Verdict, Vec<Failure>) {
        let verdicts = self.report.events.drain(..).map(|event| event.verdict);
        let worst = verdicts.max().unwrap_or(Verdict::Valid);
        self.report.gaps.clear();
        (worst, std::mem::take(&mut self.report.failures))
    }

    /// Whether only escalations and gaps may follow.
    pub(super) const fn is_closed(&self) -> bool {
        self.story.is_closed()
    }

    /// The report, after the last envelope.
    pub(super) fn finish(mut self) -> ChainReport {
        if self.position == 0 {
            self.fail(&Refusal::unverifiable(
                Rule::Empty,
                "at least one event",
                "none",
            ));
        }
        if let Some(head) = self.expected.head {
            // Only this notices that the end was cut off.
            if self.report.head != Some(head) {
                let found = self
                    .report
                    .head
                    .map_or_else(|| "no readable end".to_owned(), described);
                self.fail(&Refusal::invalid(Rule::Head, described(head), found));
            }
        }
        self.report
    }

    /// What does not hold for this envelope. An error means that it is not authentic, so that nothing it says was
    /// looked at.
    fn examine(
        &mut self,
        prepared: Prepared,
        report: &mut EventReport,
    ) -> Result<Vec<Refusal>, Refusal> {
        report.keyid = prepared.keyid;
        report.digest = prepared.digest;
        let attested = prepared.attested?;
        let (kind, digest) = (attested.statement().predicate_type(), attested.digest());
        report.kind = Some(kind);
        report.role = Some(attested.role());
        let Some(event) = attested.into_statement().into_event() else {
            return Err(Refusal::invalid(
                Rule::Kind,
                "an event of a chain",
                kind.name(),
            ));
        };
        let refusals = self.fit(Step::of(digest, event.clone()));
        if matches!(event, Event::Gap(_)) {
            self.report.gaps.push(self.position);
        }
        report.event = Some(event);
        Ok(refusals)
    }

    fn check_place(&mut self, place: &Place) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        if place.seq != self.position {
            refusals.push(Refusal::invalid(
                Rule::Seq,
                self.position.to_string(),
                place.seq.to_string(),
            ));
        }
        refusals.extend(self.check_prev(place.prev));
        let incident = self.incident.as_ref().unwrap_or(&place.incident);
        if *incident != place.incident {
            refusals.push(Refusal::invalid(
                Rule::Incident,
                incident.as_str(),
                place.incident.as_str(),
            ));
        }
        let project = self.project.as_ref().unwrap_or(&place.project);
        if *project != place.project {
            refusals.push(Refusal::invalid(
                Rule::Project,
                named(project),
                named(&place.project),
            ));
        }
        if !self.ids.insert(place.id.clone()) {
            refusals.push(Refusal::invalid(
                Rule::EventId,
                "an id of its own",
                place.id.as_str(),
            ));
        }
        refusals
    }

    fn check_prev(&self, found: Option<Sha256Digest>) -> Option<Refusal> {
        let written = |digest: Option<Sha256Digest>| {
            digest.map_or_else(|| "null".to_owned(), |digest| digest.to_string())
        };
        let expected = match self.before {
            Before::Nothing => None,
            Before::Digest(digest) => Some(digest),
            Before::Unreadable => {
                return Some(Refusal::unverifiable(
                    Rule::Prev,
                    "an event before that can be read",
                    written(found),
                ));
            }
        };
        (found != expected).then(|| Refusal::invalid(Rule::Prev, written(expected), written(found)))
    }

    fn refuse(&mut self, event: &mut EventReport, refusal: &Refusal) {
        event.verdict = event.verdict.max(refusal.verdict);
        if event.reason.is_none() {
            event.reason = Some(refusal.to_string());
        }
        self.fail(refusal);
    }

    fn fail(&mut self, refusal: &Refusal) {
        // Whatever a refusal says of itself, with one in the report the chain is not valid.
        self.report.verdict = self
            .report
            .verdict
            .max(refusal.verdict)
            .max(Verdict::CannotVerify);
        self.report.failures.push(Failure {
            seq: self.position,
            rule: refusal.rule,
            expected: refusal.expected.clone(),
            found: refusal.found.clone(),
        });
    }
}

fn described(head: Head) -> String {
    format!("{} events, the last one {}", head.events, head.digest)
}

fn named(project: &Project) -> String {
    shown(&format!(
        "{} (repository {})",
        project.uri, project.repository_id
    ))
}
