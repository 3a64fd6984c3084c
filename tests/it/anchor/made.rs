//! Timestamps made by hand, so that each part of one can be wrong. The writer of DER here is the test's own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, IsCa, Issuer,
    KeyPair, SerialNumber, SigningKey as _,
};
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use caretaker::anchor::timestamp::{Roots, TimestampError, verify_timestamp};
use caretaker::audit::Stamped;
use caretaker::change::Sha256Digest;

pub(crate) const SHA1: &[u8] = &[0x2b, 0x0e, 3, 2, 26];
pub(crate) const SHA256: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];
pub(crate) const SHA384: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2];
pub(crate) const SHA512: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3];
pub(crate) const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1];
pub(crate) const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
pub(crate) const ECDSA_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3];
pub(crate) const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
/// 1.2.840.113549.1.9.16.…
const SMIME: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16];
pub(crate) const TIMESTAMPING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 8];
pub(crate) const SERVERS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];

/// What is stamped.
pub(crate) const DATA: &[u8] = b"caretaker/example\n9\nroot\n\nsignature\n";
/// When: 2027-01-15 08:00 UTC.
pub(crate) const AT: &str = "20270115080000Z";

pub(crate) fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut bytes = vec![tag];
    match content.len() {
        length @ 0..=127 => bytes.push(u8::try_from(length).unwrap()),
        length @ 128..=255 => bytes.extend([0x81, u8::try_from(length).unwrap()]),
        length => {
            bytes.push(0x82);
            bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
    }
    bytes.extend(content);
    bytes
}

pub(crate) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(0x30, parts)
}

pub(crate) fn set(parts: &[&[u8]]) -> Vec<u8> {
    element(0x31, parts)
}

pub(crate) fn oid(octets: &[u8]) -> Vec<u8> {
    element(6, &[octets])
}

pub(crate) fn octets(bytes: &[u8]) -> Vec<u8> {
    element(4, &[bytes])
}

pub(crate) fn integer(octets: &[u8]) -> Vec<u8> {
    element(2, &[octets])
}

pub(crate) fn algorithm(of: &[u8]) -> Vec<u8> {
    sequence(&[&oid(of)])
}

pub(crate) fn attribute(kind: &[u8], value: &[u8]) -> Vec<u8> {
    sequence(&[&oid(kind), &set(&[value])])
}

fn smime(last: &[u8]) -> Vec<u8> {
    [SMIME, last].concat()
}

fn pkcs9(last: u8) -> Vec<u8> {
    vec![0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, last]
}

pub(crate) fn content_type() -> Vec<u8> {
    attribute(&pkcs9(3), &oid(&smime(&[1, 4])))
}

pub(crate) fn message_digest(digest: &[u8]) -> Vec<u8> {
    attribute(&pkcs9(4), &octets(digest))
}

/// The signer's certificate by SHA-256.
pub(crate) fn certificate_by_hash(hash: &[u8]) -> Vec<u8> {
    let name = sequence(&[&octets(hash)]);
    attribute(&smime(&[2, 47]), &sequence(&[&sequence(&[&name])]))
}

/// The signer's certificate by SHA-1.
pub(crate) fn certificate_by_sha1(hash: &[u8]) -> Vec<u8> {
    let name = sequence(&[&octets(hash)]);
    attribute(&smime(&[2, 12]), &sequence(&[&sequence(&[&name])]))
}

/// What a certificate says about its key.
pub(crate) enum Purposes<'a> {
    Nothing,
    Critical(&'a [&'a [u8]]),
    NotCritical(&'a [&'a [u8]]),
}

/// A root, and a signer under it.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: rcgen::Certificate,
    issuer_name: Vec<u8>,
    pub(crate) key: KeyPair,
    pub(crate) certificate: Vec<u8>,
    serial: u8,
}

fn named(name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.distinguished_name = DistinguishedName::new();
    let common = &mut parameters.distinguished_name;
    common.push(DnType::CommonName, name);
    parameters
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        Self::with(
            name,
            &rcgen::PKCS_ECDSA_P256_SHA256,
            &Purposes::Critical(&[TIMESTAMPING]),
            |_| (),
        )
    }

    pub(crate) fn with(
        name: &str,
        kind: &'static rcgen::SignatureAlgorithm,
        purposes: &Purposes<'_>,
        alter: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let root_name = format!("{name} root");
        let mut parameters = named(&root_name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root_key = KeyPair::generate().unwrap();
        let root = parameters.self_signed(&root_key).unwrap();
        let issuer = Issuer::new(parameters, root_key);
        let common = sequence(&[&oid(&[0x55, 4, 3]), &element(12, &[root_name.as_bytes()])]);
        let mut made = Self {
            issuer,
            root,
            issuer_name: sequence(&[&set(&[&common])]),
            key: KeyPair::generate_for(kind).unwrap(),
            certificate: Vec::new(),
            serial: 7,
        };
        let mut parameters = named(name);
        parameters.serial_number = Some(SerialNumber::from(vec![made.serial]));
        let (critical, list): (bool, &[&[u8]]) = match purposes {
            Purposes::Nothing => (false, &[]),
            Purposes::Critical(list) => (true, list),
            Purposes::NotCritical(list) => (false, list),
        };
        if !matches!(purposes, Purposes::Nothing) {
            let list: Vec<Vec<u8>> = list.iter().map(|purpose| oid(purpose)).collect();
            let list: Vec<&[u8]> = list.iter().map(Vec::as_slice).collect();
            let mut extension = CustomExtension::from_oid_content(&[2, 5, 29, 37], sequence(&list));
            extension.set_criticality(critical);
            parameters.custom_extensions.push(extension);
        }
        alter(&mut parameters);
        made.certificate = made.sign(&parameters, &made.key);
        made
    }

    /// Another certificate under the same root.
    pub(crate) fn sign(&self, parameters: &CertificateParams, key: &KeyPair) -> Vec<u8> {
        let signed = parameters.signed_by(key, &self.issuer).unwrap();
        signed.der().to_vec()
    }

    /// A certificate with the same name, number and purposes for another key.
    pub(crate) fn twin(&self, name: &str, key: &KeyPair) -> Vec<u8> {
        let mut parameters = named(name);
        parameters.serial_number = Some(SerialNumber::from(vec![self.serial]));
        let purposes = sequence(&[&oid(TIMESTAMPING)]);
        let mut extension = CustomExtension::from_oid_content(&[2, 5, 29, 37], purposes);
        extension.set_criticality(true);
        parameters.custom_extensions.push(extension);
        self.sign(&parameters, key)
    }

    pub(crate) fn roots(&self) -> Roots {
        let encoded = STANDARD.encode(self.root.der());
        let lines: Vec<&str> = encoded
            .as_bytes()
            .chunks(64)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
        let pem = format!("{begin}\n{}\n{end}\n", lines.join("\n"));
        Roots::parse(pem.as_bytes()).unwrap()
    }

    fn named(&self) -> Vec<u8> {
        sequence(&[&self.issuer_name, &integer(&[self.serial])])
    }
}

