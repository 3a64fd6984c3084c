//! A coder's session: opened with tokens and a policy of its own, gated while it lasts, held against its receipts afterwards.
//!
//! The state lies in `CARETAKER_HOME/hook-gate`, which no sandbox shows; what a sandbox shows of it is one socket that answers for
//! this session alone. A session that cannot be shown to have been gated gives no fix.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::repository::on_disk;
use super::work::Work;
use crate::agent::{AgentSession, Coder, GatedTool, Governance, Permission, ToolAccess, ToolGuard};
use crate::attest::json as strict;
use crate::change::RepoPath;
use crate::events::Event;
use crate::hook_gate::service::{Answers as _, GateService};
use crate::hook_gate::{
    BLOCKS, CallBudget, ConfiguredAnswers, Evidence, HookEvent, MintError, NewSession,
    ProducerTools, Question, Registered, Run, RunPlace, SessionAnswers, SessionId, SessionTokens,
    Surroundings, ToolGrant, register, run_and_seal,
};
use crate::incident::{EscalationReason, StepError};
use crate::receipts::{Constraints, Door, Intent, ToolName};
use crate::tool_gate::Posture;

/// How long a session's tokens count, in seconds. A coder's own budget is shorter.
const TOKEN_TTL: i64 = 24 * 60 * 60;
/// Longest statement of an intent, in bytes: it stands in every receipt.
const STATEMENT: usize = 1_000;
/// A name that nothing is called, for sessions that may write nothing: an empty list would enforce nothing.
const NOTHING_WRITABLE: &str = ".caretaker-writes-nothing";
/// How long one run of the required checks may take.
const CHECKS_WITHIN: Duration = Duration::from_mins(30);

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Finding the cause. Nothing may be written.
    Diagnosis,
    /// Mending it.
    Fix,
}

impl Purpose {
    const fn word(self) -> &'static str {
        match self {
            Self::Diagnosis => "diagnosis",
            Self::Fix => "fix",
        }
    }

    const fn admits(self, access: &ToolAccess) -> bool {
        match self {
            Self::Diagnosis => !matches!(access, ToolAccess::Writes { .. }),
            Self::Fix => true,
        }
    }
}

/// A command that runs tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SessionCheck {
    /// The folder, from the tree's top; empty for the top itself.
    pub(super) folder: String,
    /// Program and arguments.
    pub(super) command: Vec<String>,
}

/// What a session is opened with.
pub(super) struct Opening<'a> {
    pub(super) purpose: Purpose,
    /// The scratch tree that the coder works in.
    pub(super) tree: &'a Path,
    /// The folder that is the home of programs run for it.
    pub(super) home: &'a Path,
    /// The files it may write.
    pub(super) files: &'a [RepoPath],
    /// The project's tests.
    pub(super) checks: Vec<SessionCheck>,
    /// What tells which files changed.
    pub(super) changed: Box<dyn Fn() -> Result<Vec<Vec<u8>>, String> + Send + Sync>,
}

