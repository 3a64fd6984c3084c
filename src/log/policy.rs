//! What an auditor holds: whose signatures make a checkpoint count.

use thiserror::Error;

use super::checkpoint::{Checkpoint, SignedCheckpoint};
use super::key::{KeyName, SignatureType, VerifierKey};
use super::note::{NoteError, SignedAt};
use super::tree::TreeHead;
use crate::attest::keys::KeyId;

/// The most keys of logs and witnesses together.
const MAX_KEYS: usize = 64;

/// Why keys and quorum do not make a policy, or a checkpoint does not meet it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// No log key.
    #[error(
        "no key of the log is given, so that anybody's checkpoint would do; name the log's key"
    )]
    NoLog,
    /// Too many keys.
    #[error("{count} keys of log and witnesses are given, at most {MAX_KEYS} are looked at")]
    TooMany {
        /// Keys given.
        count: usize,
    },
    /// Keys of two logs.
    #[error("the keys are of two logs, {first} and {second}; a policy is about one log")]
    TwoLogs {
        /// The first name.
        first: KeyName,
        /// Another.
        second: KeyName,
    },
    /// A witness's key in a log's place or the reverse.
    #[error(
        "the key {name} is not a {expected}'s; check its type: 0x01 is a log's, 0x04 a witness's"
    )]
    WrongType {
        /// The key's name.
        name: KeyName,
        /// `log` or `witness`.
        expected: &'static str,
    },
    /// One key under two names or in two uses.
    #[error(
        "the key {keyid} is given twice ({name}); each key counts once, so give each a key of its own"
    )]
    Repeated {
        /// The key.
        keyid: KeyId,
        /// The name under which it came again.
        name: KeyName,
    },
    /// A quorum that cannot be met.
    #[error("a quorum of {quorum} out of {witnesses} witnesses cannot be met")]
    Quorum {
        /// Witnesses needed.
        quorum: usize,
        /// Witnesses given.
        witnesses: usize,
    },
    /// The checkpoint is another log's.
    #[error("the checkpoint is of the log {found}, expected {expected}")]
    WrongLog {
        /// The log of the policy.
        expected: KeyName,
        /// The checkpoint's.
        found: KeyName,
    },
    /// The signatures do not verify.
    #[error("the checkpoint of {origin} does not verify: {reason}")]
    Signatures {
        /// The log.
        origin: KeyName,
        /// What is wrong.
        reason: NoteError,
    },
    /// Only witnesses signed.
    #[error("the checkpoint is not signed by a key of the log {origin}; check the log's key")]
    NotByLog {
        /// The log.
        origin: KeyName,
    },
    /// Too few witnesses.
    #[error(
        "{found} of the known witnesses cosigned the checkpoint of {origin}, {quorum} are needed; ask the missing ones"
    )]
    TooFewWitnesses {
        /// The log.
        origin: KeyName,
        /// Witnesses that did.
        found: usize,
        /// Witnesses needed.
        quorum: usize,
    },
}

/// The keys of one log, the keys of witnesses, and how many of these must have cosigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPolicy {
    origin: KeyName,
    /// The log's keys first.
    keys: Vec<VerifierKey>,
    quorum: usize,
}

impl LogPolicy {
    /// A policy. Several keys of the log may be given, all under its name, as while one is being replaced; one signature
    /// of any of them is enough. A quorum of 0 asks for no witness.
    pub fn new(
        log: Vec<VerifierKey>,
        witnesses: Vec<VerifierKey>,
        quorum: usize,
    ) -> Result<Self, PolicyError> {
        let origin = log.first().ok_or(PolicyError::NoLog)?.name().clone();
        let count = log.len() + witnesses.len();
        if count > MAX_KEYS {
            return Err(PolicyError::TooMany { count });
        }
        if let Some(other) = log.iter().find(|key| *key.name() != origin) {
            return Err(PolicyError::TwoLogs {
                first: origin,
                second: other.name().clone(),
            });
        }
        check_type(&log, SignatureType::Log, "log")?;
        check_type(&witnesses, SignatureType::Witness, "witness")?;
        if quorum > witnesses.len() {
            return Err(PolicyError::Quorum {
                quorum,
                witnesses: witnesses.len(),
            });
        }
        let keys: Vec<_> = log.into_iter().chain(witnesses).collect();
        for (index, key) in keys.iter().enumerate() {
            // Break it: drop this and `log::checkpoints::a_policy_that_would_let_anything_pass_is_refused` fails.
            if keys
                .iter()
                .take(index)
                .any(|other| other.public() == key.public())
            {
                return Err(PolicyError::Repeated {
                    keyid: key.public().keyid(),
                    name: key.name().clone(),
                });
            }
        }
        Ok(Self {
            origin,
            keys,
            quorum,
        })
    }

    /// The log.
    pub fn origin(&self) -> &KeyName {
        &self.origin
    }

    /// Takes a checkpoint for true if it is this log's, one of the log's keys signed it, and enough witnesses did.
    pub fn verify(&self, signed: &SignedCheckpoint) -> Result<TrustedCheckpoint, PolicyError> {
        let origin = || self.origin.clone();
        let checkpoint = signed.claimed();
        // Break it: drop this and `log::checkpoints::the_origin_is_the_name_of_the_logs_key` fails.
        if *checkpoint.origin() != self.origin {
            return Err(PolicyError::WrongLog {
                expected: origin(),
                found: checkpoint.origin().clone(),
            });
        }
        let signers =
            signed
                .note()
                .verify(&self.keys)
                .map_err(|reason| PolicyError::Signatures {
                    origin: origin(),
                    reason,
                })?;
        let mut by_log = false;
        let mut cosignatures = Vec::new();
        for signer in signers {
            match signer.at {
                SignedAt::Untimed => by_log = true,
                SignedAt::Seconds(seconds) => cosignatures.push(Cosigned {
                    witness: signer.key.name().clone(),
                    seconds,
                }),
            }
        }
        // Break it: drop this and `log::checkpoints::witnesses_alone_do_not_make_a_checkpoint` fails.
        if !by_log {
            return Err(PolicyError::NotByLog { origin: origin() });
        }
        if cosignatures.len() < self.quorum {
            return Err(PolicyError::TooFewWitnesses {
                origin: origin(),
                found: cosignatures.len(),
                quorum: self.quorum,
            });
        }
        Ok(TrustedCheckpoint {
            checkpoint: checkpoint.clone(),
            cosignatures,
        })
    }
}

fn check_type(
    keys: &[VerifierKey],
    signature_type: SignatureType,
    expected: &'static str,
) -> Result<(), PolicyError> {
    match keys
        .iter()
        .find(|key| key.signature_type() != signature_type)
    {
        Some(key) => Err(PolicyError::WrongType {
            name: key.name().clone(),
            expected,
        }),
        None => Ok(()),
    }
}

/// That a witness cosigned, and when by its own clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cosigned {
    /// The witness.
    pub witness: KeyName,
    /// Seconds since 1970.
    pub seconds: u64,
}

/// A checkpoint that met a policy. There is no other way to make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedCheckpoint {
    checkpoint: Checkpoint,
    cosignatures: Vec<Cosigned>,
}

impl TrustedCheckpoint {
    /// What the log said.
    pub const fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Size and root.
    pub const fn head(&self) -> TreeHead {
        self.checkpoint.head()
    }

    /// Which of the known witnesses cosigned, each once.
    pub fn cosignatures(&self) -> &[Cosigned] {
        &self.cosignatures
    }
}
