//! A new version of the trust root, and the keys that go with it, so that an installation works at every moment.
//!
//! 1. New keys are written beside the present ones, as `<use>.key.next`. Nobody uses a key that no trust root lists.
//! 2. The new version is put in place. From here on the key in use is `<use>.key.next`, since that is the one it lists.
//! 3. A role's key before is kept as `<use>.key.previous`: it signs what was drafted under the version before, for
//!    [`OVERLAP_SECONDS`](crate::attest::trust_root::OVERLAP_SECONDS), unless it was revoked.
//! 4. `<use>.key.next` is renamed onto `<use>.key`, which is gone then.
//!
//! What ended in between is ended by the next command, which begins with [`Succession::settle`].

mod place;
mod plan;

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use super::sealed::{is_listed, lists_a_log_key, read_at, validity};
use super::secret::Secret;
use super::{KeyringError, files, key_file_in_use, places, trust_history};
use crate::attest::keys::{Fill, FillError};
use crate::attest::trust_root::Proposal;
use crate::attest::{
    KeyFile, KeyFileError, KeyId, KeyUse, PublicKey, Role, SecretKey, Text, TrustHistory,
    TrustRoot, TrustRootError,
};
use crate::clock::Millis;
use crate::config::{Configuration, Environment};

/// What a person wants a new version to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Another key in the place of the present one.
    Rotate(KeyUse),
    /// A key that lies elsewhere, in an agent or with a signer of its own, in the place of a role's present one.
    Adopt(KeyUse, PublicKey),
    /// A key of the log, where there is none.
    AddLog,
    /// The end of a key. The one in use is replaced with it.
    Revoke {
        /// Which.
        keyid: KeyId,
        /// Why.
        reason: Text,
        /// From when on somebody else may have had it.
        compromised_since: Option<Millis>,
        /// From which index of the log on it does not count: how many leaves the last checkpoint before that has.
        at_index: Option<u64>,
    },
    /// Another root key.
    AddRoot(PublicKey),
    /// A root key less.
    RemoveRoot(KeyId),
    /// How many root keys have to sign.
    Threshold(u64),
}

/// Where a test may stop a succession, as `kill -9` would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// New keys lie beside the present ones.
    KeysWritten,
    /// The new version is in place.
    TrustRootInPlace,
    /// The key before is kept aside.
    PreviousKept,
    /// A new key has taken its place.
    KeyInPlace,
}

/// A key that took another's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// What it is for.
    pub used: KeyUse,
    /// The new key.
    pub keyid: KeyId,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Succeeded {
    /// The version in force now.
    pub trust: TrustRoot,
    /// Keys that took others' places.
    pub replaced: Vec<Replaced>,
    /// Whether this only ended what had been interrupted. The wishes were not looked at then.
    pub resumed: bool,
}

/// Why there is no new version. Unless it says otherwise, the one before is still in force.
#[derive(Debug, thiserror::Error)]
pub enum SuccessionError {
    /// The keys that are there.
    #[error(transparent)]
    Keys(#[from] KeyringError),
    /// Two at once.
    #[error(
        "changing the keys in {directory}: another command is at it; wait until it has ended, then look with `caretaker keys list`"
    )]
    Busy {
        /// The folder.
        directory: String,
    },
    /// One root key is not enough.
    #[error(
        "trust root version {version} needs {needed} root keys to sign the next one; write it with `caretaker keys propose`, have each holder sign the file with `caretaker keys sign`, then run `caretaker keys accept`"
    )]
    NeedsOthers {
        /// The version in force.
        version: u64,
        /// How many.
        needed: u64,
    },
    /// The key in the folder is no root key of the trust root.
    #[error(
        "the root key in {path} is {keyid}, which trust root version {version} does not list as a root key; put the one that it lists there"
    )]
    NotRoot {
        /// The file.
        path: String,
        /// The key in it.
        keyid: KeyId,
        /// The version in force.
        version: u64,
    },
    /// A wish that makes no sense here.
    #[error("{0}")]
    Wish(String),
    /// The new version is not acceptable.
    #[error(transparent)]
    TrustRoot(#[from] TrustRootError),
    /// The new version would leave this installation without a key.
    #[error(
        "trust root version {version} is not put in place: this installation could not act any more, since its {used} key {keyid} does not count by it ({why})"
    )]
    WouldStop {
        /// The version.
        version: u64,
        /// Whose key.
        used: KeyUse,
        /// Which.
        keyid: KeyId,
        /// Why not.
        why: String,
    },
    /// A key could not be sealed.
    #[error("sealing a new key: {0}")]
    Seal(KeyFileError),
    /// The system refuses.
    #[error(
        "changing the keys: {doing} {path}: {cause}; mend that and run the command again, which takes up what is there"
    )]
    System {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: String,
        /// What the system answered.
        cause: io::Error,
    },
    /// No randomness.
    #[error(transparent)]
    Fill(#[from] FillError),
    /// A test stopped it here.
    #[error("changing the keys: stopped at {0:?}")]
    Stopped(Point),
}

fn system<'a>(
    doing: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> SuccessionError + 'a {
    move |cause| SuccessionError::System {
        doing,
        path: path.display().to_string(),
        cause,
    }
}

/// Told of each point; breaking off leaves everything as after a crash there.
pub type Passed<'p> = &'p dyn Fn(Point) -> ControlFlow<()>;

fn pass(passed: Passed<'_>, point: Point) -> Result<(), SuccessionError> {
    match passed(point) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(SuccessionError::Stopped(point)),
    }
}

/// The folder of keys, locked for one change at a time.
#[derive(Debug)]
pub struct Succession<'c> {
    configuration: &'c Configuration,
    environment: &'c Environment,
    history: TrustHistory,
    now: Millis,
    _lock: File,
}

