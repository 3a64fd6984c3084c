//! The receipts of one session, as a linear chain: a root that says what opened the session, then a receipt a decision, each naming
//! the one before it and its own number. Nothing can be left out of the middle; what is cut off the end shows against the
//! [`Head`] that the incident's ledger keeps.

use std::sync::Arc;

use super::canonical::{integer, members, named, owned, text};
use super::key::PemKey;
use super::name::{AgentId, ToolName};
use super::outcome::{Alignment, Door, InForce, Outcome};
use super::receipt::{ReceiptHash, ReceiptLine, ReceiptTooLong, TYPE};
use crate::attest::Label;
use crate::attest::json::Json;
use crate::change::Sha256Digest;
use crate::clock::Millis;

/// Who issues receipts, in the payload's `iss`.
pub const ISSUER: &str = "caretaker/gate";
/// What every decision of a gate is marked with.
const OBSERVED: &str = "gate:observed";

/// What is the same in all receipts of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its name.
    pub id: Label,
    /// The gate that decides and signs.
    pub gate: AgentId,
    /// The digest of what opened it: of the intent's text, or of the task's.
    pub input: Sha256Digest,
    /// By which way its calls come.
    pub door: Door,
    /// Whether the agent runs outside the sandbox, so that it could have answered for itself.
    pub advisory: bool,
    /// The digest of the policy that was pinned when the session began.
    pub policy: Option<Sha256Digest>,
}

/// How far a chain goes: what somebody has to keep elsewhere for a cut off end to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// How many receipts there are, the root among them.
    pub count: u64,
    /// The name of the last one.
    pub hash: ReceiptHash,
}

/// The writer of a session's receipts. It holds no file: whoever appends writes the line, and only then goes on with the changed
/// chain (work on a clone where writing may fail, or [`resume`](Self::resume) from the head of what is written).
#[derive(Debug, Clone)]
pub struct ReceiptChain {
    session: Session,
    key: Arc<PemKey>,
    head: Head,
}

impl ReceiptChain {
    /// Opens a session's chain with its root.
    pub fn begin(
        session: Session,
        key: Arc<PemKey>,
        now: Millis,
    ) -> Result<(Self, ReceiptLine), ReceiptTooLong> {
        let mut gate = named([("session", text(session.id.as_str())), ("seq", integer(0))]);
        gate.extend(surroundings(&session));
        let root = members([
            ("agent_id", text(session.gate.as_str())),
            ("agent_key_id", text(key.id().as_str())),
            ("iat", seconds(now)),
            ("input_hash", digest(&session.input)),
            ("iss", text(ISSUER)),
            ("operation", text("user_input")),
            ("parents", Json::List(Vec::new())),
            ("taint", Json::List(Vec::new())),
            ("typ", text(TYPE)),
            ("x_gate", Json::Members(gate)),
        ]);
        let line = ReceiptLine::sign(&key, &root)?;
        let head = Head {
            count: 1,
            hash: *line.hash(),
        };
        Ok((Self { session, key, head }, line))
    }

    /// Goes on with a chain that was written up to `head`.
    pub const fn resume(session: Session, key: Arc<PemKey>, head: Head) -> Self {
        Self { session, key, head }
    }

    /// The receipt of a decision, made at `now`.
    pub fn append(
        &mut self,
        outcome: &Outcome,
        now: Millis,
    ) -> Result<ReceiptLine, ReceiptTooLong> {
        let payload = self.payload(outcome, now);
        let line = ReceiptLine::sign(&self.key, &payload)?;
        self.head = Head {
            count: self.head.count.saturating_add(1),
            hash: *line.hash(),
        };
        Ok(line)
    }

    /// How far the chain goes.
    pub const fn head(&self) -> Head {
        self.head
    }

