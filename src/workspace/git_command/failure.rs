//! Why git did not do what it was told, read from its messages (which `LC_ALL=C` keeps in English).

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::process::Finished;
use super::remote::{Remote, tidy};
use super::{Push, RefName};

/// Why a git command failed. Messages of the remote are shown without the credential, and are never to be trusted.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("git is not in PATH; install git 2.38 or newer")]
    NoGit,
    /// An address that git may not talk to.
    #[error("refusing the repository address {address}: {reason}")]
    BadAddress {
        /// The address, without what may be a credential.
        address: String,
        /// What is wrong, and the mend.
        reason: String,
    },
    /// A name that is not one of a ref.
    #[error("refusing the ref name {name:?}: {reason}")]
    BadRef {
        /// The beginning of the name.
        name: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// The remote did not accept the credential, or does not show the repository to it. The two are not told apart by the
    /// remote, so this never means that the repository is gone.
    #[error(
        "{address} does not exist or does not accept the credential; check the installation's access to it ({said})"
    )]
    AuthenticationOrAbsent {
        /// The remote.
        address: String,
        /// What was said.
        said: String,
    },
    /// The credential may not change workflow files.
    #[error(
        "pushing {reference} to {address} was refused: the change touches workflow files, and the credential lacks the \
         permission for workflows; grant it, or keep workflows out of the change ({said})"
    )]
    WorkflowPermission {
        /// The remote.
        address: String,
        /// The ref.
        reference: RefName,
        /// What was said.
        said: String,
    },
    /// The remote's ref was not what was expected.
    #[error(
        "pushing {reference} to {address} was not done: the ref is no longer what it was; read it again ({said})"
    )]
    StaleLease {
        /// The remote.
        address: String,
        /// The ref.
        reference: RefName,
        /// What was said.
        said: String,
    },
    /// The remote refused the push by a rule of its own, such as branch protection.
    #[error("pushing {reference} to {address} was refused by the remote's rules ({said})")]
    Refused {
        /// The remote.
        address: String,
        /// The ref.
        reference: RefName,
        /// What was said.
        said: String,
    },
    /// The remote does not have what was to be fetched.
    #[error("fetching from {address}: it does not have the ref or commit asked for ({said})")]
    NotThere {
        /// The remote.
        address: String,
        /// What was said.
        said: String,
    },
    /// The remote answered with another address, which is not followed: the credential is for this one.
    #[error("{address} has moved; register the repository under its new address ({said})")]
    Moved {
        /// The remote.
        address: String,
        /// What was said.
        said: String,
    },
    /// The remote cannot be reached or broke off; worth another try.
    #[error("{address} cannot be reached, or the connection broke off; try again later ({said})")]
    Unreachable {
        /// The remote.
        address: String,
        /// What was said.
        said: String,
    },
    /// Git took too long and was killed, with what it had started. Whether a push happened is not known.
    #[error("{doing}: git was killed after {} s; try again, or raise its deadline", deadline.as_secs())]
    TimedOut {
        /// What was being done.
        doing: &'static str,
        /// How long it had.
        deadline: Duration,
    },
    /// Git could not be started or answered.
    #[error("{doing}: {path}: {source}", path = .path.display())]
    System {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// Anything else.
    #[error("{doing} ({about}) failed: {said}")]
    Other {
        /// What was being done.
        doing: &'static str,
        /// The remote or repository.
        about: String,
        /// What git said.
        said: String,
    },
}

/// Signs of a missing permission or repository.
const AUTHENTICATION: [&str; 12] = [
    "could not read Username",
    "could not read Password",
    "terminal prompts disabled",
    "Authentication failed",
    "Invalid username or",
    "Repository not found",
    "' not found",
    "does not appear to be a git repository",
    "requested URL returned error: 401",
    "requested URL returned error: 403",
    "requested URL returned error: 404",
    "Write access to repository not granted",
];

/// Signs of a ref that is not what was expected, or changed while it was being pushed.
const STALE: [&str; 7] = [
    "(stale info)",
    "(fetch first)",
    "(non-fast-forward)",
    "cannot lock ref",
    "failed to update ref",
    "reference already exists",
    "(remote ref updated since checkout)",
];

/// Signs of a redirect.
const MOVED: [&str; 5] = [
    "returned error: 301",
    "returned error: 302",
    "returned error: 307",
    "returned error: 308",
    "from redirection",
];

/// Signs of a connection that failed.
const CONNECTION: [&str; 12] = [
    "Could not resolve",
    "Couldn't resolve",
    "Failed to connect",
    "Could not connect",
    "Connection refused",
    "Connection reset",
    "onnection timed out",
    "Operation timed out",
    "the remote end hung up",
    "early EOF",
    "RPC failed",
    "unable to access",
];

/// Signs of a ref or object that the remote does not have.
const NOT_THERE: [&str; 3] = [
    "couldn't find remote ref",
    "not our ref",
    "no such remote ref",
];

fn any(text: &str, signs: &[&str]) -> bool {
    signs.iter().any(|sign| text.contains(sign))
}

/// The failure of a fetch.
pub(super) fn of_fetch(remote: &Remote, finished: &Finished) -> GitError {
    let (address, said) = (remote.address().to_owned(), remote.redact(&finished.stderr));
    if any(&finished.stderr, &NOT_THERE) {
        return GitError::NotThere { address, said };
    }
    of_connection(remote, "fetching", &finished.stderr)
}

/// The failure of a push. Its rejections are on standard output, one line per ref, beginning with `!` (git-push(1)).
pub(super) fn of_push(remote: &Remote, push: &Push, finished: &Finished) -> GitError {
    let printed = String::from_utf8_lossy(&finished.stdout);
    let rejected: Vec<&str> = printed
        .lines()
        .filter(|line| line.starts_with('!'))
        .collect();
    if rejected.is_empty() {
        return of_connection(remote, "pushing", &finished.stderr);
    }
    let line = rejected.join("\n");
    let said = remote.redact(&format!("{line}\n{}", finished.stderr));
    let (address, reference) = (remote.address().to_owned(), push.reference.clone());
    let workflow = line.contains("workflow") && line.contains("refusing to allow");
    if workflow {
        GitError::WorkflowPermission {
            address,
            reference,
            said,
        }
    } else if any(&line, &STALE) {
        GitError::StaleLease {
            address,
            reference,
            said,
        }
    } else {
        GitError::Refused {
            address,
            reference,
            said,
        }
    }
}

/// The failure of something that needs no remote.
pub(super) fn of_local(doing: &'static str, repository: &Path, finished: &Finished) -> GitError {
    let about = repository.display().to_string();
    GitError::Other {
        doing,
        about,
        said: tidy(&finished.stderr),
    }
}

fn of_connection(remote: &Remote, doing: &'static str, stderr: &str) -> GitError {
    let (address, said) = (remote.address().to_owned(), remote.redact(stderr));
    if any(stderr, &MOVED) {
        GitError::Moved { address, said }
    } else if any(stderr, &AUTHENTICATION) {
        GitError::AuthenticationOrAbsent { address, said }
    } else if any(stderr, &CONNECTION) {
        GitError::Unreachable { address, said }
    } else {
        GitError::Other {
            doing,
            about: address,
            said,
        }
    }
}
