//! The signer of a role, across a rotation of its key.

use std::sync::Arc;

use crate::attest::chain::{Refusal, continues, key_counts};
use crate::attest::dsse::{IN_TOTO, pae};
use crate::attest::export::Export;
use crate::attest::{
    Envelope, FileSigner, KeyId, PublicKey, Role, SignError, Signer, Statement, TrustHistory,
};
use crate::change::Sha256Digest;

/// Signs with the key that a verifier will ask for: the present one or, for a statement that was drafted under the trust root
/// before it, the one before. What no verifier would count is not signed at all.
#[derive(Debug)]
pub(super) struct RoleSigner {
    present: FileSigner,
    previous: Option<FileSigner>,
    history: Arc<TrustHistory>,
}

impl RoleSigner {
    pub(super) const fn new(
        present: FileSigner,
        previous: Option<FileSigner>,
        history: Arc<TrustHistory>,
    ) -> Self {
        Self {
            present,
            previous,
            history,
        }
    }

    fn counts(&self, statement: &Statement, key: &FileSigner) -> Result<(), Refusal> {
        key_counts(&self.history, statement, key.keyid(), None)
    }
}

impl Signer for RoleSigner {
    fn role(&self) -> Role {
        self.present.role()
    }

    fn public_key(&self) -> &PublicKey {
        self.present.public_key()
    }

    fn keyid(&self) -> &KeyId {
        self.present.keyid()
    }

    fn sign_after(&self, bytes: &[u8], before: &[Vec<u8>]) -> Result<Envelope, SignError> {
        let statement = Statement::parse(bytes).ok();
        if let Some(event) = statement.as_ref().and_then(Statement::as_event) {
            let digest = Sha256Digest::of(&pae(IN_TOTO, bytes));
            // Break it: sign whatever comes; `keys::memory::what_does_not_continue_the_chain_is_not_signed` fails.
            continues(&self.history, before, event, digest).map_err(|refusal| {
                SignError::WouldNotCount {
                    role: self.role(),
                    reason: refusal.to_string(),
                }
            })?;
        }
        self.sign(bytes)
    }

    fn sign_export(&self, export: &Export) -> Result<Envelope, SignError> {
        self.present.sign_export(export)
    }

    fn sign(&self, bytes: &[u8]) -> Result<Envelope, SignError> {
        let role = self.role();
        // What is no statement, or another role's, is for the notary to refuse.
        let Some(statement) = Statement::parse(bytes).ok().filter(|it| it.role() == role) else {
            return self.present.sign(bytes);
        };
        let Err(refusal) = self.counts(&statement, &self.present) else {
            return self.present.sign(bytes);
        };
        let previous = self.previous.as_ref();
        // Break it: sign with the present key; `keys::succession::what_was_drafted_before_a_rotation_is_signed_by_the_key_it_names`
        // fails.
        match previous.filter(|key| self.counts(&statement, key).is_ok()) {
            Some(key) => key.sign(bytes),
            None => Err(SignError::WouldNotCount {
                role,
                reason: refusal.to_string(),
            }),
        }
    }
}
