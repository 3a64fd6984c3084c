//! Which algorithms count, by object identifier. SHA-1 does not, but for the name of a certificate (RFC 2634), where the
//! signature that has to verify under that certificate's key is what counts.

use sha2::{Digest as _, Sha256, Sha384, Sha512};
use webpki::ring as by;

use super::TimestampError;
use rustls::pki_types::SignatureVerificationAlgorithm;

/// 2.16.840.1.101.3.4.2.1
pub(super) const SHA_256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 3, 4, 2, 1];
const SHA_384: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 3, 4, 2, 2];
const SHA_512: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 3, 4, 2, 3];
/// 1.2.840.113549.1.1.…
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const SHA_256_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
const SHA_384_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12];
const SHA_512_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13];
/// 1.2.840.10045.4.3.…
const ECDSA_SHA_256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const ECDSA_SHA_384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3];
/// 1.3.101.112
const ED_25519: &[u8] = &[0x2b, 0x65, 0x70];

/// A verification of signatures under one kind of key.
pub(super) type Verification = &'static dyn SignatureVerificationAlgorithm;

/// A hash of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    pub(super) fn of_oid(oid: &[u8], part: &'static str) -> Result<Self, TimestampError> {
        // Break it: add SHA-1 to this table (`anchor::attacks::weak_or_foreign_algorithms_are_refused`).
        match oid {
            SHA_256 => Ok(Self::Sha256),
            SHA_384 => Ok(Self::Sha384),
            SHA_512 => Ok(Self::Sha512),
            other => Err(TimestampError::Algorithm {
                part,
                found: dotted(other),
            }),
        }
    }

    pub(super) fn of(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
            Self::Sha384 => Sha384::digest(bytes).to_vec(),
            Self::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }
}

/// SHA-1, for the one thing that it is asked for.
pub(super) fn sha1(bytes: &[u8]) -> Vec<u8> {
    let hash = &ring::digest::SHA1_FOR_LEGACY_USE_ONLY;
    ring::digest::digest(hash, bytes).as_ref().to_vec()
}

/// The verifications that a signature algorithm beside this hash may mean; which one it is depends on the key.
pub(super) fn verifications(
    oid: &[u8],
    hash: Hash,
) -> Result<&'static [Verification], TimestampError> {
    static RSA_256: &[Verification] = &[by::RSA_PKCS1_2048_8192_SHA256];
    static RSA_384: &[Verification] = &[by::RSA_PKCS1_2048_8192_SHA384];
    static RSA_512: &[Verification] = &[by::RSA_PKCS1_2048_8192_SHA512];
    static EC_256: &[Verification] = &[by::ECDSA_P256_SHA256, by::ECDSA_P384_SHA256];
    static EC_384: &[Verification] = &[by::ECDSA_P256_SHA384, by::ECDSA_P384_SHA384];
    static ED: &[Verification] = &[by::ED25519];
    match (oid, hash) {
        (RSA | SHA_256_RSA, Hash::Sha256) => Ok(RSA_256),
        (RSA | SHA_384_RSA, Hash::Sha384) => Ok(RSA_384),
        (RSA | SHA_512_RSA, Hash::Sha512) => Ok(RSA_512),
        (ECDSA_SHA_256, Hash::Sha256) => Ok(EC_256),
        (ECDSA_SHA_384, Hash::Sha384) => Ok(EC_384),
        // RFC 8419: beside SHA-512 alone.
        (ED_25519, Hash::Sha512) => Ok(ED),
        (other, _) => Err(TimestampError::Algorithm {
            part: "the signature",
            found: dotted(other),
        }),
    }
}

/// What certificates may be signed with.
pub(super) static CERTIFICATES: &[Verification] = &[
    by::ECDSA_P256_SHA256,
    by::ECDSA_P256_SHA384,
    by::ECDSA_P384_SHA256,
    by::ECDSA_P384_SHA384,
    by::ED25519,
    by::RSA_PKCS1_2048_8192_SHA256,
    by::RSA_PKCS1_2048_8192_SHA256_ABSENT_PARAMS,
    by::RSA_PKCS1_2048_8192_SHA384,
    by::RSA_PKCS1_2048_8192_SHA384_ABSENT_PARAMS,
    by::RSA_PKCS1_2048_8192_SHA512,
    by::RSA_PKCS1_2048_8192_SHA512_ABSENT_PARAMS,
];

/// An object identifier as people write it, at most so much of it as they read.
pub(super) fn dotted(oid: &[u8]) -> String {
    const MOST: usize = 40;
    let mut numbers = Vec::new();
    let mut number: u64 = 0;
    for octet in oid.iter().take(MOST) {
        number = number
            .saturating_mul(128)
            .saturating_add(u64::from(octet & 0x7f));
        if octet & 0x80 == 0 {
            if numbers.is_empty() {
                let first = (number / 40).min(2);
                numbers.push(first);
                number -= first * 40;
            }
            numbers.push(number);
            number = 0;
        }
    }
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    words.join(".")
}

#[cfg(test)]
mod tests {
    use super::{SHA_256, SHA_256_RSA, dotted};

    #[test]
    fn object_identifiers_are_shown_as_people_write_them() {
        assert_eq!(dotted(SHA_256), "2.16.840.1.101.3.4.2.1");
        assert_eq!(dotted(SHA_256_RSA), "1.2.840.113549.1.1.11");
        assert_eq!(dotted(&[0x88, 0x37]), "2.999");
        assert_eq!(dotted(&[]), "");
    }
}
