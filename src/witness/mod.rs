//! A witness (C2SP tlog-witness, tlog-cosignature): run by an auditor on a machine of their own. It signs a checkpoint of a log
//! only if that extends the last one it signed, and remembers one line a log.
//!
//! Whoever trusts the witness's key then knows that no second history was shown to it: not what the log says, but that it
//! says one thing to everybody.

mod connections;
mod key;
mod request;
mod server;
mod state;

pub use key::KEY_FILE;
pub use request::{MAX_BODY, RequestError};
pub use server::{Limits, router, serve};
pub use state::{STATE_FILE, Seen};

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use crate::attest::keys::{Fill, FillError};
use crate::clock::Millis;
use crate::log::{
    KeyName, LogPolicy, NoteSignature, PolicyError, ProofError, TreeHead, TrustedCheckpoint,
    VerifierKey, WitnessSigner, verify_consistency,
};
use request::Request;
use state::State;

/// Why a witness cannot be made, or cannot run.
#[derive(Debug, Error)]
pub enum WitnessError {
    /// A file.
    #[error("{action} {path}: {cause}")]
    File {
        /// What was being done.
        action: &'static str,
        /// Where.
        path: String,
        /// What the system says.
        cause: io::Error,
    },
    /// The system has no randomness.
    #[error("making the key: {0}")]
    Randomness(FillError),
    /// A folder that is in use.
    #[error(
        "making a witness in {folder}: there is one already; name another folder, since a second key there would forget what the first has signed"
    )]
    There {
        /// The folder.
        folder: PathBuf,
    },
    /// Others may read the key.
    #[error(
        "opening the key {path}: others may read it; `chmod 600 {path}`, and make a new witness if somebody else was there"
    )]
    Readable {
        /// The key file.
        path: PathBuf,
    },
    /// Not a key.
    #[error(
        "opening the key {path}: {reason}; restore it, or make a new witness with `caretaker witness init`"
    )]
    Key {
        /// The key file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// No state.
    #[error(
        "reading what was cosigned from {path}: it is gone. Restore it with its last content; if that is lost, make a new witness with \
         `caretaker witness init`, since this one could cosign a second history"
    )]
    Forgotten {
        /// The state file.
        path: PathBuf,
    },
    /// A state that is not one.
    #[error(
        "reading what was cosigned from {path}: {reason}. Restore it with its last content; if that is lost, make a new witness with \
         `caretaker witness init`, since this one could cosign a second history"
    )]
    State {
        /// The state file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Two processes.
    #[error("locking {folder}: another process runs this witness; stop it first")]
    Running {
        /// The folder.
        folder: PathBuf,
    },
    /// The keys of the logs make no sense.
    #[error("the keys of the logs: {0}")]
    Logs(PolicyError),
    /// One key for both.
    #[error("the keys of the logs: {name} is the witness's own key; a witness vouches for others")]
    Own {
        /// Its name.
        name: KeyName,
    },
}

impl WitnessError {
    fn file(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.display().to_string();
        move |cause| Self::File {
            action,
            path: path.clone(),
            cause,
        }
    }
}

/// Makes the key and the empty memory of a witness in a folder, which is made if it is not there. What others are given.
///
/// # Errors
/// There is a witness already, or the folder cannot be written.
pub fn init(folder: &Path, name: &KeyName, fill: Fill<'_>) -> Result<VerifierKey, WitnessError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let making = WitnessError::file("making the folder", folder);
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    made.map_err(making)?;
    let there = [KEY_FILE, STATE_FILE].map(|name| folder.join(name));
    if there.iter().any(|path| path.symlink_metadata().is_ok()) {
        return Err(WitnessError::There {
            folder: folder.to_owned(),
        });
    }
    let (text, key) = key::make(name, fill)?;
    State::begin(folder, &key)?;
    key::write(folder, &text)?;
    Ok(key)
}

/// What is answered to a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// 200: the cosignature.
    Cosigned(NoteSignature),
    /// 400: no request.
    Malformed(RequestError),
    /// 403: no key that is trusted signed it.
    Untrusted(PolicyError),
    /// 404: not a log that is known.
    UnknownLog,
    /// 409: the last checkpoint cosigned has this many leaves, or as many and another root.
    Conflict {
        /// Leaves.
        size: u64,
    },
    /// 422: the proof does not lead from the last checkpoint to this one.
    Inconsistent(ProofError),
    /// 500: it could not be remembered, so nothing was signed.
    Failed(String),
}

/// A witness that runs.
#[derive(Debug)]
pub struct Witness {
    signer: WitnessSigner,
    logs: BTreeMap<KeyName, LogPolicy>,
    /// One request at a time from the look at what was cosigned to its being remembered.
    state: Mutex<State>,
}

