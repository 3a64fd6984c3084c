//! What can go wrong while the forge is set up or steered.

use std::net::SocketAddr;
use std::path::PathBuf;

/// A failure of the forge itself or of an act of a person upon it. What a client of its HTTP interface does wrong is
/// answered in GitHub's own words instead.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// The folder of the repositories cannot be made or read.
    #[error("preparing the forge's folder {path}: {source}; choose a folder that you may write to")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The folder holds something already; pull requests and runs live in memory, so an old folder cannot be resumed.
    #[error(
        "preparing the forge's folder {path}: it is not empty; choose a new folder or remove it"
    )]
    FolderNotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The address cannot be listened on.
    #[error("listening on {address}: {source}; choose a free port, or port 0 for any free one")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The address is reachable from other machines while the token is the published one.
    #[error(
        "listening on {address}: the forge's usual token is public, so only loopback is allowed with it; give a token of your own"
    )]
    PublishedToken {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The git executable cannot be started or talked to.
    #[error("running `git {command}`: {source}; install git 2.38 or newer and put it on PATH")]
    GitUnavailable {
        /// The arguments.
        command: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// git ran and refused.
    #[error(
        "running `git {command}`: it failed with {detail}; the request or the repository does not allow this"
    )]
    Git {
        /// The arguments.
        command: String,
        /// The exit code and the last lines git printed.
        detail: String,
    },
    /// git printed something this version of the forge cannot read.
    #[error("reading the output of `git {command}`: {detail}; use git 2.38 or newer")]
    GitOutput {
        /// The arguments.
        command: &'static str,
        /// What was expected.
        detail: String,
    },
    /// A thing that was named does not exist.
    #[error("looking for {what}: there is none; create it first or correct the name")]
    Absent {
        /// The kind and name of the thing.
        what: String,
    },
    /// A thing that was to be created exists.
    #[error("creating {what}: it exists already; choose another name")]
    Exists {
        /// The kind and name of the thing.
        what: String,
    },
    /// The forge's rules do not allow the act.
    #[error("{act}: refused, {reason}")]
    Refused {
        /// What was to be done, to what.
        act: String,
        /// Why it was refused and the mend.
        reason: String,
    },
}
