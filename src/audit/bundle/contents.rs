//! Writing a bundle.

use std::collections::BTreeMap;

use super::super::archive::{self, ArchiveError};
use super::FORMAT;
use crate::change::Sha256Digest;
use crate::log::{SignedCheckpoint, TreeHash};

/// What an exporter puts into a bundle.
#[derive(Debug, Clone, Default)]
pub struct BundleContents {
    /// Every version of the trust root, by number.
    pub trust_roots: Vec<(u64, Vec<u8>)>,
    /// The envelopes in order, each with the proof that it was logged.
    pub events: Vec<(Vec<u8>, Vec<u8>)>,
    /// Proofs that one log extends another: the sizes, and the hashes.
    pub consistency: Vec<(u64, u64, Vec<TreeHash>)>,
    /// Documents by digest.
    pub evidence: Vec<(Sha256Digest, Vec<u8>)>,
    /// Timestamps: of which checkpoint, the name of the authority, its answer.
    pub timestamps: Vec<(SignedCheckpoint, String, Vec<u8>)>,
}

impl BundleContents {
    /// The file.
    ///
    /// # Errors
    /// It is too much for one bundle.
    pub fn write(self) -> Result<Vec<u8>, ArchiveError> {
        let mut members = BTreeMap::new();
        members.insert("format".to_owned(), FORMAT.to_vec());
        for (version, bytes) in self.trust_roots {
            members.insert(format!("root/{version}.json"), bytes);
        }
        let mut lines = Vec::new();
        for (seq, (envelope, proof)) in self.events.into_iter().enumerate() {
            lines.extend_from_slice(&envelope);
            lines.push(b'\n');
            members.insert(format!("proofs/{seq}.tlog-proof"), proof);
        }
        members.insert("events.jsonl".to_owned(), lines);
        for (older, newer, proof) in self.consistency {
            let lines: Vec<String> = proof.iter().map(ToString::to_string).collect();
            let text = lines.join("\n") + "\n";
            members.insert(format!("consistency/{older}-{newer}"), text.into_bytes());
        }
        for (digest, bytes) in self.evidence {
            members.insert(format!("evidence/{digest}"), bytes);
        }
        for (checkpoint, authority, response) in self.timestamps {
            let folder = format!("timestamps/{}", checkpoint.claimed().head().size());
            let stamped = checkpoint.without_cosignatures().into_bytes();
            members.insert(format!("{folder}/checkpoint"), stamped);
            members.insert(format!("{folder}/{authority}.tsr"), response);
        }
        archive::write(&members)
    }
}