impl Witness {
    /// Opens the witness in a folder, which will cosign for these logs. Several keys of one log may be given.
    ///
    /// # Errors
    /// No keys or unusable ones; key or memory of the witness cannot be read; another process runs it.
    pub fn open(folder: &Path, logs: Vec<VerifierKey>) -> Result<Self, WitnessError> {
        let signer = key::open(folder)?;
        let own = signer.verifier();
        let mut by_name: BTreeMap<KeyName, Vec<VerifierKey>> = BTreeMap::new();
        for key in logs {
            if key.public() == own.public() {
                let name = key.name().clone();
                return Err(WitnessError::Own { name });
            }
            by_name.entry(key.name().clone()).or_default().push(key);
        }
        // Break it: leave this out; a witness of nothing then runs and looks healthy
        // (`witness::folder::a_witness_of_no_log_does_not_run`).
        if by_name.is_empty() {
            return Err(WitnessError::Logs(PolicyError::NoLog));
        }
        let policy = |(name, keys)| Ok((name, LogPolicy::new(keys, Vec::new(), 0)?));
        let logs: Result<_, PolicyError> = by_name.into_iter().map(policy).collect();
        Ok(Self {
            logs: logs.map_err(WitnessError::Logs)?,
            state: Mutex::new(State::open(folder, own)?),
            signer,
        })
    }

    /// What verifiers are given.
    pub fn key(&self) -> VerifierKey {
        self.signer.verifier()
    }

    /// The logs it knows, each with the last checkpoint that was cosigned.
    pub fn logs(&self) -> Vec<(KeyName, Option<Seen>)> {
        let state = self.state();
        let logs = self.logs.keys();
        logs.map(|name| (name.clone(), state.of(name))).collect()
    }

    /// Logs of which checkpoints were cosigned and whose key is not given any more.
    pub fn retired(&self) -> Vec<KeyName> {
        let state = self.state();
        let seen = state.all().keys();
        let retired = seen.filter(|name| !self.logs.contains_key(*name));
        retired.cloned().collect()
    }

    /// Nothing is left half done in it: it changes by one assignment, after the disk.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One `add-checkpoint`. When a cosignature is returned, the checkpoint is remembered on the disk.
    pub fn add_checkpoint(&self, body: &[u8], now: Millis) -> Answer {
        let request = match Request::parse(body) {
            Ok(request) => request,
            Err(error) => return Answer::Malformed(error),
        };
        let origin = request.checkpoint.claimed().origin();
        let Some(policy) = self.logs.get(origin) else {
            return Answer::UnknownLog;
        };
        match policy.verify(&request.checkpoint) {
            Ok(trusted) => self.extend(&request, &trusted, now),
            Err(error) => Answer::Untrusted(error),
        }
    }

    /// From here on the log itself has signed what is asked for.
    fn extend(&self, request: &Request, trusted: &TrustedCheckpoint, now: Millis) -> Answer {
        let (origin, head) = (trusted.checkpoint().origin(), trusted.head());
        // Break it: take the lock anew for `record`; two trees of one size are then cosigned
        // (`witness::protocol::of_two_trees_at_once_one_is_cosigned`).
        let mut state = self.state();
        let seen = state.of(origin).map(|seen| seen.head);
        let size = seen.map_or(0, |seen| seen.size());
        // Break it: leave this out and `witness::protocol::a_log_that_was_rolled_back_gets_no_cosignature` fails.
        if request.old != size {
            return Answer::Conflict { size };
        }
        // Break it: leave this out and `witness::story::a_log_that_forks_gets_no_cosignature_for_its_second_history` fails.
        match extends(seen, head, &request.proof) {
            Ok(()) => {}
            Err(ProofError::Fork { .. }) => {
                tracing::error!(%origin, size, root = %head.root(), "the log has signed a second tree of a size that was cosigned");
                return Answer::Conflict { size };
            }
            Err(error) => {
                tracing::warn!(%origin, old = size, size = head.size(), root = %head.root(), %error, "a checkpoint that the log signed does not follow from the last one");
                return Answer::Inconsistent(error);
            }
        }
        let signature = match self.signer.cosign(trusted, now) {
            Ok(signature) => signature,
            Err(error) => return Answer::Failed(error.to_string()),
        };
        // Break it: pass over the error; after a crash another tree of this size is then cosigned
        // (`witness::folder::what_cannot_be_remembered_is_not_cosigned`).
        if let Err(error) = state.record(origin, Seen { head, at: now }) {
            return Answer::Failed(error.to_string());
        }
        tracing::info!(%origin, size = head.size(), "cosigned");
        Answer::Cosigned(signature)
    }
}

/// Whether a tree follows from what was seen. Everything follows from nothing, without proof.
fn extends(
    seen: Option<TreeHead>,
    new: TreeHead,
    proof: &[crate::log::TreeHash],
) -> Result<(), ProofError> {
    match seen.filter(|seen| seen.size() > 0) {
        Some(seen) => verify_consistency(&seen, &new, proof),
        None if proof.is_empty() => Ok(()),
        None => Err(ProofError::Shape {
            length: proof.len(),
        }),
    }
}
