//! What somebody may try with a timestamp: each is a good one with one thing wrong.

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use sha2::{Digest as _, Sha256, Sha512};

use caretaker::anchor::timestamp::{TimestampError, verify_timestamp};
use caretaker::clock::Millis;

use super::made::{
    AT, Authority, DATA, ECDSA_SHA1, ECDSA_SHA256, ECDSA_SHA384, ED25519, Made, Purposes, SERVERS,
    SHA1, SHA256, SHA384, SHA512, TIMESTAMPING, certificate_by_hash, certificate_by_sha1, element,
    imprint, message_digest, octets, oid, ring_sha1, sequence,
};

#[test]
fn a_good_one_says_when_and_by_whom() {
    let authority = Authority::new("Authority A");
    let stamped = Made::by(&authority).verdict(&authority).unwrap();
    assert_eq!(stamped.at, Millis(1_800_000_000_000));
    assert_eq!(stamped.accuracy_millis, Some(1_500));
    assert_eq!(stamped.before(), Millis(1_800_000_001_500));
    assert_eq!(stamped.authority, "Authority A");
    assert_eq!(stamped.policy, "1.2.3.4");
    assert_eq!(stamped.nonce, Some(vec![0x55; 8]));
    // The same key under a later certificate is the same authority.
    let mut later = Made::by(&authority);
    let renewed = authority.twin("Authority A, renewed", &authority.key);
    later.certificates = vec![renewed.clone()];
    later.attributes.pop();
    later
        .attributes
        .push(certificate_by_hash(&Sha256::digest(&renewed)));
    assert_eq!(later.verdict(&authority).unwrap().key, stamped.key);
    let other = Authority::new("Authority A");
    assert_ne!(Made::by(&other).verdict(&other).unwrap().key, stamped.key);
}

#[test]
fn keys_of_several_kinds_sign() {
    let purposes = Purposes::Critical(&[TIMESTAMPING]);
    for (kind, digest, signature) in [
        (&rcgen::PKCS_ECDSA_P384_SHA384, SHA384, ECDSA_SHA384),
        (&rcgen::PKCS_ED25519, SHA512, ED25519),
    ] {
        let authority = Authority::with("Authority", kind, &purposes, |_| ());
        let made = Made::with(&authority, digest, signature);
        made.verdict(&authority).unwrap();
    }
}

#[test]
fn a_timestamp_of_other_bytes_is_refused() {
    let authority = Authority::new("Authority A");
    let mut made = Made::by(&authority);
    made.imprint.1 = Sha256::digest(b"others").to_vec();
    made.sign_again(&authority);
    let error = made.verdict(&authority).unwrap_err();
    assert!(matches!(error, TimestampError::Imprint { .. }), "{error}");
}

#[test]
fn the_timestamp_of_another_authority_is_refused() {
    let (a, b) = (Authority::new("Authority A"), Authority::new("Authority B"));
    let made = Made::by(&a);
    let error = verify_timestamp(&made.response(&a), &imprint(), &b.roots()).unwrap_err();
    assert!(matches!(error, TimestampError::Chain { .. }), "{error}");
    // A root that comes with the token is nobody's.
    let mut own = Made::by(&a);
    own.certificates.push(b.certificate.clone());
    let error = verify_timestamp(&own.response(&a), &imprint(), &b.roots()).unwrap_err();
    assert!(matches!(error, TimestampError::Chain { .. }), "{error}");
    // Nor does A's signature count under B's certificate, whose time it may be.
    let mut borrowed = Made::by(&a);
    borrowed.certificates = vec![b.certificate.clone()];
    borrowed.attributes.pop();
    borrowed
        .attributes
        .push(certificate_by_hash(&Sha256::digest(&b.certificate)));
    let error = verify_timestamp(&borrowed.response(&a), &imprint(), &b.roots()).unwrap_err();
    assert_eq!(error, TimestampError::NoCertificate);
}

