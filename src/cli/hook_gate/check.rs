//! `hook-gate check`: one event in, one answer out, whatever happens.
//!
//! The decision is made on a thread of its own. If it panics, or is not there by the deadline, the answer is a refusal: a client takes
//! a hook that dies or is late for consent.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::installed::Installed;
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::config::Environment;
use crate::hook_gate::{Home, HookEvent, HookGate, Question, Reply, TTL, guarded, service};
use crate::receipts::Door;
use crate::tool_gate::MAXIMUM_EVENT_BYTES;

/// How much longer than a person, or than producers, may take.
const BEYOND_TTL: u64 = 30;

/// Which session and which event.
#[derive(Debug, Args)]
pub(in crate::cli) struct CheckArguments {
    /// The session.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    session: String,
    /// When the hook runs.
    #[arg(long, value_name = "EVENT", value_parser = PossibleValuesParser::new(["PreToolUse", "Stop", "SessionStart"]))]
    event: String,
    /// The folder in which `--compat` looks for a policy.
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    workdir: PathBuf,
    /// Take the policy from the worktree's own `.sdd/runtime/hook_gate/ID.json`, as Bernstein writes it.
    #[arg(long, conflicts_with = "socket")]
    compat: bool,
    /// The time, in seconds since the Unix epoch, instead of the clock's.
    #[arg(long, value_name = "INT", allow_hyphen_values = true)]
    timestamp: Option<i64>,
    /// What the client is, for receipts.
    #[arg(long, value_name = "ROLE", default_value = "worker")]
    role: String,
    /// Let the worker at this socket answer. When it does not, the answer is a refusal.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Where the state lies, instead of `CARETAKER_HOME`.
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// How long a person may take to answer, in seconds.
    #[arg(long, default_value_t = TTL, hide = true)]
    ttl: u64,
}

pub(super) fn run(arguments: &CheckArguments) -> ExitCode {
    let Some(event) = HookEvent::parse(&arguments.event) else {
        return told(
            HookEvent::PreToolUse,
            &Reply::block("the event is not one that the gate knows"),
        );
    };
    told(event, &decided(arguments, event))
}

fn decided(arguments: &CheckArguments, event: HookEvent) -> Reply {
    // A person, or producers, may have to be waited for; the hook's own timeout is longer.
    let within = Duration::from_secs(arguments.ttl.saturating_add(BEYOND_TTL));
    // What a panic prints would stand before the reason; the answer says it.
    std::panic::set_hook(Box::new(|_| {}));
    let owned = Owned::of(arguments, event);
    guarded(within, move || owned.decide())
}

/// What the decision's thread needs.
struct Owned {
    session: String,
    event: HookEvent,
    folder: PathBuf,
    compatible: bool,
    timestamp: Option<i64>,
    role: String,
    socket: Option<PathBuf>,
    home: Option<PathBuf>,
    ttl: u64,
}

impl Owned {
    fn of(arguments: &CheckArguments, event: HookEvent) -> Self {
        Self {
            session: arguments.session.clone(),
            event,
            folder: arguments.workdir.clone(),
            compatible: arguments.compat,
            timestamp: arguments.timestamp,
            role: arguments.role.clone(),
            socket: arguments.socket.clone(),
            home: arguments.home.clone(),
            ttl: arguments.ttl,
        }
    }

    fn decide(&self) -> Reply {
        let input = match read_event() {
            Ok(input) => input,
            Err(error) => return Reply::block(format!("reading the hook event: {error}")),
        };
        let now = self.timestamp.map_or_else(
            || SystemClock.now(),
            |seconds| Millis(seconds.saturating_mul(1000)),
        );
        let folder = std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let question = Question {
            session: &self.session,
            event: self.event,
            input: &input,
            folder: &folder,
            compatible: self.compatible,
            role: &self.role,
            door: Door::HookGate,
            now,
        };
        let ttl = Duration::from_secs(self.ttl);
        if let Some(socket) = &self.socket {
            return match service::ask(socket, &question, ttl + Duration::from_secs(10)) {
                Ok(reply) => reply,
                // Break it: allow; `hook_gate::service::a_named_socket_that_does_not_answer_denies` fails.
                Err(reason) => Reply::block(reason),
            };
        }
        let home = match self.home() {
            Ok(home) => home,
            Err(reason) => return Reply::block(reason),
        };
        let launcher = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("caretaker"));
        let installed = match Installed::load() {
            Ok(installed) => installed,
            // Break it: decide with our own checks alone; `hook_gate::configured::a_configuration_that_cannot_be_read_refuses` fails.
            Err(error) => return Reply::block(format!("the gate's configuration: {error}")),
        };
        let intent = installed.intent(&home, &self.session);
        let stages = installed
            .configured
            .of_session(&self.session, intent.as_deref());
        let people = installed.people(&self.role);
        let gate = HookGate {
            stages: &stages,
            approver: &people,
            ..HookGate::plain(&home, installed.events.as_ref())
        };
        gate.reply(&question, Path::new(&launcher), ttl)
    }

    fn home(&self) -> Result<Home, String> {
        match &self.home {
            Some(home) => std::path::absolute(home)
                .map(|home| Home::new(&home))
                .map_err(|error| error.to_string()),
            None => Environment::of_process()
                .and_then(|environment| environment.home())
                .map(|home| Home::new(&home))
                .map_err(|error| error.to_string()),
        }
    }
}

/// The event, up to one byte more than is read. What comes behind is taken and dropped: a client whose pipe breaks may take that for
/// consent.
fn read_event() -> std::io::Result<Vec<u8>> {
    let mut input = std::io::stdin().lock();
    let mut bytes = Vec::new();
    let most = MAXIMUM_EVENT_BYTES as u64 + 1;
    input.by_ref().take(most).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == most {
        std::io::copy(&mut input, &mut std::io::sink())?;
    }
    Ok(bytes)
}

/// Says the answer in every way that a client may listen to.
fn told(event: HookEvent, reply: &Reply) -> ExitCode {
    if reply.blocked {
        drop(writeln!(std::io::stderr(), "{}", reply.reason));
    } else if let Some(warning) = &reply.warning {
        drop(writeln!(std::io::stderr(), "caretaker: warning: {warning}"));
    }
    if let Some(document) = reply.document(event) {
        let mut out = std::io::stdout().lock();
        drop(writeln!(out, "{document}").and_then(|()| out.flush()));
    }
    ExitCode::from(reply.exit_code())
}
