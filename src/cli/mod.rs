//! The command line. Exit codes: 0 done or allowed, 1 refused or failed, 2 usage, 3 cannot tell.
//!
//! What people and scripts read goes to standard output, everything else to standard error.

mod app;
mod approval;
mod arguments;
mod assembly;
mod audit;
mod calls;
mod change;
mod coders;
mod connectors;
mod credential_events;
mod demo;
mod doctor;
mod embedder;
mod evidence;
mod files;
mod forge;
mod gate;
mod hook_gate;
mod hosting;
mod incident;
mod installation;
mod intent;
mod keys;
mod ledger;
mod log;
mod project;
mod receipts;
mod runtime;
mod serve;
mod signer;
mod token;
mod verify;
mod witness;
mod words;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing::level_filters::LevelFilter;

use crate::config::Environment;
use crate::telemetry::Logging;

/// A control layer between what a coding agent intends and what gets merged.
#[derive(Debug, Parser)]
#[command(name = "caretaker", version)]
struct Arguments {
    /// The configuration file, else `CARETAKER_CONFIG`, else caretaker.yaml in `CARETAKER_HOME` if there is one.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at a change.
    #[command(subcommand)]
    Change(change::ChangeCommand),
    /// Ask the rules about a change.
    #[command(subcommand)]
    Gate(gate::GateCommand),
    /// Gate what a foreign coding client does, by its own hooks.
    #[command(subcommand)]
    HookGate(hook_gate::HookGateCommand),
    /// The keys that sign, and the trust root that says whose count.
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Say what is missing or unsafe in this installation, each with its mend. Exit code 1 when something required is missing.
    Doctor(doctor::DoctorArguments),
    /// Register repositories and say what happens to them. Nothing is watched before it is confirmed.
    #[command(subcommand)]
    Project(project::ProjectCommand),
    /// Look at incidents, and wake those that rest.
    #[command(subcommand)]
    Incident(incident::IncidentCommand),
    /// Look at what waits for a person's answer, and answer it.
    #[command(subcommand)]
    Approval(approval::ApprovalCommand),
    /// Answer a call of a tool that an agent waits with.
    Approve(calls::ApproveArguments),
    /// Follow the calls of tools that wait for a person, and answer them.
    Approvals(calls::ApprovalsArguments),
    /// The GitHub App that caretaker acts as: make it, or see what it may do.
    #[command(subcommand)]
    App(app::AppCommand),
    /// Look at what a gated session's hooks decided and what its producers came to, and verify it.
    #[command(subcommand)]
    Evidence(evidence::EvidenceCommand),
    /// Start a local GitHub-compatible server for trying caretaker out.
    Forge(forge::ForgeArguments),
    /// Show and verify signed ledgers.
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// Sign for one role, and answer its worker at a Unix socket: so that the key is in no process that faces the network.
    Signer(signer::SignerArguments),
    /// The organisation's log: checkpoints, proofs, and all of it as files.
    #[command(subcommand)]
    Log(log::LogCommand),
    /// The audit stream: what happened, one event a line.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Verify what `ledger export` or `log export` wrote, offline: no configuration, no database, no network. Exit code 0 valid, 1 invalid,
    /// 3 cannot tell.
    Verify(verify::VerifyArguments),
    /// Capability tokens: sign what an agent may do, decide about its calls, revoke.
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// What gates recorded about calls.
    #[command(subcommand)]
    Receipts(receipts::ReceiptsCommand),
    /// Be a witness of logs: for an auditor, on a machine of their own.
    #[command(subcommand)]
    Witness(witness::WitnessCommand),
    /// Compare actions with what was asked for, and find thresholds.
    #[command(subcommand)]
    Intent(intent::IntentCommand),
    /// Check what turns texts into vectors.
    #[command(subcommand)]
    Embedder(embedder::EmbedderCommand),
    /// Watch, work and serve pages in one process, until interrupted.
    Serve,
    /// Watch and work, without pages; any number of these share one PostgreSQL.
    Worker,
    /// Serve pages only.
    Web,
    /// See the whole of caretaker work on a local forge: no account, no network.
    Demo(demo::DemoArguments),
}

/// How a command that ran to its end came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Exit code 0.
    Done,
    /// Exit code 1.
    Refused,
    /// Exit code 3.
    CannotTell,
}

