//! Vectors that others made, and hostile points made for this.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caretaker::attest::dsse::pae;
use caretaker::attest::{ForeignEnvelope, PublicKey};
use ed25519_dalek::{Signature, Verifier as _, VerifyingKey};
use serde_json::Value;

use crate::support::corpus;
use crate::twin::{self, Twin};

fn hex_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    hex::decode(text).unwrap().try_into().ok()
}

#[test]
fn envelopes_of_the_reference_implementation_verify() {
    let Some(bytes) = corpus("attest/vectors/dsse/dsse-crate-0.1.6_cross_lang_signing.json") else {
        return;
    };
    let vectors: Value = serde_json::from_slice(&bytes).unwrap();
    let pem: String = vectors["public_key_pem"]
        .as_str()
        .unwrap()
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    let der = STANDARD.decode(pem).unwrap();
    let public = PublicKey::from_bytes(der[der.len() - 32..].try_into().unwrap()).unwrap();
    let fixtures = vectors["fixtures"].as_array().unwrap();
    assert_eq!(fixtures.len(), 11);
    for fixture in fixtures {
        let name = &fixture["name"];
        let payload_type = fixture["payload_type"].as_str().unwrap();
        let payload = STANDARD
            .decode(fixture["canonical_b64"].as_str().unwrap())
            .unwrap();
        assert_eq!(
            STANDARD.encode(pae(payload_type, &payload)),
            fixture["pae_b64"],
            "{name}"
        );
        let envelope = serde_json::to_vec(&fixture["envelope"]).unwrap();
        let foreign = ForeignEnvelope::parse(&envelope).unwrap();
        let verified = foreign
            .verify(payload_type, std::slice::from_ref(&public), 1)
            .unwrap();
        assert_eq!(verified.payload(), payload, "{name}");
        assert!(
            foreign
                .verify("application/x-other", std::slice::from_ref(&public), 1)
                .is_err(),
            "{name}"
        );
    }
}

#[test]
fn wycheproofs_verdicts_are_ours() {
    let Some(bytes) = corpus("attest/vectors/ed25519/wycheproof_ed25519_test.json") else {
        return;
    };
    let vectors: Value = serde_json::from_slice(&bytes).unwrap();
    let mut seen = [0, 0];
    for group in vectors["testGroups"].as_array().unwrap() {
        let public =
            PublicKey::from_bytes(&hex_array(group["publicKey"]["pk"].as_str().unwrap()).unwrap());
        for test in group["tests"].as_array().unwrap() {
            let message = hex::decode(test["msg"].as_str().unwrap()).unwrap();
            let verifies = hex_array(test["sig"].as_str().unwrap()).is_some_and(|signature| {
                public
                    .as_ref()
                    .is_ok_and(|public| public.verifies(&message, &signature))
            });
            let valid = test["result"] == "valid";
            assert_eq!(verifies, valid, "{} {}", test["tcId"], test["comment"]);
            seen[usize::from(valid)] += 1;
        }
    }
    assert_eq!(seen, [63, 88]);
}

#[test]
fn the_reference_signatures_verify_and_their_neighbours_do_not() {
    let files = [
        "ref_sign_input_1024.txt",
        "dalek_TESTVECTORS_rfc8032_signinput.txt",
    ];
    for (name, least) in files.into_iter().zip([1_024, 100]) {
        let Some(bytes) = corpus(&format!("attest/vectors/ed25519/{name}")) else {
            return;
        };
        let text = String::from_utf8(bytes).unwrap();
        let mut count = 0;
        for line in text.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let public = PublicKey::from_bytes(&hex_array(fields[1]).unwrap()).unwrap();
            let mut message = hex::decode(fields[2]).unwrap();
            let mut signature: [u8; 64] = hex_array(&fields[3][..128]).unwrap();
            assert!(public.verifies(&message, &signature), "{name} {count}");
            message.push(0);
            assert!(!public.verifies(&message, &signature));
            message.pop();
            signature[count % 64] ^= 1;
            assert!(!public.verifies(&message, &signature));
            count += 1;
        }
        assert!(count >= least, "{name}: {count}");
    }
}

/// Every encoding of the eight points of small order, canonical and not: whoever names one as a key could sign
/// anything with the empty signature.
#[test]
fn a_key_of_small_order_or_in_a_second_spelling_is_no_key() {
    for text in [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        // Of large order, but with a y beyond the field's prime.
        "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ] {
        // Break: drop the `is_weak` and the `compress` check in `PublicKey::from_bytes`.
        assert!(twin::key(&hex_array(text).unwrap()).is_none(), "{text}");
    }
}

