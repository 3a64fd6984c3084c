//! A token: CMS `SignedData` (RFC 5652) around what an authority says, by exactly one signer.

use rustls::pki_types::CertificateDer;

use super::TimestampError;
use super::algorithm::{Hash, sha1, verifications};
use super::certificate::{Roots, Signer};
use super::der::{OCTET_STRING, OID, Reader, SEQUENCE, SET, constructed};
use super::info::Info;

/// Certificates beside a signature at most: what is built out of them costs time.
const MOST_CERTIFICATES: usize = 6;
/// 1.2.840.113549.1.7.2
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2];
/// 1.2.840.113549.1.9.16.1.4
const TST_INFO: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 1, 4];
/// 1.2.840.113549.1.9.3
const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 3];
/// 1.2.840.113549.1.9.4
const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 4];
/// 1.2.840.113549.1.9.16.2.12, by SHA-1 (RFC 2634)
const SIGNING_CERTIFICATE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 2, 12];
/// 1.2.840.113549.1.9.16.2.47, by SHA-256 or another one (RFC 5035)
const SIGNING_CERTIFICATE_V2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 2, 47];

/// A token that was read and not verified.
pub(super) struct Token<'a> {
    content: &'a [u8],
    certificates: Vec<CertificateDer<'a>>,
    signature: SignerInfo<'a>,
}

/// Who is said to have signed, and how.
struct SignerInfo<'a> {
    /// Content of the issuer's name, and octets of the serial number, of the signer's certificate.
    issuer: &'a [u8],
    serial: &'a [u8],
    hash: Hash,
    /// The attributes that are signed, with their tag and length.
    attributes: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
}

impl<'a> Token<'a> {
    pub(super) fn parse(token: &'a [u8]) -> Result<Self, TimestampError> {
        let part = "the token";
        let mut all = Reader::new(token, part);
        let mut outer = all.inside(SEQUENCE, part)?;
        all.end()?;
        expect(outer.take(OID)?, SIGNED_DATA, part)?;
        let mut inner = outer.inside(constructed(0), part)?;
        outer.end()?;
        let mut data = inner.inside(SEQUENCE, part)?;
        inner.end()?;
        if data.small()? != 3 {
            return Err(TimestampError::Malformed { part });
        }
        // Which hashes signers use: each says it again.
        data.take(SET)?;
        let mut content = data.inside(SEQUENCE, part)?;
        expect(content.take(OID)?, TST_INFO, "the kind of what is signed")?;
        let mut octets = content.inside(constructed(0), part)?;
        content.end()?;
        let content = octets.take(OCTET_STRING)?;
        octets.end()?;
        let certificates = data.optional(constructed(0))?.unwrap_or_default();
        let certificates = bag(Reader::new(certificates, "the certificates"))?;
        // Revocations, which nobody asked for.
        data.optional(constructed(1))?;
        let mut signers = data.inside(SET, "the signers")?;
        data.end()?;
        let signature = signer(&mut signers)?;
        // Break it: take the first; a second signer's word then stands under a timestamp that nobody verified
        // (`anchor::attacks::a_second_signer_is_refused`).
        if !signers.is_empty() {
            return Err(TimestampError::Signers);
        }
        Ok(Self {
            content,
            certificates,
            signature,
        })
    }

    /// What the authority says.
    pub(super) fn info(&self) -> Result<Info<'a>, TimestampError> {
        Info::parse(self.content)
    }

    /// Who signed it: a certificate that is the one that was signed along, whose key made the signature, which is for
    /// timestamps and led to one of the roots when it was made.
    pub(super) fn verify(
        &self,
        info: &Info<'_>,
        roots: &Roots,
    ) -> Result<Signer<'_>, TimestampError> {
        let signed = Attributes::parse(self.signature.attributes)?;
        expect(signed.content_type, TST_INFO, "the attribute contentType")?;
        // Break it: drop this; the attributes of one timestamp then stand under the content of another
        // (`anchor::attacks::a_changed_content_is_refused`).
        if signed.message_digest != self.signature.hash.of(self.content) {
            return Err(TimestampError::Signature);
        }
        // Break it: take the first certificate; what stands first is not signed
        // (`anchor::attacks::certificates_that_were_put_in_do_not_sign`).
        let of_signer = |der: &&CertificateDer<'_>| signed.certificates_are(der);
        let der = self.certificates.iter().find(of_signer);
        let der = der.ok_or(TimestampError::NoCertificate)?;
        let signer = Signer::of(der)?;
        if !signer.is_named(self.signature.issuer, self.signature.serial) {
            return Err(TimestampError::NoCertificate);
        }
        let by = verifications(self.signature.algorithm, self.signature.hash)?;
        // What is signed is the set itself, not the field that holds it (RFC 5652, 5.4).
        let mut bytes = self.signature.attributes.to_vec();
        if let Some(tag) = bytes.first_mut() {
            *tag = SET;
        }
        // Break it: drop this (`anchor::tokens::no_flipped_bit_changes_what_a_timestamp_says`).
        if !signer.signed(by, &bytes, self.signature.signature) {
            return Err(TimestampError::Signature);
        }
        signer.is_for_timestamps()?;
        // Break it: drop this; anybody then is an authority (`anchor::attacks::the_timestamp_of_another_authority_is_refused`).
        signer.leads_to(roots, &self.certificates, info.at)?;
        Ok(signer)
    }
}