/// An open session.
pub(super) struct CoderSession {
    /// What the coder is given.
    pub(super) given: AgentSession,
    pub(super) registered: Registered,
    pub(super) tokens: SessionTokens,
    answers: Arc<SessionAnswers>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

/// The session of a gated coder; none for one that is confined only.
pub(super) async fn opened(
    work: &Work<'_>,
    coder: &dyn Coder,
    opening: Opening<'_>,
) -> Result<Option<CoderSession>, StepError> {
    let Governance::Gated(tools) = coder.governance() else {
        return Ok(None);
    };
    let gate = work.engine.gate.as_ref().ok_or_else(|| {
        StepError::escalate(
            EscalationReason::CoderFailed,
            "this worker has no gate for the coder's tools, so it was not asked; start it by caretaker serve or worker",
        )
    })?;
    let session = open(work, gate, (&tools, coder.most_calls()), opening)?;
    work.engine.passed("session").await;
    Ok(Some(session))
}

fn open(
    work: &Work<'_>,
    gate: &Arc<ConfiguredAnswers>,
    (tools, most_calls): (&[GatedTool], Option<u64>),
    opening: Opening<'_>,
) -> Result<CoderSession, StepError> {
    let purpose = opening.purpose;
    let part = name_part(work)?;
    let id = format!("{}-{}-{part}", work.snapshot.incident, purpose.word());
    let tools: Vec<&GatedTool> = tools
        .iter()
        .filter(|tool| purpose.admits(&tool.access))
        .collect();
    let statement = statement(work, purpose);
    let policy = policy(work, &opening)?;
    let minted =
        minted(gate, &tools, opening.files, &statement).map_err(|error| unopened(&error))?;
    let session = SessionId::parse(&id).map_err(|error| unopened(&error))?;
    let registered = register(
        &gate.home,
        &NewSession {
            session: &session,
            policy: &policy,
            worktree: opening.tree,
            intent: Some(&statement),
            sandboxed: work.engine.sandbox.confines(),
            posture: Posture::Closed,
            blocks: BLOCKS,
            tokens: Some(&minted),
            profile: gate.profile.as_deref(),
            now: gate.clock.now(),
        },
    )
    .map_err(|error| unopened(&error))?;
    tell_minted(work, &registered, &minted, &tools);
    let answers = Arc::new(SessionAnswers {
        session: id.clone(),
        answers: Arc::clone(gate),
        surroundings: Surroundings {
            tools: producer_tools(work.engine, opening.home),
            changed: Some(opening.changed),
            calls: most_calls.map(CallBudget::new),
        },
    });
    let socket = gate.home.socket(&part);
    let service = GateService::bind(&socket)
        .map_err(|error| unopened(&format!("listening at {}: {error}", socket.display())))?;
    let stop = CancellationToken::new();
    let serving = tokio::spawn(service.serve(
        Arc::clone(&answers) as Arc<_>,
        Arc::clone(&gate.clock),
        stop.clone(),
    ));
    let guard = Arc::new(SessionGuard {
        answers: Arc::clone(&answers),
        tree: registered.worktree.clone(),
    });
    Ok(CoderSession {
        given: AgentSession::new(id, guard, socket),
        registered,
        tokens: minted,
        answers,
        stop,
        serving,
    })
}

/// A new name for each attempt: a session is registered once, and its receipts stay.
fn name_part(work: &Work<'_>) -> Result<String, StepError> {
    let entropy = hex::encode(work.engine.entropy()?);
    Ok(entropy.get(..8).unwrap_or_default().to_owned())
}

/// What the session is for: the incident in words, and the beginning of the project's intent.
fn statement(work: &Work<'_>, purpose: Purpose) -> String {
    let failure = &work.snapshot.failure;
    let task = match purpose {
        Purpose::Diagnosis => "Find the cause of",
        Purpose::Fix => "Mend the cause of",
    };
    let named = |name: &Option<String>| name.clone().unwrap_or_else(|| "unnamed".to_owned());
    let mut text = format!(
        "{task} incident {} ({} failure of workflow {}, job {}, at commit {}).",
        work.snapshot.incident,
        failure.kind.as_str(),
        named(&failure.workflow),
        named(&failure.job),
        failure.commit,
    );
    if purpose == Purpose::Fix
        && let Some(diagnosis) = work.snapshot.diagnosis()
    {
        text.push_str(" Diagnosis: ");
        text.push_str(&diagnosis.summary);
    }
    text.push_str(" The project's intent: ");
    text.push_str(work.project.intent.trim());
    let clean: String = text
        .chars()
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect();
    let mut end = clean.len().min(STATEMENT);
    while !clean.is_char_boundary(end) {
        end -= 1;
    }
    clean[..end].to_owned()
}

fn policy(work: &Work<'_>, opening: &Opening<'_>) -> Result<Vec<u8>, StepError> {
    let mut allowed = Vec::new();
    if opening.purpose == Purpose::Fix {
        // A name that is no text cannot be proposed either.
        allowed.extend(opening.files.iter().filter_map(|path| path.as_text()));
    }
    if allowed.is_empty() {
        allowed.push(NOTHING_WRITABLE);
    }
    let producers = opening.checks.iter().enumerate().map(|(number, check)| {
        let name = format!("tests-{}", number + 1);
        let mut producer =
            json!({"name": name, "kind": "test", "command": check.command, "required": true});
        if !check.folder.is_empty() {
            producer["folder"] = json!(check.folder);
        }
        producer
    });
    let document = json!({
        "v": 1,
        "task_id": work.snapshot.incident.as_str(),
        "path_allowlist": allowed,
        "producers": producers.collect::<Vec<_>>(),
    });
    serde_json::to_vec(&document).map_err(|error| unopened(&error))
}

fn minted(
    gate: &ConfiguredAnswers,
    tools: &[&GatedTool],
    files: &[RepoPath],
    statement: &str,
) -> Result<SessionTokens, MintedError> {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut intent = json!({"statement": statement});
    // An intent cannot list no tools; without any there is no token either, so every call is refused.
    if !names.is_empty() {
        intent["tools"] = json!(names);
    }
    let intent = strict_value(&intent, |json| {
        Intent::from_json(json).map_err(|error| error.to_string())
    })?;
    let paths: Vec<&str> = files.iter().filter_map(|path| path.as_text()).collect();
    let mut grants = Vec::new();
    for tool in tools {
        let constraints = match &tool.access {
            // Break it: leave the constraint out; `worker::gated::a_write_is_bound_to_the_diagnosed_files_by_its_token` fails.
            ToolAccess::Writes { path: Some(name) } => {
                let wanted = json!({"allowed_values": {*name: paths}});
                strict_value(&wanted, |json| {
                    Constraints::from_json(json).map_err(|error| error.to_string())
                })?
            }
            _ => Constraints::default(),
        };
        let tool = ToolName::parse(&tool.name).map_err(|error| MintedError(error.to_string()))?;
        grants.push(ToolGrant { tool, constraints });
    }
    let now = gate.clock.now();
    SessionTokens::mint(&gate.home, &grants, &intent, TOKEN_TTL, now)
        .map_err(|error: MintError| MintedError(error.to_string()))
}

/// Tells the audit stream which tools a session was given tokens for. What counts is in the receipts.
fn tell_minted(
    work: &Work<'_>,
    session: &Registered,
    minted: &SessionTokens,
    tools: &[&GatedTool],
) {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let fields = [
        ("kind", json!("capability-tokens")),
        ("session", json!(session.session)),
        ("tools", json!(names)),
        ("ttl_seconds", json!(TOKEN_TTL)),
        ("sha256", json!(minted.digest().to_string())),
    ];
    let fields = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let incident = work.snapshot.incident.as_str();
    let event = Event::new("credential_issued", incident, fields.collect());
    if let Err(error) = work.engine.events.record(&event) {
        tracing::warn!(%error, "that a session was given tokens is not in the audit stream");
    }
}

/// Why tokens cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct MintedError(String);

fn strict_value<T>(
    value: &Value,
    read: impl FnOnce(&strict::Json<'_>) -> Result<T, String>,
) -> Result<T, MintedError> {
    let bytes = serde_json::to_vec(value).map_err(|error| MintedError(error.to_string()))?;
    let json = strict::read(&bytes, 1 << 20).map_err(|error| MintedError(error.to_string()))?;
    read(&json).map_err(MintedError)
}

fn producer_tools(engine: &Engine, home: &Path) -> ProducerTools {
    ProducerTools {
        environment: engine.tools.variables(home),
        readable: engine.tools.readable().to_vec(),
        writable: vec![home.to_path_buf()],
        private_loopback: true,
    }
}

fn unopened(error: &dyn std::fmt::Display) -> StepError {
    StepError::retry(
        Duration::from_secs(5),
        format!("opening the coder's session: {error}"),
    )
}

impl CoderSession {
    /// Ends the session: nothing is asked at its socket any more.
    pub(super) async fn end(self) -> Ended {
        self.stop.cancel();
        // It ends by itself once told so; what it still answers is answered.
        drop(self.serving.await);
        Ended {
            given: self.given,
            registered: self.registered,
            tokens: self.tokens,
            answers: self.answers,
        }
    }
}

/// A session that ended.
pub(super) struct Ended {
    pub(super) given: AgentSession,
    pub(super) registered: Registered,
    pub(super) tokens: SessionTokens,
    answers: Arc<SessionAnswers>,
}

impl Ended {
    /// Runs every check again, outside of the session: the authoritative run.
    pub(super) async fn checked(&self, engine: &Engine) -> Result<Evidence, StepError> {
        let sealed = run_and_seal(
            &self.answers.answers.home,
            &self.registered,
            &engine.sandbox,
            &self.answers.surroundings,
            Run {
                place: RunPlace::Outside,
                within: CHECKS_WITHIN,
                now: self.answers.answers.clock.now(),
            },
        );
        sealed
            .await
            .map_err(|error| StepError::retry(Duration::from_secs(5), error))
    }
}

/// The gate, asked by a coder in this process.
struct SessionGuard {
    answers: Arc<SessionAnswers>,
    tree: PathBuf,
}

impl SessionGuard {
    async fn ask(&self, event: HookEvent, input: Value) -> Permission {
        let answers = Arc::clone(&self.answers);
        let tree = self.tree.clone();
        let asked = on_disk(move || {
            let input = serde_json::to_vec(&input).unwrap_or_default();
            Ok(answers.answer(&Question {
                session: &answers.session,
                event,
                input: &input,
                folder: &tree,
                compatible: false,
                role: "caretaker",
                door: Door::Loop,
                now: answers.answers.clock.now(),
            }))
        });
        match asked.await {
            Ok(reply) if reply.blocked => Permission::Refused(reply.reason),
            Ok(_) => Permission::Granted,
            // Break it: grant it; `worker::gated::a_gate_that_panics_refuses` fails.
            Err(_) => Permission::Refused("the gate failed while it decided".to_owned()),
        }
    }
}

#[async_trait]
impl ToolGuard for SessionGuard {
    async fn before_call(&self, tool: &str, arguments: &Value) -> Permission {
        let event = json!({"tool_name": tool, "tool_input": arguments, "cwd": self.tree});
        self.ask(HookEvent::PreToolUse, event).await
    }

    async fn before_end(&self) -> Permission {
        self.ask(HookEvent::Stop, json!({})).await
    }
}
