//! The question to an authority: `TimeStampReq` (RFC 3161, 2.4.1).

use super::algorithm::SHA_256;
use super::der::{BOOLEAN, INTEGER, NULL, OCTET_STRING, OID, SEQUENCE};
use crate::change::Sha256Digest;

/// A number that an authority has to repeat, so that its answer is none to an earlier question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce([u8; 8]);

impl Nonce {
    /// Of random bits, 62 of which are used: positive, and of eight octets whatever they are.
    pub const fn of(random: u64) -> Self {
        Self(((random & 0x3fff_ffff_ffff_ffff) | 0x4000_0000_0000_0000).to_be_bytes())
    }

    /// The octets of the integer.
    pub const fn octets(&self) -> &[u8] {
        &self.0
    }
}

/// The request for a timestamp over bytes with this SHA-256, with the certificate that its signature is checked with.
pub fn request(imprint: &Sha256Digest, nonce: Nonce) -> Vec<u8> {
    let algorithm = element(SEQUENCE, &[&element(OID, &[SHA_256]), &element(NULL, &[])]);
    let hash = element(OCTET_STRING, &[imprint.as_bytes()]);
    let parts = [
        element(INTEGER, &[&[1]]),
        element(SEQUENCE, &[&algorithm, &hash]),
        element(INTEGER, &[nonce.octets()]),
        element(BOOLEAN, &[&[0xff]]),
    ];
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    element(SEQUENCE, &parts)
}

/// An element of less than 128 octets, which all of a request are.
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = u8::try_from(content.len()).unwrap_or(u8::MAX);
    let mut bytes = vec![tag, length];
    bytes.extend(content);
    bytes
}
