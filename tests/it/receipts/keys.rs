//! Key files, as other programs write and name them.

use caretaker::attest::SecretKey;
use caretaker::receipts::{PemError, PemKey, PemKeyId, public_pem, read_public_pem};

/// The key pair of RFC 8410, section 10.3.
const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
";
const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
";

#[test]
fn the_key_pair_of_the_standard_is_read() {
    let key = PemKey::from_pem(PRIVATE).unwrap();
    assert_eq!(public_pem(&key.public()), PUBLIC);
    assert_eq!(read_public_pem(PUBLIC).unwrap(), key.public());
    // `sha256sum` of the public file begins so.
    assert_eq!(key.id().as_str(), "f7a7c27ec5c95e97");
    assert_eq!(PemKeyId::of(&key.public()), *key.id());
}

#[test]
fn a_private_file_serves_where_a_public_one_is_wanted() {
    let key = PemKey::from_pem(PRIVATE).unwrap();
    assert_eq!(read_public_pem(PRIVATE).unwrap(), key.public());
}

#[test]
fn line_ends_make_no_other_key() {
    let windows = PUBLIC.replace('\n', "\r\n");
    let read = read_public_pem(&windows).unwrap();
    assert_eq!(PemKeyId::of(&read).as_str(), "f7a7c27ec5c95e97");
}

#[test]
fn a_new_key_is_read_back() {
    let (key, pem) = PemKey::generate(&mut |buffer: &mut [u8]| {
        buffer.fill(9);
        Ok(())
    })
    .unwrap();
    assert_eq!(key.public(), SecretKey::from_seed(&[9; 32]).public());
    assert_eq!(PemKey::from_pem(&pem).unwrap().id(), key.id());
    assert!(!format!("{key:?}").contains("PRIVATE"));
}

#[test]
fn other_files_are_refused_in_words() {
    let refusals: Vec<String> = [
        "",
        "-----BEGIN PUBLIC KEY-----\n",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "-----BEGIN PUBLIC KEY-----\n!!!!\n-----END PUBLIC KEY-----\n",
        // A key for signing with ECDSA has another prefix.
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n",
        // A point for which anybody can sign.
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n-----END PUBLIC KEY-----\n",
        &format!("{PUBLIC}{PUBLIC}"),
        &"-".repeat(10_000),
    ]
    .iter()
    .map(|text| read_public_pem(text).unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(refusals.join("\n"));
    assert!(matches!(
        PemKey::from_pem(PUBLIC),
        Err(PemError::Label { .. })
    ));
    let sealed =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    insta::assert_snapshot!(PemKey::from_pem(sealed).unwrap_err());
}
