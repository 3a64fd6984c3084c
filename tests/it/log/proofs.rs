//! Proofs to keep: an entry is in the log, as anybody with the log's key can check years later.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caretaker::attest::SecretKey;
use caretaker::log::{
    LogPolicy, LogProof, LogProofError, LogSigner, MAX_PROOF, PolicyError, ProofError,
};

use super::scene::{NOW, ORIGIN, Stored, entry, leaf, name, policy, witness};

fn proof(stored: &Stored, index: u64, size: u64) -> LogProof {
    let path = stored.inclusion(index, size);
    LogProof::new(index, path, stored.checkpoint(size)).unwrap()
}

#[test]
fn a_kept_proof_is_verified_by_whoever_has_the_logs_key() {
    let stored = Stored::of(10);
    let mut checkpoint = stored.checkpoint(10);
    let seen = policy(0).verify(&checkpoint).unwrap();
    checkpoint
        .add(witness(1).cosign(&seen, NOW).unwrap())
        .unwrap();
    let proof = LogProof::new(6, stored.inclusion(6, 10), checkpoint).unwrap();
    let file = proof.to_string();
    let kept = LogProof::parse(file.as_bytes()).unwrap();
    assert_eq!(kept, proof);
    let included = kept.verify(&entry(6), &policy(1)).unwrap();
    assert_eq!(included.index(), 6);
    assert_eq!(included.leaf(), leaf(6));
    assert_eq!(included.checkpoint().head(), stored.head());
    assert_eq!(included.checkpoint().cosignatures().len(), 1);
    assert!(
        file.starts_with("c2sp.org/tlog-proof@v1\nindex 6\n"),
        "{file}"
    );
    assert!(file.contains(&format!("=\n\n{ORIGIN}\n10\n")), "{file}");
    // A log of one entry needs no hashes.
    let one = self::proof(&stored, 0, 1);
    assert!(one.to_string().contains("index 0\n\nexample.com"));
    let one = LogProof::parse(one.to_string().as_bytes()).unwrap();
    one.verify(&entry(0), &policy(0)).unwrap();
}

#[test]
fn a_proof_is_of_one_entry_at_one_place_of_one_tree() {
    let stored = Stored::of(10);
    let good = proof(&stored, 6, 10);
    good.verify(&entry(6), &policy(0)).unwrap();
    let not_proved = |proof: &LogProof, entry: &[u8]| {
        assert!(matches!(
            proof.verify(entry, &policy(0)),
            Err(LogProofError::Proof(_))
        ));
    };
    // Another entry of the same log, one that is not in it, a cut one, an inner node's children.
    not_proved(&good, &entry(7));
    not_proved(&good, b"never logged");
    not_proved(&good, &entry(6)[..6]);
    not_proved(
        &good,
        &[leaf(6).as_bytes()[..].to_vec(), leaf(7).as_bytes().to_vec()].concat(),
    );
    // Another place.
    for index in [0, 7, 9, 10, u64::MAX] {
        let moved = LogProof::new(index, stored.inclusion(6, 10), stored.checkpoint(10)).unwrap();
        not_proved(&moved, &entry(6));
    }
    // A proof for another size beside a good checkpoint, and the reverse.
    for (path_of, checkpoint_of) in [(9, 10), (10, 9), (8, 10)] {
        let path = stored.inclusion(6, path_of);
        let mixed = LogProof::new(6, path, stored.checkpoint(checkpoint_of)).unwrap();
        not_proved(&mixed, &entry(6));
    }
    // An older checkpoint does not cover a newer entry.
    let early = LogProof::new(6, stored.inclusion(6, 10), stored.checkpoint(5)).unwrap();
    assert_eq!(
        early.verify(&entry(6), &policy(0)),
        Err(LogProofError::Proof(ProofError::OutOfTree {
            index: 6,
            size: 5
        }))
    );
}

