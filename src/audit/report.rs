//! What verification of a stored ledger says.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::attest::Event;
use crate::attest::chain::{self, ChainReport, EventReport, Verdict};
use crate::attest::predicate::{CheckpointRef, GapReason};
use crate::attest::text::shown;

/// What a failure is against: a rule of the chain, or one of how it is stored. The words are part of the output's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A rule of the chain itself.
    Chain(chain::Rule),
    /// Every column of a row is what its envelope says.
    Column,
    /// The record of the chain's end fits the rows.
    Record,
    /// Nothing is signed that was not drafted, and at the end nothing is drafted that is not signed.
    Drafts,
    /// The incident's stage rests on what is signed.
    Stage,
    /// What events name as evidence is kept and is what its digest says, or a gap says that it is gone.
    Evidence,
    /// Every event is a leaf of the organisation's log.
    Log,
    /// Policy decided by the rules in force.
    Policy,
    /// The log is the one that was seen before.
    Checkpoint,
    /// The witnesses that the auditor's policy asks for cosigned the checkpoint.
    Witness,
    /// Timestamps hold, and are of this log's checkpoints.
    Timestamp,
    /// A bundle holds what a bundle holds.
    Bundle,
}

impl Rule {
    /// The word in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chain(rule) => rule.name(),
            Self::Column => "column",
            Self::Record => "record",
            Self::Drafts => "drafts",
            Self::Stage => "stage",
            Self::Evidence => "evidence",
            Self::Log => "log",
            Self::Policy => "policy",
            Self::Checkpoint => "checkpoint",
            Self::Witness => "witness",
            Self::Timestamp => "timestamp",
            Self::Bundle => "bundle",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Serialize for Rule {
    /// The word in output.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One thing that does not hold or cannot be checked, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Position in what is stored, from 0; one past the last for what concerns the whole ledger.
    pub seq: u64,
    /// The rule.
    pub rule: Rule,
    /// What was expected.
    pub expected: String,
    /// What was found, made printable.
    pub found: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seq,
            rule,
            expected,
            found,
        } = self;
        write!(
            formatter,
            "event {seq}: {rule}: expected {expected}, found {found}"
        )
    }
}

/// What verification says about a stored ledger; its JSON is what `ledger verify --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The worst of everything below; an empty ledger cannot be verified.
    pub verdict: Verdict,
    /// One report for each row.
    pub events: Vec<EventReport>,
    /// Everything that does not hold or cannot be checked.
    pub failures: Vec<Failure>,
    /// Positions of the events that say that evidence was lost.
    pub gaps: Vec<u64>,
    /// The checkpoint that the ledger was found under; null while there is no log.
    pub checkpoint: Option<CheckpointRef>,
}

impl Report {
    /// What authentic gaps admit to be gone: the gap's position and a line for people.
    pub fn admissions(&self) -> Vec<(u64, String)> {
        let gaps = self.events.iter().filter_map(|event| match &event.event {
            Some(Event::Gap(gap)) => Some((event.seq, gap)),
            _ => None,
        });
        gaps.map(|(seq, gap)| {
            let why = match gap.reason {
                Some(GapReason::Retention) => "deleted after their time",
                Some(GapReason::Lost) | None => "lost",
            };
            let count = gap.evidence.len();
            let line = format!("{count} documents {why} ({})", shown(gap.detail.as_str()));
            (seq, line)
        })
        .collect()
    }

    /// Adds a failure about the row at `position`.
    pub(super) fn fail_row(
        &mut self,
        position: usize,
        rule: Rule,
        expected: String,
        found: String,
    ) {
        self.fail_event(position, Verdict::Invalid, rule, expected, found);
    }

    /// Adds a failure about what the event at `position` says.
    pub(super) fn fail_event(
        &mut self,
        position: usize,
        verdict: Verdict,
        rule: Rule,
        expected: String,
        found: String,
    ) {
        if let Some(event) = self.events.get_mut(position) {
            event.verdict = event.verdict.max(verdict).max(Verdict::CannotVerify);
            event
                .reason
                .get_or_insert_with(|| format!("{rule}: expected {expected}, found {found}"));
        }
        self.fail(position as u64, verdict, rule, expected, found);
    }

    /// Adds a failure about the whole ledger.
    pub(super) fn fail_whole(
        &mut self,
        verdict: Verdict,
        rule: Rule,
        expected: String,
        found: String,
    ) {
        self.fail(self.events.len() as u64, verdict, rule, expected, found);
    }

    fn fail(&mut self, seq: u64, verdict: Verdict, rule: Rule, expected: String, found: String) {
        // Whatever a failure says of itself, with one in the report the ledger is not valid.
        self.verdict = self.verdict.max(verdict).max(Verdict::CannotVerify);
        self.failures.push(Failure {
            seq,
            rule,
            expected,
            found,
        });
    }
}

impl From<ChainReport> for Report {
    fn from(report: ChainReport) -> Self {
        let ChainReport {
            verdict,
            events,
            failures,
            head: _,
            gaps,
        } = report;
        let failures = failures.into_iter().map(|failure| Failure {
            seq: failure.seq,
            rule: Rule::Chain(failure.rule),
            expected: failure.expected,
            found: failure.found,
        });
        Self {
            verdict,
            events,
            failures: failures.collect(),
            gaps,
            checkpoint: None,
        }
    }
}
