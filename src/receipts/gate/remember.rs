//! Signatures that were verified once need not be verified again: the same bytes, the same key, the same answer.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::attest::keys::PublicKey;
use crate::change::Sha256Digest;
use crate::receipts::token::Token;

/// How many are remembered; when there are more, all are forgotten.
const MOST: usize = 4_096;

/// What names a verification: the digest of the body, in which the key is named, and the signature.
type Name = (Sha256Digest, [u8; 64]);

/// Verified signatures of one gate, whose keys never change. Only what held is remembered.
#[derive(Debug, Default)]
pub(super) struct Remembered(Mutex<HashSet<Name>>);

impl Remembered {
    /// Whether `key` signed `token`.
    pub(super) fn verifies(&self, token: &Token, key: &PublicKey) -> bool {
        let Some(signature) = token.signature() else {
            return false;
        };
        let name = (*token.digest(), *signature);
        // Whoever panicked with the lock held left the set whole, but not to be relied on: then nothing is remembered.
        let known = self.0.lock().is_ok_and(|known| known.contains(&name));
        if known {
            return true;
        }
        let verified = token.verifies(key);
        // Break it: remember also what failed; `receipts::gate::a_bad_signature_is_bad_the_second_time_too` fails.
        if verified && let Ok(mut known) = self.0.lock() {
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(name);
        }
        verified
    }
}
