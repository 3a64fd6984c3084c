//! Policies of auditors, as files (C2SP tlog-policy).

use caretaker::attest::SecretKey;
use caretaker::log::{
    AuditorPolicy, AuditorPolicyError, NoteError, SignatureType, SignedCheckpoint, Unmet,
    VerifierKey,
};
use proptest::prelude::*;

use super::scene::{NOW, ORIGIN, Stored, log, name, policy, witness, witness_seed};

fn parse(text: &str) -> Result<AuditorPolicy, AuditorPolicyError> {
    AuditorPolicy::parse(text.as_bytes())
}

fn vkey(number: u8) -> String {
    witness(number).verifier().to_string()
}

/// The checkpoint of the scene, cosigned by these.
fn cosigned(witnesses: &[u8]) -> SignedCheckpoint {
    let mut checkpoint = Stored::of(9).checkpoint(9);
    let trusted = policy(0).verify(&checkpoint).unwrap();
    for number in witnesses {
        let signature = witness(*number).cosign(&trusted, NOW).unwrap();
        checkpoint.add(signature).unwrap();
    }
    checkpoint
}

/// The example of the specification: two of three, and one of three others.
fn two_levels() -> String {
    let key = vkey;
    format!(
        "# an auditor's\n\nlog {}\n\nwitness X1 {}\nwitness X2 {} https://x2.example/\n\twitness  X3\t{}  \ngroup X-witnesses 2 X1 X2 X3\n\n\
         witness Y1 {}\nwitness Y2 {}\nwitness Y3 {}\ngroup Y-witnesses any Y1 Y2 Y3\n\ngroup X-and-Y all X-witnesses Y-witnesses\nquorum X-and-Y\n",
        log().verifier(),
        key(1),
        key(2),
        key(3),
        key(4),
        key(5),
        key(6)
    )
}

