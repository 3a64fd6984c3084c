//! The bytes of timestamps: whole, cut, grown, and with any bit of them changed.

use caretaker::anchor::timestamp::{Nonce, Roots, TimestampError, request, verify_timestamp};
use caretaker::change::Sha256Digest;
use proptest::prelude::*;

use super::made::{Authority, Made, element, imprint, integer, sequence};
use crate::support::corpus;

#[test]
fn no_flipped_bit_changes_what_a_timestamp_says() {
    let authority = Authority::new("Authority A");
    let good = Made::by(&authority).response(&authority);
    let roots = authority.roots();
    let stamped = verify_timestamp(&good, &imprint(), &roots).unwrap();
    let mut indifferent = 0;
    for bit in 0..good.len() * 8 {
        let mut changed = good.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        match verify_timestamp(&changed, &imprint(), &roots) {
            Err(_) => {}
            Ok(same) => {
                assert_eq!(same, stamped, "bit {bit}");
                indifferent += 1;
            }
        }
    }
    // The status may be "with modifications", and the list of hashes beside the signer's own is nobody's.
    assert!(indifferent < 200, "{indifferent} bits mean nothing");
}

#[test]
fn whatever_is_not_a_timestamp_is_refused_in_words() {
    let authority = Authority::new("Authority A");
    let good = Made::by(&authority).response(&authority);
    let roots = authority.roots();
    let judged = |bytes: &[u8]| verify_timestamp(bytes, &imprint(), &roots);
    for length in 0..good.len() {
        assert!(judged(&good[..length]).is_err(), "{length} bytes");
    }
    let malformed = |bytes: &[u8]| {
        let error = judged(bytes).unwrap_err();
        assert!(matches!(error, TimestampError::Malformed { .. }), "{error}");
    };
    malformed(&[&good[..], b"\0"].concat());
    malformed(&[&good[..], &good[..]].concat());
    // Inside the answer, behind the token.
    let status = sequence(&[&integer(&[0])]);
    let token = &good[4 + status.len()..];
    judged(&sequence(&[&status, token])).unwrap();
    malformed(&sequence(&[&status, token, &integer(&[0])]));
    malformed(&sequence(&[&status]));
    malformed(&sequence(&[]));
    malformed(b"<html>");
    malformed(&[0x30, 0x80, 0, 0]);
    malformed(&vec![0x30; 60_000]);
    let length = 65_537;
    assert_eq!(
        judged(&vec![0x30; length]),
        Err(TimestampError::TooLong { length })
    );
}

#[test]
fn a_refusal_is_told_in_the_authoritys_words() {
    let authority = Authority::new("Authority A");
    let told = |status: u8, words: &str, bits: &[u8], token: &[u8]| {
        let words = sequence(&[&element(12, &[words.as_bytes()])]);
        let status = sequence(&[&integer(&[status]), &words, &element(3, &[bits])]);
        let response = sequence(&[&status, token]);
        verify_timestamp(&response, &imprint(), &authority.roots()).unwrap_err()
    };
    let error = told(2, "no\u{1b}[2J", &[5, 0x20], &[]);
    assert_eq!(
        error.to_string(),
        "the authority gave no timestamp, status 2: no\\u{1b}[2J; it does not serve such requests"
    );
    let passing = |error| matches!(error, TimestampError::Rejected { passing: true, .. });
    assert!(!passing(error));
    assert!(passing(told(2, "", &[1, 0, 2], &[])));
    assert!(passing(told(2, "", &[6, 0, 0, 0, 0x40], &[])));
    assert!(passing(told(3, "later", &[0], &[])));
    // What hangs on to a refusal is none the better for it.
    let good = Made::by(&authority).response(&authority);
    let error = told(5, "", &[0], &good);
    assert!(matches!(error, TimestampError::Rejected { .. }), "{error}");
}

#[test]
fn requests_have_the_bytes_of_the_specification() {
    let imprint = Sha256Digest::from_bytes([0xab; 32]);
    let bytes = hex::encode(request(&imprint, Nonce::of(u64::MAX)));
    let hash = "ab".repeat(32);
    assert_eq!(
        bytes,
        format!(
            "3043020101\
             3031300d060960864801650304020105000420{hash}\
             02087fffffffffffffff\
             0101ff"
        )
    );
    // Of one length whatever the bits are, and positive.
    assert_eq!(Nonce::of(0).octets(), [0x40, 0, 0, 0, 0, 0, 0, 0]);
}

/// Timestamps that others made, and what is wrong with most of them.
#[test]
fn timestamps_of_others_are_judged() {
    let file = |name: &str| corpus(&format!("attest/vectors/rfc3161/test/fixtures/{name}"));
    let Some(chain) = file("sigstage/ts_chain.pem") else {
        return;
    };
    let roots = Roots::parse(&chain).unwrap();
    let imprint = Sha256Digest::of(b"hello");
    let judged = |name: &str| verify_timestamp(&file(name).unwrap(), &imprint, &roots);
    let stamped = judged("sigstage/response-sha256.tsr").unwrap();
    assert_eq!(stamped.at.to_string(), "2025-05-09T11:58:55Z");
    assert_eq!(stamped.policy, "1.3.6.1.4.1.57264.2");
    let forged = judged("sigstage/response-invalid-signature.tsr");
    assert_eq!(forged, Err(TimestampError::Signature));
    let bare = judged("sigstage/response-no-embedded-cert.tsr").unwrap_err();
    let other = matches!(bare, TimestampError::Imprint { .. });
    assert!(other || bare == TimestampError::NoCertificate, "{bare}");
    for (name, why) in [
        (
            "sigstage/response-sha384.tsr",
            "the algorithm 2.16.840.1.101.3.4.2.2",
        ),
        (
            "test_tsa/response.tsr",
            "the algorithm 2.16.840.1.101.3.4.2.3",
        ),
        (
            "test_tsa/response-injected-certs.tsr",
            "the algorithm 2.16.840.1.101.3.4.2.3",
        ),
        (
            "identrust/issue-104.tsr",
            "the algorithm 2.16.840.1.101.3.4.2.3",
        ),
        ("sigstore.mock/response-expired.tsr", "about other bytes"),
    ] {
        let error = judged(name).unwrap_err().to_string();
        assert!(error.contains(why), "{name}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn random_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let authority = Authority::new("Authority A");
        prop_assert!(verify_timestamp(&bytes, &imprint(), &authority.roots()).is_err());
    }

    #[test]
    fn no_changed_byte_changes_what_a_timestamp_says(
        at in any::<prop::sample::Index>(),
        removed in 0_usize..4,
        put in proptest::collection::vec(any::<u8>(), 0..4),
    ) {
        let authority = Authority::new("Authority A");
        let good = Made::by(&authority).response(&authority);
        let stamped = verify_timestamp(&good, &imprint(), &authority.roots()).unwrap();
        let at = at.index(good.len());
        let end = (at + removed).min(good.len());
        let changed = [&good[..at], &put, &good[end..]].concat();
        if let Ok(same) = verify_timestamp(&changed, &imprint(), &authority.roots()) {
            prop_assert_eq!(same, stamped);
        }
    }
}