#[test]
fn a_proof_against_another_logs_checkpoint_does_not_count() {
    let stored = Stored::of(10);
    let good = proof(&stored, 6, 10);
    let other = LogSigner::new(name("other.example"), SecretKey::from_seed(&[7; 32]));
    let others = LogPolicy::new(vec![other.verifier()], vec![], 0).unwrap();
    assert!(matches!(
        good.verify(&entry(6), &others),
        Err(LogProofError::Policy(PolicyError::WrongLog { .. }))
    ));
    // The log's name with another key.
    let impostor = LogSigner::new(name(ORIGIN), SecretKey::from_seed(&[7; 32]));
    let forged = impostor
        .sign(stored.checkpoint(10).claimed().clone())
        .unwrap();
    let forged = LogProof::new(6, stored.inclusion(6, 10), forged).unwrap();
    assert!(matches!(
        forged.verify(&entry(6), &policy(0)),
        Err(LogProofError::Policy(PolicyError::Signatures { .. }))
    ));
    assert!(matches!(
        good.verify(&entry(6), &policy(1)),
        Err(LogProofError::Policy(PolicyError::TooFewWitnesses { .. }))
    ));
}

#[test]
fn extra_data_is_carried_and_proves_nothing() {
    let stored = Stored::of(10);
    let with = proof(&stored, 6, 10)
        .with_extra(b"statement 6".to_vec())
        .unwrap();
    let file = with.to_string();
    let line = format!("extra {}\n", STANDARD.encode("statement 6"));
    assert!(file.contains(&format!("v1\n{line}index 6\n")), "{file}");
    let kept = LogProof::parse(file.as_bytes()).unwrap();
    assert_eq!(kept.extra(), Some(&b"statement 6"[..]));
    kept.verify(&entry(6), &policy(0)).unwrap();
    let changed = file.replace(&line, "extra AAAA\n");
    let changed = LogProof::parse(changed.as_bytes()).unwrap();
    changed.verify(&entry(6), &policy(0)).unwrap();
    let none = with.clone().with_extra(vec![]).unwrap();
    assert!(!none.to_string().contains("extra"));
    assert_eq!(with.with_extra(vec![0; 16_385]), Err(LogProofError::Extra));
}

#[test]
fn a_proof_file_has_one_spelling() {
    let stored = Stored::of(10);
    let good = proof(&stored, 6, 10)
        .with_extra(b"x".to_vec())
        .unwrap()
        .to_string();
    LogProof::parse(good.as_bytes()).unwrap();
    let hash = good.lines().nth(3).unwrap();
    let sixty_four = format!("{hash}\n").repeat(MAX_PROOF + 1);
    for wrong in [
        String::new(),
        good.replace('\n', "\r\n"),
        good.replace("@v1", "@v2"),
        good.replace("@v1", "@v0"),
        good.replace("c2sp.org/tlog-proof@v1\n", ""),
        format!("\n{good}"),
        format!(" {good}"),
        format!("{good}\n"),
        good.trim_end().to_owned(),
        good.replace("extra eA==", "extra eB=="),
        good.replace("extra eA==", "extra eA"),
        good.replace("extra eA==", "extra "),
        good.replace("extra eA==", "extra eA==\nextra eA=="),
        good.replace("extra eA==\nindex 6", "index 6\nextra eA=="),
        good.replace("index 6", "index 06"),
        good.replace("index 6", "index +6"),
        good.replace("index 6", "index  6"),
        good.replace("index 6", "index"),
        good.replace("index 6", "index 18446744073709551616"),
        good.replace("index 6", "Index 6"),
        good.replace("index 6\n", ""),
        good.replace("index 6\n", "index 6\n\n"),
        good.replace(hash, "AAAA"),
        good.replace(hash, hash.trim_end_matches('=')),
        good.replace(hash, &format!("{hash} ")),
        good.replace(&format!("{hash}\n"), &sixty_four),
        // The proof without its checkpoint, and the checkpoint without its signature.
        good.split("\n\n").next().unwrap().to_owned(),
        format!("{}\n\n", good.split("\n\n").next().unwrap()),
        good[..good.rfind("\n\n").unwrap() + 2].to_owned(),
    ] {
        assert!(LogProof::parse(wrong.as_bytes()).is_err(), "{wrong}");
    }
    LogProof::new(6, vec![leaf(0); MAX_PROOF + 1], stored.checkpoint(10)).unwrap_err();
}
