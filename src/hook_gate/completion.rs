//! The end of a turn: required producers must pass, and no file outside of the allowlist may have changed.
//!
//! The run inside a session and the authoritative one after it seal the same document ([`Evidence`]), named by a receipt of the
//! session's chain. A client's own word for "I was stopped before" is never used: `stop_hook_active` says true in some clients from
//! the first time on.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::gate::{HookGate, Question};
use super::home::{Home, StateError, lock, private_folder, read_private, write_private};
use super::producers::{self, Item};
use super::record::{Receipts, Recorded};
use super::registration::Registered;
use super::reply::{HookEvent, Reply};
use super::surroundings::Surroundings;
use crate::attest::json;
use crate::attest::text::shown;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::receipts::Door;
use crate::sandbox::{Mode, Sandbox, SandboxError};
use crate::tool_gate::{Failure, ToolClass};

/// The tool's name in the receipt of a turn's end.
pub const COMPLETION: &str = "completion";
/// The tool's name in the receipt of a turn that ended without its evidence.
pub const COMPLETION_REFUSED: &str = "completion-refused";
/// Largest evidence document that is read, in bytes.
const MAXIMUM_EVIDENCE: u64 = 1 << 20;

/// Where producers ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunPlace {
    /// In the session, before the turn ended.
    Inside,
    /// After the session, by the worker: the authoritative run.
    Outside,
}

/// What producers came to, as it is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Format, 1.
    pub v: u32,
    /// The task.
    pub task_id: String,
    /// The session.
    pub session: String,
    /// Where they ran.
    pub place: RunPlace,
    /// SHA-256 of the session's policy.
    pub policy_sha256: Sha256Digest,
    /// What confined them.
    pub sandbox: String,
    /// Each producer.
    pub items: Vec<Item>,
    /// Files outside of the allowlist that changed, at most twenty.
    pub changed_outside: Vec<String>,
    /// Whether every required one passed and nothing outside changed.
    pub passed: bool,
    /// When, in milliseconds since the Unix epoch.
    pub at: Millis,
}

impl Evidence {
    /// Why the turn may not end, in Bernstein's words where it has any; `None` when it may.
    pub fn refusal(&self) -> Option<String> {
        let failed: Vec<&str> = self
            .items
            .iter()
            .filter(|item| item.required && !item.passed())
            .map(|item| item.name.as_str())
            .collect();
        let mut words = Vec::new();
        if !failed.is_empty() {
            words.push(format!(
                "completion blocked: required verification failed ({})",
                failed.join(", ")
            ));
        }
        if !self.changed_outside.is_empty() {
            words.push(format!(
                "completion blocked: files outside the allowlist are changed ({}); put them back",
                self.changed_outside
                    .iter()
                    .map(|file| shown(file))
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        }
        (!words.is_empty()).then(|| words.join("\n"))
    }
}

/// What Stop counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopCount {
    /// Refusals since the last success.
    pub blocks: u32,
    /// Whether a turn ended although the evidence was missing.
    pub refused: bool,
}

/// Which run of a session's producers it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Where.
    pub place: RunPlace,
    /// How long all of them together may take.
    pub within: Duration,
    /// Now.
    pub now: Millis,
}

/// Runs a session's producers and seals what they came to. The worker calls this after the session, with every producer, in its own
/// sandbox: that run is the authoritative one.
///
/// # Errors
/// The evidence or its receipt cannot be written: then there is none.
pub async fn run_and_seal(
    home: &Home,
    session: &Registered,
    sandbox: &Sandbox,
    surroundings: &Surroundings,
    run: Run,
) -> Result<Evidence, StateError> {
    let Run { place, within, now } = run;
    let tools = &surroundings.tools;
    let only_required = place == RunPlace::Inside;
    let items = producers::run(session, sandbox, tools, within, only_required).await;
    let changed_outside = surroundings.changed_outside(session);
    let mut evidence = Evidence {
        v: 1,
        task_id: session.policy.task().to_owned(),
        session: session.session.clone(),
        place,
        policy_sha256: session.policy.digest(),
        sandbox: sandbox.describe().to_owned(),
        items,
        changed_outside,
        passed: false,
        at: now,
    };
    evidence.passed = evidence.refusal().is_none();
    let door = match place {
        RunPlace::Inside => Door::HookGate,
        RunPlace::Outside => Door::Library,
    };
    seal(home, session, &evidence, door, now)?;
    Ok(evidence)
}

fn seal(
    home: &Home,
    session: &Registered,
    evidence: &Evidence,
    door: Door,
    now: Millis,
) -> Result<(), StateError> {
    let folder = session.folder.join("evidence");
    private_folder(&folder)?;
    let bytes = json::to_bytes(evidence).map_err(|error| StateError::damaged(&folder, error))?;
    let digest = Sha256Digest::of(&bytes);
    write_private(&folder.join(format!("{digest}.json")), &bytes)?;
    let reason = evidence
        .refusal()
        .unwrap_or_else(|| "every required verification passed".to_owned());
    let recorded = Recorded {
        allowed: evidence.passed,
        stage: COMPLETION,
        reason: &reason,
        tool: COMPLETION,
        agent: "",
        input: digest,
        checked: None,
        score: None,
    };
    Receipts::open(home, session, door)?
        .add(&recorded, now)
        .map(drop)
}

/// The evidence of a digest, if it is kept and is what its name says.
///
/// # Errors
/// It is not there, or not that.
pub fn read_evidence(folder: &Path, digest: Sha256Digest) -> Result<Evidence, StateError> {
    let file = folder.join("evidence").join(format!("{digest}.json"));
    let bytes = read_private(&file, MAXIMUM_EVIDENCE)?;
    if Sha256Digest::of(&bytes) != digest {
        return Err(StateError::damaged(
            &file,
            "its bytes are not those that were sealed",
        ));
    }
    let limit = usize::try_from(MAXIMUM_EVIDENCE).unwrap_or(usize::MAX);
    json::parse(&bytes, limit).map_err(|error| StateError::damaged(&file, error))
}