/// A hook's command line alone: it is asked before every action of an agent, and describing all the other commands takes longer
/// than the decision.
#[derive(Debug, Parser)]
struct HookArguments {
    #[command(flatten)]
    check: hook_gate::CheckArguments,
}

impl HookArguments {
    /// None for another command, and for words that are to be refused in the usual way.
    fn of_process() -> Option<Self> {
        let mut words = std::env::args_os().skip(1);
        let is_hook = ["hook-gate", "check"]
            .iter()
            .all(|name| words.next().is_some_and(|word| word == *name));
        let named = std::iter::once("check".into()).chain(words);
        is_hook.then(|| Self::try_parse_from(named).ok()).flatten()
    }
}

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    if let Some(hook) = HookArguments::of_process() {
        return hook_gate::answer(&hook.check);
    }
    let arguments = Arguments::parse();
    // Two exit codes and its own words, whatever happens: see there.
    if let Command::HookGate(hook_gate::HookGateCommand::Check(check)) = &arguments.command {
        return hook_gate::answer(check);
    }
    let config = arguments.config.as_deref();
    match start_logging(&arguments.command).and_then(|()| perform(arguments.command, config)) {
        Ok(Verdict::Done) => ExitCode::SUCCESS,
        Ok(Verdict::Refused) => ExitCode::from(1),
        Ok(Verdict::CannotTell) => ExitCode::from(3),
        Err(error) => {
            complain(&explain(&error));
            ExitCode::from(1)
        }
    }
}

fn perform(command: Command, config: Option<&Path>) -> anyhow::Result<Verdict> {
    match command {
        Command::Change(command) => change::run(&command),
        Command::Gate(command) => gate::run(&command),
        Command::HookGate(command) => hook_gate::run(&command, config),
        Command::Keys(command) => keys::run(&command, config),
        Command::Doctor(command) => doctor::run(&command, config),
        Command::Project(command) => project::run(&command, config),
        Command::Incident(command) => incident::run(&command, config),
        Command::Approval(command) => approval::run(&command, config),
        Command::Approve(arguments) => calls::approve(&arguments, config),
        Command::Approvals(arguments) => calls::approvals(&arguments, config),
        Command::App(command) => app::run(&command, config),
        Command::Evidence(command) => evidence::run(&command),
        Command::Forge(arguments) => forge::run(&arguments),
        Command::Ledger(command) => ledger::run(&command, config),
        Command::Signer(arguments) => signer::run(&arguments, config),
        Command::Log(command) => log::run(&command, config),
        Command::Audit(command) => audit::run(&command, config),
        Command::Verify(arguments) => verify::run(arguments),
        Command::Token(command) => token::run(&command),
        Command::Receipts(command) => receipts::run(&command),
        Command::Witness(command) => witness::run(&command),
        Command::Intent(command) => intent::run(&command, config),
        Command::Embedder(command) => embedder::run(&command, config),
        Command::Serve => serve::run(serve::Parts::ALL, config),
        Command::Worker => serve::run(serve::Parts::WORKER, config),
        Command::Web => serve::run(serve::Parts::WEB, config),
        Command::Demo(arguments) => demo::run(&arguments),
    }
}

/// Starts logging for the commands that run for long; the others print what they have to say. The demo tells its story itself.
fn start_logging(command: &Command) -> anyhow::Result<()> {
    let usual = match command {
        Command::Serve
        | Command::Worker
        | Command::Web
        | Command::Signer(_)
        | Command::Witness(witness::WitnessCommand::Run(_)) => LevelFilter::INFO,
        Command::Demo(_) => LevelFilter::WARN,
        _ => return Ok(()),
    };
    Logging::from_environment(&Environment::of_process()?, usual)?.install()?;
    Ok(())
}

/// An error with its causes. Some errors repeat their cause in their own words; it is then not said a second time.
fn explain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Says on standard error why something was not done. Its being closed leaves nobody to tell; the exit code still says it.
fn complain(text: &str) {
    drop(writeln!(std::io::stderr(), "caretaker: {text}"));
}

/// Writes one line or document to standard output. A reader that closed it early (`| head`) wants no more, which is no fault.
fn print(text: &str) -> anyhow::Result<()> {
    write_out(format!("{text}\n").as_bytes())
}

/// Writes bytes to standard output as they are; a reader that closed it early is no fault, as with [`print()`].
fn write_out(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow::anyhow!("writing to standard output: {error}"))
        }
        _ => Ok(()),
    }
}
