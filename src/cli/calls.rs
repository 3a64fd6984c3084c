//! `caretaker approve --tool` and `caretaker approvals`: calls of tools that wait for a person.

mod panel;

use std::io::IsTerminal as _;
use std::path::Path;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;

use super::arguments::Format;
use super::assembly;
use super::installation::Installation;
use super::runtime::block_on;
use super::{Verdict, complain, print};
use crate::approvals::Approvals;
use crate::attest::text::shown;
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::id::{AlwaysId, OrganisationId, ToolCallId};
use crate::store::{CallAnswer, CallDecision, Resolved, Store, ToolCall};
use crate::tool_gate::decider::{AuthMethod, Decider};

/// Which call, and what to answer.
#[derive(Debug, Args)]
pub(super) struct ApproveArguments {
    /// The call of a tool that waits, as the command lists them without one. Changes are approved with `caretaker approval`.
    #[arg(long, required = true, num_args = 0..=1, value_name = "ID")]
    tool: Option<ToolCallId>,
    /// Refuse it.
    #[arg(long, conflicts_with = "always")]
    reject: bool,
    /// Allow it, and the same tool with exactly the same arguments from now on.
    #[arg(long)]
    always: bool,
    /// With --always: what is allowed from now on instead of exactly this, in this project: a path from the worktree's top ("src/*.rs",
    /// "docs/**") for a tool that names files, words ("cargo test *") for one that runs commands.
    #[arg(long, value_name = "PATTERN", requires = "always")]
    pattern: Option<String>,
    /// Why, at most 500 bytes; the agent is told the reason of a refusal.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Without a command: a panel that follows the queue.
#[derive(Debug, Args)]
pub(super) struct ApprovalsArguments {
    #[command(subcommand)]
    command: Option<ApprovalsCommand>,
}

#[derive(Debug, Subcommand)]
enum ApprovalsCommand {
    /// List the calls that wait.
    List(Format),
    /// The calls that are always allowed.
    #[command(subcommand)]
    Always(AlwaysCommand),
}

#[derive(Debug, Subcommand)]
enum AlwaysCommand {
    /// List them, those that were taken back too.
    List(Format),
    /// Take one back.
    Revoke {
        /// The pattern, as `caretaker approvals always list` prints it.
        id: AlwaysId,
    },
}

/// What these commands work on.
struct Queue {
    approvals: Approvals,
    store: Store,
    organisation: OrganisationId,
    decider: Decider,
}

impl Queue {
    async fn open(installation: &Installation) -> anyhow::Result<Self> {
        let (store, organisation) = installation.open_database().await?;
        let user = installation.current_user()?;
        let name = user.as_str().trim_start_matches("local:").to_owned();
        Ok(Self {
            approvals: assembly::approvals(installation, store.clone(), organisation.clone())?,
            store,
            organisation,
            decider: Decider::person(&format!("os-user:{name}"), AuthMethod::LocalShell, None)?,
        })
    }

    async fn answer(
        &self,
        call: &ToolCall,
        decision: CallDecision,
        reason: Option<&str>,
        pattern: Option<&str>,
    ) -> anyhow::Result<Resolved> {
        let answer = CallAnswer {
            pattern,
            decision,
            nonce: Some(&call.nonce),
            decider: &self.decider,
            reason,
        };
        Ok(self.approvals.resolve(&call.id, &answer).await?)
    }
}

pub(super) fn approve(
    arguments: &ApproveArguments,
    config: Option<&Path>,
) -> anyhow::Result<Verdict> {
    let installation = Installation::load(config)?;
    block_on(async {
        let queue = Queue::open(&installation).await?;
        match &arguments.tool {
            None => list(&queue, arguments.json).await,
            Some(id) => one(&queue, id, arguments).await,
        }
    })
}

async fn one(
    queue: &Queue,
    id: &ToolCallId,
    arguments: &ApproveArguments,
) -> anyhow::Result<Verdict> {
    let decision = match (arguments.reject, arguments.always) {
        (true, _) => CallDecision::Reject,
        (_, true) => CallDecision::Always,
        _ => CallDecision::Allow,
    };
    let call = queue.approvals.call(id).await?;
    let call = call.with_context(|| {
        format!("there is no call {id}; `caretaker approve --tool` lists those that wait")
    })?;
    match queue
        .answer(
            &call,
            decision,
            arguments.reason.as_deref(),
            arguments.pattern.as_deref(),
        )
        .await?
    {
        Resolved::Done(call) => {
            let done = if arguments.json {
                json!({ "status": "resolved", "id": id.as_str(), "decision": decision }).to_string()
            } else {
                format!(
                    "{id}: {} of session {} is answered: {}",
                    shown(&call.tool),
                    shown(&call.session),
                    word(decision)
                )
            };
            print(&done)?;
            Ok(Verdict::Done)
        }
        Resolved::Gone | Resolved::Unknown | Resolved::WrongNonce => {
            complain(&format!(
                "{id} was resolved already, or its time is over; nothing was written"
            ));
            Ok(Verdict::Refused)
        }
    }
}

const fn word(decision: CallDecision) -> &'static str {
    match decision {
        CallDecision::Allow => "allowed",
        CallDecision::Reject => "rejected",
        CallDecision::Always => "allowed, now and always",
    }
}

