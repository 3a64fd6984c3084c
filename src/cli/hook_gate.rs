//! `caretaker hook-gate`: the gate behind foreign coding clients' hooks.

mod check;
mod installed;
mod register;
mod worker;

use std::io::BufReader;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::{Verdict, complain, print};
use crate::config::Environment;
use crate::hook_gate::{
    Adapter, Home, Hooks, SessionId, Standing, TTL, count_calls, proof, stop_count,
};

pub(super) use check::CheckArguments;
pub(super) use worker::answers;

#[derive(Debug, Subcommand)]
pub(super) enum HookGateCommand {
    /// Answer a client's hook: its event on standard input, exit code 0 to go on and 2 to block, nothing else.
    Check(CheckArguments),
    /// Register a session: pin its policy, and keep it where the agent cannot reach it.
    Register(register::RegisterArguments),
    /// Print a client's configuration of hooks.
    Render(RenderArguments),
    /// Say whether a session's calls all came by the gate. Exit code 1 when they did not.
    Proof(ProofArguments),
}

/// Which client and which session.
#[derive(Debug, Args)]
pub(super) struct RenderArguments {
    /// The client.
    #[arg(long, value_name = "NAME")]
    adapter: String,
    /// The session.
    #[arg(long, value_name = "ID")]
    session: String,
    /// The socket at which a running worker answers.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// How long a person may take to answer, in seconds.
    #[arg(long, default_value_t = TTL)]
    ttl: u64,
}

/// Which session, and what its client told of itself.
#[derive(Debug, Args)]
pub(super) struct ProofArguments {
    /// The session.
    #[arg(long, value_name = "ID")]
    session: String,
    /// The client.
    #[arg(long, value_name = "NAME")]
    adapter: String,
    /// What the client printed, one JSON event a line.
    #[arg(long, value_name = "FILE")]
    stream: PathBuf,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(
    command: &HookGateCommand,
    config: Option<&std::path::Path>,
) -> anyhow::Result<Verdict> {
    match command {
        // Answered before anything else is set up, see `answer`.
        HookGateCommand::Check(_) => Ok(Verdict::Refused),
        HookGateCommand::Register(arguments) => register::run(arguments, config),
        HookGateCommand::Render(arguments) => render(arguments),
        HookGateCommand::Proof(arguments) => prove(arguments),
    }
}

/// Answers a hook.
pub(super) fn answer(arguments: &CheckArguments) -> std::process::ExitCode {
    check::run(arguments)
}

fn state() -> anyhow::Result<Home> {
    Ok(Home::new(&Environment::of_process()?.home()?))
}

fn render(arguments: &RenderArguments) -> anyhow::Result<Verdict> {
    let session = SessionId::parse(&arguments.session)?;
    let Some(adapter) = Adapter::parse(&arguments.adapter) else {
        complain(&format!(
            "nothing is rendered for {}: it has no hooks that block; its changes are judged after the session only",
            crate::attest::text::shown(&arguments.adapter)
        ));
        return Ok(Verdict::Done);
    };
    let program = std::env::current_exe().context("finding our own program")?;
    let socket = arguments
        .socket
        .as_deref()
        .map(std::path::absolute)
        .transpose()
        .context("finding the socket")?;
    let home = Environment::of_process()?.home()?;
    let hooks = Hooks {
        program: &program,
        session: session.as_str(),
        socket: socket.as_deref(),
        home: Some(&home),
        ttl: arguments.ttl,
    };
    print(hooks.render(adapter).trim_end())?;
    complain(&format!("belongs into {}", adapter.place()));
    Ok(Verdict::Done)
}

fn prove(arguments: &ProofArguments) -> anyhow::Result<Verdict> {
    let session = SessionId::parse(&arguments.session)?;
    let adapter = Adapter::parse(&arguments.adapter).with_context(|| {
        format!(
            "reading a stream of {}: only those of clients that are rendered for can be read",
            arguments.adapter
        )
    })?;
    let stream = std::fs::File::open(&arguments.stream)
        .with_context(|| format!("reading the stream {}", arguments.stream.display()))?;
    let calls = count_calls(adapter, BufReader::new(stream)).map_err(anyhow::Error::msg)?;
    let folder = state()?.session(&session);
    let found = proof(&folder, calls)?;
    let stop = stop_count(&folder);
    if arguments.json {
        let document = serde_json::json!({
            "session": session.as_str(),
            "standing": found.standing,
            "receipts": found.receipts,
            "calls": found.calls,
            "completion_refused": stop.refused,
        });
        print(&document.to_string())?;
    } else {
        let word = match found.standing {
            Standing::Gated => "gated",
            Standing::Ungated => "ungated",
        };
        print(&format!(
            "{word}: {} calls, {} receipts{}",
            found.calls,
            found.receipts,
            if stop.refused {
                "; a turn ended without its evidence"
            } else {
                ""
            }
        ))?;
    }
    Ok(match found.standing {
        Standing::Gated => Verdict::Done,
        Standing::Ungated => Verdict::Refused,
    })
}
