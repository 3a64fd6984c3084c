//! What is known about an incident. A fact is inserted once and never changed; what the next step is follows from them.

use serde::{Deserialize, Serialize};

use super::money::Money;
use crate::approve::{ApprovalRequest, HumanDecision};
use crate::attest::predicate::{CheckpointRef, ScoreList};
use crate::change::{ChangeDigest, ChangeDocument, Oid, RepoPath, Sha256Digest};
use crate::clock::Millis;
use crate::gate::{Class, Verdict};
use crate::id::{ApprovalId, ExecutionId, ProposalId};
use crate::reconcile::Difference;

/// How trying the failed job's tests in the sandbox ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reproduction {
    /// The tests fail here too.
    Red {
        /// The command that was run.
        command: Vec<String>,
        /// Which sandbox it ran in.
        sandbox: String,
        /// The signed test result that was stored as evidence.
        evidence: Sha256Digest,
        /// Those of the repetitions at the same commit, which failed too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repeated: Vec<Sha256Digest>,
    },
    /// They fail and pass at one commit.
    Flaky {
        /// The command that was run.
        command: Vec<String>,
        /// Which sandbox it ran in.
        sandbox: String,
        /// In how many runs they passed.
        passed: u32,
        /// In how many they failed.
        failed: u32,
        /// The signed test results of all runs, in order.
        evidence: Vec<Sha256Digest>,
    },
    /// They pass: not reproducible.
    Green {
        /// The command that was run.
        command: Vec<String>,
        /// Which sandbox it ran in.
        sandbox: String,
        /// The signed test result that was stored as evidence.
        evidence: Sha256Digest,
    },
    /// They cannot be run here.
    Unrunnable {
        /// Why, with the mend.
        reason: String,
    },
}

impl Reproduction {
    /// In how many of the runs here the tests failed, e.g. `in 1 of 2 runs`; none when there was one run, or none.
    pub fn tally(&self) -> Option<String> {
        let (failed, all) = match self {
            Self::Red { repeated, .. } if !repeated.is_empty() => {
                (repeated.len() + 1, repeated.len() + 1)
            }
            Self::Flaky {
                failed, evidence, ..
            } => (*failed as usize, evidence.len()),
            Self::Red { .. } | Self::Green { .. } | Self::Unrunnable { .. } => return None,
        };
        Some(format!("in {failed} of {all} runs"))
    }
}

/// What the coder found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiagnosisFact {
    /// The cause.
    pub cause: String,
    /// Files it intends to change.
    pub files: Vec<RepoPath>,
    /// 0 to 1000.
    pub confidence: u16,
    /// One paragraph.
    pub summary: String,
    /// Adapter of the coder.
    pub agent: String,
    /// Model or program behind it.
    pub model: Option<String>,
    /// What the coder says of itself, e.g. that it is scripted.
    pub remark: String,
    /// The signed context manifest that was stored as evidence.
    pub manifest: Sha256Digest,
    /// The gated session that found it, where the coder has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionFact>,
}

/// A session of a coder whose calls of tools went through the gate. Its documents are stored as evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionFact {
    /// Its id.
    pub id: String,
    /// SHA-256 of its policy.
    pub policy: Sha256Digest,
    /// SHA-256 of its capability tokens.
    pub tokens: Sha256Digest,
    /// The last of its receipts.
    pub receipt: Sha256Digest,
    /// How many receipts there are with the root.
    pub receipts: u64,
    /// Calls of tools, by the coder's own count.
    pub calls: u64,
    /// How many of them the gate refused.
    pub refused: u64,
    /// Requests to a model.
    pub requests: u64,
    /// Tokens sent to it.
    pub input_tokens: u64,
    /// Tokens received from it.
    pub output_tokens: u64,
    /// What they cost, where prices are configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// The receipts, one a line.
    pub record: Sha256Digest,
    /// The list of the signed outcomes.
    pub outcomes: Sha256Digest,
    /// The list of the signed scores, where calls were held against the intent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<ScoreList>,
    /// What the required checks came to after the session; a diagnosis has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Sha256Digest>,
    /// Whether it ran outside the sandbox.
    pub advisory: bool,
}

impl SessionFact {
    /// What people read of it.
    pub fn in_words(&self) -> String {
        let calls = match self.calls {
            1 => "1 call of a tool".to_owned(),
            calls => format!("{calls} calls of tools"),
        };
        let cost = self
            .cost
            .map(|cost| format!(", {cost}"))
            .unwrap_or_default();
        let place = if self.advisory {
            "; advisory, since it ran outside the sandbox"
        } else {
            ""
        };
        format!(
            "{calls} by the gate, {} refused; {} receipts, the last {}; {} requests to a model, {} tokens{cost}{place}",
            self.refused,
            self.receipts,
            self.receipt,
            self.requests,
            self.input_tokens.saturating_add(self.output_tokens),
        )
    }
}