pub(super) fn approvals(
    arguments: &ApprovalsArguments,
    config: Option<&Path>,
) -> anyhow::Result<Verdict> {
    let installation = Installation::load(config)?;
    block_on(async {
        let queue = Queue::open(&installation).await?;
        match &arguments.command {
            Some(ApprovalsCommand::List(format)) => list(&queue, format.json).await,
            Some(ApprovalsCommand::Always(AlwaysCommand::List(format))) => {
                always(&queue, format.json).await
            }
            Some(ApprovalsCommand::Always(AlwaysCommand::Revoke { id })) => {
                revoke(&queue, id).await
            }
            None => {
                anyhow::ensure!(
                    std::io::stdin().is_terminal() && std::io::stdout().is_terminal(),
                    "the panel needs a terminal; `caretaker approvals list` prints the queue, `caretaker approve --tool ID` answers"
                );
                panel::follow(&queue).await
            }
        }
    })
}

async fn list(queue: &Queue, as_json: bool) -> anyhow::Result<Verdict> {
    let pending = queue.approvals.pending().await?;
    if as_json {
        // No nonce: this command answers by itself, and lists end up in logs.
        let calls: Vec<_> = pending
            .iter()
            .map(|call| {
                json!({
                    "id": call.id.as_str(), "session_id": call.session, "task_id": call.task, "agent_role": call.role,
                    "tool_name": call.tool, "tool_args": call.arguments, "created_at": call.created_at.to_string(),
                    "expires_at": call.expires_at.to_string(),
                })
            })
            .collect();
        print(&json!({ "pending": calls }).to_string())?;
        return Ok(Verdict::Done);
    }
    if pending.is_empty() {
        print("no tool call waits")?;
    }
    for call in &pending {
        print(&format!(
            "{}  {}  session {}  refused unless answered by {}\n  {}",
            call.id,
            shown(&call.tool),
            shown(&call.session),
            call.expires_at,
            shown(&call.arguments)
        ))?;
    }
    Ok(Verdict::Done)
}

async fn always(queue: &Queue, as_json: bool) -> anyhow::Result<Verdict> {
    let patterns = queue.store.always_list(&queue.organisation).await?;
    let wider = queue.store.pattern_list(&queue.organisation).await?;
    if as_json {
        let patterns: Vec<_> = patterns
            .iter()
            .map(|pattern| {
                json!({
                    "id": pattern.id.as_str(), "tool_name": pattern.tool, "tool_args": pattern.arguments,
                    "tool_args_sha256": pattern.arguments_digest.to_string(), "by": pattern.decider,
                    "created_at": pattern.created_at.to_string(),
                    "revoked_at": pattern.revoked.as_ref().map(|(_, at)| at.to_string()),
                })
            })
            .collect();
        let wider: Vec<_> = wider
            .iter()
            .map(|allowed| {
                json!({
                    "id": allowed.id.as_str(), "tool_name": allowed.tool, "pattern": allowed.pattern, "scope": allowed.scope,
                    "by": allowed.decider, "created_at": allowed.created_at.to_string(),
                    "revoked_at": allowed.revoked.as_ref().map(|(_, at)| at.to_string()),
                })
            })
            .collect();
        print(&json!({ "always": patterns, "patterns": wider }).to_string())?;
        return Ok(Verdict::Done);
    }
    if patterns.is_empty() && wider.is_empty() {
        print("nothing is always allowed")?;
    }
    for allowed in &wider {
        print(&format!(
            "{}  {}  {}, allowed at {} by {}\n  pattern {} in {}",
            allowed.id,
            shown(&allowed.tool),
            in_force(allowed.revoked.as_ref()),
            allowed.created_at,
            allowed.decider.identifier(),
            shown(&allowed.pattern),
            shown(&allowed.scope)
        ))?;
    }
    for pattern in &patterns {
        let state = in_force(pattern.revoked.as_ref());
        print(&format!(
            "{}  {}  {state}, allowed at {} by {}\n  {}",
            pattern.id,
            shown(&pattern.tool),
            pattern.created_at,
            pattern.decider.identifier(),
            shown(&pattern.arguments)
        ))?;
    }
    Ok(Verdict::Done)
}

fn in_force(revoked: Option<&(Decider, Millis)>) -> String {
    revoked.map_or_else(
        || "in force".to_owned(),
        |(by, at)| format!("taken back at {at} by {}", by.identifier()),
    )
}

async fn revoke(queue: &Queue, id: &AlwaysId) -> anyhow::Result<Verdict> {
    let now = SystemClock.now();
    let revoked = queue
        .store
        .revoke_always(&queue.organisation, id, &queue.decider, now);
    let by_pattern = queue
        .store
        .revoke_pattern(&queue.organisation, id, &queue.decider, now);
    if revoked.await? || by_pattern.await? {
        print(&format!(
            "{id} is taken back: the same call is asked about again"
        ))?;
        return Ok(Verdict::Done);
    }
    complain(&format!(
        "there is no pattern {id} in force; `caretaker approvals always list` prints them"
    ));
    Ok(Verdict::Refused)
}
