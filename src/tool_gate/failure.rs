//! What happens when a guard itself fails: one table, which `docs/hook-gate.md` shows.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `security.failure_posture`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Posture {
    /// What cannot be checked is refused.
    #[default]
    Closed,
    /// What cannot be checked for reasons of the gate's own is let through with an event, as Bernstein does.
    Open,
}

/// How a guard can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// No session of this id was registered.
    UnknownSession,
    /// The session's id could not be a file name.
    UnsafeSession,
    /// The session is registered, its policy is gone.
    PolicyMissing,
    /// The policy cannot be read, or is not the one that was pinned.
    PolicyUnreadable,
    /// The session's other state cannot be read.
    StateUnreadable,
    /// The event is not one.
    EventUnreadable,
    /// The event is larger than is read.
    EventTooLarge,
    /// The receipt of the outcome cannot be written.
    ReceiptUnwritable,
    /// The decision ended in a panic.
    Panicked,
    /// The gate's own deadline passed.
    DeadlinePassed,
    /// The socket that the hook names does not answer.
    SocketSilent,
    /// The score against the intent cannot be had.
    AlignmentUnavailable,
    /// The capability token cannot be judged.
    TokenUnavailable,
    /// Another stage (profile, classifier, patterns, queue) cannot answer.
    StageUnavailable,
}

/// What a failure comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The call goes on; an event says why nobody looked.
    AllowWithEvent,
    /// It does not.
    Deny,
}

impl Failure {
    /// Every failure.
    pub const ALL: [Self; 14] = [
        Self::UnknownSession,
        Self::UnsafeSession,
        Self::PolicyMissing,
        Self::PolicyUnreadable,
        Self::StateUnreadable,
        Self::EventUnreadable,
        Self::EventTooLarge,
        Self::ReceiptUnwritable,
        Self::Panicked,
        Self::DeadlinePassed,
        Self::SocketSilent,
        Self::AlignmentUnavailable,
        Self::TokenUnavailable,
        Self::StageUnavailable,
    ];

    /// The code in events and receipts.
    pub const fn code(self) -> &'static str {
        match self {
            Self::UnknownSession => "unknown-session",
            Self::UnsafeSession => "unsafe-session-id",
            Self::PolicyMissing => "policy-missing",
            Self::PolicyUnreadable => "policy-unreadable",
            Self::StateUnreadable => "state-unreadable",
            Self::EventUnreadable => "event-unreadable",
            Self::EventTooLarge => "event-too-large",
            Self::ReceiptUnwritable => "receipt-unwritable",
            Self::Panicked => "gate-panicked",
            Self::DeadlinePassed => "gate-deadline",
            Self::SocketSilent => "socket-silent",
            Self::AlignmentUnavailable => "alignment-unavailable",
            Self::TokenUnavailable => "token-unavailable",
            Self::StageUnavailable => "stage-unavailable",
        }
    }

    /// The table. `consequential` is whether the call writes, executes or sends.
    pub const fn fallback(self, posture: Posture, consequential: bool) -> Fallback {
        if matches!(self, Self::ReceiptUnwritable) && !consequential {
            return Fallback::AllowWithEvent;
        }
        match self {
            // A session that nobody registered is none of the gate's, in either posture.
            Self::UnknownSession | Self::UnsafeSession => Fallback::AllowWithEvent,
            // What a person configured is not given up because it cannot be asked, in either posture. Neither is what an agent
            // can bring about: an event of any size, a decision that takes too long or fails on its input.
            Self::Panicked
            | Self::DeadlinePassed
            | Self::SocketSilent
            | Self::AlignmentUnavailable
            | Self::TokenUnavailable
            | Self::StageUnavailable
            | Self::EventTooLarge => Fallback::Deny,
            Self::PolicyMissing
            | Self::PolicyUnreadable
            | Self::StateUnreadable
            | Self::EventUnreadable
            | Self::ReceiptUnwritable => match posture {
                // Break it: swap the two; `tool_gate::failures::the_table_is_as_the_documentation_says` fails.
                Posture::Closed => Fallback::Deny,
                Posture::Open => Fallback::AllowWithEvent,
            },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.code())
    }
}
