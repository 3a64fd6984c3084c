//! The gate behind foreign coding clients' hooks: `caretaker hook-gate`.
//!
//! A client runs our binary before every tool and at every end of a turn; the exit code says whether it goes on. What decides is
//! [`tool_gate`](crate::tool_gate), the same for every door. Here is the rest: sessions and their state ([`home`], [`registration`]),
//! where paths are ([`places`]), receipts ([`record`]), what must be green at the end ([`completion`]), each client's configuration
//! ([`render`]), the socket through which a worker answers ([`service`]), and whether the gate ran at all ([`proof()`]).
//!
//! `docs/hook-gate.md` says what is promised and what is not.

mod answers;
mod changes;
mod client;
mod completion;
mod configured;
mod evidence;
mod gate;
mod guard;
mod home;
mod places;
mod producers;
mod proof;
mod reach;
mod record;
mod registration;
mod remains;
mod render;
mod reply;
pub mod service;
mod surroundings;
mod tokens;

pub use answers::{ConfiguredAnswers, SessionAnswers};
pub use client::CoderHooks;
pub use completion::{
    COMPLETION, COMPLETION_REFUSED, Evidence, Run, RunPlace, StopCount, read_evidence,
    run_and_seal, stop_count,
};
pub use configured::{Configured, People, Scoring, SessionStages, decided};
pub use evidence::{EvidenceReport, EvidenceVerdict, ReadReceipt, gates, receipts, verify_session};
pub use gate::{Approver, HookGate, NobodyToAsk, Question};
pub use guard::guarded;
pub use home::{Home, SessionId, StateError};
pub use places::Worktree;
pub use producers::{Item, PRODUCER_WITHIN, ProducerTools};
pub use proof::{Proof, Standing, count_calls, is_call, proof};
pub use record::{Receipts, Recorded};
pub use registration::{
    BLOCKS, Found, MAXIMUM_INTENT, NewSession, Registered, RegistrationError, look_up,
    look_up_compatible, register,
};
pub use render::{Adapter, Hooks};
pub use reply::{HookEvent, Reply};
pub use surroundings::{CallBudget, Surroundings};
pub use tokens::{MintError, SessionTokens, ToolGrant};

/// How long a person may take to answer unless told otherwise, in seconds (`approvals.timeout_seconds`).
pub const TTL: u64 = 600;