/// The fix as a commit in the trusted repository, with its proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixFact {
    /// Branch that will carry it.
    pub branch: String,
    /// Commit it starts from, the merge base.
    pub base_commit: Oid,
    /// The one commit.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
    /// What it changes.
    pub change: ChangeDocument,
    /// Title of pull request and landed commit.
    pub title: String,
    /// Body of the landed commit, without trailers.
    pub body: String,
    /// Lines added and removed; none when not measured.
    pub lines: Option<u64>,
    /// Whether a binary file changes; none when not measured.
    pub binary: Option<bool>,
    /// Signed test results: red, green and the base's tests on the fix.
    pub tests: Vec<Sha256Digest>,
    /// The change as a diff for people, in the evidence store; none when it was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Sha256Digest>,
    /// The gated session that made it, where the coder has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionFact>,
}

/// What the policy decided on the exact change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionFact {
    /// The proposal that it is about.
    pub proposal: ProposalId,
    /// The verdict.
    pub verdict: Verdict,
    /// Blast radius.
    pub class: Class,
    /// The decision as `gate check --json` prints it.
    pub document: serde_json::Value,
    /// SHA-256 of the rules that decided.
    pub rules: Sha256Digest,
    /// SHA-256 of the proposal's PAE.
    pub proposal_event: Sha256Digest,
    /// SHA-256 of the decision's PAE.
    pub decision_event: Sha256Digest,
}

/// Why an incident was handed to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EscalationReason {
    /// The live change is not the approved one.
    ChangeMismatch,
    /// What landed is not what was approved.
    ExecutedDiffers,
    /// The provider refused the merge.
    MergeRefused,
    /// A merge was asked for and it cannot be told what became of it.
    MergeUnknown,
    /// A person changed or reviewed the branch.
    PersonIntervened,
    /// The coder gave no usable answer.
    CoderFailed,
    /// Nothing shows that the coder's calls of tools went through the gate.
    AgentUngated,
    /// The fix is not proven by its tests.
    FixUnproven,
    /// The fix cannot be proposed (e.g. names that JSON cannot carry).
    FixUnusable,
    /// Steps kept failing.
    RetriesExhausted,
    /// The stored ledger does not verify.
    LedgerBroken,
    /// What others hold of the log excludes it.
    AnchorFailed,
}

impl EscalationReason {
    /// The word used in pages and statements.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ChangeMismatch => "change-mismatch",
            Self::ExecutedDiffers => "executed-differs",
            Self::MergeRefused => "merge-refused",
            Self::MergeUnknown => "merge-unknown",
            Self::PersonIntervened => "person-intervened",
            Self::CoderFailed => "coder-failed",
            Self::AgentUngated => "agent-ungated",
            Self::FixUnproven => "fix-unproven",
            Self::FixUnusable => "fix-unusable",
            Self::RetriesExhausted => "retries-exhausted",
            Self::LedgerBroken => "ledger-broken",
            Self::AnchorFailed => "anchor-failed",
        }
    }
}

/// Why an incident ended without our merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClosedReason {
    /// The workflow succeeded by itself.
    Recovered,
    /// It fails and passes at one commit.
    Flaky,
    /// The tests pass in the sandbox at that commit.
    NotReproducible,
    /// No code is at fault, or it cannot be built here.
    NotCode,
    /// The owner said no.
    Rejected,
    /// Nobody answered in time.
    Expired,
    /// Another incident or change replaced it.
    Superseded,
    /// A person merged it.
    ByPerson,
}

impl ClosedReason {
    /// The word used in pages, tables and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Recovered => "recovered",
            Self::Flaky => "flaky",
            Self::NotReproducible => "not-reproducible",
            Self::NotCode => "not-code",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Superseded => "superseded",
            Self::ByPerson => "by-person",
        }
    }
}

