//! Whose certificate signs timestamps, and to which roots it has to lead.

use std::path::Path;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

use super::TimestampError;
use super::algorithm::{CERTIFICATES, Verification};
use super::der::{INTEGER, OCTET_STRING, OID, Reader, SEQUENCE, SET, constructed};
use crate::attest::text::shown;
use crate::change::Sha256Digest;
use crate::clock::Millis;

/// Root certificates at most.
const MOST_ROOTS: usize = 64;
/// The longest file with root certificates, in bytes.
const MAX_ROOTS: u64 = 1 << 20;
/// 2.5.29.37, the extension that says what a key may be used for.
const KEY_PURPOSES: &[u8] = &[0x55, 0x1d, 0x25];
/// 1.3.6.1.5.5.7.3.8, timestamping.
const TIMESTAMPING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 8];
/// 2.5.4.3, the name that people know somebody by.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// Why there are no roots.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "reading the certificates of timestamp authorities: {path}: {reason}; give a PEM file with the authority's root certificate"
)]
pub struct RootsError {
    path: String,
    reason: String,
}

/// Certificates that those of authorities have to lead to. They are trusted because somebody put them there, whatever they say
/// about their own validity.
#[derive(Debug, Clone)]
pub struct Roots {
    anchors: Vec<TrustAnchor<'static>>,
}

impl Roots {
    /// Reads a PEM file with 1 to 64 certificates, at most 1 MiB.
    ///
    /// # Errors
    /// It cannot be read, or holds none, too many, or something that is none.
    pub fn read(path: &Path) -> Result<Self, RootsError> {
        let failed = |reason: String| RootsError {
            path: shown(&path.display().to_string()),
            reason,
        };
        let about = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?;
        if !about.is_file() || about.len() > MAX_ROOTS {
            return Err(failed("it is no file of at most 1 MiB".to_owned()));
        }
        let pem = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        Self::parse(&pem).map_err(failed)
    }

    /// Reads certificates in PEM; other things between them are passed over.
    ///
    /// # Errors
    /// None, too many, or something that is none, in words.
    pub fn parse(pem: &[u8]) -> Result<Self, String> {
        let mut anchors = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem).take(MOST_ROOTS + 1) {
            let certificate = certificate.map_err(|error| error.to_string())?;
            let anchor = webpki::anchor_from_trusted_cert(&certificate);
            let anchor = anchor.map_err(|error| format!("a certificate in it: {error}"))?;
            anchors.push(anchor.to_owned());
        }
        match anchors.len() {
            0 => Err("it holds no certificate".to_owned()),
            1..=MOST_ROOTS => Ok(Self { anchors }),
            _ => Err(format!("it holds more than {MOST_ROOTS} certificates")),
        }
    }
}

/// The certificate of whoever signed.
pub(super) struct Signer<'a> {
    certificate: EndEntityCert<'a>,
    der: &'a [u8],
}

impl<'a> Signer<'a> {
    pub(super) fn of(der: &'a CertificateDer<'a>) -> Result<Self, TimestampError> {
        let certificate = EndEntityCert::try_from(der).map_err(|error| chain(&error))?;
        Ok(Self { certificate, der })
    }

    /// Whether a signature names this certificate: content of the issuer's name, and octets of the serial number.
    pub(super) fn is_named(&self, issuer: &[u8], serial: &[u8]) -> bool {
        self.certificate.issuer() == issuer && self.certificate.serial() == serial
    }

    /// The SHA-256 of its public key (SubjectPublicKeyInfo): what makes two certificates those of one authority.
    pub(super) fn key(&self) -> Sha256Digest {
        Sha256Digest::of(&self.certificate.subject_public_key_info())
    }

    /// Its common name, made printable, or nothing.
    pub(super) fn name(&self) -> String {
        shown(&common_name(self.certificate.subject()).unwrap_or_default())
    }

    /// Whether the signature over the bytes is by its key.
    pub(super) fn signed(
        &self,
        verifications: &[Verification],
        bytes: &[u8],
        signature: &[u8],
    ) -> bool {
        let by = |verification: &Verification| {
            let verified = self
                .certificate
                .verify_signature(*verification, bytes, signature);
            verified.is_ok()
        };
        verifications.iter().any(by)
    }

