//! The process inside the boundary: restricts itself, then becomes the untrusted program.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit, setrlimit, setsid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};

use super::scratch::Report;
use super::wire::{Confinement, Program, Restriction, WireLimits};
use super::{filter, processes, reexec, rules, wire};

/// What the program finds in its environment where the command does not say.
const DEFAULT_ENVIRONMENT: [(&str, &str); 4] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", "/tmp"),
    ("TMPDIR", "/tmp"),
    ("LANG", "C.UTF-8"),
];

/// The largest message queue, in bytes; Linux's own default.
const MESSAGE_QUEUES: u64 = 819_200;

/// Reads what to do from standard input, does it, and only returns when it failed.
pub(super) fn main() -> ExitCode {
    // Unbuffered, because what follows the document belongs to the program.
    let told = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let read = told.and_then(|mut input| wire::read_document::<Confinement>(&mut input));
    let Ok(confinement) = read else {
        return reexec::NOT_REACHED.into();
    };
    let Ok(mut report) = Report::open(&confinement.report) else {
        return reexec::NOT_REACHED.into();
    };
    let reason = match restrict(&confinement) {
        Err(reason) => reason.to_string(),
        Ok(()) => match report.reached() {
            // This only comes back when it failed.
            Ok(()) => command(&confinement.program).exec().to_string(),
            Err(reason) => format!("the report cannot be written: {reason}"),
        },
    };
    // Where even this cannot be said, the exit code and the empty report still mean that nothing was run.
    drop(report.failed(&reason));
    reexec::NOT_REACHED.into()
}

/// Why the process did not restrict itself.
#[derive(Debug, thiserror::Error)]
enum ConfineError {
    #[error("cannot {action}: {source}")]
    System {
        action: &'static str,
        source: rustix::io::Errno,
    },
    #[error("cannot start in the directory {directory:?}: {source}")]
    Directory {
        directory: std::path::PathBuf,
        source: io::Error,
    },
    #[error(transparent)]
    Rules(#[from] rules::RulesError),
    #[error(transparent)]
    Filter(#[from] filter::FilterError),
}

fn system(action: &'static str) -> impl FnOnce(rustix::io::Errno) -> ConfineError {
    move |source| ConfineError::System { action, source }
}

fn restrict(confinement: &Confinement) -> Result<(), ConfineError> {
    let program = &confinement.program;
    let directory = || program.directory.clone();
    std::env::set_current_dir(&program.directory).map_err(|source| ConfineError::Directory {
        directory: directory(),
        source,
    })?;
    let base = match &confinement.restriction {
        Restriction::Inside { .. } => 0,
        // Without a user namespace the kernel counts all of the user's processes together.
        Restriction::Alone { .. } | Restriction::Limits => {
            setsid().map_err(system("leave the session of the terminal"))?;
            processes::threads_of_user(rustix::process::getuid().as_raw())
        }
    };
    limit(&program.limits, base)?;
    let (place, filter) = match &confinement.restriction {
        Restriction::Limits => return Ok(()),
        Restriction::Inside { landlock, sockets } => (
            landlock.then_some(rules::Place::Inside(*sockets)),
            filter::Place::Inside(*sockets),
        ),
        Restriction::Alone { protected } => (
            Some(rules::Place::Alone),
            filter::Place::Alone { protected },
        ),
    };
    set_no_new_privs(true).map_err(system("give up gaining privileges"))?;
    drop_capabilities()?;
    let programs = filter::compile(filter)?;
    if let Some(place) = place {
        rules::restrict(place, &confinement.grants)?;
    }
    Ok(filter::install(&programs)?)
}

/// Gives up every capability; with no-new-privileges set, root does not regain them when it starts a program.
fn drop_capabilities() -> Result<(), ConfineError> {
    clear_ambient_capability_set().map_err(system("give up ambient capabilities"))?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    set_capabilities(None, sets).map_err(system("give up capabilities"))
}

/// Sets both the soft and the hard limits, so that the program cannot raise them again.
fn limit(limits: &WireLimits, processes_of_others: u64) -> Result<(), ConfineError> {
    let all = [
        (Resource::Core, Some(0)),
        (Resource::Cpu, Some(limits.cpu_seconds)),
        (Resource::As, limits.address_space),
        (Resource::Fsize, Some(limits.file_size)),
        (Resource::Nofile, Some(limits.open_files)),
        (
            Resource::Nproc,
            Some(limits.processes.saturating_add(processes_of_others)),
        ),
        (Resource::Msgqueue, Some(MESSAGE_QUEUES)),
    ];
    for (resource, wanted) in all {
        let Some(wanted) = wanted else { continue };
        // An unprivileged process may not raise its hard limit; where the operator set a lower one, that one stays.
        let highest = rustix::process::getrlimit(resource).maximum;
        let value = Some(highest.map_or(wanted, |highest| highest.min(wanted)));
        setrlimit(
            resource,
            Rlimit {
                current: value,
                maximum: value,
            },
        )
        .map_err(system("set a resource limit"))?;
    }
    Ok(())
}

fn command(program: &Program) -> Command {
    // The caller refuses an empty command line; an empty name fails to start like any other missing program.
    let mut words = program.argv.iter();
    let mut command = Command::new(
        words
            .next()
            .map(std::ffi::OsString::as_os_str)
            .unwrap_or_default(),
    );
    command.args(words).env_clear().envs(DEFAULT_ENVIRONMENT);
    command.envs(
        program
            .environment
            .iter()
            .map(|(name, value)| (name, value)),
    );
    command
}