/// One thing known about an incident. `kind` in the store is the tag here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "body", rename_all = "kebab-case")]
pub enum Fact {
    /// The tests were tried at the failing commit.
    Reproduced(Reproduction),
    /// Another attempt of the failed run, at the same commit, is to tell whether the failure is flaky. It was asked for, or it
    /// was found under way.
    RerunAsked {
        /// The run.
        run_id: u64,
        /// The attempt that answers.
        attempt: u64,
    },
    /// There is no such attempt, for this reason.
    RerunDeclined {
        /// Why, in words.
        reason: String,
    },
    /// The job failed once more: in another attempt of a run that failed, or while such an attempt is waited for.
    Recurred {
        /// The run.
        run_id: u64,
        /// The attempt that failed.
        attempt: u64,
        /// Provider's number of that attempt of the job.
        job_id: Option<u64>,
    },
    /// The failed job's log was read; the extraction is evidence.
    Extracted {
        /// Digest of the extraction document in the evidence store.
        evidence: Sha256Digest,
        /// How many facts it holds.
        count: u32,
        /// Whether the log hides or reorders text.
        suspicious: bool,
        /// Why there is no log, when there is none.
        missing: Option<String>,
    },
    /// The coder's diagnosis.
    Diagnosed(DiagnosisFact),
    /// The diagnosis's file list was checked against the denied paths.
    Screened {
        /// Whether none of them is denied.
        passed: bool,
    },
    /// The fix, committed in the trusted repository.
    Fixed(FixFact),
    /// The change, or the file list of a refused one, was decided upon; proposal and decision are drafted.
    Decided(DecisionFact),
    /// The branch is at the provider.
    Pushed {
        /// The commit there.
        commit: Oid,
    },
    /// The pull request is open.
    Opened {
        /// Its number.
        number: u64,
        /// Page for people.
        url: String,
    },
    /// A person is to be asked exactly this.
    Requested {
        /// The question.
        request: Box<ApprovalRequest>,
    },
    /// A free change is bound exactly as an approved one would be.
    Bound {
        /// The binding that a signed decision `free` is for.
        binding: Box<crate::approve::Binding>,
    },
    /// The link was delivered to every notifier.
    LinkSent {
        /// Which link.
        approval: ApprovalId,
    },
    /// A link was used.
    Consumed {
        /// Which link.
        approval: ApprovalId,
        /// The answer.
        decision: HumanDecision,
        /// Digest of the consumption record in the evidence store.
        evidence: Sha256Digest,
    },
    /// The approval (or rejection) is drafted for signing.
    ApprovalDrafted {
        /// SHA-256 of its PAE.
        event: Sha256Digest,
    },
    /// Live equals approved; the merge is about to be asked for.
    Merging {
        /// This attempt.
        execution: ExecutionId,
        /// How many comparisons were made, this one included.
        comparisons: u32,
        /// The base tip at the comparison.
        base_tip: Oid,
        /// The log's checkpoint that holds the approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint: Option<CheckpointRef>,
    },
    /// The merge was asked for and its answer read, or it may have been asked for before a crash.
    MergeAsked {
        /// This attempt.
        execution: ExecutionId,
        /// What was answered, in words.
        answer: String,
    },
    /// Nothing landed although a merge was asked for: the attempt is over.
    MergeVoid {
        /// This attempt.
        execution: ExecutionId,
        /// Why, in words.
        reason: String,
    },
    /// What landed was compared with what was approved.
    Landed {
        /// This attempt; none when a person merged.
        execution: Option<ExecutionId>,
        /// The landed commit.
        commit: Oid,
        /// Digest of what it changed.
        observed: ChangeDigest,
        /// Whether that is what was approved.
        matches: bool,
        /// SHA-256 of the PAE of the drafted execution or escalation.
        event: Sha256Digest,
    },
    /// Handed to a person.
    Escalated {
        /// Why.
        reason: EscalationReason,
        /// In words.
        detail: String,
        /// What differed, when something was compared.
        differences: Vec<Difference>,
    },
    /// The watched workflow succeeded with a newer run, or with another attempt of one that failed.
    Recovered {
        /// The run.
        run_id: u64,
        /// Its attempt; 0 in records from before attempts were kept.
        #[serde(default)]
        attempt: u64,
    },
    /// Ended without our merge.
    Closed {
        /// Why.
        reason: ClosedReason,
        /// In words.
        detail: String,
    },
    /// The pull request is closed with a comment and the branch is deleted.
    CleanedUp,
    /// The evidence was kept as long as it is to be kept.
    EvidenceDue,
    /// The gaps that let it go are drafted; it is deleted as they are signed.
    EvidenceLetGo {
        /// How many documents.
        documents: u32,
    },
}

impl Fact {
    /// The tag as stored.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Reproduced(_) => "reproduced",
            Self::RerunAsked { .. } => "rerun-asked",
            Self::RerunDeclined { .. } => "rerun-declined",
            Self::Recurred { .. } => "recurred",
            Self::Extracted { .. } => "extracted",
            Self::Diagnosed(_) => "diagnosed",
            Self::Screened { .. } => "screened",
            Self::Fixed(_) => "fixed",
            Self::Decided(_) => "decided",
            Self::Pushed { .. } => "pushed",
            Self::Opened { .. } => "opened",
            Self::Requested { .. } => "requested",
            Self::Bound { .. } => "bound",
            Self::LinkSent { .. } => "link-sent",
            Self::Consumed { .. } => "consumed",
            Self::ApprovalDrafted { .. } => "approval-drafted",
            Self::Merging { .. } => "merging",
            Self::MergeAsked { .. } => "merge-asked",
            Self::MergeVoid { .. } => "merge-void",
            Self::Landed { .. } => "landed",
            Self::Escalated { .. } => "escalated",
            Self::Recovered { .. } => "recovered",
            Self::Closed { .. } => "closed",
            Self::CleanedUp => "cleaned-up",
            Self::EvidenceDue => "evidence-due",
            Self::EvidenceLetGo { .. } => "evidence-let-go",
        }
    }

    /// Facts that may be known more than once; every other kind is unique within its incident.
    pub const fn repeats(&self) -> bool {
        matches!(
            self,
            Self::LinkSent { .. }
                | Self::Merging { .. }
                | Self::MergeAsked { .. }
                | Self::MergeVoid { .. }
                | Self::Recovered { .. }
                | Self::Recurred { .. }
        )
    }
}

/// A fact with its place and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFact {
    /// Position within the incident, from 0.
    pub ordinal: u64,
    /// When it was committed.
    pub at: Millis,
    /// What it is.
    pub fact: Fact,
}