    /// Its key is for timestamps and nothing else, and it says so in a way that nobody may overlook (RFC 3161, 2.3).
    pub(super) fn is_for_timestamps(&self) -> Result<(), TimestampError> {
        let refused = |found: &str| TimestampError::Purpose {
            found: found.to_owned(),
        };
        let (critical, mut purposes) =
            key_purposes(self.der)?.ok_or_else(|| refused("does not say so"))?;
        let mut all = purposes.inside(SEQUENCE, "the purposes of the signer's key")?;
        purposes.end()?;
        let first = all.take(OID)?;
        // Break it: accept one among several; the key of any server of a common root then makes timestamps
        // (`anchor::attacks::only_a_key_for_timestamps_alone_makes_them`).
        if first != TIMESTAMPING || !all.is_empty() {
            return Err(refused("names other purposes"));
        }
        // Break it: drop this (`anchor::attacks::only_a_key_for_timestamps_alone_makes_them`).
        if !critical {
            return Err(refused("does not say so critically"));
        }
        Ok(())
    }

    /// It led to one of the roots at a moment, perhaps by way of others.
    pub(super) fn leads_to(
        &self,
        roots: &Roots,
        others: &[CertificateDer<'_>],
        at: Millis,
    ) -> Result<(), TimestampError> {
        let since = u64::try_from(at.0).map_err(|_| TimestampError::Malformed {
            part: "the moment of the timestamp",
        })?;
        // Break it: take now instead; a certificate that came later then makes timestamps for the past
        // (`anchor::attacks::a_moment_outside_of_the_certificates_validity_is_refused`).
        let moment = UnixTime::since_unix_epoch(Duration::from_millis(since));
        let path = self.certificate.verify_for_usage(
            CERTIFICATES,
            &roots.anchors,
            others,
            moment,
            KeyUsage::required_if_present(TIMESTAMPING),
            None,
            None,
        );
        path.map(drop).map_err(|error| chain(&error))
    }
}

fn chain(error: &webpki::Error) -> TimestampError {
    let reason = match error {
        webpki::Error::UnknownIssuer => "none of your roots is its issuer".to_owned(),
        webpki::Error::CertExpired { .. } => {
            "it, or one on the way, had ended at the moment of the timestamp".to_owned()
        }
        webpki::Error::CertNotValidYet { .. } => {
            "it, or one on the way, had not begun at the moment of the timestamp".to_owned()
        }
        error => error.to_string(),
    };
    TimestampError::Chain { reason }
}

/// Whether the extension about the key's purposes is critical, and what it says (RFC 5280, 4.1 and 4.2.1.12).
fn key_purposes(certificate: &[u8]) -> Result<Option<(bool, Reader<'_>)>, TimestampError> {
    let part = "the signer's certificate";
    let mut all = Reader::new(certificate, part);
    let mut signed = all.inside(SEQUENCE, part)?;
    let mut body = signed.inside(SEQUENCE, part)?;
    body.take(constructed(0))?;
    body.take(INTEGER)?;
    // Algorithm, issuer, validity, subject, key.
    for _ in 0..5 {
        body.take(SEQUENCE)?;
    }
    let mut found = None;
    while !body.is_empty() {
        let element = body.any()?;
        if element.tag != constructed(3) {
            continue;
        }
        let mut extensions = Reader::new(element.content, part).inside(SEQUENCE, part)?;
        while !extensions.is_empty() {
            let mut extension = extensions.inside(SEQUENCE, part)?;
            let oid = extension.take(OID)?;
            let critical = extension.flag()?;
            let value = extension.inside(OCTET_STRING, "the purposes of the signer's key")?;
            extension.end()?;
            // Twice is refused by whoever read the certificate before.
            if oid == KEY_PURPOSES {
                found = Some((critical, value));
            }
        }
    }
    Ok(found)
}

fn common_name(subject: &[u8]) -> Option<String> {
    let mut sets = Reader::new(subject, "the signer's name");
    let mut found = None;
    while !sets.is_empty() {
        let mut set = sets.inside(SET, "the signer's name").ok()?;
        while !set.is_empty() {
            let mut attribute = set.inside(SEQUENCE, "the signer's name").ok()?;
            let oid = attribute.take(OID).ok()?;
            let value = attribute.any().ok()?;
            if oid == COMMON_NAME {
                found = Some(String::from_utf8_lossy(value.content).into_owned());
            }
        }
    }
    found
}