#[test]
fn groups_of_groups_are_counted() {
    let policy = parse(&two_levels()).unwrap();
    for (witnesses, met) in [
        (&[1, 2, 4][..], true),
        (&[1, 3, 6], true),
        (&[1, 2, 3, 4, 5, 6], true),
        (&[], false),
        (&[1, 2, 3], false),
        (&[4, 5, 6], false),
        (&[1, 4, 5, 6], false),
    ] {
        let judged = policy.judge(&cosigned(witnesses));
        match judged {
            Ok(found) => {
                assert!(met, "{witnesses:?}");
                assert_eq!(found.len(), witnesses.len());
                assert_eq!(found[0].seconds, 1_800_000_000);
            }
            Err(Unmet::Quorum { found, known }) => {
                assert!(!met, "{witnesses:?}");
                assert_eq!((found, known), (witnesses.len(), 6));
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_quorum_is_a_witness_a_group_or_none() {
    let known = format!("witness a {}\nwitness b {}\n", vkey(1), vkey(2));
    let judge = |rest: &str, witnesses: &[u8]| {
        let policy = parse(&format!("{known}{rest}")).unwrap();
        policy.judge(&cosigned(witnesses)).is_ok()
    };
    assert!(judge("quorum none\n", &[]));
    assert!(judge("quorum a\n", &[1]) && !judge("quorum a\n", &[2]));
    assert!(judge("group g 1 a b\nquorum g\n", &[2]));
    assert!(!judge("group g all a b\nquorum g\n", &[2]));
    // A name is bytes, and may be a word of the format.
    assert!(judge("group all any a\nquorum all\n", &[1]));
    let text = format!(
        "witness \u{212a} {}\nwitness K {}\nquorum K\n",
        vkey(1),
        vkey(2)
    );
    let policy = parse(&text).unwrap();
    policy.judge(&cosigned(&[2])).unwrap();
    policy.judge(&cosigned(&[1])).unwrap_err();
    let text = [b"witness \xff ", vkey(1).as_bytes(), b"\nquorum \xff\n"].concat();
    AuditorPolicy::parse(&text)
        .unwrap()
        .judge(&cosigned(&[1]))
        .unwrap();
    // Nothing is asked for.
    assert!(
        parse("quorum none\n")
            .unwrap()
            .judge(&cosigned(&[]))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn one_key_counts_once_whatever_its_names() {
    let secret = SecretKey::from_seed(&witness_seed(1));
    let other = VerifierKey::new(
        name("another.example"),
        SignatureType::Witness,
        secret.public(),
    );
    let text = format!(
        "witness a {}\nwitness b {other}\ngroup g 2 a b\nquorum g\n",
        vkey(1)
    );
    assert!(matches!(
        parse(&text),
        Err(AuditorPolicyError::Repeated { line: 2, .. })
    ));
    let as_log = VerifierKey::new(name(ORIGIN), SignatureType::Log, secret.public());
    let text = format!("witness a {}\nlog {as_log}\nquorum a\n", vkey(1));
    assert!(matches!(
        parse(&text),
        Err(AuditorPolicyError::Repeated { line: 2, .. })
    ));
    let text = format!(
        "log {0}\nlog {0} https://log.example\nquorum none\n",
        log().verifier()
    );
    assert!(matches!(
        parse(&text),
        Err(AuditorPolicyError::Repeated { line: 2, .. })
    ));
    // Once in a group, once among the groups.
    let known = format!("witness a {}\nwitness b {}\n", vkey(1), vkey(2));
    for groups in [
        "group g 2 a a\nquorum g\n",
        "group g any a b\ngroup h any a\nquorum h\n",
        "group g any a\ngroup h any g\ngroup i any g\nquorum i\n",
    ] {
        let refused = parse(&format!("{known}{groups}"));
        assert!(
            matches!(refused, Err(AuditorPolicyError::Line { .. })),
            "{refused:?}"
        );
    }
    // Copied lines of one witness are one.
    let policy = parse(&format!("{known}group g 2 a b\nquorum g\n")).unwrap();
    let once = cosigned(&[1]);
    let line = once.note().signatures()[1].to_string();
    let many = format!("{once}{}", format!("{line}\n").repeat(5));
    let many = SignedCheckpoint::parse(many.as_bytes()).unwrap();
    assert_eq!(
        policy.judge(&many),
        Err(Unmet::Quorum { found: 1, known: 2 })
    );
}

#[test]
fn a_changed_line_refuses_and_an_unknown_one_is_passed_over() {
    let policy = parse(&two_levels()).unwrap();
    let good = cosigned(&[1, 2, 4]).to_string();
    let moved = policy_line(1, &Stored::of(8).checkpoint(8));
    for bad in [moved, format!("{}\n", log_line(8))] {
        let text = format!("{good}{bad}");
        let judged = policy.judge(&SignedCheckpoint::parse(text.as_bytes()).unwrap());
        assert!(
            matches!(
                judged,
                Err(Unmet::Signature(NoteError::BadSignature { .. }))
            ),
            "{judged:?}"
        );
    }
    let unknown = format!("{good}{}", policy_line(7, &Stored::of(8).checkpoint(8)));
    policy
        .judge(&SignedCheckpoint::parse(unknown.as_bytes()).unwrap())
        .unwrap();
}

fn policy_line(number: u8, checkpoint: &SignedCheckpoint) -> String {
    let trusted = policy(0).verify(checkpoint).unwrap();
    format!("{}\n", witness(number).cosign(&trusted, NOW).unwrap())
}

fn log_line(size: u64) -> String {
    Stored::of(9).checkpoint(size).note().signatures()[0].to_string()
}

#[test]
fn what_is_no_policy_is_refused() {
    let key = vkey(1);
    let log_key = log().verifier();
    let known = format!("witness a {key}\n");
    let many = |count: u8, kind: &str| -> String {
        (0..count)
            .map(|number| {
                let secret = SecretKey::from_seed(&[number; 32]);
                let key = VerifierKey::new(name("w"), SignatureType::Witness, secret.public());
                format!("{kind} n{number} {key}\n")
            })
            .collect()
    };
    for text in [
        String::new(),
        "\n".to_owned(),
        known.clone(),
        "quorum none".to_owned(),
        "quorum\n".to_owned(),
        "quorum none none\n".to_owned(),
        "quorum none\nquorum none\n".to_owned(),
        "quorum b\n".to_owned(),
        format!("quorum a\n{known}"),
        format!("witness none {key}\nquorum none\n"),
        format!("{known}witness a {}\nquorum a\n", vkey(2)),
        format!("{known}group a any a\nquorum a\n"),
        format!("{known}group g any\nquorum none\n"),
        format!("{known}group g all\nquorum none\n"),
        format!("{known}group g 0 a\nquorum g\n"),
        format!("{known}group g 2 a\nquorum g\n"),
        format!("{known}group g 01 a\nquorum g\n"),
        format!("{known}group g +1 a\nquorum g\n"),
        format!("{known}group g some a\nquorum g\n"),
        format!("{known}group g any none\nquorum g\n"),
        format!("{known}group g any b\nwitness b {}\nquorum g\n", vkey(2)),
        format!("{known}group g any g\nquorum g\n"),
        "witness a\nquorum none\n".to_owned(),
        format!("witness a {key} one two\nquorum a\n"),
        format!("witness a {log_key}\nquorum a\n"),
        format!("log {key}\nquorum none\n"),
        "log\nquorum none\n".to_owned(),
        format!("Witness a {key}\nquorum a\n"),
        format!("witness\u{a0}a {key}\nquorum a\n"),
        format!("witness a {key}\r\nquorum a\r\n"),
        format!("# \u{7f}\n{known}quorum a\n"),
        format!("# \u{1b}[31m\n{known}quorum a\n"),
        format!("{known}\0quorum a\n"),
        format!("witness a {key}x\nquorum a\n"),
        format!("{}quorum none\n", many(65, "witness")),
        "#\n".repeat(40_000),
    ] {
        let refused = parse(&text).unwrap_err();
        assert!(!refused.to_string().contains('\u{1b}'), "{refused}");
    }
    parse(&format!("{}quorum n3\n", many(64, "witness"))).unwrap();
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _read = AuditorPolicy::parse(&bytes);
    }

    /// A policy with more members or a lower threshold never asks for more.
    #[test]
    fn more_cosignatures_never_make_it_worse(
        threshold in 1..=6_usize,
        present in prop::collection::vec(any::<bool>(), 6),
        more in 0..6_usize,
    ) {
        let witnesses: String = (1..=6).map(|n: u8| format!("witness w{n} {}\n", vkey(n))).collect();
        let text = format!("{witnesses}group g {threshold} w1 w2 w3 w4 w5 w6\nquorum g\n");
        let policy = parse(&text).unwrap();
        let mut present = present;
        let numbers = |present: &[bool]| -> Vec<u8> {
            (1..=6).zip(present).filter(|(_, there)| **there).map(|(n, _)| n).collect()
        };
        let count = present.iter().filter(|there| **there).count();
        let met = policy.judge(&cosigned(&numbers(&present))).is_ok();
        prop_assert_eq!(met, count >= threshold);
        present[more] = true;
        prop_assert!(!met || policy.judge(&cosigned(&numbers(&present))).is_ok());
    }
}
