//! The supervisor: starts the boundary, and kills every process of the run when it ends or is called off.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgid, getpid, getppid, kill_process,
    kill_process_group, set_child_subreaper, wait, waitid,
};

use super::flock::Flock;
use super::scratch::{Reach, Scratch};
use super::wire::{Access, Boundary, Confinement, Ending, Grant, Launch, Restriction, Sockets};
use super::{bubblewrap, inherited, processes, reexec, wire};

/// How often the machine's processes are counted where the kernel does not enforce the run's number: it exempts root.
const COUNT_EVERY: Duration = Duration::from_millis(5);
/// After so many counts of the machine the run's own processes are counted even if nothing is conspicuous.
const LOOK_CLOSELY_AFTER: u32 = 50;
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
    let flock = Flock::gather(&launch.boundary);
    let before = processes::threads_of_machine();
    let mut child = boundary(launch, &scratch).stdin(Stdio::piped()).spawn()?;
    let leader = Arc::new(Leader::new(&child)?);
    let (events, received) = channel();
    feed(&mut child, prelude);
    watch_socket(socket.try_clone()?, events.clone());
    reap(Arc::clone(&leader), events);
    processes::go_first();
    let first = if rustix::process::getuid().is_root() {
        let most = launch
            .program
            .limits
            .processes
            .saturating_add(BOUNDARY_PROCESSES);
        await_end_counting(&received, most, before)
    } else {
        await_end(received.recv().as_ref().ok())
    };
    kill_everything(&leader, &flock, &received);
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

fn await_end(event: Option<&Event>) -> First {
    match event {
        Some(Event::Ended(status)) => First::Ended(*status),
        Some(Event::CalledOff | Event::AllReaped) | None => First::CalledOff,
    }
}

/// Waits for the end while counting processes. The whole machine is counted often, which is cheap, and the run's own
/// processes only when the machine's number has grown by as much as the run may have.
fn await_end_counting(received: &Receiver<Event>, most: u64, before: Option<u64>) -> First {
    for count in 1_u32.. {
        match received.recv_timeout(COUNT_EVERY) {
            Err(RecvTimeoutError::Timeout) => {}
            event => return await_end(event.as_ref().ok()),
        }
        let conspicuous = match (before, processes::threads_of_machine()) {
            (Some(before), Some(now)) => now.saturating_sub(before) > most,
            _ => true,
        };
        let look = conspicuous || count % LOOK_CLOSELY_AFTER == 0;
        if look && processes::exceed(own_number(), most) {
            return First::TooMany;
        }
    }
    First::TooMany
}

/// Bubblewrap's own two processes, which are no part of the program.
const BOUNDARY_PROCESSES: u64 = 2;

/// The first process of the boundary, whose number is also that of its process group where it has one.
///
/// Its number must not be used any more once it was collected, because it may then be given to another process.
struct Leader {
    pid: Pid,
    collected: Mutex<bool>,
}

impl Leader {
    fn new(child: &Child) -> io::Result<Self> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the boundary has no process number"))?;
        Ok(Self {
            pid,
            collected: Mutex::new(false),
        })
    }

    /// Kills the process and its group. The kernel kills a group at once, and with bubblewrap's first process goes the
    /// whole process namespace, while processes found one by one may start others in between.
    fn kill(&self) {
        let collected = self
            .collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !*collected {
            kill_process_group(self.pid, Signal::KILL).ok();
            kill_process(self.pid, Signal::KILL).ok();
        }
    }

    /// Collects every child that has ended, and says how the leader did if it was among them. What is left of the
    /// leader's group is killed first, while the number is still its own.
    fn collect_ended(&self) -> Option<ExitStatus> {
        let mut collected = self
            .collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if !*collected && matches!(waitid(WaitId::Pid(self.pid), peek), Ok(Some(_))) {
            kill_process_group(self.pid, Signal::KILL).ok();
        }
        let mut ended = None;
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == self.pid && !*collected {
                *collected = true;
                ended = Some(ExitStatus::from_raw(status.as_raw()));
            }
        }
        ended
    }
}

/// Kills until the reaper says that no child is left.
fn kill_everything(leader: &Leader, flock: &Flock, received: &Receiver<Event>) {
    let started = Instant::now();
    while started.elapsed() < KILL_WITHIN {
        leader.kill();
        flock.kill();
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
fn reap(leader: Arc<Leader>, events: Sender<Event>) {
    thread::spawn(move || {
        processes::go_first();
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Ok(_) | Err(Errno::INTR) = waitid(WaitId::All, peek) {
            if let Some(status) = leader.collect_ended() {
                drop(events.send(Event::Ended(status)));
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
