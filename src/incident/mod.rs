//! One incident: its facts, and the one next step they call for.
//!
//! [`next()`] is a total, pure function of a [`Snapshot`]. There is no second path for recovery: whoever claims the incident
//! after a crash computes the same next step from the same facts.

mod fact;
mod failure;
mod flake;
mod money;
mod next;
mod outcome;
mod snapshot;
mod stage;

pub use fact::{
    ClosedReason, DecisionFact, DiagnosisFact, EscalationReason, Fact, FixFact, RecordedFact,
    Reproduction, SessionFact,
};
pub use failure::{Failure, FailureKind, incident_key};
pub use flake::Rerun;
pub use money::{Amount, AmountError, Currency, CurrencyError, Money, MoneyBudget, Prices};
pub use next::{Step, Waiting, next};
pub use outcome::{
    AuditEvent, Draft, EvidenceDocument, MergeLock, NewLink, Notice, NoticeEvent, Outcome, Pause,
    SignedEnvelope, StepError,
};
pub use snapshot::{ActiveMerge, LedgerState, Link, Snapshot};
pub use stage::{Stage, stage};
