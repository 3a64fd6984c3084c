//! `caretaker signer`.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;

use super::installation::Installation;
use super::runtime::{block_on, stop_on_signal};
use super::{Verdict, print};
use crate::attest::Role;
use crate::clock::SystemClock;
use crate::signer::SigningService;

/// Whose key, where to listen, and for whom.
#[derive(Debug, Args)]
pub(super) struct SignerArguments {
    /// The role: proposer, policy, approver or executor.
    #[arg(long, value_parser = role)]
    role: Role,
    /// The Unix socket to answer at; one that a former process of this user left there is replaced.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// The number of a user whose processes may ask, else this user alone; may be given more than once.
    #[arg(long = "allow-uid", value_name = "UID")]
    users: Vec<u32>,
}

fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| "not proposer, policy, approver or executor".to_owned())
}

pub(super) fn run(arguments: &SignerArguments, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let installation = Installation::load(config)?;
    let mut users = arguments.users.clone();
    if users.is_empty() {
        users.push(rustix::process::geteuid().as_raw());
    }
    let others = !arguments.users.is_empty();
    block_on(async {
        let stop = stop_on_signal()?;
        let service = SigningService::open(
            arguments.role,
            &installation.configuration,
            &installation.environment,
            users,
            Box::new(SystemClock),
        )?;
        let listener = listen(&arguments.socket, others)?;
        print(&format!(
            "caretaker: the {}'s signer ({}) answers at {}",
            arguments.role,
            service.public_key().keyid(),
            arguments.socket.display()
        ))?;
        Arc::new(service).serve(listener, stop).await;
        drop(std::fs::remove_file(&arguments.socket));
        Ok(Verdict::Done)
    })
}

fn listen(socket: &Path, others: bool) -> anyhow::Result<tokio::net::UnixListener> {
    let listening = || format!("listening at {}", socket.display());
    if let Ok(found) = std::fs::symlink_metadata(socket) {
        anyhow::ensure!(
            found.file_type().is_socket(),
            "listening at {}: there is something that is no socket; name another path",
            socket.display()
        );
        let own = rustix::process::geteuid().as_raw();
        // Break it: leave this out; `keys::sockets::a_socket_of_somebody_else_or_in_use_is_left_alone` fails where it runs as root, whom the
        // kernel lets replace it.
        anyhow::ensure!(
            found.uid() == own,
            "listening at {}: the socket there belongs to user {}, and this is user {own}; see who left it there, or name another path",
            socket.display(),
            found.uid()
        );
        let answered = std::os::unix::net::UnixStream::connect(socket).is_ok();
        // Break it: leave this out; `keys::sockets::a_socket_of_somebody_else_or_in_use_is_left_alone` fails.
        anyhow::ensure!(
            !answered,
            "listening at {}: another process answers there already",
            socket.display()
        );
        std::fs::remove_file(socket).with_context(listening)?;
    }
    let listener = tokio::net::UnixListener::bind(socket).with_context(listening)?;
    // Who may connect is asked of the kernel for each connection; the file's own bits only have to let those in.
    let mode = if others { 0o666 } else { 0o600 };
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(mode))
        .with_context(listening)?;
    Ok(listener)
}