/// A token to be.
pub(crate) struct Made {
    pub(crate) imprint: (Vec<u8>, Vec<u8>),
    pub(crate) at: String,
    pub(crate) nonce: Vec<u8>,
    /// What follows the nonce.
    pub(crate) rest: Vec<u8>,
    /// In place of what is made of the above.
    pub(crate) content: Option<Vec<u8>>,
    pub(crate) certificates: Vec<Vec<u8>>,
    /// Which algorithms the signer names.
    pub(crate) digest: Vec<u8>,
    pub(crate) signature: Vec<u8>,
    /// The signed attributes, of what is then signed.
    pub(crate) attributes: Vec<Vec<u8>>,
    pub(crate) signers: usize,
}

fn hashed(oid: &[u8], bytes: &[u8]) -> Vec<u8> {
    match oid {
        SHA384 => Sha384::digest(bytes).to_vec(),
        SHA512 => Sha512::digest(bytes).to_vec(),
        SHA1 => ring_sha1(bytes),
        _ => Sha256::digest(bytes).to_vec(),
    }
}

pub(crate) fn ring_sha1(bytes: &[u8]) -> Vec<u8> {
    let hash = &ring::digest::SHA1_FOR_LEGACY_USE_ONLY;
    ring::digest::digest(hash, bytes).as_ref().to_vec()
}

impl Made {
    /// A good one over [`DATA`].
    pub(crate) fn by(authority: &Authority) -> Self {
        Self::with(authority, SHA256, ECDSA_SHA256)
    }

    pub(crate) fn with(authority: &Authority, digest: &[u8], signature: &[u8]) -> Self {
        let mut made = Self {
            imprint: (SHA256.to_vec(), Sha256::digest(DATA).to_vec()),
            at: AT.to_owned(),
            nonce: integer(&[0x55; 8]),
            rest: Vec::new(),
            content: None,
            certificates: vec![authority.certificate.clone()],
            digest: digest.to_vec(),
            signature: signature.to_vec(),
            attributes: Vec::new(),
            signers: 1,
        };
        made.sign_again(authority);
        made
    }

    /// The attributes that belong to the content as it is now.
    pub(crate) fn sign_again(&mut self, authority: &Authority) {
        let digest = hashed(&self.digest, &self.info());
        self.attributes = vec![
            content_type(),
            message_digest(&digest),
            certificate_by_hash(&Sha256::digest(&authority.certificate)),
        ];
    }

    pub(crate) fn info(&self) -> Vec<u8> {
        let (of, hash) = &self.imprint;
        sequence(&[
            &integer(&[1]),
            &oid(&[0x2a, 3, 4]),
            &sequence(&[&algorithm(of), &octets(hash)]),
            &integer(&[5]),
            &element(0x18, &[self.at.as_bytes()]),
            &sequence(&[&integer(&[1]), &element(0x80, &[&[1, 0xf4]])]),
            &self.nonce,
            &self.rest,
        ])
    }

    /// The whole answer, signed by the authority's key.
    pub(crate) fn response(&self, authority: &Authority) -> Vec<u8> {
        let attributes: Vec<&[u8]> = self.attributes.iter().map(Vec::as_slice).collect();
        let signature = authority.key.sign(&set(&attributes)).unwrap();
        let signer = sequence(&[
            &integer(&[1]),
            &authority.named(),
            &algorithm(&self.digest),
            &element(0xa0, &attributes),
            &algorithm(&self.signature),
            &octets(&signature),
        ]);
        let certificates: Vec<&[u8]> = self.certificates.iter().map(Vec::as_slice).collect();
        let info = self.content.clone().unwrap_or_else(|| self.info());
        let content = sequence(&[&oid(&smime(&[1, 4])), &element(0xa0, &[&octets(&info)])]);
        let data = sequence(&[
            &integer(&[3]),
            &set(&[&algorithm(&self.digest)]),
            &content,
            &element(0xa0, &certificates),
            &set(&vec![signer.as_slice(); self.signers]),
        ]);
        let kind = oid(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2]);
        let token = sequence(&[&kind, &element(0xa0, &[&data])]);
        sequence(&[&sequence(&[&integer(&[0])]), &token])
    }

    pub(crate) fn verdict(&self, authority: &Authority) -> Result<Stamped, TimestampError> {
        verify_timestamp(&self.response(authority), &imprint(), &authority.roots())
    }
}

pub(crate) fn imprint() -> Sha256Digest {
    Sha256Digest::of(DATA)
}
