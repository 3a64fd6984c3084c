//! The way from a program's private loopback to one Unix socket: `sandbox-bridge --listen 127.0.0.1:PORT --to SOCKET -- argv…`.
//!
//! Runs inside of the boundary, before the program and beside it. A program that can only speak TCP is so given exactly one place to
//! speak to, and nothing of the network. What comes is carried on as it is; whoever listens at the socket decides.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::reexec;

/// Connections at once; one more is closed at once.
const MOST_CONNECTIONS: usize = 64;

/// The command line that runs `argv` beside a bridge from `port` of the private loopback to `socket`. The program and the socket must
/// be among what the command may read, and the command must have a private loopback.
pub fn command_line(
    launcher: &Path,
    port: u16,
    socket: &Path,
    argv: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let mut line: Vec<OsString> = vec![launcher.into(), reexec::BRIDGE.into()];
    let listen = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).to_string();
    line.extend([
        "--listen".into(),
        listen.into(),
        "--to".into(),
        socket.into(),
        "--".into(),
    ]);
    line.extend(argv);
    line
}

/// What the command line says.
struct Told {
    listen: SocketAddrV4,
    to: PathBuf,
    argv: Vec<OsString>,
}

/// Runs the bridge and the program; the exit code is the program's.
pub(super) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match run(arguments) {
        Ok(status) => ExitCode::from(code(status)),
        Err(reason) => {
            drop(writeln!(io::stderr(), "caretaker sandbox-bridge: {reason}"));
            reexec::NOT_REACHED.into()
        }
    }
}

fn run(arguments: impl Iterator<Item = OsString>) -> Result<ExitStatus, String> {
    let told = read(arguments)
        .ok_or("usage: sandbox-bridge --listen 127.0.0.1:PORT --to SOCKET -- PROGRAM…")?;
    let listener = TcpListener::bind(told.listen).map_err(|error| {
        format!(
            "listening at {}: {error}; it runs only inside of a sandbox with a private loopback",
            told.listen
        )
    })?;
    let to: Arc<Path> = told.to.into();
    thread::spawn(move || accept(&listener, &to));
    let (program, rest) = told.argv.split_first().ok_or("no program is named")?;
    let mut child = Command::new(program).args(rest).spawn().map_err(|error| {
        format!(
            "starting {}: {error}; is it installed, and readable in the sandbox?",
            program.display()
        )
    })?;
    // With this process the listener ends, and every connection.
    child
        .wait()
        .map_err(|error| format!("waiting for {}: {error}", program.display()))
}

fn read(mut arguments: impl Iterator<Item = OsString>) -> Option<Told> {
    let mut word = |name: &str| {
        let found = arguments.next()?;
        (found.to_str() == Some(name))
            .then(|| arguments.next())
            .flatten()
    };
    let listen: SocketAddrV4 = word("--listen")?.to_str()?.parse().ok()?;
    let to = PathBuf::from(word("--to")?);
    let program = word("--")?;
    let argv = std::iter::once(program).chain(arguments).collect();
    // Break it: let any address pass; `sandbox::bridge::it_listens_on_loopback_alone` fails.
    listen
        .ip()
        .is_loopback()
        .then_some(Told { listen, to, argv })
}

/// As a shell says it.
fn code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| signal.saturating_add(128));
    let code = status.code().or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

fn accept(listener: &TcpListener, to: &Arc<Path>) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming().flatten() {
        // Break it: leave this out; `sandbox::bridge::connections_are_bounded` fails.
        if open.load(Ordering::Relaxed) >= MOST_CONNECTIONS {
            continue;
        }
        open.fetch_add(1, Ordering::Relaxed);
        let (to, open) = (Arc::clone(to), Arc::clone(&open));
        thread::spawn(move || {
            // A connection that breaks is the program's to notice.
            drop(carry(&stream, &to));
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Carries bytes both ways until both ends have said everything.
fn carry(inner: &TcpStream, to: &Path) -> io::Result<()> {
    let outer = UnixStream::connect(to)?;
    let (mut answers, mut back) = (outer.try_clone()?, inner.try_clone()?);
    let answering = thread::spawn(move || {
        drop(io::copy(&mut answers, &mut back));
        drop(back.shutdown(Shutdown::Both));
    });
    let (mut questions, mut forth) = (inner, &outer);
    let asked = io::copy(&mut questions, &mut forth);
    drop(outer.shutdown(Shutdown::Write));
    drop(answering.join());
    asked.map(drop)
}
