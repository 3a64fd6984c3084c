//! What is kept of a session that ended: proof that its calls came by the gate, its receipts, a signed outcome for each call, and a
//! signed score for each that was scored.

use serde_json::Value;

use super::drafting::{evidence_block, label, signed_evidence};
use super::repository::on_disk;
use super::session::Ended;
use super::session_scores;
use super::work::{PLAIN, Work, plain};
use crate::agent::SessionReport;
use crate::attest::predicate::{
    Door, GateAnswer, GateOutcome, GateStage, MOST_CALLS, ReceiptRef, ScoreList,
};
use crate::attest::{Evidence, Role, Text};
use crate::change::Sha256Digest;
use crate::hook_gate::{
    Evidence as Completion, EvidenceVerdict, ReadReceipt, Receipts, Standing, is_call, proof,
    receipts, verify_session,
};
use crate::incident::{EscalationReason, EvidenceDocument, SessionFact, StepError};

/// Media type of receipts, one a line.
const LINES: &str = "application/jsonl";
/// Largest record of a session, in bytes.
const LARGEST_RECORD: u64 = 64 << 20;

/// The session as a fact, with the documents that it names. A session that cannot be shown to have been gated ends the incident's
/// automatic handling: its fix is not proposed.
pub(super) async fn recorded(
    work: &Work<'_>,
    ended: &Ended,
    completion: Option<&Completion>,
) -> Result<(SessionFact, Vec<EvidenceDocument>), StepError> {
    let kept = kept(work, ended).await?;
    let mut documents = Vec::new();
    let mut names = Vec::new();
    let mut scores = Vec::new();
    let mut refused = 0;
    for (call, receipt) in kept.calls().enumerate() {
        if let Some(score) = session_scores::signed(work, ended, call as u64, &receipt).await? {
            scores.push(score.digest());
            documents.push(score);
        }
        let outcome = outcome(work, ended, call as u64, &receipt)?;
        refused += u64::from(outcome.answer == GateAnswer::Deny);
        let evidence = Evidence::GateOutcome(Box::new(outcome));
        let subjects = evidence.subjects().unwrap_or_default();
        let signed = signed_evidence(work, subjects, evidence).await?;
        names.push(signed.digest());
        documents.push(signed);
    }
    let outcomes = plain(&names)?;
    let scored = (!scores.is_empty()).then(|| plain(&scores)).transpose()?;
    let record = EvidenceDocument {
        media_type: LINES,
        bytes: kept.record,
    };
    let completion = completion.map(sealed).transpose()?;
    let last = kept.receipts.last().map(|receipt| *receipt.hash.digest());
    let fact = SessionFact {
        id: ended.given.id.clone(),
        policy: ended.registered.policy.digest(),
        tokens: ended.tokens.digest(),
        receipt: last.unwrap_or_else(|| Sha256Digest::of(b"")),
        receipts: kept.receipts.len() as u64,
        calls: kept.report.calls,
        refused,
        requests: kept.report.requests,
        input_tokens: kept.report.input_tokens,
        output_tokens: kept.report.output_tokens,
        cost: kept.report.cost,
        record: record.digest(),
        outcomes: outcomes.digest(),
        scores: scored.as_ref().map(|list| ScoreList {
            sha256: list.digest(),
            count: scores.len() as u64,
        }),
        completion: completion.as_ref().map(EvidenceDocument::digest),
        advisory: !ended.registered.sandboxed,
    };
    documents.extend([record, outcomes]);
    documents.extend(scored);
    documents.extend(completion);
    Ok((fact, documents))
}

/// A session's receipts, shown to be whole and to cover every call.
struct Kept {
    report: SessionReport,
    receipts: Vec<ReadReceipt>,
    record: Vec<u8>,
}

impl Kept {
    /// The receipts of calls, each with its number among all of them.
    fn calls(&self) -> impl Iterator<Item = (u64, &ReadReceipt)> {
        let numbered = self.receipts.iter().enumerate();
        numbered
            .filter(|(_, receipt)| is_call(&receipt.payload["x_gate"]))
            .map(|(number, receipt)| (number as u64 + 1, receipt))
    }
}

