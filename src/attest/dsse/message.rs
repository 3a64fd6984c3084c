//! What is signed of a document.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::pae_head;

/// The pre-authentication encoding of a document, which ends with its payload: a document is kept, hashed and verified where it
/// was decoded to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    bytes: Vec<u8>,
    payload_at: usize,
}

impl Message {
    /// Of a payload.
    pub(super) fn new(payload_type: &str, payload: &[u8]) -> Self {
        let mut bytes = pae_head(payload_type, payload.len(), payload.len());
        let payload_at = bytes.len();
        bytes.extend_from_slice(payload);
        Self { bytes, payload_at }
    }

    /// Of a payload in canonical, padded base64; none if it is not.
    pub(super) fn decoded(payload_type: &str, base64: &[u8]) -> Option<Self> {
        let padding = base64.iter().rev().take_while(|byte| **byte == b'=');
        let room = base64.len() / 4 * 3;
        let length = room.checked_sub(padding.count())?;
        let mut bytes = pae_head(payload_type, length, room);
        let payload_at = bytes.len();
        STANDARD.decode_vec(base64, &mut bytes).ok()?;
        // The length is signed, too.
        (bytes.len() - payload_at == length).then_some(Self { bytes, payload_at })
    }

    /// What is signed.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The payload.
    pub(super) fn payload(&self) -> &[u8] {
        self.bytes.get(self.payload_at..).unwrap_or_default()
    }
}