/// What Stop counted so far.
pub fn stop_count(folder: &Path) -> StopCount {
    read_private(&folder.join("stop.json"), 4096)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

/// Counts one end of a turn, and says how many refusals there are now.
fn count(folder: &Path, passed: bool, most: u32) -> Result<StopCount, StateError> {
    let _held = lock(folder)?;
    let before = stop_count(folder);
    let after = if passed {
        StopCount {
            blocks: 0,
            refused: before.refused,
        }
    } else {
        let blocks = before.blocks.saturating_add(1);
        StopCount {
            blocks,
            // Break it: never let go; `hook_gate::completion::a_turn_that_is_refused_too_often_may_end` fails.
            refused: before.refused || blocks > most,
        }
    };
    let file = folder.join("stop.json");
    let bytes = json::to_bytes(&after).map_err(|error| StateError::damaged(&file, error))?;
    write_private(&file, &bytes)?;
    Ok(after)
}

impl HookGate<'_> {
    /// Answers any event. Waits where it must, with a runtime of its own at the end of a turn: not to be called from one.
    pub fn reply(&self, question: &Question<'_>, launcher: &Path, within: Duration) -> Reply {
        match question.event {
            HookEvent::PreToolUse => self.before_tool(question),
            HookEvent::SessionStart => self.at_start(question),
            HookEvent::Stop => {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                match runtime {
                    Ok(runtime) => runtime.block_on(self.at_stop(question, launcher, within)),
                    Err(error) => self.failed(
                        question,
                        Failure::StateUnreadable,
                        crate::tool_gate::Posture::Closed,
                        ToolClass::Execute,
                        &format!("required verification cannot be run: {error}"),
                    ),
                }
            }
        }
    }

    /// Answers at the end of a turn. `launcher` is our own binary; everything ends within `within`.
    pub async fn at_stop(
        &self,
        question: &Question<'_>,
        launcher: &Path,
        within: Duration,
    ) -> Reply {
        let session = match self.session(question) {
            Ok(session) => session,
            Err(reply) => return reply,
        };
        if session.policy.enforces_nothing() {
            return Reply::allow();
        }
        let mode = if session.sandboxed {
            Mode::Auto
        } else {
            Mode::None
        };
        let sealed = match Sandbox::detect(mode, launcher.to_owned()).await {
            Ok(sandbox) => run_and_seal(
                self.home,
                &session,
                &sandbox,
                self.surroundings,
                Run {
                    place: RunPlace::Inside,
                    within,
                    now: question.now,
                },
            )
            .await
            .map_err(|error| error.to_string()),
            Err(error) => Err(no_sandbox(&error)),
        };
        let sealed = sealed.and_then(|evidence| {
            count(&session.folder, evidence.passed, session.blocks)
                .map(|count| (evidence, count))
                .map_err(|error| error.to_string())
        });
        let (evidence, count) = match sealed {
            Ok(sealed) => sealed,
            Err(reason) => {
                return self.failed(
                    question,
                    Failure::ReceiptUnwritable,
                    session.posture,
                    ToolClass::Execute,
                    &reason,
                );
            }
        };
        self.told(question, &session, &evidence, count)
    }

    fn told(
        &self,
        question: &Question<'_>,
        session: &Registered,
        evidence: &Evidence,
        count: StopCount,
    ) -> Reply {
        let refusal = evidence.refusal();
        let lets_go = count.blocks > session.blocks;
        let mut fields = Map::new();
        fields.insert("session".into(), session.session.clone().into());
        fields.insert("event".into(), question.event.name().into());
        fields.insert("stage".into(), COMPLETION.into());
        fields.insert("blocks".into(), count.blocks.into());
        let Some(reason) = refusal else {
            fields.insert("decision".into(), "allow".into());
            self.emit("gate_decision", session.policy.task(), fields);
            return Reply::allow();
        };
        if lets_go {
            let words = format!(
                "completion_refused: the turn ends after {} refusals without its evidence",
                session.blocks
            );
            let recorded = Recorded {
                allowed: true,
                stage: COMPLETION,
                reason: &words,
                tool: COMPLETION_REFUSED,
                agent: question.role,
                input: Sha256Digest::of(words.as_bytes()),
                checked: None,
                score: None,
            };
            fields.insert("decision".into(), "allow".into());
            fields.insert(
                "receipt".into(),
                self.record(session, &recorded, question).is_ok().into(),
            );
            self.emit("completion_refused", session.policy.task(), fields);
            return Reply::allow_with(words);
        }
        fields.insert("decision".into(), "deny".into());
        self.emit("gate_decision", session.policy.task(), fields);
        Reply::block(reason)
    }

    /// The handshake: the client runs its hooks.
    pub fn at_start(&self, question: &Question<'_>) -> Reply {
        let session = match self.session(question) {
            Ok(session) => session,
            Err(reply) => return reply,
        };
        let recorded = Recorded {
            allowed: true,
            stage: "session",
            reason: "the client runs its hooks",
            tool: "session-start",
            agent: question.role,
            input: Sha256Digest::of(question.input),
            checked: None,
            score: None,
        };
        match self.record(&session, &recorded, question) {
            Ok(()) => Reply::allow(),
            Err(error) => self.failed(
                question,
                Failure::ReceiptUnwritable,
                session.posture,
                ToolClass::Read,
                &error.to_string(),
            ),
        }
    }
}

fn no_sandbox(error: &SandboxError) -> String {
    format!("required verification cannot be run: {error}")
}