impl<'c> Succession<'c> {
    /// Locks the folder and reads the trust root.
    ///
    /// # Errors
    /// Another command is at it, or there is no trust root that can be read.
    pub fn begin(
        configuration: &'c Configuration,
        environment: &'c Environment,
        now: Millis,
    ) -> Result<Self, SuccessionError> {
        let folder = &configuration.keys.dir;
        // Without keys the mend is to make some, not to look at a lock.
        drop(trust_history(configuration)?);
        let lock = File::open(folder).map_err(system("opening", folder))?;
        if lock.try_lock().is_err() {
            let directory = folder.display().to_string();
            return Err(SuccessionError::Busy { directory });
        }
        Ok(Self {
            configuration,
            environment,
            history: trust_history(configuration)?,
            now,
            _lock: lock,
        })
    }

    /// The version in force.
    pub fn trust(&self) -> &TrustRoot {
        self.history.newest()
    }

    fn folder(&self) -> &Path {
        &self.configuration.keys.dir
    }

    /// Ends what was interrupted after a version was put in place.
    ///
    /// # Errors
    /// The system refuses.
    pub fn settle(&self) -> Result<Vec<Replaced>, SuccessionError> {
        self.place(self.trust(), &|_| ControlFlow::Continue(()))
    }

    /// Makes a new version with the one root key that is here, and puts it in place.
    ///
    /// # Errors
    /// See [`SuccessionError`].
    pub fn perform(
        &self,
        wishes: &[Wish],
        fill: Fill<'_>,
        passed: Passed<'_>,
    ) -> Result<Succeeded, SuccessionError> {
        let replaced = self.settle()?;
        if !replaced.is_empty() {
            return Ok(Succeeded {
                trust: self.trust().clone(),
                replaced,
                resumed: true,
            });
        }
        let document = self.trust().document();
        if document.threshold > 1 {
            return Err(SuccessionError::NeedsOthers {
                version: document.version,
                needed: document.threshold,
            });
        }
        let root = self.root_key()?;
        let (mut proposal, made) = self.planned(wishes, fill)?;
        pass(passed, Point::KeysWritten)?;
        proposal.sign(&root)?;
        for (_, key) in made.iter().filter(|(used, _)| *used == KeyUse::Root) {
            proposal.sign(key)?;
        }
        self.accept(&proposal.to_bytes()?, passed)
    }

    /// Writes new keys beside the present ones and the version that would list them, which nobody has signed.
    ///
    /// # Errors
    /// See [`SuccessionError`].
    pub fn propose(&self, wishes: &[Wish], fill: Fill<'_>) -> Result<Proposal, SuccessionError> {
        self.settle()?;
        self.planned(wishes, fill).map(|(proposal, _)| proposal)
    }

    /// Puts a version in place that enough root keys signed, of the version before and of its own.
    ///
    /// # Errors
    /// It is not the next version, is not signed by enough, or would leave this installation without a key that counts.
    pub fn accept(&self, bytes: &[u8], passed: Passed<'_>) -> Result<Succeeded, SuccessionError> {
        let mut history = self.history.clone();
        history.add_newer(bytes)?;
        let trust = history.newest();
        trust.allow_acting(self.now)?;
        self.usable(trust)?;
        let path = places::trust_root_file(self.folder(), trust.document().version);
        files::write_whole(&path, bytes, false).map_err(system("writing", &path))?;
        pass(passed, Point::TrustRootInPlace)?;
        let replaced = self.place(trust, passed)?;
        Ok(Succeeded {
            trust: trust.clone(),
            replaced,
            resumed: false,
        })
    }

    /// A version by which the keys that lie here do not count is refused while the one before is still in force.
    fn usable(&self, trust: &TrustRoot) -> Result<(), SuccessionError> {
        let log = lists_a_log_key(trust).then_some(KeyUse::Log);
        let here = |used: &KeyUse| self.configuration.keys.signer(*used).is_none();
        let daily = Role::ALL.into_iter().map(KeyUse::from).filter(here);
        for used in daily.chain(log) {
            let (_, file) = key_file_in_use(used, self.configuration, trust)?;
            let keyid = file.header().keyid.clone();
            let why = match validity(used, &keyid, trust) {
                None => Some("it is not listed".to_owned()),
                Some(validity) => validity.why_not(self.now),
            };
            if let Some(why) = why {
                return Err(SuccessionError::WouldStop {
                    version: trust.document().version,
                    used,
                    keyid,
                    why,
                });
            }
        }
        Ok(())
    }

    /// The root key of the folder, which the version in force has to list.
    fn root_key(&self) -> Result<SecretKey, SuccessionError> {
        let path = places::key_file(self.folder(), KeyUse::Root);
        let file = read_at(KeyUse::Root, &path)?;
        let keyid = file.header().keyid.clone();
        if !is_listed(KeyUse::Root, &keyid, self.trust()) {
            return Err(SuccessionError::NotRoot {
                path: path.display().to_string(),
                keyid,
                version: self.trust().document().version,
            });
        }
        self.opened(KeyUse::Root, &file, &path)
    }

    fn opened(
        &self,
        used: KeyUse,
        file: &KeyFile,
        path: &Path,
    ) -> Result<SecretKey, SuccessionError> {
        let secret = Secret::find(used, self.configuration, self.environment)
            .map_err(|cause| KeyringError::Secret { used, cause })?;
        let opened = file.open(used, secret.bytes());
        let opened = opened.map_err(|cause| KeyringError::KeyFile {
            used,
            path: path.display().to_string(),
            cause,
        });
        Ok(opened?)
    }
}
