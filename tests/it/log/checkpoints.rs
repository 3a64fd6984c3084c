//! Checkpoints: when a log's word counts, and all the ways in which it does not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caretaker::attest::SecretKey;
use caretaker::clock::Millis;
use caretaker::log::{
    Checkpoint, CheckpointError, Frontier, LogPolicy, LogSigner, NoteError, NoteSignature,
    PolicyError, SignatureType, SignedCheckpoint, VerifierKey, WitnessSigner,
};
use ed25519_dalek::{Signer as _, SigningKey};

use super::scene::{LOG_SEED, NOW, ORIGIN, Stored, log, name, policy, witness, witness_seed};

const NOW_SECONDS: u64 = 1_800_000_000;

/// A signature line made without the library.
fn line(name: &str, hash: [u8; 4], signature: &[u8]) -> String {
    format!(
        "\u{2014} {name} {}\n",
        STANDARD.encode([&hash[..], signature].concat())
    )
}

fn log_line(signed_as: &VerifierKey, text: &str) -> String {
    let signature = SigningKey::from_bytes(&LOG_SEED).sign(text.as_bytes());
    line(
        signed_as.name().as_str(),
        signed_as.hash().0,
        &signature.to_bytes(),
    )
}

fn witness_line(number: u8, text: &str, seconds: u64) -> String {
    let key = witness(number).verifier();
    let message = format!("cosignature/v1\ntime {seconds}\n{text}");
    let signature = SigningKey::from_bytes(&witness_seed(number)).sign(message.as_bytes());
    let bytes = [&seconds.to_be_bytes()[..], &signature.to_bytes()].concat();
    line(key.name().as_str(), key.hash().0, &bytes)
}

fn parse(text: &str, lines: &[&str]) -> SignedCheckpoint {
    let note = format!("{text}\n{}", lines.concat());
    SignedCheckpoint::parse(note.as_bytes()).unwrap()
}

/// The text of a checkpoint of nine leaves, and the log's line for it.
fn nine() -> (String, String) {
    let text = Stored::of(9).checkpoint(9).claimed().to_string();
    let line = log_line(&log().verifier(), &text);
    (text, line)
}

#[test]
fn a_checkpoint_is_signed_cosigned_kept_and_believed() {
    let stored = Stored::of(9);
    let mut signed = stored.checkpoint(9);
    let seen = policy(0).verify(&signed).unwrap();
    assert!(seen.cosignatures().is_empty());
    for number in [2, 3] {
        let cosignature = witness(number).cosign(&seen, NOW).unwrap();
        // As a witness answers and a log takes it: a line of text.
        let cosignature = NoteSignature::parse(&cosignature.to_string()).unwrap();
        signed.add(cosignature).unwrap();
    }
    let kept = SignedCheckpoint::parse(signed.to_string().as_bytes()).unwrap();
    assert_eq!(kept, signed);
    let trusted = policy(2).verify(&kept).unwrap();
    assert_eq!(trusted.head(), stored.head());
    let witnesses: Vec<_> = trusted
        .cosignatures()
        .iter()
        .map(|cosigned| (cosigned.witness.as_str(), cosigned.seconds))
        .collect();
    assert_eq!(
        witnesses,
        [
            ("witness.example/w2", NOW_SECONDS),
            ("witness.example/w3", NOW_SECONDS)
        ]
    );
    assert!(matches!(
        policy(3).verify(&kept),
        Err(PolicyError::TooFewWitnesses {
            found: 2,
            quorum: 3,
            ..
        })
    ));
}

#[test]
fn the_signed_bytes_are_those_of_the_specification() {
    let (text, by_hand) = nine();
    let signed = Stored::of(9).checkpoint(9);
    assert_eq!(signed.to_string(), format!("{text}\n{by_hand}"));
    let seen = policy(0).verify(&signed).unwrap();
    let cosignature = witness(1).cosign(&seen, NOW.plus_millis(999)).unwrap();
    assert_eq!(
        format!("{cosignature}\n"),
        witness_line(1, &text, NOW_SECONDS)
    );
    witness(1).cosign(&seen, Millis(-1)).unwrap_err();
}