async fn kept(work: &Work<'_>, ended: &Ended) -> Result<Kept, StepError> {
    let Some(report) = ended.given.reported() else {
        return Err(ungated("the coder did not say how many calls it made"));
    };
    let folder = ended.registered.folder.clone();
    let home = work.engine.gate.as_ref().map(|gate| gate.home.clone());
    let home = home.ok_or_else(|| ungated("there is no gate"))?;
    on_disk(move || {
        let broken = |error: &dyn std::fmt::Display| ungated(&error.to_string());
        let proof = proof(&folder, report.calls).map_err(|error| broken(&error))?;
        // Break it: go on all the same; `worker::gated::a_session_with_a_call_that_the_gate_never_saw_gives_no_fix` fails.
        if proof.standing == Standing::Ungated {
            return Err(ungated(&format!(
                "it made {} calls of tools, and the gate saw {}",
                proof.calls, proof.receipts
            )));
        }
        let verified = verify_session(&home, &folder).map_err(|error| broken(&error))?;
        if verified.verdict != EvidenceVerdict::Valid {
            let why = verified.failures.first().map_or("", String::as_str);
            return Err(ungated(&format!("its receipts do not verify: {why}")));
        }
        // Each call is signed twice, and each document stored.
        if proof.receipts > MOST_CALLS {
            return Err(ungated(&format!(
                "it made {} calls of tools, and those of one session that are signed are at most {MOST_CALLS}",
                proof.receipts
            )));
        }
        let file = Receipts::file_of(&folder);
        let length = std::fs::metadata(&file)
            .map_err(|error| broken(&error))?
            .len();
        if length > LARGEST_RECORD {
            return Err(ungated("its receipts are more than can be kept"));
        }
        Ok(Kept {
            report,
            receipts: receipts(&folder).map_err(|error| broken(&error))?,
            record: std::fs::read(&file).map_err(|error| broken(&error))?,
        })
    })
    .await
}

fn ungated(why: &str) -> StepError {
    StepError::escalate(
        EscalationReason::AgentUngated,
        format!(
            "nothing shows that the coder's calls of tools came by the gate, so its work is not used: {why}"
        ),
    )
}

/// What became of one call, as policy signs it.
fn outcome(
    work: &Work<'_>,
    ended: &Ended,
    call: u64,
    (count, receipt): &(u64, &ReadReceipt),
) -> Result<GateOutcome, StepError> {
    let payload = &receipt.payload;
    let gate = &payload["x_gate"];
    let text = |value: &Value| Text::clipped(value.as_str().unwrap_or_default());
    let allowed = gate["decision"] == "ALLOW";
    let stage: Option<GateStage> = serde_json::from_value(gate["stage"].clone()).ok();
    let stage = stage.ok_or_else(|| ungated("a receipt names a check that there is not"))?;
    let digest = |value: &Value| -> Option<Sha256Digest> {
        value.as_str()?.strip_prefix("sha256:")?.parse().ok()
    };
    let arguments = digest(&payload["input_hash"])
        .ok_or_else(|| ungated("a receipt does not say what it is about"))?;
    let ruleset = digest(&payload["ruleset_hash"]);
    Ok(GateOutcome {
        document: evidence_block(work, Role::Policy)?,
        session: label(&ended.given.id)?,
        call,
        door: match gate["door"].as_str() {
            Some("loop") => Door::Loop,
            Some("hook-gate") => Door::Hook,
            _ => Door::Library,
        },
        advisory: gate["advisory"] == true,
        tool: text(&gate["tool"]),
        arguments: arguments.into(),
        answer: if allowed {
            GateAnswer::Allow
        } else {
            GateAnswer::Deny
        },
        stage,
        reason: Some(text(&gate["reason"])),
        policy: ended.registered.policy.digest().into(),
        token: gate["token_id"]
            .is_string()
            .then_some(ruleset)
            .flatten()
            .map(Into::into),
        receipt: Some(ReceiptRef {
            sha256: *receipt.hash.digest(),
            count: *count,
        }),
    })
}

fn sealed(completion: &Completion) -> Result<EvidenceDocument, StepError> {
    let bytes = crate::attest::json::to_bytes(completion).map_err(|error| {
        StepError::escalate(
            EscalationReason::FixUnusable,
            format!("keeping the checks: {error}"),
        )
    })?;
    Ok(EvidenceDocument {
        media_type: PLAIN,
        bytes,
    })
}