#[test]
fn certificates_that_were_put_in_do_not_sign() {
    let authority = Authority::new("Authority A");
    let stamped = Made::by(&authority).verdict(&authority).unwrap();
    let stranger = KeyPair::generate().unwrap();
    // Everything about it is right but for the key.
    let twin = authority.twin("Somebody else", &stranger);
    let mut first = Made::by(&authority);
    first.certificates.insert(0, twin.clone());
    assert_eq!(first.verdict(&authority).unwrap(), stamped);
    let mut instead = Made::by(&authority);
    instead.certificates = vec![twin.clone()];
    assert_eq!(
        instead.verdict(&authority),
        Err(TimestampError::NoCertificate)
    );
    // And if the signature names it, it is not its key's.
    instead.attributes.pop();
    instead
        .attributes
        .push(certificate_by_hash(&Sha256::digest(&twin)));
    assert_eq!(instead.verdict(&authority), Err(TimestampError::Signature));
    instead.certificates.clear();
    assert_eq!(
        instead.verdict(&authority),
        Err(TimestampError::NoCertificate)
    );
}

#[test]
fn only_a_key_for_timestamps_alone_makes_them() {
    let refused: [Purposes<'_>; 6] = [
        Purposes::Nothing,
        Purposes::NotCritical(&[TIMESTAMPING]),
        Purposes::Critical(&[TIMESTAMPING, SERVERS]),
        Purposes::Critical(&[SERVERS, TIMESTAMPING]),
        Purposes::Critical(&[SERVERS]),
        // Any purpose.
        Purposes::Critical(&[&[0x55, 0x1d, 0x25, 0]]),
    ];
    for purposes in refused {
        let kind = &rcgen::PKCS_ECDSA_P256_SHA256;
        let authority = Authority::with("Authority", kind, &purposes, |_| ());
        let error = Made::by(&authority).verdict(&authority).unwrap_err();
        assert!(matches!(error, TimestampError::Purpose { .. }), "{error}");
    }
}

#[test]
fn a_moment_outside_of_the_certificates_validity_is_refused() {
    let kind = &rcgen::PKCS_ECDSA_P256_SHA256;
    let purposes = Purposes::Critical(&[TIMESTAMPING]);
    let year = |parameters: &mut CertificateParams| {
        parameters.not_before = date_time_ymd(2027, 1, 1);
        parameters.not_after = date_time_ymd(2027, 12, 31);
    };
    let authority = Authority::with("Authority", kind, &purposes, year);
    let at = |moment: &str| {
        let mut made = Made::by(&authority);
        made.at = moment.to_owned();
        made.sign_again(&authority);
        made.verdict(&authority)
    };
    // Whenever it is looked at: a certificate that has ended since does not undo what it signed.
    at(AT).unwrap();
    for outside in [
        "20261231235959Z",
        "20280101000000Z",
        "19690101000000Z",
        "99991231235959Z",
    ] {
        let error = at(outside).unwrap_err();
        let chain = matches!(error, TimestampError::Chain { .. });
        assert!(
            chain || matches!(error, TimestampError::Malformed { .. }),
            "{error}"
        );
    }
}

#[test]
fn weak_or_foreign_algorithms_are_refused() {
    let authority = Authority::new("Authority A");
    let refused = |made: &Made| {
        let error = made.verdict(&authority).unwrap_err();
        assert!(matches!(error, TimestampError::Algorithm { .. }), "{error}");
    };
    for (of, hash) in [
        (SHA1, ring_sha1(DATA)),
        (SHA512, Sha512::digest(DATA).to_vec()),
        // As long as ours, and of another algorithm.
        (SHA512, Sha256::digest(DATA).to_vec()),
    ] {
        let mut made = Made::by(&authority);
        made.imprint = (of.to_vec(), hash);
        made.sign_again(&authority);
        refused(&made);
    }
    refused(&Made::with(&authority, SHA1, ECDSA_SHA1));
    refused(&Made::with(&authority, SHA1, ECDSA_SHA256));
    refused(&Made::with(&authority, SHA256, ECDSA_SHA1));
    // The hash that is signed and the one that is named are one.
    refused(&Made::with(&authority, SHA512, ECDSA_SHA256));
    refused(&Made::with(&authority, SHA256, ED25519));
}