#[test]
fn unknown_signatures_are_passed_over() {
    let (text, good) = nine();
    let key = log().verifier();
    let [a, b, c, d] = key.hash().0;
    // Grease of any length before the log's line: unknown names, the log's name with another id, another name with its id.
    let lines = [
        line("grease.example", [1, 2, 3, 4], &[9]),
        line("grease.example", key.hash().0, &[9; 64]),
        line(ORIGIN, [a, b, c, d ^ 1], &[9; 64]),
        line("post-quantum.example", [6; 4], &[9; 2_428]),
        good,
        line("grease.example", [1, 2, 3, 4], &[9; 200]),
    ];
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    policy(0).verify(&parse(&text, &lines)).unwrap();
    let without: Vec<_> = lines
        .iter()
        .copied()
        .filter(|line| *line != lines[4])
        .collect();
    assert!(matches!(
        policy(0).verify(&parse(&text, &without)),
        Err(PolicyError::Signatures {
            reason: NoteError::Unsigned,
            ..
        })
    ));
}

#[test]
fn a_known_keys_bad_signature_refuses_the_note() {
    let (text, good) = nine();
    let eight = Stored::of(8).checkpoint(8).claimed().to_string();
    let other = log_line(&log().verifier(), &eight);
    let bad_witness = witness_line(1, &text.replace("\n9\n", "\n8\n"), NOW_SECONDS);
    for lines in [
        vec![other.as_str()],
        vec![&good, &other],
        vec![&other, &good],
        vec![&good, &bad_witness],
    ] {
        assert!(
            matches!(
                policy(0).verify(&parse(&text, &lines)),
                Err(PolicyError::Signatures {
                    reason: NoteError::BadSignature { .. },
                    ..
                })
            ),
            "{lines:?}"
        );
    }
    // Whoever does not know the witness takes the checkpoint.
    let alone = LogPolicy::new(vec![log().verifier()], vec![], 0).unwrap();
    alone.verify(&parse(&text, &[&good, &bad_witness])).unwrap();
}

#[test]
fn a_signature_of_another_length_is_not_one() {
    let (text, _) = nine();
    let key = log().verifier();
    let whole = SigningKey::from_bytes(&LOG_SEED)
        .sign(text.as_bytes())
        .to_bytes();
    for signature in [&whole[..63], &[&whole[..], &[0]].concat(), &[0; 64]] {
        let line = line(ORIGIN, key.hash().0, signature);
        policy(0).verify(&parse(&text, &[&line])).unwrap_err();
    }
    let (text, good) = nine();
    for length in [1, 8, 71, 73] {
        let key = witness(1).verifier();
        let line = line(key.name().as_str(), key.hash().0, &vec![0; length]);
        policy(0)
            .verify(&parse(&text, &[&good, &line]))
            .unwrap_err();
    }
}

#[test]
fn a_witness_counts_once() {
    let (text, good) = nine();
    let (early, late) = (
        witness_line(1, &text, NOW_SECONDS - 60),
        witness_line(1, &text, NOW_SECONDS),
    );
    let signed = parse(&text, &[&early, &late, &good, &early, &early, &good]);
    let trusted = policy(1).verify(&signed).unwrap();
    assert_eq!(trusted.cosignatures().len(), 1);
    assert_eq!(trusted.cosignatures()[0].seconds, NOW_SECONDS);
    assert!(matches!(
        policy(2).verify(&signed),
        Err(PolicyError::TooFewWitnesses { found: 1, .. })
    ));
    // A log that asks again keeps the last answer only.
    let mut signed = Stored::of(9).checkpoint(9);
    for line in [&early, &late] {
        signed
            .add(NoteSignature::parse(line.trim_end()).unwrap())
            .unwrap();
    }
    assert_eq!(signed.to_string(), format!("{text}\n{good}{late}"));
}