    /// The session.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    fn payload<'a>(&'a self, outcome: &'a Outcome, now: Millis) -> Json<'a> {
        members([
            ("agent_id", text(self.session.gate.as_str())),
            ("agent_key_id", text(self.key.id().as_str())),
            ("guardrail_verdict", text(outcome.decision.verdict())),
            ("iat", seconds(now)),
            ("input_hash", digest(&outcome.input)),
            ("iss", text(ISSUER)),
            ("operation", text("guardrail_scan")),
            (
                "parents",
                Json::List(vec![owned(self.head.hash.to_string())]),
            ),
            ("ruleset_hash", digest(&outcome.ruleset)),
            ("taint", Json::List(vec![text(OBSERVED)])),
            ("typ", text(TYPE)),
            ("x_gate", self.gate(outcome)),
        ])
    }

    /// The extension that says what was decided.
    fn gate<'a>(&'a self, outcome: &'a Outcome) -> Json<'a> {
        let seq = i64::try_from(self.head.count).unwrap_or(i64::MAX);
        let mut gate = named([
            (
                "agent_id",
                text(clipped(&outcome.agent, AgentId::MAX_BYTES)),
            ),
            ("decision", text(outcome.decision.word())),
            ("reason", text(outcome.reason.as_str())),
            ("seq", integer(seq)),
            ("session", text(self.session.id.as_str())),
            ("tool", text(clipped(&outcome.tool, ToolName::MAX_BYTES))),
        ]);
        gate.extend(surroundings(&self.session));
        if let Some(stage) = &outcome.stage {
            gate.insert("stage".into(), text(stage.as_str()));
        }
        if let Some(token) = &outcome.token {
            gate.insert("token_id".into(), text(token.as_str()));
        }
        if let Some(InForce { intent, disclosed }) = &outcome.intent {
            gate.insert("intent".into(), intent.to_json());
            let check = members([
                ("satisfied_fields", disclosed.clone()),
                ("tool", text(clipped(&outcome.tool, ToolName::MAX_BYTES))),
            ]);
            gate.insert("intent_check".into(), check);
        }
        if let Some(alignment) = &outcome.alignment {
            gate.insert("alignment".into(), measured(alignment));
        }
        Json::Members(gate)
    }
}

/// A score with all that a signed record of it needs.
fn measured(alignment: &Alignment) -> Json<'_> {
    let dimensions = i64::try_from(alignment.dimensions).unwrap_or(i64::MAX);
    let mut said = named([
        ("action", digest(&alignment.action)),
        ("dimensions", integer(dimensions)),
        ("embedder", text(alignment.embedder.as_str())),
        (
            "hard_threshold_micro",
            integer(alignment.hard_threshold_micro),
        ),
        ("intent", digest(&alignment.intent)),
        ("reason", text(alignment.reason.as_str())),
        ("threshold_micro", integer(alignment.threshold_micro)),
    ]);
    if let Some(score) = alignment.score_micro {
        said.insert("score_micro".into(), integer(score));
    }
    Json::Members(said)
}

/// What of the session stands in every receipt beside its name.
fn surroundings(session: &Session) -> impl Iterator<Item = (std::borrow::Cow<'_, str>, Json<'_>)> {
    let door = ("door", text(session.door.word()));
    let advisory = session.advisory.then_some(("advisory", Json::Bool(true)));
    let policy = session.policy.as_ref();
    let policy = policy.map(|policy| ("policy", digest(policy)));
    std::iter::once(door)
        .chain(advisory)
        .chain(policy)
        .map(|(name, value)| (name.into(), value))
}

/// A name as far as it is recorded: no token has a longer one.
fn clipped(name: &str, limit: usize) -> &str {
    let mut end = name.len().min(limit);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default()
}

fn digest(digest: &Sha256Digest) -> Json<'static> {
    owned(format!("sha256:{digest}"))
}

/// The format's times are whole seconds since the Unix epoch.
fn seconds(now: Millis) -> Json<'static> {
    integer(now.0.div_euclid(1_000))
}
