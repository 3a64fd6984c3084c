//! Keys at rest.

use caretaker::attest::keys::{Argon2Cost, FillError, Kdf, hkdf_sha256};
use caretaker::attest::{
    FileSigner, KeyFile, KeyFileError, KeyId, KeyUse, PublicKey, Role, SecretKey, Signer as _,
};

use super::ledger::{key, label};

const CHEAP: Argon2Cost = Argon2Cost {
    memory_kib: 64,
    passes: 1,
    lanes: 1,
};

fn sealed_as(key: &SecretKey, role: KeyUse, secret: &[u8]) -> KeyFile {
    let mut fill = |buffer: &mut [u8]| {
        buffer.fill(5);
        Ok(())
    };
    KeyFile::seal(
        key,
        &label("example"),
        role,
        Kdf::argon2id(CHEAP, [3; 16]),
        secret,
        &mut fill,
    )
    .unwrap()
}

fn sealed(role: Role, secret: &[u8]) -> Vec<u8> {
    sealed_as(&key(role), role.into(), secret).to_bytes()
}

/// A file with the header line of one and the rest of another, its checksum made to fit.
fn grafted(header: &[u8], body: &[u8]) -> Vec<u8> {
    let line = |bytes: &[u8], number: usize| {
        String::from_utf8(bytes.to_vec())
            .unwrap()
            .lines()
            .nth(number)
            .unwrap()
            .to_owned()
    };
    with_checksum(&line(header, 0), &line(body, 1))
}

fn with_checksum(header: &str, body: &str) -> Vec<u8> {
    use base64::Engine as _;
    let words: Vec<&str> = body.split(' ').collect();
    let text = format!("{header}\n{} {} ", words[0], words[1]);
    let checksum = caretaker::change::Sha256Digest::of(text.as_bytes());
    format!(
        "{text}{}\n",
        base64::engine::general_purpose::STANDARD.encode(checksum.as_bytes())
    )
    .into_bytes()
}

#[test]
fn a_key_opens_with_its_own_secret() {
    let bytes = sealed(Role::Approver, b"approver's secret");
    let signer = FileSigner::open(Role::Approver, &bytes, b"approver's secret").unwrap();
    assert_eq!(signer.public_key(), &key(Role::Approver).public());
    let file = KeyFile::parse(&bytes).unwrap();
    assert_eq!(file.to_bytes(), bytes);
    assert_eq!(
        (file.header().role, file.header().org.as_str()),
        (KeyUse::Approver, "example")
    );
}

#[test]
fn the_proposers_secret_does_not_open_the_approvers_key() {
    let bytes = sealed(Role::Approver, b"approver's secret");
    let refused = FileSigner::open(Role::Approver, &bytes, b"proposer's secret");
    // Break: decrypt without authentication, or take the key from the header.
    assert!(
        matches!(
            refused,
            Err(KeyFileError::WrongSecret {
                role: KeyUse::Approver,
                ..
            })
        ),
        "{refused:?}"
    );
}

#[test]
fn the_file_of_another_role_is_refused_by_name() {
    let bytes = sealed(Role::Proposer, b"one secret for all");
    let refused = FileSigner::open(Role::Approver, &bytes, b"one secret for all");
    assert!(matches!(
        refused,
        Err(KeyFileError::WrongRole {
            expected: KeyUse::Approver,
            found: KeyUse::Proposer
        })
    ));
}

