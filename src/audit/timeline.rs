//! The incident's history, put together from its records and apart from the signed chain: what a person reads first.

use serde::{Serialize, Serializer};

use super::LedgerRow;
use crate::approve::{HumanDecision, Principal};
use crate::attest::text::shown;
use crate::clock::Millis;
use crate::id::ApprovalId;
use crate::incident::{Fact, Failure, RecordedFact, Reproduction};

/// An approval link as the store remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRecord {
    /// Which link.
    pub approval: ApprovalId,
    /// Who was asked.
    pub principal: Principal,
    /// When it was made.
    pub issued_at: Millis,
    /// When it ceases, or ceased, to work.
    pub expires_at: Millis,
    /// When it was used, and how.
    pub used: Option<(Millis, HumanDecision)>,
    /// When it was revoked.
    pub revoked_at: Option<Millis>,
}

/// An event of the store's audit table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// When.
    pub at: Millis,
    /// What happened, kebab-case.
    pub kind: String,
    /// In words.
    pub detail: String,
}

/// Everything that the store holds about one incident's past.
#[derive(Debug, Clone, Copy)]
pub struct Records<'a> {
    /// When it was opened.
    pub opened_at: Millis,
    /// What was observed first.
    pub failure: &'a Failure,
    /// Its facts.
    pub facts: &'a [RecordedFact],
    /// Its ledger. The columns are shown as they are stored; whether they are right, [`super::verify()`] says.
    pub rows: &'a [LedgerRow],
    /// Its approval links.
    pub approvals: &'a [ApprovalRecord],
    /// Its audit events.
    pub audit: &'a [AuditRecord],
}

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// When; RFC 3339 in JSON.
    #[serde(serialize_with = "written")]
    pub at: Millis,
    /// `opened`, a kind of fact ([`Fact::kind`]), `signed`, `link-made`, `link-used`, `link-revoked`, or the kind of an
    /// audit event.
    pub kind: String,
    /// In words, on one line and printable.
    pub text: String,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn written<S: Serializer>(at: &Millis, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

impl Entry {
    fn new(at: Millis, kind: &str, text: impl AsRef<str>) -> Self {
        Self {
            at,
            kind: shown(kind),
            text: shown(text.as_ref()),
        }
    }
}

/// The history, oldest first. At the same moment: the opening, facts in their order, links, signatures, audit events.
pub fn timeline(records: &Records<'_>) -> Vec<Entry> {
    let mut entries = vec![opening(records.opened_at, records.failure)];
    let mut facts: Vec<&RecordedFact> = records.facts.iter().collect();
    facts.sort_by_key(|recorded| recorded.ordinal);
    entries.extend(
        facts
            .into_iter()
            .map(|recorded| Entry::new(recorded.at, recorded.fact.kind(), worded(&recorded.fact))),
    );
    entries.extend(
        records
            .approvals
            .iter()
            .flat_map(|approval| link(approval, records.facts)),
    );
    entries.extend(records.rows.iter().map(signature));
    entries.extend(
        records
            .audit
            .iter()
            .map(|event| Entry::new(event.at, &event.kind, &event.detail)),
    );
    entries.sort_by_key(|entry| (entry.at, place_of_links(&entry.kind)));
    entries
}

/// Facts that come before any link is made.
const BEFORE_LINKS: [&str; 12] = [
    "opened",
    "reproduced",
    "rerun-asked",
    "rerun-declined",
    "extracted",
    "diagnosed",
    "screened",
    "fixed",
    "decided",
    "pushed",
    "requested",
    "bound",
];

/// Orders what happened within one millisecond: links are made after the question and before anything is done with them. They
/// come from records of their own, so that the order in which they are read says nothing.
fn place_of_links(kind: &str) -> u8 {
    match kind {
        "link-made" => 1,
        _ if BEFORE_LINKS.contains(&kind) => 0,
        _ => 2,
    }
}

fn opening(at: Millis, failure: &Failure) -> Entry {
    let job = failure.job.as_deref().unwrap_or("no job");
    let text = format!(
        "run {} failed on {} at {} ({job}, {})",
        failure.run_id, failure.base_ref, failure.commit, failure.kind
    );
    Entry::new(at, "opened", text)
}

fn signature(row: &LedgerRow) -> Entry {
    let text = format!("event {}: {} signed by the {}", row.seq, row.kind, row.role);
    Entry::new(Millis(row.occurred_at), "signed", text)
}

fn link(approval: &ApprovalRecord, facts: &[RecordedFact]) -> Vec<Entry> {
    let ApprovalRecord {
        approval: id,
        principal,
        ..
    } = approval;
    let made = format!(
        "link {id} for {principal} made, until {}",
        approval.expires_at
    );
    let mut entries = vec![Entry::new(approval.issued_at, "link-made", made)];
    // The fact says the same; a use that no fact knows of is what must not stay unseen.
    let known = facts.iter().any(
        |recorded| matches!(&recorded.fact, Fact::Consumed { approval, .. } if approval == id),
    );
    if let Some((at, decision)) = approval.used.filter(|_| !known) {
        let used = format!("link {id} of {principal} used: {}", decision.as_str());
        entries.push(Entry::new(at, "link-used", used));
    }
    if let Some(at) = approval.revoked_at {
        let revoked = format!("link {id} for {principal} revoked");
        entries.push(Entry::new(at, "link-revoked", revoked));
    }
    entries
}

fn worded(fact: &Fact) -> String {
    investigated(fact)
        .or_else(|| proposed(fact))
        .unwrap_or_else(|| ended(fact))
}

fn investigated(fact: &Fact) -> Option<String> {
    Some(match fact {
        Fact::Reproduced(
            reproduction @ (Reproduction::Red {
                command, sandbox, ..
            }
            | Reproduction::Flaky {
                command, sandbox, ..
            }),
        ) => {
            let times = match reproduction.tally() {
                Some(tally) => format!(", {tally}"),
                None => String::new(),
            };
            format!(
                "fails in the sandbox too{times}: {} ({sandbox})",
                command.join(" ")
            )
        }
        Fact::Reproduced(Reproduction::Green {
            command, sandbox, ..
        }) => {
            format!("passes in the sandbox: {} ({sandbox})", command.join(" "))
        }
        Fact::Reproduced(Reproduction::Unrunnable { reason }) => {
            format!("the tests cannot be run here: {reason}")
        }
        Fact::RerunAsked { run_id, attempt } => {
            format!("attempt {attempt} of run {run_id} is to tell whether it fails again")
        }
        Fact::RerunDeclined { reason } => format!("not run again at the provider: {reason}"),
        Fact::Recurred {
            run_id, attempt, ..
        } => format!("attempt {attempt} of run {run_id} failed, too"),
        Fact::Extracted {
            missing: Some(why), ..
        } => format!("no log to read: {why}"),
        Fact::Extracted {
            count, suspicious, ..
        } => {
            let hidden = if *suspicious {
                "; the log hides or reorders text"
            } else {
                ""
            };
            format!("{count} facts read from the log{hidden}")
        }
        Fact::Diagnosed(diagnosis) => format!("{}: {}", diagnosis.agent, diagnosis.cause),
        Fact::Screened { passed: true } => "none of the files to change is denied".to_owned(),
        Fact::Screened { passed: false } => "a file to change is denied".to_owned(),
        Fact::Fixed(fix) => {
            let count = fix.change.count;
            format!("commit {} changes {count} files: {}", fix.commit, fix.title)
        }
        _ => return None,
    })
}

fn proposed(fact: &Fact) -> Option<String> {
    Some(match fact {
        Fact::Decided(decision) => format!(
            "the rules say {} ({})",
            decision.verdict.as_str(),
            decision.class.as_str()
        ),
        Fact::Pushed { commit } => format!("branch pushed at {commit}"),
        Fact::Opened { number, url } => format!("pull request {number} opened: {url}"),
        Fact::Requested { request } => format!(
            "{} is asked about change {}",
            request.principal, request.binding.change.digest
        ),
        Fact::Bound { binding } => format!(
            "nobody has to be asked about change {}",
            binding.change.digest
        ),
        Fact::LinkSent { approval } => format!("link {approval} delivered"),
        Fact::Consumed {
            approval, decision, ..
        } => {
            format!("answered through link {approval}: {}", decision.as_str())
        }
        Fact::ApprovalDrafted { event } => format!("the answer is written down as {event}"),
        _ => return None,
    })
}

fn ended(fact: &Fact) -> String {
    match fact {
        Fact::Merging { comparisons, .. } => {
            format!("live equals approved (comparison {comparisons}), merging")
        }
        Fact::MergeAsked { answer, .. } => format!("the merge was asked for: {answer}"),
        Fact::MergeVoid { reason, .. } => format!("nothing landed: {reason}"),
        Fact::Landed {
            commit,
            matches: true,
            ..
        } => format!("landed as {commit}, equal to what was approved"),
        Fact::Landed { commit, .. } => {
            format!("landed as {commit}, not what was approved")
        }
        Fact::Escalated { reason, detail, .. } => {
            format!("handed to a person ({}): {detail}", reason.as_str())
        }
        Fact::Recovered { run_id, attempt } if *attempt > 1 => {
            format!("run {run_id} of the same job succeeded in attempt {attempt}")
        }
        Fact::Recovered { run_id, .. } => format!("run {run_id} of the same job succeeded"),
        Fact::Closed { reason, detail } => format!("closed ({}): {detail}", reason.as_str()),
        Fact::CleanedUp => "pull request closed, branch deleted".to_owned(),
        Fact::EvidenceDue => "evidence kept as long as it is to be kept".to_owned(),
        Fact::EvidenceLetGo { documents } => format!("{documents} documents of evidence let go"),
        // Worded above. Named one by one, so that a new kind of fact cannot be left without words.
        Fact::Reproduced(_)
        | Fact::RerunAsked { .. }
        | Fact::RerunDeclined { .. }
        | Fact::Recurred { .. }
        | Fact::Extracted { .. }
        | Fact::Diagnosed(_)
        | Fact::Screened { .. }
        | Fact::Fixed(_)
        | Fact::Decided(_)
        | Fact::Pushed { .. }
        | Fact::Opened { .. }
        | Fact::Requested { .. }
        | Fact::Bound { .. }
        | Fact::LinkSent { .. }
        | Fact::Consumed { .. }
        | Fact::ApprovalDrafted { .. } => fact.kind().to_owned(),
    }
}
