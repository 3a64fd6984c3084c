//! Signing as a typed notary: a signer reads the statement itself, builds the signed bytes itself, and refuses what is
//! not its role's to say.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use super::dsse::{Envelope, EnvelopeError, IN_TOTO, pae};
use super::export::Export;
use super::keys::{KeyFile, KeyFileError, KeyId, PublicKey, SecretKey};
use super::role::{PredicateType, Role};
use super::statement::{Event, Statement, StatementError};
use crate::change::Sha256Digest;
use crate::id::IncidentId;

/// How many chain positions [`ProcessMemory`] keeps. The store's own record of unsigned statements has no such limit.
const REMEMBERED: usize = 16_384;

/// Why a signer refuses or fails.
#[derive(Debug, Error)]
pub enum SignError {
    /// Not a statement this version signs.
    #[error("the {role} signer refuses: {error}")]
    Statement {
        /// The signer's role.
        role: Role,
        /// Why.
        error: StatementError,
    },
    /// Not this role's to say.
    #[error("the {role} signer refuses a {kind} statement, which the {} signs", kind.role())]
    Role {
        /// The signer's role.
        role: Role,
        /// The kind of statement.
        kind: PredicateType,
    },
    /// An export of what another role said.
    #[error("the {role} signer refuses an export of what the {whose} said")]
    ExportRole {
        /// The signer's role.
        role: Role,
        /// Whose word it is.
        whose: Role,
    },
    /// Not the fixed serialisation.
    #[error(
        "the {role} signer refuses: the bytes are not the fixed serialisation of the statement"
    )]
    NotFixedForm {
        /// The signer's role.
        role: Role,
    },
    /// Another statement has this position already.
    #[error(
        "the {role} signer refuses: it has signed another statement at position {seq} of {incident}"
    )]
    Position {
        /// The signer's role.
        role: Role,
        /// The incident.
        incident: IncidentId,
        /// The position.
        seq: u64,
    },
    /// Nobody would count the signature.
    #[error(
        "the {role} signer refuses: no verifier would count its signature on this statement ({reason})"
    )]
    WouldNotCount {
        /// The signer's role.
        role: Role,
        /// Which rule it breaks.
        reason: String,
    },
    /// It could not be remembered.
    #[error("the {role} signer refuses: {error}")]
    Memory {
        /// The signer's role.
        role: Role,
        /// Why.
        error: MemoryError,
    },
    /// A signer in another process refuses.
    #[error("{reason}")]
    Elsewhere {
        /// The signer's role.
        role: Role,
        /// In its words.
        reason: String,
    },
    /// The envelope could not be made.
    #[error("the {role} signer fails: {error}")]
    Envelope {
        /// The signer's role.
        role: Role,
        /// Why.
        error: EnvelopeError,
    },
    /// A signer outside this process did not answer.
    #[error("the {role} signer cannot be reached: {reason}")]
    Unreachable {
        /// The signer's role.
        role: Role,
        /// Why.
        reason: String,
    },
}

/// Why a signer cannot remember what it would sign, so that it does not sign.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct MemoryError(pub String);

/// What a signer has signed, by position: of two statements for one position it signs the first alone.
pub trait Memory: fmt::Debug + Send + Sync {
    /// Takes a position of an incident for a statement's digest, unless another has it, and answers which has it. What was answered
    /// is remembered when this returns; the signature leaves afterwards.
    fn take(
        &self,
        incident: &IncidentId,
        seq: u64,
        digest: Sha256Digest,
    ) -> Result<Sha256Digest, MemoryError>;
}

/// A memory that ends with the process.
#[derive(Debug, Default)]
pub struct ProcessMemory(Mutex<BTreeMap<(IncidentId, u64), Sha256Digest>>);

impl Memory for ProcessMemory {
    fn take(
        &self,
        incident: &IncidentId,
        seq: u64,
        digest: Sha256Digest,
    ) -> Result<Sha256Digest, MemoryError> {
        let mut positions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = *positions.entry((incident.clone(), seq)).or_insert(digest);
        if positions.len() > REMEMBERED {
            // Incident ids sort by time, so the oldest incident is forgotten first.
            positions.pop_first();
        }
        Ok(found)
    }
}

/// An Ed25519 key that signs bytes, wherever it is: in this process, in an agent, in a token or a key service. Only a notary asks it,
/// which builds the bytes itself.
pub(crate) trait RawKey: fmt::Debug + Send + Sync {
    /// The public half.
    fn public(&self) -> PublicKey;

    /// The signature of exactly these bytes, or why there is none.
    fn sign_raw(&self, message: &[u8]) -> Result<[u8; 64], String>;
}

impl RawKey for SecretKey {
    fn public(&self) -> PublicKey {
        Self::public(self)
    }

    fn sign_raw(&self, message: &[u8]) -> Result<[u8; 64], String> {
        Ok(self.sign(message))
    }
}

/// Signs the statements of one role.
pub trait Signer: fmt::Debug + Send + Sync {
    /// The role.
    fn role(&self) -> Role;