#[test]
fn the_right_secret_with_another_roles_header_does_not_open() {
    // Whoever can write the key folder puts the approver's header on the proposer's key. Same secret, same salt, and
    // a header that also names the proposer's key, so that only the associated data can tell.
    let proposer = sealed(Role::Proposer, b"one secret for all");
    let disguised = sealed_as(
        &key(Role::Proposer),
        KeyUse::Approver,
        b"one secret for all",
    )
    .to_bytes();
    let bytes = grafted(&disguised, &proposer);
    // Break: pass an empty associated data in `KeyFile::seal` and `KeyFile::open`.
    let refused = FileSigner::open(Role::Approver, &bytes, b"one secret for all");
    assert!(
        matches!(refused, Err(KeyFileError::WrongSecret { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_header_spelt_differently_does_not_open() {
    let bytes = String::from_utf8(sealed(Role::Approver, b"secret")).unwrap();
    let (header, body) = bytes.split_once('\n').unwrap();
    let spaced = with_checksum(&header.replacen(':', ": ", 1), body.trim_end());
    assert!(matches!(
        FileSigner::open(Role::Approver, &spaced, b"secret"),
        Err(KeyFileError::WrongSecret { .. })
    ));
}

#[test]
fn a_file_that_holds_another_key_than_it_says_is_refused() {
    // Sealed honestly, but by somebody who wrote another key's id into the header.
    let honest = sealed_as(&key(Role::Approver), KeyUse::Approver, b"secret");
    let other: KeyId = key(Role::Policy).public().keyid();
    let text = String::from_utf8(honest.to_bytes()).unwrap();
    let (header, body) = text.split_once('\n').unwrap();
    let renamed = header.replace(honest.header().keyid.as_str(), other.as_str());
    let bytes = with_checksum(&renamed, body.trim_end());
    assert!(matches!(
        FileSigner::open(Role::Approver, &bytes, b"secret"),
        Err(KeyFileError::WrongSecret { .. })
    ));
}

#[test]
fn every_damaged_byte_is_told_from_a_wrong_secret() {
    let bytes = sealed(Role::Approver, b"secret");
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let refused = FileSigner::open(Role::Approver, &damaged, b"secret");
        assert!(
            matches!(refused, Err(KeyFileError::Damaged { .. })),
            "byte {at}: {refused:?}"
        );
        assert!(KeyFile::parse(&bytes[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn a_hostile_file_cannot_demand_a_terabyte() {
    let bytes = String::from_utf8(sealed(Role::Approver, b"secret")).unwrap();
    let (header, body) = bytes.split_once('\n').unwrap();
    for (from, to) in [
        ("\"memory_kib\":64", "\"memory_kib\":1073741824"),
        ("\"passes\":1", "\"passes\":4294967295"),
        ("\"lanes\":1", "\"lanes\":16777215"),
        ("\"memory_kib\":64", "\"memory_kib\":0"),
    ] {
        let hostile = with_checksum(&header.replace(from, to), body.trim_end());
        let refused = FileSigner::open(Role::Approver, &hostile, b"secret");
        // Break: drop the comparison with the limits in `argon2id`.
        assert!(
            matches!(refused, Err(KeyFileError::Cost { .. })),
            "{to}: {refused:?}"
        );
    }
    assert!(KeyFile::parse(&vec![b'{'; 10_000_000]).is_err());
}

#[test]
fn a_random_secret_is_derived_without_the_slow_function_and_has_32_bytes() {
    let mut fill = |buffer: &mut [u8]| {
        buffer.fill(5);
        Ok(())
    };
    let mut seal = |secret: &[u8]| {
        KeyFile::seal(
            &key(Role::Policy),
            &label("example"),
            KeyUse::Policy,
            Kdf::hkdf([3; 16]),
            secret,
            &mut fill,
        )
    };
    let file = seal(&[8; 32]).unwrap();
    assert!(file.open(KeyUse::Policy, &[8; 32]).is_ok());
    assert!(matches!(
        file.open(KeyUse::Policy, &[9; 32]),
        Err(KeyFileError::WrongSecret { .. })
    ));
    assert!(matches!(
        file.open(KeyUse::Policy, b"short"),
        Err(KeyFileError::SecretLength { length: 5 })
    ));
    assert!(matches!(
        seal(b"passphrase"),
        Err(KeyFileError::SecretLength { length: 10 })
    ));
    assert!(matches!(seal(b""), Err(KeyFileError::NoSecret { .. })));
}

#[test]
fn a_failing_source_of_randomness_makes_no_key() {
    let broken = |_: &mut [u8]| {
        Err(FillError {
            reason: "no entropy".to_owned(),
        })
    };
    assert!(SecretKey::generate(&mut { broken }).is_err());
    let seal = KeyFile::seal(
        &key(Role::Policy),
        &label("example"),
        KeyUse::Policy,
        Kdf::argon2id(CHEAP, [3; 16]),
        b"s",
        &mut { broken },
    );
    assert!(matches!(seal, Err(KeyFileError::Fill(_))));
}

#[test]
fn nothing_secret_is_printed() {
    let secret = SecretKey::from_seed(&[0x41; 32]);
    let words = format!(
        "{secret:?} {:?}",
        FileSigner::new(Role::Policy, SecretKey::from_seed(&[0x41; 32]))
    );
    assert!(
        !words.contains("65, 65") && !words.contains("4141"),
        "{words}"
    );
}

#[test]
fn the_key_id_is_what_ssh_keygen_prints() {
    // `ssh-keygen -lf` on the public key of RFC 8032's first test vector.
    let bytes =
        hex::decode("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a").unwrap();
    let public = PublicKey::from_bytes(&bytes.try_into().unwrap()).unwrap();
    assert_eq!(
        public.keyid().as_str(),
        "SHA256:bbXpuKG6zhzdmnxq256TlqzFBzRl2f6OOg722cYNbU8"
    );
}

#[test]
fn derivation_is_that_of_rfc_5869() {
    // Test case 1, its first 32 bytes of output; test case 3 (no salt, no info).
    let salt: Vec<u8> = (0..=0x0c).collect();
    let info: Vec<u8> = (0xf0..=0xf9).collect();
    let hex_of = |key: &[u8]| hex::encode(key);
    assert_eq!(
        hex_of(hkdf_sha256(&[0x0b; 22], &salt, &info).as_slice()),
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
    );
    assert_eq!(
        hex_of(hkdf_sha256(&[0x0b; 22], b"", b"").as_slice()),
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
    );
}