#[test]
fn a_second_signer_is_refused() {
    let authority = Authority::new("Authority A");
    let mut made = Made::by(&authority);
    made.signers = 2;
    assert_eq!(made.verdict(&authority), Err(TimestampError::Signers));
    made.signers = 0;
    let error = made.verdict(&authority).unwrap_err();
    assert!(matches!(error, TimestampError::Malformed { .. }), "{error}");
}

#[test]
fn a_changed_content_is_refused() {
    let authority = Authority::new("Authority A");
    let mut made = Made::by(&authority);
    let mut earlier = Made::by(&authority);
    earlier.at = "20260115080000Z".to_owned();
    made.content = Some(earlier.info());
    assert_eq!(made.verdict(&authority), Err(TimestampError::Signature));
}

#[test]
fn a_signature_that_does_not_name_its_certificate_is_refused() {
    let authority = Authority::new("Authority A");
    let mut made = Made::by(&authority);
    made.attributes.pop();
    let error = made.verdict(&authority).unwrap_err();
    let name = "signingCertificate";
    assert_eq!(error, TimestampError::Attribute { name });
    let own = &authority.certificate;
    let (right, wrong) = (ring_sha1(own), ring_sha1(b"another"));
    made.attributes.push(certificate_by_sha1(&right));
    made.verdict(&authority).unwrap();
    made.attributes
        .push(certificate_by_hash(&Sha256::digest(own)));
    made.verdict(&authority).unwrap();
    // Where it is named twice, both names are looked at.
    for (by_sha1, by_hash) in [
        (wrong.clone(), Sha256::digest(own).to_vec()),
        (right, Sha256::digest(b"another").to_vec()),
        (wrong, Sha256::digest(b"another").to_vec()),
    ] {
        made.attributes.truncate(2);
        made.attributes.push(certificate_by_sha1(&by_sha1));
        made.attributes.push(certificate_by_hash(&by_hash));
        assert_eq!(made.verdict(&authority), Err(TimestampError::NoCertificate));
    }
}

#[test]
fn an_attribute_that_is_there_twice_is_refused() {
    let authority = Authority::new("Authority A");
    for place in 0..3 {
        let mut made = Made::by(&authority);
        let twice = made.attributes[place].clone();
        made.attributes.push(twice);
        let error = made.verdict(&authority).unwrap_err();
        assert!(matches!(error, TimestampError::Malformed { .. }), "{error}");
        let mut made = Made::by(&authority);
        made.attributes.remove(place);
        let error = made.verdict(&authority).unwrap_err();
        assert!(matches!(error, TimestampError::Attribute { .. }), "{error}");
    }
    // An attribute of the right kind with the hash of something else.
    let mut made = Made::by(&authority);
    made.attributes[1] = message_digest(&Sha256::digest(b"others"));
    assert_eq!(made.verdict(&authority), Err(TimestampError::Signature));
}

#[test]
fn what_has_to_be_understood_is_not_passed_over() {
    let authority = Authority::new("Authority A");
    let extension = |critical: &[u8]| {
        let extension = sequence(&[&oid(&[0x2a, 3, 9]), critical, &octets(b"word")]);
        let mut made = Made::by(&authority);
        made.rest = element(0xa1, &[&extension]);
        made.sign_again(&authority);
        made.verdict(&authority)
    };
    extension(&[]).unwrap();
    let oid = "1.2.3.9".to_owned();
    assert_eq!(
        extension(&[1, 1, 0xff]),
        Err(TimestampError::Extension { oid })
    );
}

#[test]
fn a_bag_of_certificates_costs_no_time() {
    let authority = Authority::new("Authority A");
    let mut made = Made::by(&authority);
    made.certificates
        .extend(vec![authority.certificate.clone(); 5]);
    made.verdict(&authority).unwrap();
    made.certificates.push(authority.certificate.clone());
    assert_eq!(made.verdict(&authority), Err(TimestampError::Certificates));
}
