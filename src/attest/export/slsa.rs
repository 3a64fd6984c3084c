//! SLSA verification summaries, version 1 (<https://slsa.dev/verification_summary/v1>).

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::predicate::{
    AuthorityRef, EventBlock, Execution, PolicyDecision, Target, Verdict,
};
use super::{Chain, ExportKind, Foreign, ForeignSubject, Told};
use crate::change::Sha256Digest;

/// The rules did not refuse the change.
const NOT_DENIED: &str = "ORG_SOURCE_CARETAKER_NOT_DENIED";
/// The rules let the change go without a person.
const FREE: &str = "ORG_SOURCE_CARETAKER_FREE";
/// A person approved exactly this change.
const APPROVED: &str = "ORG_SOURCE_CARETAKER_APPROVED";
/// What landed was compared with what was allowed, and is it.
const RECONCILED: &str = "ORG_SOURCE_CARETAKER_RECONCILED";
/// The specification's word for what did not pass.
const FAILED: &str = "FAILED";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    verifier: Verifier,
    time_verified: String,
    resource_uri: String,
    policy: Named,
    input_attestations: Vec<Named>,
    verification_result: &'static str,
    verified_levels: Vec<&'static str>,
}

#[derive(Serialize)]
struct Verifier {
    id: String,
    version: BTreeMap<&'static str, String>,
}

/// A document by address and digest.
#[derive(Serialize)]
struct Named {
    uri: String,
    digest: BTreeMap<&'static str, String>,
}

impl Named {
    fn new(uri: String, digest: Sha256Digest) -> Self {
        Self {
            uri,
            digest: [("sha256", digest.to_string())].into(),
        }
    }

    /// An event by the digest of its stored envelope.
    fn event(told: &Told<'_>) -> Self {
        let id = told.event.block().id.as_str();
        Self::new(format!("urn:caretaker:event:{id}"), told.envelope)
    }
}

/// What the rules decided. A denial fails; that a person still has to approve does not show as more than that.
pub(super) fn of_decision(chain: &Chain<'_>, decision: &PolicyDecision) -> Foreign<Summary> {
    let subject = match &decision.target {
        Target::Commit { head, .. } => ForeignSubject::new(
            "head",
            [
                ("gitCommit", head.commit.to_string()),
                ("gitTree", head.tree.to_string()),
            ],
        ),
        Target::Files(files) => {
            ForeignSubject::new("files", [("sha256", files.sha256.to_string())])
        }
    };
    // Break it: let a denial have levels; `attest::exports::a_denial_is_a_summary_that_failed` then fails.
    let levels = match decision.verdict {
        Verdict::Deny => vec![],
        Verdict::Approve => vec![NOT_DENIED],
        Verdict::Free => vec![NOT_DENIED, FREE],
    };
    let inputs = [decision.proposal.sha256];
    let summary = summary(chain, &decision.event, &inputs, levels);
    Foreign::new(ExportKind::VerificationSummary, vec![subject], summary)
}

/// What landed. Somebody else's merge fails: nothing of it was allowed here.
pub(super) fn of_execution(chain: &Chain<'_>, execution: &Execution) -> Foreign<Summary> {
    let landed = &execution.landed;
    let mut subject = ForeignSubject::new(
        "landed",
        [
            ("gitCommit", landed.commit.to_string()),
            ("gitTree", landed.tree.to_string()),
        ],
    );
    let proposal = execution.proposal.map(|proposal| proposal.sha256);
    let reference = proposal.and_then(|proposal| chain.reference(proposal));
    subject.annotations = reference.map(|reference| [("sourceRefs", vec![reference])].into());
    let (levels, authority) = match execution.authority {
        Some(AuthorityRef::Approval(named)) => (vec![RECONCILED, APPROVED], Some(named.sha256)),
        Some(AuthorityRef::Decision(named)) => (vec![RECONCILED, FREE], Some(named.sha256)),
        None => (vec![], None),
    };
    let inputs: Vec<Sha256Digest> = proposal.into_iter().chain(authority).collect();
    let summary = summary(chain, &execution.event, &inputs, levels);
    Foreign::new(ExportKind::VerificationSummary, vec![subject], summary)
}

fn summary(
    chain: &Chain<'_>,
    event: &EventBlock,
    inputs: &[Sha256Digest],
    levels: Vec<&'static str>,
) -> Summary {
    let passed = !levels.is_empty();
    let inputs = inputs.iter().filter_map(|digest| chain.named(*digest));
    Summary {
        verifier: Verifier {
            id: event.producer.id.to_string(),
            version: [("caretaker", event.producer.version.to_string())].into(),
        },
        time_verified: event.occurred_at.to_string(),
        resource_uri: format!("git+{}", event.project.uri),
        policy: Named::new(
            format!("urn:caretaker:policy:sha256:{}", event.policy.sha256),
            event.policy.sha256,
        ),
        input_attestations: inputs.map(Named::event).collect(),
        verification_result: if passed { "PASSED" } else { FAILED },
        verified_levels: if passed { levels } else { vec![FAILED] },
    }
}