fn expect(found: &[u8], wanted: &[u8], part: &'static str) -> Result<(), TimestampError> {
    if found == wanted {
        Ok(())
    } else {
        Err(TimestampError::Malformed { part })
    }
}

fn bag(mut certificates: Reader<'_>) -> Result<Vec<CertificateDer<'_>>, TimestampError> {
    let mut found = Vec::new();
    while !certificates.is_empty() {
        let element = certificates.any()?;
        // Break it: drop this bound (`anchor::attacks::a_bag_of_certificates_costs_no_time`).
        if found.len() >= MOST_CERTIFICATES {
            return Err(TimestampError::Certificates);
        }
        // Other kinds than X.509 have other tags.
        if element.tag == SEQUENCE {
            found.push(CertificateDer::from(element.whole));
        }
    }
    Ok(found)
}

fn signer<'a>(signers: &mut Reader<'a>) -> Result<SignerInfo<'a>, TimestampError> {
    let part = "the signer";
    let mut signer = signers.inside(SEQUENCE, part)?;
    // 1: named by issuer and number. By key it is 3, which OpenSSL does not read either.
    if signer.small()? != 1 {
        return Err(TimestampError::Malformed { part });
    }
    let mut named = signer.inside(SEQUENCE, part)?;
    let issuer = named.take(SEQUENCE)?;
    let serial = named.integer()?;
    named.end()?;
    let hash = Hash::of_oid(signer.algorithm("the digest")?, "the digest")?;
    let attributes = signer.element(constructed(0))?.whole;
    let algorithm = signer.algorithm("the signature")?;
    let signature = signer.take(OCTET_STRING)?;
    // What was added later, which nobody signed.
    signer.optional(constructed(1))?;
    signer.end()?;
    Ok(SignerInfo {
        issuer,
        serial,
        hash,
        attributes,
        algorithm,
        signature,
    })
}

/// The signed attributes that are looked at, each there once and with one value.
struct Attributes<'a> {
    content_type: &'a [u8],
    message_digest: &'a [u8],
    /// The name of the signer's certificate by SHA-1, and by another hash: one of them at least.
    by_sha1: Option<&'a [u8]>,
    by_hash: Option<(Hash, &'a [u8])>,
}

impl<'a> Attributes<'a> {
    fn parse(whole: &'a [u8]) -> Result<Self, TimestampError> {
        let part = "the signed attributes";
        let mut all = Reader::new(whole, part).inside(constructed(0), part)?;
        let mut values: [Option<Reader<'a>>; 4] = [None; 4];
        let known = [
            CONTENT_TYPE,
            MESSAGE_DIGEST,
            SIGNING_CERTIFICATE,
            SIGNING_CERTIFICATE_V2,
        ];
        while !all.is_empty() {
            let mut attribute = all.inside(SEQUENCE, part)?;
            let oid = attribute.take(OID)?;
            let value = attribute.inside(SET, part)?;
            attribute.end()?;
            let place = known.iter().position(|known| *known == oid);
            let place = place.and_then(|place| values.get_mut(place));
            // Break it: let the last one win (`anchor::attacks::an_attribute_that_is_there_twice_is_refused`).
            if place.is_some_and(|place| place.replace(value).is_some()) {
                return Err(TimestampError::Malformed { part });
            }
        }
        let missing = |name| TimestampError::Attribute { name };
        let [content_type, message_digest, by_sha1, by_hash] = values;
        let mut content_type = content_type.ok_or_else(|| missing("contentType"))?;
        let mut message_digest = message_digest.ok_or_else(|| missing("messageDigest"))?;
        // Break it: drop this; a certificate of the same key with another validity can then take its place
        // (`anchor::attacks::a_signature_that_does_not_name_its_certificate_is_refused`).
        if by_sha1.is_none() && by_hash.is_none() {
            return Err(missing("signingCertificate"));
        }
        let attributes = Self {
            content_type: content_type.take(OID)?,
            message_digest: message_digest.take(OCTET_STRING)?,
            by_sha1: by_sha1.map(certificate_by_sha1).transpose()?,
            by_hash: by_hash.map(certificate_by_hash).transpose()?,
        };
        content_type.end()?;
        message_digest.end()?;
        Ok(attributes)
    }

    /// Whether every name of the signer's certificate is this one's.
    fn certificates_are(&self, der: &[u8]) -> bool {
        self.by_sha1.is_none_or(|hash| hash == sha1(der))
            && self.by_hash.is_none_or(|(by, hash)| hash == by.of(der))
    }
}

/// The first certificate that `SigningCertificate` names, which is the signer's; further ones are its issuers.
fn first_name(mut value: Reader<'_>) -> Result<Reader<'_>, TimestampError> {
    let part = "the attribute signingCertificate";
    let mut named = value.inside(SEQUENCE, part)?;
    value.end()?;
    let mut certificates = named.inside(SEQUENCE, part)?;
    certificates.inside(SEQUENCE, part)
}

fn certificate_by_sha1(value: Reader<'_>) -> Result<&[u8], TimestampError> {
    first_name(value)?.take(OCTET_STRING)
}

fn certificate_by_hash(value: Reader<'_>) -> Result<(Hash, &[u8]), TimestampError> {
    let mut name = first_name(value)?;
    let part = "the attribute signingCertificateV2";
    let hash = if name.next_is(SEQUENCE) {
        Hash::of_oid(name.algorithm(part)?, part)?
    } else {
        Hash::Sha256
    };
    Ok((hash, name.take(OCTET_STRING)?))
}
