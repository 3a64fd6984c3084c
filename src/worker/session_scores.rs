//! The signed score of each call of a session that was held against its intent, as the call's receipt has it.

use serde::Deserialize;

use super::drafting::{evidence_block, label, signed_evidence};
use super::session::Ended;
use super::work::Work;
use crate::attest::predicate::{Embedder, IntentScore, ReceiptRef, ScoreAnswer};
use crate::attest::{Evidence, Role, Text};
use crate::change::Sha256Digest;
use crate::hook_gate::ReadReceipt;
use crate::incident::{EscalationReason, EvidenceDocument, StepError};

/// `x_gate.alignment` of a receipt.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    action: String,
    dimensions: u64,
    embedder: String,
    hard_threshold_micro: i64,
    intent: String,
    reason: String,
    score_micro: Option<i64>,
    threshold_micro: i64,
}

/// The score of one call; none where it came to none, since alignment is off, the tool is exempt or an earlier check refused it.
pub(super) async fn signed(
    work: &Work<'_>,
    ended: &Ended,
    call: u64,
    (count, receipt): &(u64, &ReadReceipt),
) -> Result<Option<EvidenceDocument>, StepError> {
    let said = &receipt.payload["x_gate"]["alignment"];
    if said.is_null() {
        return Ok(None);
    }
    let measured: Measured =
        serde_json::from_value(said.clone()).map_err(|error| unsound(&error))?;
    let reference = ReceiptRef {
        sha256: *receipt.hash.digest(),
        count: *count,
    };
    let score = score(work, &ended.given.id, call, &measured, reference)?;
    let evidence = Evidence::IntentScore(Box::new(score));
    let subjects = evidence.subjects().unwrap_or_default();
    Ok(Some(signed_evidence(work, subjects, evidence).await?))
}

fn score(
    work: &Work<'_>,
    session: &str,
    call: u64,
    measured: &Measured,
    receipt: ReceiptRef,
) -> Result<IntentScore, StepError> {
    // An embedder's name is PROVIDER:MODEL.
    let (provider, model) = measured
        .embedder
        .split_once(':')
        .unwrap_or((measured.embedder.as_str(), ""));
    Ok(IntentScore {
        document: evidence_block(work, Role::Policy)?,
        session: label(session)?,
        call,
        intent: digest(&measured.intent)?.into(),
        action: digest(&measured.action)?.into(),
        embedder: Embedder {
            id: label(provider)?,
            model: Text::clipped(model),
            dimensions: measured.dimensions,
            weights: None,
        },
        answer: ScoreAnswer::of(
            measured.score_micro,
            measured.threshold_micro,
            measured.hard_threshold_micro,
        ),
        score_micro: measured.score_micro,
        threshold_micro: measured.threshold_micro,
        hard_threshold_micro: measured.hard_threshold_micro,
        reason: Some(Text::clipped(&measured.reason)),
        receipt: Some(receipt),
    })
}

fn digest(text: &str) -> Result<Sha256Digest, StepError> {
    text.strip_prefix("sha256:")
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| unsound(&"it has no digest where one belongs"))
}

fn unsound(why: &dyn std::fmt::Display) -> StepError {
    StepError::escalate(
        EscalationReason::AgentUngated,
        format!(
            "a receipt of the coder's session holds a score that is none, so its work is not used: {why}"
        ),
    )
}