#[test]
fn the_origin_is_the_name_of_the_logs_key() {
    let key = log().verifier();
    let (text, _) = nine();
    // The log's key, its own name in the line, but the text is about another log.
    let foreign = text.replace(ORIGIN, "other.example/log");
    let signed = parse(&foreign, &[&log_line(&key, &foreign)]);
    assert!(matches!(
        policy(0).verify(&signed),
        Err(PolicyError::WrongLog { .. })
    ));
    // The same key under the other log's name.
    let renamed = VerifierKey::new(
        name("other.example/log"),
        SignatureType::Log,
        key.public().clone(),
    );
    let signed = parse(&text, &[&log_line(&renamed, &text)]);
    assert!(policy(0).verify(&signed).is_err());
    // And no log signs for another.
    let checkpoint: Checkpoint = foreign.parse().unwrap();
    assert!(matches!(
        log().sign(checkpoint),
        Err(CheckpointError::ForeignOrigin { .. })
    ));
}

#[test]
fn witnesses_alone_do_not_make_a_checkpoint() {
    let (text, _) = nine();
    let lines: Vec<_> = (1..=3)
        .map(|number| witness_line(number, &text, NOW_SECONDS))
        .collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    assert!(matches!(
        policy(3).verify(&parse(&text, &lines)),
        Err(PolicyError::NotByLog { .. })
    ));
}

#[test]
fn a_cosignatures_time_cannot_be_changed() {
    let (text, good) = nine();
    let key = witness(1).verifier();
    let cosigned = witness_line(1, &text, NOW_SECONDS);
    let bytes = STANDARD
        .decode(cosigned.trim_end().rsplit(' ').next().unwrap())
        .unwrap();
    for at in 4..12 {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let line = line(key.name().as_str(), key.hash().0, &changed[4..]);
        policy(0)
            .verify(&parse(&text, &[&good, &line]))
            .unwrap_err();
    }
    // A time that no clock shows is refused although the witness signed it.
    let beyond = witness_line(1, &text, 1 << 63);
    policy(0)
        .verify(&parse(&text, &[&good, &beyond]))
        .unwrap_err();
    let last = witness_line(1, &text, (1 << 63) - 1);
    policy(1).verify(&parse(&text, &[&good, &last])).unwrap();
}

#[test]
fn a_logs_signature_is_no_cosignature_and_the_reverse() {
    let (text, good) = nine();
    // One secret in both uses: its signatures do not pass for each other.
    let as_witness = WitnessSigner::new(name(ORIGIN), SecretKey::from_seed(&LOG_SEED)).verifier();
    assert_ne!(as_witness.hash(), log().verifier().hash());
    let policy_of = |log: Vec<VerifierKey>, witness| LogPolicy::new(log, vec![witness], 1);
    let other = LogSigner::new(name(ORIGIN), SecretKey::from_seed(&[7; 32])).verifier();
    let policy = policy_of(vec![other], as_witness.clone()).unwrap();
    let signature = SigningKey::from_bytes(&LOG_SEED).sign(text.as_bytes());
    let timed = [&[0; 8][..], &signature.to_bytes()].concat();
    let line = line(ORIGIN, as_witness.hash().0, &timed);
    assert!(policy.verify(&parse(&text, &[&good, &line])).is_err());
    assert!(matches!(
        policy_of(vec![log().verifier()], as_witness),
        Err(PolicyError::Repeated { .. })
    ));
}

#[test]
fn a_policy_that_would_let_anything_pass_is_refused() {
    let log_key = || log().verifier();
    let witness_key = |number| witness(number).verifier();
    assert_eq!(LogPolicy::new(vec![], vec![], 0), Err(PolicyError::NoLog));
    assert_eq!(
        LogPolicy::new(vec![], vec![witness_key(1)], 1),
        Err(PolicyError::NoLog)
    );
    assert!(matches!(
        LogPolicy::new(vec![log_key()], vec![witness_key(1)], 2),
        Err(PolicyError::Quorum {
            quorum: 2,
            witnesses: 1
        })
    ));
    assert!(matches!(
        LogPolicy::new(vec![witness_key(1)], vec![], 0),
        Err(PolicyError::WrongType { .. })
    ));
    assert!(matches!(
        LogPolicy::new(vec![log_key()], vec![log_key()], 1),
        Err(PolicyError::WrongType { .. })
    ));
    // One key under two names is one witness.
    let again = VerifierKey::new(
        name("witness.example/other"),
        SignatureType::Witness,
        witness_key(1).public().clone(),
    );
    for witnesses in [
        vec![witness_key(1), again],
        vec![witness_key(1), witness_key(1)],
    ] {
        assert!(matches!(
            LogPolicy::new(vec![log_key()], witnesses, 2),
            Err(PolicyError::Repeated { .. })
        ));
    }
    let other_log = LogSigner::new(name("other.example"), SecretKey::from_seed(&[7; 32]));
    assert!(matches!(
        LogPolicy::new(vec![log_key(), other_log.verifier()], vec![], 0),
        Err(PolicyError::TwoLogs { .. })
    ));
}

