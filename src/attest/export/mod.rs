//! What a verified chain says, in the formats that other programs read: SLSA verification summaries and gittuf reference
//! authorizations, as in-toto statements.
//!
//! An export says nothing that the chain does not say. Levels are our own (`ORG_SOURCE_CARETAKER_…`): whether they amount to a
//! level of SLSA's source track is for whoever checks the repository's guards to say.

mod gittuf;
mod slsa;

use std::collections::BTreeMap;

use serde::Serialize;
use thiserror::Error;

use super::chain::{Expectation, Verdict, verify_chain};
use super::json::{self, JsonError};
use super::predicate::{Answer, AuthorityRef};
use super::role::Role;
use super::statement::{Event, STATEMENT_TYPE};
use super::trust_root::TrustHistory;
use crate::change::Sha256Digest;

/// Why nothing is exported.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExportError {
    /// The chain is not valid.
    #[error(
        "exporting statements: the ledger is {verdict}, and only what verifies is exported; `caretaker ledger verify` names what does not hold"
    )]
    NotValid {
        /// What verification says.
        verdict: Verdict,
    },
    /// An export does not serialise.
    #[error("exporting statements: {0}")]
    Json(#[from] JsonError),
}

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExportKind {
    /// SLSA's verification summary, version 1.
    VerificationSummary,
    /// gittuf's reference authorization, version 0.2.
    ReferenceAuthorization,
}

impl ExportKind {
    /// The `predicateType`.
    pub const fn uri(self) -> &'static str {
        match self {
            Self::VerificationSummary => "https://slsa.dev/verification_summary/v1",
            Self::ReferenceAuthorization => "https://gittuf.dev/reference-authorization/v0.2",
        }
    }

    /// The word in file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::VerificationSummary => "verification-summary",
            Self::ReferenceAuthorization => "reference-authorization",
        }
    }
}

/// An unsigned in-toto statement of a foreign kind. It is only ever made from a chain that verified, so that a signer can sign it
/// without judging it again.
///
/// ```compile_fail
/// let forged = caretaker::attest::export::Export { kind: todo!(), role: todo!(), seq: 0, statement: Vec::new() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    kind: ExportKind,
    role: Role,
    seq: u64,
    statement: Vec<u8>,
}

impl Export {
    /// The format.
    pub const fn kind(&self) -> ExportKind {
        self.kind
    }

    /// The role whose word it is: the one that signed the event.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Position of the event that it is made from.
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// The statement's exact bytes.
    pub fn statement(&self) -> &[u8] {
        &self.statement
    }
}

/// Verifies a chain and makes every export of it, in the order of its events.
pub fn exports<I, B>(
    trust: &TrustHistory,
    expected: &Expectation,
    envelopes: I,
) -> Result<Vec<Export>, ExportError>
where
    I: IntoIterator<Item = B>,
    B: AsRef<[u8]>,
{
    let envelopes: Vec<B> = envelopes.into_iter().collect();
    let report = verify_chain(trust, expected, &envelopes);
    // Break it: go on whatever the verdict; `attest::exports::nothing_is_exported_from_a_ledger_that_does_not_verify` then fails.
    if report.verdict != Verdict::Valid {
        return Err(ExportError::NotValid {
            verdict: report.verdict,
        });
    }
    let events = report.events.iter().zip(&envelopes);
    let told: Vec<Told<'_>> = events
        .filter_map(|(report, envelope)| {
            Some(Told {
                seq: report.seq,
                event: report.event.as_ref()?,
                digest: report.digest?,
                envelope: Sha256Digest::of(envelope.as_ref()),
            })
        })
        .collect();
    Chain { told }.exports()
}

/// One verified event.
struct Told<'a> {
    seq: u64,
    event: &'a Event,
    /// How other events name it.
    digest: Sha256Digest,
    /// Of the stored envelope: how somebody who holds the file names it.
    envelope: Sha256Digest,
}

/// All of them.
struct Chain<'a> {
    told: Vec<Told<'a>>,
}

impl Chain<'_> {
    fn exports(&self) -> Result<Vec<Export>, ExportError> {
        let mut exports = Vec::new();
        for told in &self.told {
            match told.event {
                Event::PolicyDecision(decision) => {
                    let statement = slsa::of_decision(self, decision);
                    exports.push(told.export(&statement)?);
                }
                Event::Execution(execution) => {
                    let statement = slsa::of_execution(self, execution);
                    exports.push(told.export(&statement)?);
                }
                Event::Approval(approval) if approval.answer == Answer::Approve => {
                    if let Some(statement) = gittuf::of_approval(self, told, approval) {
                        exports.push(told.export(&statement)?);
                    }
                }
                Event::Proposal(_) | Event::Approval(_) | Event::Escalation(_) | Event::Gap(_) => {}
            }
        }
        Ok(exports)
    }

    fn named(&self, digest: Sha256Digest) -> Option<&Told<'_>> {
        self.told.iter().find(|told| told.digest == digest)
    }

    /// The branch, as the proposal names it, in full.
    fn reference(&self, proposal: Sha256Digest) -> Option<String> {
        match self.named(proposal)?.event {
            Event::Proposal(proposal) => Some(format!("refs/heads/{}", proposal.base.branch)),
            _ => None,
        }
    }

    /// The execution of ours that rests on this answer.
    fn execution_by(&self, approval: Sha256Digest) -> Option<&super::predicate::Execution> {
        self.told.iter().find_map(|told| match told.event {
            Event::Execution(execution)
                if execution.authority == Some(AuthorityRef::Approval(approval.into())) =>
            {
                Some(execution.as_ref())
            }
            _ => None,
        })
    }
}

impl Told<'_> {
    fn export<P: Serialize>(&self, foreign: &Foreign<P>) -> Result<Export, ExportError> {
        Ok(Export {
            kind: foreign.kind,
            role: self.event.predicate_type().role(),
            seq: self.seq,
            statement: json::to_bytes(foreign)?,
        })
    }
}

/// A foreign statement on its way into bytes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Foreign<P> {
    #[serde(skip)]
    kind: ExportKind,
    #[serde(rename = "_type")]
    statement_type: &'static str,
    subject: Vec<ForeignSubject>,
    predicate_type: &'static str,
    predicate: P,
}

impl<P> Foreign<P> {
    fn new(kind: ExportKind, subject: Vec<ForeignSubject>, predicate: P) -> Self {
        Self {
            kind,
            statement_type: STATEMENT_TYPE,
            subject,
            predicate_type: kind.uri(),
            predicate,
        }
    }
}

/// in-toto's resource descriptor, as a subject.
#[derive(Serialize)]
struct ForeignSubject {
    name: String,
    digest: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<BTreeMap<&'static str, Vec<String>>>,
}

impl ForeignSubject {
    fn new<const N: usize>(name: &str, digest: [(&'static str, String); N]) -> Self {
        Self {
            name: name.to_owned(),
            digest: digest.into(),
            annotations: None,
        }
    }
}