    /// The public key.
    fn public_key(&self) -> &PublicKey;

    /// The key's fingerprint.
    fn keyid(&self) -> &KeyId;

    /// Signs the bytes of [`Statement::draft`]. The same bytes give the same envelope.
    fn sign(&self, statement: &[u8]) -> Result<Envelope, SignError>;

    /// The same for an event, with the stored envelopes of its chain before it. A signer that can looks whether the event continues
    /// them, and signs only then.
    fn sign_after(&self, statement: &[u8], before: &[Vec<u8>]) -> Result<Envelope, SignError> {
        let _ = before;
        self.sign(statement)
    }

    /// Signs an export of a verified chain. A signer that does not do so says that it cannot be reached for it.
    fn sign_export(&self, _export: &Export) -> Result<Envelope, SignError> {
        Err(SignError::Unreachable {
            role: self.role(),
            reason: "it signs no exports; export without signatures".to_owned(),
        })
    }
}

/// The notary of a role, in this process; its key may be elsewhere.
#[derive(Debug)]
pub struct FileSigner {
    role: Role,
    key: Box<dyn RawKey>,
    public: PublicKey,
    keyid: KeyId,
    memory: Arc<dyn Memory>,
}

impl FileSigner {
    /// Opens `role`'s key file with its secret.
    pub fn open(role: Role, key_file: &[u8], secret: &[u8]) -> Result<Self, KeyFileError> {
        Ok(Self::new(
            role,
            KeyFile::parse(key_file)?.open(role.into(), secret)?,
        ))
    }

    /// A signer for a key that is open already, which remembers what it signed as long as it lives.
    pub fn new(role: Role, key: SecretKey) -> Self {
        Self::with(role, Box::new(key), Arc::new(ProcessMemory::default()))
    }

    /// The same with a memory that outlives it.
    pub fn remembering(role: Role, key: SecretKey, memory: Arc<dyn Memory>) -> Self {
        Self::with(role, Box::new(key), memory)
    }

    /// A signer whose key and memory are wherever they are.
    pub(crate) fn with(role: Role, key: Box<dyn RawKey>, memory: Arc<dyn Memory>) -> Self {
        let public = key.public();
        let keyid = public.keyid();
        Self {
            role,
            key,
            public,
            keyid,
            memory,
        }
    }

    fn seal(&self, bytes: &[u8]) -> Result<Envelope, SignError> {
        let role = self.role;
        let failed = |error| SignError::Envelope { role, error };
        let signature = self.key.sign_raw(&pae(IN_TOTO, bytes));
        let signature = signature.map_err(|reason| SignError::Unreachable { role, reason })?;
        let signed = Envelope::signed(IN_TOTO, bytes, self.keyid.clone(), signature);
        let envelope = signed.map_err(failed)?;
        // A fault while signing can give away the key; a signature that does not verify never leaves.
        // Break it: leave this out; `keys::agent::whatever_else_answers_is_no_signature` fails.
        envelope.verify(IN_TOTO, &self.public).map_err(failed)?;
        Ok(envelope)
    }

    /// Remembers that `bytes` have the event's position, unless others have it.
    fn take_position(&self, event: &Event, bytes: &[u8]) -> Result<(), SignError> {
        let (role, block) = (self.role, event.block());
        let digest = Sha256Digest::of(bytes);
        let taken = self.memory.take(&block.incident, block.seq, digest);
        let found = taken.map_err(|error| SignError::Memory { role, error })?;
        // Break it: leave this out; `keys::memory::another_statement_for_a_position_is_refused_after_a_restart` fails.
        if found != digest {
            return Err(SignError::Position {
                role,
                incident: block.incident.clone(),
                seq: block.seq,
            });
        }
        Ok(())
    }
}

impl Signer for FileSigner {
    fn role(&self) -> Role {
        self.role
    }

    fn public_key(&self) -> &PublicKey {
        &self.public
    }

    fn keyid(&self) -> &KeyId {
        &self.keyid
    }

    fn sign(&self, bytes: &[u8]) -> Result<Envelope, SignError> {
        let role = self.role;
        let refused = |error| SignError::Statement { role, error };
        let statement = Statement::parse(bytes).map_err(refused)?;
        // Role separation at the source: without this a key signs what another role has to say.
        // Break it: leave this out; `keys::service::a_role_is_not_taken_for_another_at_either_end` fails.
        if statement.role() != role {
            return Err(SignError::Role {
                role,
                kind: statement.predicate_type(),
            });
        }
        if statement.draft().map_err(refused)? != bytes {
            return Err(SignError::NotFixedForm { role });
        }
        if let Some(event) = statement.as_event() {
            self.take_position(event, bytes)?;
        }
        self.seal(bytes)
    }

    fn sign_export(&self, export: &Export) -> Result<Envelope, SignError> {
        let role = self.role;
        // Break it: leave this out; `attest::exports::an_export_is_signed_by_the_role_whose_word_it_is` then fails.
        if export.role() != role {
            return Err(SignError::ExportRole {
                role,
                whose: export.role(),
            });
        }
        self.seal(export.statement())
    }
}