#[test]
fn while_a_log_key_is_replaced_either_counts() {
    let (text, old_line) = nine();
    let new = LogSigner::new(name(ORIGIN), SecretKey::from_seed(&[8; 32]));
    let policy = LogPolicy::new(vec![log().verifier(), new.verifier()], vec![], 0).unwrap();
    let checkpoint: Checkpoint = text.parse().unwrap();
    let by_new = new.sign(checkpoint).unwrap();
    policy.verify(&by_new).unwrap();
    policy.verify(&parse(&text, &[&old_line])).unwrap();
    self::policy(0).verify(&by_new).unwrap_err();
}

#[test]
fn a_checkpoint_has_one_spelling() {
    let (text, _) = nine();
    assert_eq!(text.parse::<Checkpoint>().unwrap().to_string(), text);
    let extended = format!("{text}an extension\nand another one\n");
    let checkpoint: Checkpoint = extended.parse().unwrap();
    assert_eq!(checkpoint.extensions().len(), 2);
    assert_eq!(checkpoint.to_string(), extended);
    let root = text.lines().nth(2).unwrap();
    for wrong in [
        String::new(),
        "\n".to_owned(),
        text.trim_end().to_owned(),
        text.replace('\n', "\r\n"),
        format!("{text}\n"),
        format!("{text}\nextension\n"),
        format!("\n{text}"),
        text.replace("\n9\n", "\n09\n"),
        text.replace("\n9\n", "\n+9\n"),
        text.replace("\n9\n", "\n-9\n"),
        text.replace("\n9\n", "\n9 \n"),
        text.replace("\n9\n", "\n9.0\n"),
        text.replace("\n9\n", "\n0x9\n"),
        text.replace("\n9\n", "\n\u{669}\n"),
        text.replace("\n9\n", "\n\n"),
        text.replace("\n9\n", "\n9223372036854775808\n"),
        text.replace("\n9\n", "\n18446744073709551616\n"),
        // A tree without leaves has one root only.
        text.replace("\n9\n", "\n0\n"),
        text.replace(root, &root[1..]),
        text.replace(root, root.trim_end_matches('=')),
        text.replace(root, &format!("{root} ")),
        text.replace(root, "AAAA"),
        text.replace(root, &STANDARD.encode([0; 33])),
        text.replace(ORIGIN, ""),
        text.replace(ORIGIN, "two words"),
        text.replace(ORIGIN, "a+b"),
        format!("{text}{}\n", "x".repeat(20_000)),
    ] {
        assert!(wrong.parse::<Checkpoint>().is_err(), "{wrong}");
    }
    let empty = Checkpoint::new(name(ORIGIN), Frontier::new().head());
    assert_eq!(empty.to_string().parse::<Checkpoint>(), Ok(empty));
}

#[test]
fn refusals_say_what_was_expected_and_what_to_do() {
    let (text, good) = nine();
    let error = policy(2).verify(&parse(&text, &[&good])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "0 of the known witnesses cosigned the checkpoint of example.com/audit/caretaker, 2 are needed; ask the missing \
         ones"
    );
    let windows = text.replace('\n', "\r\n");
    let error = SignedCheckpoint::parse(format!("{windows}\r\n{good}").as_bytes()).unwrap_err();
    assert!(error.to_string().contains("line feed alone"), "{error}");
}
