//! The supervisor: starts the boundary, and kills every process of the run when it ends or is called off.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, getpgid, getpid, getppid, kill_process_group, set_child_subreaper,
    wait,
};

use super::processes::Descendants;
use super::scratch::{Reach, Scratch};
use super::wire::{Access, Boundary, Confinement, Ending, Grant, Launch, Restriction, Sockets};
use super::{bubblewrap, inherited, reexec, wire};

/// How often processes are counted where the kernel does not enforce their number: not for root, whatever its limits.
const COUNT_EVERY: Duration = Duration::from_millis(25);
/// How often a run that is being killed is looked at again.
const KILL_EVERY: Duration = Duration::from_millis(5);
/// How long killing may take before the supervisor gives up on a process the kernel does not let go.
const KILL_WITHIN: Duration = Duration::from_secs(10);

/// Supervises one run told over standard input, which is a socket, and answers there.
pub(super) fn main() -> ExitCode {
    // The exit code is for a person looking at processes: caretaker reads the answer, and takes silence for a failure.
    match supervise() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn supervise() -> io::Result<()> {
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let launch: Launch = wire::read_document(&mut socket)?;
    let mut stdin = Vec::new();
    (&socket)
        .take(launch.stdin_length)
        .read_to_end(&mut stdin)?;
    let ending = match inherited::leaking() {
        Some(reason) if launch.boundary != Boundary::Nothing => Ending::SetupFailed(Some(reason)),
        _ => run(&launch, stdin, &socket)
            .unwrap_or_else(|reason| Ending::SetupFailed(Some(reason.to_string()))),
    };
    wire::write_document(&mut socket, &ending)
}

/// What the supervisor waits for.
enum Event {
    /// The boundary ended.
    Ended(ExitStatus),
    /// No process of the run is left.
    AllReaped,
    /// Caretaker closed its end of the socket, or is gone.
    CalledOff,
}

fn run(launch: &Launch, stdin: Vec<u8>, socket: &UnixStream) -> io::Result<Ending> {
    let scratch = Scratch::create(&launch.temporary_directory)?;
    let mut prelude = wire::encode(&confinement(launch, &scratch))?;
    prelude.extend(stdin);
    // Whatever a program leaves behind is handed to us instead of to init, so that nothing can outlive the run.
    set_child_subreaper(Some(getpid()))?;
    let mut child = boundary(launch, &scratch).stdin(Stdio::piped()).spawn()?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (events, received) = channel();
    feed(&mut child, prelude);
    watch_socket(socket.try_clone()?, events.clone());
    reap(group, events);
    let counted = rustix::process::getuid()
        .is_root()
        .then_some(launch.program.limits.processes);
    let first = await_end(&received, counted);
    kill_everything(group, &received);
    match first {
        First::Ended(status) => Ok(ending(status, scratch.reach()?)),
        First::TooMany => Ok(Ending::ProcessLimit),
        First::CalledOff => Ok(Ending::Signalled(Signal::KILL.as_raw())),
    }
}

/// How the run came to its end.
enum First {
    Ended(ExitStatus),
    TooMany,
    CalledOff,
}

fn await_end(received: &Receiver<Event>, counted: Option<u64>) -> First {
    loop {
        let event = match counted {
            Some(_) => received.recv_timeout(COUNT_EVERY),
            None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(Event::Ended(status)) => return First::Ended(status),
            Err(RecvTimeoutError::Timeout) => {
                let running = Descendants::of(own_number()).threads();
                if counted.is_some_and(|most| running > most.saturating_add(BOUNDARY_PROCESSES)) {
                    return First::TooMany;
                }
            }
            Ok(Event::CalledOff | Event::AllReaped) | Err(RecvTimeoutError::Disconnected) => {
                return First::CalledOff;
            }
        }
    }
}

/// Bubblewrap's own two processes, which are no part of the program.
const BOUNDARY_PROCESSES: u64 = 2;

/// Kills until the reaper says that no child is left. Whole groups go first, because the kernel kills a group at once,
/// while processes found one by one may start others in between.
fn kill_everything(group: Option<Pid>, received: &Receiver<Event>) {
    let started = Instant::now();
    while started.elapsed() < KILL_WITHIN {
        if let Some(group) = group {
            kill_process_group(group, Signal::KILL).ok();
        }
        Descendants::of(own_number()).kill();
        loop {
            match received.recv_timeout(KILL_EVERY) {
                Ok(Event::AllReaped) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
    }
}

fn own_number() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// Writes the confinement and then the program's input; the program need not read it.
fn feed(child: &mut Child, prelude: Vec<u8>) {
    if let Some(mut input) = child.stdin.take() {
        thread::spawn(move || drop(input.write_all(&prelude)));
    }
}

/// Waits until caretaker closes the socket; it sends nothing more.
fn watch_socket(mut socket: UnixStream, events: Sender<Event>) {
    thread::spawn(move || {
        let mut nothing = [0; 1];
        // Data where none is expected is as good a reason to stop as the end.
        drop(socket.read(&mut nothing));
        drop(events.send(Event::CalledOff));
    });
}

/// Collects every child as it ends: the boundary itself, and what its processes left behind.
fn reap(boundary: Option<Pid>, events: Sender<Event>) {
    thread::spawn(move || {
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if Some(pid) == boundary => {
                    drop(events.send(Event::Ended(ExitStatus::from_raw(status.as_raw()))));
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        drop(events.send(Event::AllReaped));
    });
}

fn ending(status: ExitStatus, reach: Reach) -> Ending {
    match reach {
        Reach::SetupFailed(reason) => Ending::SetupFailed(reason),
        Reach::NotStarted(reason) => Ending::NotStarted(reason),
        Reach::Program => match (status.code(), status.signal()) {
            // As a shell says it, and as bubblewrap does.
            (Some(code), _) if (129..=192).contains(&code) => Ending::Signalled(code - 128),
            (Some(code), _) => Ending::Exited(code),
            (None, signal) => Ending::Signalled(signal.unwrap_or_default()),
        },
    }
}

/// The command that starts the boundary, with an empty environment.
fn boundary(launch: &Launch, scratch: &Scratch) -> Command {
    let mut command = match &launch.boundary {
        Boundary::Bubblewrap {
            program,
            forbids_namespaces,
            ..
        } => {
            let mut command = Command::new(program);
            command.args(bubblewrap::arguments(launch, scratch, *forbids_namespaces));
            command
        }
        Boundary::Landlock | Boundary::Nothing => {
            let mut command = Command::new(&launch.launcher);
            command.arg(reexec::CONFINE);
            command
        }
    };
    command.env_clear().current_dir("/");
    command
}

fn confinement(launch: &Launch, scratch: &Scratch) -> Confinement {
    let mut program = launch.program.clone();
    let mut grants = launch.grants.clone();
    let restriction = match launch.boundary {
        Boundary::Bubblewrap { landlock, .. } => {
            let sockets = if program.private_loopback {
                Sockets::Loopback
            } else {
                Sockets::Local
            };
            Restriction::Inside { landlock, sockets }
        }
        Boundary::Landlock => Restriction::Alone {
            protected: protected(),
        },
        Boundary::Nothing => Restriction::Limits,
    };
    let report = match restriction {
        Restriction::Inside { .. } => bubblewrap::REPORT.into(),
        Restriction::Alone { .. } | Restriction::Limits => {
            let temporary = scratch.temporary();
            let text = temporary.to_string_lossy().into_owned();
            // Before the command's own variables, which may name other places.
            for name in ["TMPDIR", "HOME"] {
                program
                    .environment
                    .insert(0, (name.to_owned(), text.clone()));
            }
            grants.push(Grant::new(temporary, Access::Write));
            scratch.report()
        }
    };
    Confinement {
        restriction,
        grants,
        program,
        report,
    }
}

/// This process and caretaker's, and their process groups as negative numbers.
fn protected() -> Vec<i32> {
    let processes = [Some(getpid()), getppid()].into_iter().flatten();
    let both = processes.flat_map(|pid| {
        let group = getpgid(Some(pid))
            .ok()
            .map(|group| -group.as_raw_nonzero().get());
        [Some(pid.as_raw_nonzero().get()), group]
    });
    both.flatten().collect()
}