/// Computed apart from the library for the key of seed 07…07 and the message `approve`.
#[test]
fn signatures_that_only_lenient_verifiers_take_are_refused() {
    let public = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c";
    let public = PublicKey::from_bytes(&hex_array(public).unwrap()).unwrap();
    let verifies = |signature: &str| public.verifies(b"approve", &hex_array(signature).unwrap());
    assert!(verifies(concat!(
        "05152206d443aea8dae0c294b0b74a0bb228ba2bfc062cbc478883d698e6e252",
        "d3181d2de6f4e890ceedef6dbb39613c26018ca8acd981849f6a86d3eae95507"
    )));
    // The same with S + L: a second signature for the same bytes.
    assert!(!verifies(concat!(
        "05152206d443aea8dae0c294b0b74a0bb228ba2bfc062cbc478883d698e6e252",
        "c0ec128a0058fbe8a48ae7109a33405126018ca8acd981849f6a86d3eae95517"
    )));
    // R is the identity: holds in the equation, refused only by the strict check.
    // Break: leave the comparison with the points of small order out of `PublicKey::verifies`.
    assert!(!verifies(concat!(
        "0100000000000000000000000000000000000000000000000000000000000000",
        "7b5634f6dc8a5e9d9304fd104f2d36e545fe6079cf6103497919baae32732401"
    )));
    // R with a component of small order: verifiers that multiply by the cofactor take it.
    assert!(!verifies(concat!(
        "e8eaddf92bbc5157251f3d6b4f48b5f44dd745d403f9d343b8777c2967191dad",
        "a897e9476a4da4661c282e98197336c2353817eb6f0cbe0fcaff40a490a3d309"
    )));
}

/// For a key with a part of small order, and R each of the eight points of small order in turn: message, R, S. The equation holds
/// in all of them, computed apart from the library.
const SMALL_R: [(&str, &str, &str); 8] = [
    (
        "approve 8",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "3545563be2cfea56671e0612d93134f4118ae0c3cb1a2cd207a08b0c1bbf1f06",
    ),
    (
        "approve 9",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "857b0c34e05bce2a7af3141e7485edf6993d1b971f537681ebaac2c142eabc09",
    ),
    (
        "approve 0",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "db8f919fd7dcdf275ebd053552de58a67c703bc0a6f8bd9341e7164b2876bf06",
    ),
    (
        "approve 4",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "0ffeadd0a2d496f91b00ae35f7fc9c342bd8cac2225a1d9a38d8906c3b98a501",
    ),
    (
        "approve 2",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "7dc3a6fc405088c41a2c03abbc16704667a302a580e4647cc71fe5f8c686ba02",
    ),
    (
        "approve 2",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "16202c72fb9278cd1e8d4e939f21d1f6d8167908edfe4c3126580a4cacc8b10f",
    ),
    (
        "approve 14",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "a4b63d363d31a3f3fb6a40a70d09f277e0279559d6b5d67f65cc274a6750eb07",
    ),
    (
        "approve 9",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "6850d7774b89d6e3f475238179d0205fd21ce481d047090ebeb9914a5add3c04",
    ),
];

/// The shorter way of verifying says what `verify_strict` says: where the lenient one says otherwise, where both agree, and where
/// the key or R has a part of small order without being of small order.
#[test]
fn verification_is_the_strict_one() {
    let bytes =
        hex_array("fbb3211d177bccefd763d01a88f6473e43e5cf0a0740e44ab5c64460eefd4675").unwrap();
    let (own, key) = (
        PublicKey::from_bytes(&bytes).unwrap(),
        VerifyingKey::from_bytes(&bytes).unwrap(),
    );
    let verdicts = |message: &str, point: &str, scalar: &str| {
        let bytes = hex_array(&format!("{point}{scalar}")).unwrap();
        let signature = Signature::from_bytes(&bytes);
        let message = message.as_bytes();
        [
            key.verify(message, &signature).is_ok(),
            key.verify_strict(message, &signature).is_ok(),
            own.verifies(message, &bytes),
        ]
    };
    for (message, point, scalar) in SMALL_R {
        let found = verdicts(message, point, scalar);
        assert_eq!(found, [true, false, false], "{message} {point}");
        let found = verdicts("another", point, scalar);
        assert_eq!(found, [false, false, false], "{point}");
    }
    let mixed = verdicts(
        "mixed 1",
        "cdbc161be64c4302f56443ff29ccf36a2075be1a1fa67ff126b56315f5681c38",
        "63d3c4026e854b3f9269b514c6eb14712d1070614a587211efed06893c72a00d",
    );
    assert_eq!(mixed, [true, true, true]);
}

/// A signature that verifies or does not: key, message, signature.
struct Case {
    key: Vec<u8>,
    message: Vec<u8>,
    signature: Vec<u8>,
}

