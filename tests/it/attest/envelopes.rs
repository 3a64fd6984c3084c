//! Envelopes: one serialisation, exactly one signature, and only verified bytes come out.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use caretaker::attest::dsse::{IN_TOTO, MAX_ENVELOPE, TRUST_ROOT, pae};
use caretaker::attest::{Envelope, EnvelopeError, ForeignEnvelope, KeyId, Role, SignedDocument};
use proptest::prelude::*;

use super::ledger::{forge, key, seed};

fn stored(payload: &[u8]) -> String {
    String::from_utf8(forge(IN_TOTO, payload, &seed(Role::Policy))).unwrap()
}

#[test]
fn the_signed_bytes_are_those_of_the_specification() {
    // Lengths are in bytes, not in characters.
    assert_eq!(
        pae("http://example.com/HelloWorld", b"hello world"),
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    );
    assert_eq!(pae("ü", "é".as_bytes()), "DSSEv1 2 ü 2 é".as_bytes());
    assert_eq!(pae("", b""), b"DSSEv1 0  0 ");
}

#[test]
fn an_envelope_is_read_and_written_byte_for_byte() {
    let bytes = stored(b"payload");
    let envelope = Envelope::parse(bytes.as_bytes()).unwrap();
    assert_eq!(envelope.to_bytes().unwrap(), bytes.as_bytes());
    let verified = envelope
        .verify(IN_TOTO, &key(Role::Policy).public())
        .unwrap();
    assert_eq!(verified.payload(), b"payload");
    assert_eq!(verified.digest(), envelope.digest());
    assert_eq!(verified.keyids(), [key(Role::Policy).public().keyid()]);
}

#[test]
fn any_other_spelling_of_an_envelope_is_refused() {
    let bytes = stored(&[0xff, 0xfe, 0xfd, 0xfb]);
    let payload = STANDARD.encode([0xff, 0xfe, 0xfd, 0xfb]);
    let swap = |from: &str, to: &str| {
        assert!(bytes.contains(from), "{from}");
        bytes.replacen(from, to, 1)
    };
    let spellings = [
        format!(" {bytes}"),
        format!("{bytes}\n"),
        format!("\u{feff}{bytes}"),
        swap("\":\"", "\": \""),
        swap("payloadType", "payload\\u0054ype"),
        swap("application/", "application\\/"),
        swap("application/", "applicatio\\u006e/"),
        swap(&payload, &URL_SAFE.encode([0xff, 0xfe, 0xfd, 0xfb])),
        swap(&payload, payload.trim_end_matches('=')),
        // The unused low bits of the last character.
        swap("+w==", "+x=="),
        swap("{\"payload\"", "{\"extra\":1,\"payload\""),
        swap("{\"payload\"", "{\"payload\":\"\",\"payload\""),
        swap("\"signatures\":[{", "\"signatures\":[[").replace("}]}", "]]}"),
        swap("\"sig\":\"", "\"sig\":\" "),
        swap("SHA256:", "sha256:"),
        swap("SHA256:", ""),
    ];
    for spelling in spellings {
        // Break: drop the byte comparison in `SignedDocument::parse` (the white space and escape cases pass then).
        assert!(Envelope::parse(spelling.as_bytes()).is_err(), "{spelling}");
    }
}

