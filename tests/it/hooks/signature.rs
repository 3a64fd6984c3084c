//! Who sent it.

use caretaker::hook::{EmptySecret, HookKey, Signature};

use super::{SECRET, signed};

fn matches(key: &HookKey, pieces: &[&[u8]], header: &str) -> bool {
    let mut verifier = key.verifier();
    for piece in pieces {
        verifier.update(piece);
    }
    Signature::parse(header.as_bytes()).is_some_and(|signature| verifier.matches(&signature))
}

/// The vector that GitHub publishes for receivers.
const PUBLISHED: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

#[test]
fn the_published_vector_is_right_however_the_body_is_cut() {
    let key = HookKey::new(SECRET.as_bytes()).unwrap();
    let body = b"Hello, World!";
    for cut in 0..=body.len() {
        let (first, second) = body.split_at(cut);
        assert!(matches(&key, &[first, second], PUBLISHED), "{cut}");
    }
    assert_eq!(signed(SECRET, body), PUBLISHED);
    let read = Signature::parse(
        PUBLISHED
            .to_uppercase()
            .replace("SHA256", "sha256")
            .as_bytes(),
    );
    assert_eq!(read.unwrap().name(), PUBLISHED);
}

#[test]
fn one_bit_of_body_secret_or_signature_is_enough_to_be_wrong() {
    let key = HookKey::new(SECRET.as_bytes()).unwrap();
    assert!(!matches(&key, &[b"Hello, World?"], PUBLISHED));
    assert!(!matches(&key, &[b"Hello, World!\n"], PUBLISHED));
    assert!(!matches(&key, &[b"Hello, World"], PUBLISHED));
    let other = HookKey::new(b"It's a secret to Everybody").unwrap();
    assert!(!matches(&other, &[b"Hello, World!"], PUBLISHED));
    let right = hex::decode(&PUBLISHED[7..]).unwrap();
    for bit in 0..256 {
        let mut wrong = right.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let header = format!("sha256={}", hex::encode(wrong));
        assert!(!matches(&key, &[b"Hello, World!"], &header), "bit {bit}");
    }
}

#[test]
fn what_is_no_signature_is_not_read_as_one() {
    let digits = &PUBLISHED[7..];
    for header in [
        String::new(),
        "sha256=".to_owned(),
        digits.to_owned(),
        format!("sha1={digits}"),
        format!("SHA256={digits}"),
        format!("sha256={}", &digits[1..]),
        format!("sha256={digits}0"),
        format!("sha256= {}", &digits[1..]),
        format!("sha256={digits},sha256={digits}"),
        format!("sha256=g{}", &digits[1..]),
    ] {
        assert!(Signature::parse(header.as_bytes()).is_none(), "{header}");
    }
}

#[test]
fn an_empty_secret_signs_nothing() {
    assert_eq!(HookKey::new(b"").unwrap_err(), EmptySecret);
    let key = HookKey::new(SECRET.as_bytes()).unwrap();
    assert_eq!(format!("{key:?}"), "HookKey(…)");
}
