//! Signing as a typed notary: a signer reads the statement itself, builds the signed bytes itself, and refuses what is
//! not its role's to say.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use thiserror::Error;

use super::dsse::{Envelope, EnvelopeError, IN_TOTO};
use super::export::Export;
use super::keys::{KeyFile, KeyFileError, KeyId, PublicKey, SecretKey};
use super::role::{PredicateType, Role};
use super::statement::{Event, Statement, StatementError};
use crate::change::Sha256Digest;
use crate::id::IncidentId;

/// How many chain positions a signer remembers. The store's own record of unsigned statements has no such limit.
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

/// Signs the statements of one role.
pub trait Signer: Send + Sync {
    /// The role.
    fn role(&self) -> Role;

    /// The public key.
    fn public_key(&self) -> &PublicKey;

    /// The key's fingerprint.
    fn keyid(&self) -> &KeyId;

    /// Signs the bytes of [`Statement::draft`]. The same bytes give the same envelope.
    fn sign(&self, statement: &[u8]) -> Result<Envelope, SignError>;

    /// Signs an export of a verified chain. A signer that does not do so says that it cannot be reached for it.
    fn sign_export(&self, _export: &Export) -> Result<Envelope, SignError> {
        Err(SignError::Unreachable {
            role: self.role(),
            reason: "it signs no exports; export without signatures".to_owned(),
        })
    }
}

/// A signer with its key in this process.
#[derive(Debug)]
pub struct FileSigner {
    role: Role,
    key: SecretKey,
    public: PublicKey,
    keyid: KeyId,
    positions: Mutex<BTreeMap<(IncidentId, u64), Sha256Digest>>,
}

impl FileSigner {
    /// Opens `role`'s key file with its secret.
    pub fn open(role: Role, key_file: &[u8], secret: &[u8]) -> Result<Self, KeyFileError> {
        Ok(Self::new(
            role,
            KeyFile::parse(key_file)?.open(role.into(), secret)?,
        ))
    }

    /// A signer for a key that is open already.
    pub fn new(role: Role, key: SecretKey) -> Self {
        let public = key.public();
        let keyid = public.keyid();
        Self {
            role,
            key,
            public,
            keyid,
            positions: Mutex::default(),
        }
    }

    fn seal(&self, bytes: &[u8]) -> Result<Envelope, SignError> {
        let role = self.role;
        let failed = |error| SignError::Envelope { role, error };
        let envelope = Envelope::sign(IN_TOTO, bytes, &self.key).map_err(failed)?;
        // A fault while signing can give away the key; a signature that does not verify never leaves.
        envelope.verify(IN_TOTO, &self.public).map_err(failed)?;
        Ok(envelope)
    }

    /// Remembers that `bytes` have the event's position, unless others have it.
    fn take_position(&self, event: &Event, bytes: &[u8]) -> Result<(), SignError> {
        let block = event.block();
        let digest = Sha256Digest::of(bytes);
        let mut positions = self
            .positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let found = *positions
            .entry((block.incident.clone(), block.seq))
            .or_insert(digest);
        if found != digest {
            let (role, seq) = (self.role, block.seq);
            return Err(SignError::Position {
                role,
                incident: block.incident.clone(),
                seq,
            });
        }
        if positions.len() > REMEMBERED {
            // Incident ids sort by time, so the oldest incident is forgotten first.
            positions.pop_first();
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