#[test]
fn an_event_has_exactly_one_signature() {
    let bytes = stored(b"payload");
    let start = bytes.find('[').unwrap();
    let one = &bytes[start + 1..bytes.len() - 2];
    for (count, signatures) in [
        (0, String::new()),
        (2, format!("{one},{one}")),
        (40, vec![one; 40].join(",")),
    ] {
        let several = format!("{}[{signatures}]}}", &bytes[..start]);
        match Envelope::parse(several.as_bytes()) {
            Err(EnvelopeError::SignatureCount { found, .. }) => assert_eq!(found, count),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_million_signatures_or_a_huge_payload_cost_nothing() {
    let many = format!(
        "{{\"payload\":\"\",\"payloadType\":\"t\",\"signatures\":[{}]}}",
        "{},".repeat(1_000_000)
    );
    let huge = stored(&vec![b'x'; 1_000_000]);
    for bytes in [many, huge] {
        assert!(bytes.len() > MAX_ENVELOPE);
        assert!(Envelope::parse(bytes.as_bytes()).is_err());
        assert!(ForeignEnvelope::parse(bytes.as_bytes()).is_err());
    }
}

#[test]
fn a_repeated_signature_or_a_key_listed_twice_counts_once() {
    let bytes = stored(b"payload");
    let start = bytes.find('[').unwrap();
    let one = &bytes[start + 1..bytes.len() - 2];
    let five = format!("{}[{}]}}", &bytes[..start], [one; 5].join(","));
    let document = SignedDocument::parse(five.as_bytes()).unwrap();
    let signer = key(Role::Policy).public();
    let other = key(Role::Approver).public();
    assert!(
        document
            .verify(IN_TOTO, &[signer.clone(), other], 1)
            .is_ok()
    );
    for keys in [
        vec![signer.clone(), key(Role::Approver).public()],
        vec![signer.clone(), signer],
    ] {
        // Break: drop the `contains` filter in `verify_threshold`.
        assert_eq!(
            document.verify(IN_TOTO, &keys, 2),
            Err(EnvelopeError::Unverified {
                verified: 1,
                threshold: 2
            })
        );
    }
}

#[test]
fn a_document_that_was_signed_as_another_type_does_not_count() {
    let role = Role::Policy;
    let signed = forge(TRUST_ROOT, b"payload", &seed(role));
    let public = key(role).public();
    let envelope = Envelope::parse(&signed).unwrap();
    // The signature is good, for what was signed.
    assert!(envelope.verify(TRUST_ROOT, &public).is_ok());
    let nobody = Err(EnvelopeError::Unverified {
        verified: 0,
        threshold: 1,
    });
    // Break it: leave the comparison of types out in `verify_threshold`.
    assert_eq!(envelope.verify(IN_TOTO, &public), nobody);
    let foreign = ForeignEnvelope::parse(&signed).unwrap();
    assert!(
        foreign
            .verify(TRUST_ROOT, std::slice::from_ref(&public), 1)
            .is_ok()
    );
    assert_eq!(
        foreign.verify(IN_TOTO, std::slice::from_ref(&public), 1),
        nobody
    );
    // Nor does it when the type is changed afterwards.
    let relabelled = String::from_utf8(signed)
        .unwrap()
        .replace(TRUST_ROOT, IN_TOTO);
    let relabelled = Envelope::parse(relabelled.as_bytes()).unwrap();
    assert_eq!(relabelled.verify(IN_TOTO, &public), nobody);
}

#[test]
fn a_signature_has_one_length() {
    let bytes = stored(b"payload");
    let start = bytes.find("\"sig\":\"").unwrap() + 7;
    for length in [0, 1, 32, 63, 65, 66, 67, 96, 128] {
        let other = STANDARD.encode(vec![7; length]);
        let other = format!("{}{other}\"}}]}}", &bytes[..start]);
        // Break it: cut what is longer, or fill up what is shorter, in `signature_bytes`.
        assert!(Envelope::parse(other.as_bytes()).is_err(), "{length}");
    }
    let same = STANDARD.encode([7; 64]);
    let same = format!("{}{same}\"}}]}}", &bytes[..start]);
    assert!(Envelope::parse(same.as_bytes()).is_ok());
}

#[test]
fn a_key_id_has_one_length() {
    let id = key(Role::Policy).public().keyid().to_string();
    let longer = format!("SHA256:{}", STANDARD_NO_PAD.encode([7; 33]));
    let shorter = format!("SHA256:{}", STANDARD_NO_PAD.encode([7; 31]));
    assert_eq!(KeyId::parse(&id).unwrap().as_str(), id);
    assert_eq!(
        serde_json::to_string(&KeyId::parse(&id).unwrap()).unwrap(),
        format!("\"{id}\"")
    );
    // The last three have unused low bits, padding and a character that is none.
    let bits = format!("SHA256:{}B", "A".repeat(42));
    let padded = format!("{id}=");
    let strange = id.replacen(':', ":-", 1);
    for other in [longer, shorter, bits, padded, strange, String::new()] {
        // Break it: ask only for the 50 characters in `KeyId::parse`.
        assert!(KeyId::parse(&other).is_err(), "{other}");
    }
}

#[test]
fn a_threshold_of_nothing_verifies_nothing() {
    let document = SignedDocument::parse(stored(b"payload").as_bytes()).unwrap();
    let stranger = [key(Role::Approver).public()];
    // Break: drop the threshold check in `verify_threshold`.
    assert!(matches!(
        document.verify(IN_TOTO, &stranger, 0),
        Err(EnvelopeError::Threshold { .. })
    ));
    assert!(matches!(
        document.verify(IN_TOTO, &[], 1),
        Err(EnvelopeError::Threshold { .. })
    ));
    assert!(matches!(
        document.verify(IN_TOTO, &[], 0),
        Err(EnvelopeError::Threshold { .. })
    ));
}

#[test]
fn in_a_foreign_envelope_the_key_id_changes_nothing() {
    let bytes = stored(b"payload");
    let right = key(Role::Policy).public();
    let keyid = right.keyid().to_string();
    let stranger = key(Role::Approver).public();
    for hint in [
        keyid.clone(),
        stranger.keyid().to_string(),
        String::new(),
        "x".repeat(50_000),
    ] {
        let foreign = ForeignEnvelope::parse(bytes.replace(&keyid, &hint).as_bytes()).unwrap();
        assert!(
            foreign
                .verify(IN_TOTO, std::slice::from_ref(&right), 1)
                .is_ok()
        );
        assert!(
            foreign
                .verify(IN_TOTO, std::slice::from_ref(&stranger), 1)
                .is_err()
        );
    }
    let without = bytes.replace(&format!("\"keyid\":\"{keyid}\","), "");
    assert!(
        ForeignEnvelope::parse(without.as_bytes())
            .unwrap()
            .verify(IN_TOTO, &[right], 1)
            .is_ok()
    );
}

#[test]
fn a_foreign_envelope_may_use_either_alphabet_and_any_layout_but_no_repeated_member() {
    let bytes = stored(&[0xff, 0xfe, 0xfd, 0xfb]);
    let right = [key(Role::Policy).public()];
    let payload = STANDARD.encode([0xff, 0xfe, 0xfd, 0xfb]);
    let url_safe = bytes.replace(&payload, &URL_SAFE.encode([0xff, 0xfe, 0xfd, 0xfb]));
    let laid_out = bytes
        .replace(',', " ,\n ")
        .replacen('{', "{ \"unknown\": [1], ", 1);
    for good in [url_safe, laid_out] {
        let foreign = ForeignEnvelope::parse(good.as_bytes()).unwrap();
        let verified = foreign.verify(IN_TOTO, &right, 1).unwrap();
        assert_eq!(verified.payload(), [0xff, 0xfe, 0xfd, 0xfb]);
    }
    let mixed = bytes.replace(&payload, "_/79+w==");
    let twice = bytes.replacen('{', "{\"payload\":\"eA==\",", 1);
    let escaped = bytes.replacen('{', "{\"p\\u0061yload\":\"eA==\",", 1);
    for bad in [mixed, twice, escaped] {
        assert!(ForeignEnvelope::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn whatever_was_signed_comes_out_as_it_was(payload in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let bytes = stored(&payload);
        let envelope = Envelope::parse(bytes.as_bytes()).unwrap();
        let verified = envelope.verify(IN_TOTO, &key(Role::Policy).public()).unwrap();
        prop_assert_eq!(verified.payload(), payload.as_slice());
        prop_assert!(envelope.verify(IN_TOTO, &key(Role::Approver).public()).is_err());
        prop_assert!(envelope.verify("application/json", &key(Role::Policy).public()).is_err());
    }

    #[test]
    fn no_bytes_crash_the_readers(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Envelope::parse(&bytes).is_ok();
        let _ = ForeignEnvelope::parse(&bytes).is_ok();
    }
}