impl Case {
    fn new(key: &str, message: &[u8], signature: &str) -> Self {
        Self {
            key: hex::decode(key).unwrap(),
            message: message.to_vec(),
            signature: hex::decode(signature).unwrap(),
        }
    }

    fn ours(&self) -> bool {
        let key = self.key.as_slice().try_into();
        let key = key.ok().and_then(|key| PublicKey::from_bytes(key).ok());
        let signature = self.signature.as_slice().try_into();
        key.is_some_and(|key| signature.is_ok_and(|it| key.verifies(&self.message, it)))
    }
}

/// Wycheproof's, and what only lenient verifiers take.
fn hard_cases() -> Vec<Case> {
    const MIXED: &str = "fbb3211d177bccefd763d01a88f6473e43e5cf0a0740e44ab5c64460eefd4675";
    let mut cases: Vec<Case> = SMALL_R
        .into_iter()
        .map(|(message, point, scalar)| {
            Case::new(MIXED, message.as_bytes(), &format!("{point}{scalar}"))
        })
        .collect();
    let mixed = concat!(
        "cdbc161be64c4302f56443ff29ccf36a2075be1a1fa67ff126b56315f5681c38",
        "63d3c4026e854b3f9269b514c6eb14712d1070614a587211efed06893c72a00d"
    );
    cases.push(Case::new(MIXED, b"mixed 1", mixed));
    let Some(bytes) = corpus("attest/vectors/ed25519/wycheproof_ed25519_test.json") else {
        return cases;
    };
    let vectors: Value = serde_json::from_slice(&bytes).unwrap();
    for group in vectors["testGroups"].as_array().unwrap() {
        let key = group["publicKey"]["pk"].as_str().unwrap();
        cases.extend(group["tests"].as_array().unwrap().iter().map(|test| {
            let message = hex::decode(test["msg"].as_str().unwrap()).unwrap();
            Case::new(key, &message, test["sig"].as_str().unwrap())
        }));
    }
    assert_eq!(cases.len(), 9 + 151);
    cases
}

/// The reference implementation's signatures, each with a changed one and under another message.
fn reference_cases() -> Vec<Case> {
    let files = [
        "ref_sign_input_1024.txt",
        "dalek_TESTVECTORS_rfc8032_signinput.txt",
    ];
    let texts = files.map(|name| corpus(&format!("attest/vectors/ed25519/{name}")));
    let mut cases = Vec::new();
    for text in texts.into_iter().flatten() {
        for (number, line) in String::from_utf8(text).unwrap().lines().enumerate() {
            let fields: Vec<&str> = line.split(':').collect();
            let message = hex::decode(fields[2]).unwrap();
            let mut changed = Case::new(fields[1], &message, &fields[3][..128]);
            changed.signature[number % 64] ^= 1;
            let longer = [&message[..], b"\0"].concat();
            cases.extend([
                Case::new(fields[1], &message, &fields[3][..128]),
                changed,
                Case::new(fields[1], &longer, &fields[3][..128]),
            ]);
        }
    }
    cases
}

#[track_caller]
fn assert_same_verdicts<'a>(twin: &mut Twin, cases: impl Iterator<Item = &'a Case>) -> [usize; 2] {
    let mut seen = [0, 0];
    for case in cases {
        let Case {
            key,
            message,
            signature,
        } = case;
        let (ours, twins) = (case.ours(), twin.verifies(key, message, signature));
        let shown = [key, message, signature].map(hex::encode);
        assert_eq!(ours, twins, "key, message, signature: {shown:?}");
        seen[usize::from(ours)] += 1;
    }
    seen
}

/// The twin with a library for signatures, whose own rules are not the strict ones.
// Break it: drop `decode_large` from `verifies` in `tests/verifier.py`.
#[test]
fn the_twins_library_says_what_we_say_of_every_vector() {
    let mut twin = Twin::fast();
    if !twin.is_fast() {
        eprintln!("skipped: Python has no package cryptography here");
        return;
    }
    let hard = assert_same_verdicts(&mut twin, hard_cases().iter());
    assert!(hard[0] > 0 && hard[1] > 0, "{hard:?}");
    assert_same_verdicts(&mut twin, reference_cases().iter());
}

/// The twin with nothing but integers. Each takes milliseconds, so one line in ten of the reference's is asked for; of the
/// hard cases all.
// Break it: drop `S is not below L` from `verifies` in `tests/verifier.py`.
#[test]
fn the_twins_own_arithmetic_says_what_we_say_of_every_hard_vector() {
    let mut twin = Twin::pure();
    let hard = assert_same_verdicts(&mut twin, hard_cases().iter());
    assert!(hard[0] > 0 && hard[1] > 0, "{hard:?}");
    let cases = reference_cases();
    let some = cases.chunks(3).step_by(10).flatten();
    assert_same_verdicts(&mut twin, some);
}
