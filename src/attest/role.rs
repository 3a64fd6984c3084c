//! Who signs what.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A signing role of the ledger. Each has a key of its own, and a predicate type is valid under one role only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Signs what the agent proposes and what its proposal rests on.
    Proposer,
    /// Signs what the rules decided.
    Policy,
    /// Signs what a person answered.
    Approver,
    /// Signs what was done.
    Executor,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Proposer, Self::Policy, Self::Approver, Self::Executor];

    /// The name in documents, file names and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proposer => "proposer",
            Self::Policy => "policy",
            Self::Approver => "approver",
            Self::Executor => "executor",
        }
    }

    /// The role with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The kinds of statement, each signed by one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PredicateType {
    /// A fix (or, before one exists, its files) is proposed. Chain event.
    Proposal,
    /// What a diagnosis was fed. Evidence.
    ContextManifest,
    /// A test run, in in-toto's own format. Evidence.
    TestResult,
    /// The rules' decision about a proposal. Chain event.
    PolicyDecision,
    /// A tool call's outcome at the gate. Evidence.
    GateOutcome,
    /// A score of alignment with the intent. Evidence.
    IntentScore,
    /// A version of the rules. Organisation's log.
    PolicyVersion,
    /// A person's answer. Chain event.
    Approval,
    /// A person lifts a freeze. Organisation's log.
    Unfreeze,
    /// A person overrides the rules. Organisation's log.
    BreakGlass,
    /// A person's credential is enrolled. Organisation's log.
    Enrolment,
    /// What landed. Chain event.
    Execution,
    /// Why a person has to take over. Chain event.
    Escalation,
    /// Evidence was lost. Chain event.
    Gap,
}

impl PredicateType {
    /// Every kind of statement.
    pub const ALL: [Self; 14] = [
        Self::Proposal,
        Self::ContextManifest,
        Self::TestResult,
        Self::PolicyDecision,
        Self::GateOutcome,
        Self::IntentScore,
        Self::PolicyVersion,
        Self::Approval,
        Self::Unfreeze,
        Self::BreakGlass,
        Self::Enrolment,
        Self::Execution,
        Self::Escalation,
        Self::Gap,
    ];

    /// The full URI in a statement's `predicateType`. Compared whole, never by prefix.
    pub const fn uri(self) -> &'static str {
        match self {
            Self::Proposal => "urn:caretaker:attestation:proposal:v1",
            Self::ContextManifest => "urn:caretaker:attestation:context-manifest:v1",
            Self::TestResult => "https://in-toto.io/attestation/test-result/v0.1",
            Self::PolicyDecision => "urn:caretaker:attestation:policy-decision:v1",
            Self::GateOutcome => "urn:caretaker:attestation:gate-outcome:v1",
            Self::IntentScore => "urn:caretaker:attestation:intent-score:v1",
            Self::PolicyVersion => "urn:caretaker:attestation:policy-version:v1",
            Self::Approval => "urn:caretaker:attestation:approval:v1",
            Self::Unfreeze => "urn:caretaker:attestation:unfreeze:v1",
            Self::BreakGlass => "urn:caretaker:attestation:break-glass:v1",
            Self::Enrolment => "urn:caretaker:attestation:enrolment:v1",
            Self::Execution => "urn:caretaker:attestation:execution:v1",
            Self::Escalation => "urn:caretaker:attestation:escalation:v1",
            Self::Gap => "urn:caretaker:attestation:gap:v1",
        }
    }

    /// The short name, as pages, columns and messages show it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proposal => "proposal",
            Self::ContextManifest => "context-manifest",
            Self::TestResult => "test-result",
            Self::PolicyDecision => "policy-decision",
            Self::GateOutcome => "gate-outcome",
            Self::IntentScore => "intent-score",
            Self::PolicyVersion => "policy-version",
            Self::Approval => "approval",
            Self::Unfreeze => "unfreeze",
            Self::BreakGlass => "break-glass",
            Self::Enrolment => "enrolment",
            Self::Execution => "execution",
            Self::Escalation => "escalation",
            Self::Gap => "gap",
        }
    }

    /// The one role whose key makes a statement of this kind valid.
    pub const fn role(self) -> Role {
        match self {
            Self::Proposal | Self::ContextManifest | Self::TestResult => Role::Proposer,
            Self::PolicyDecision | Self::GateOutcome | Self::IntentScore | Self::PolicyVersion => {
                Role::Policy
            }
            Self::Approval | Self::Unfreeze | Self::BreakGlass | Self::Enrolment => Role::Approver,
            Self::Execution | Self::Escalation | Self::Gap => Role::Executor,
        }
    }

    /// The kind with exactly this URI.
    pub fn from_uri(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.uri() == uri)
    }
}

impl Serialize for PredicateType {
    /// The short name.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl fmt::Display for PredicateType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
