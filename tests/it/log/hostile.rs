//! Bytes of somebody who wishes us ill: bounded time and memory, an error, never a panic.

use caretaker::log::{
    Checkpoint, HashTile, Leaf, LogProof, LogProofError, NoteError, NoteSignature, ProofError,
    SignedCheckpoint, SignedNote, TileId, TileKind, VerifierKey, read_entries, read_signing_key,
    write_entries,
};
use proptest::prelude::*;

use super::scene::{NOW, Stored, entry, policy, witness};
use crate::attest::ledger::{forge, seed};

/// Hands bytes to every parser. What one of them takes, it writes again byte for byte.
fn read_by_all(bytes: &[u8]) {
    if let Ok(note) = SignedNote::parse(bytes) {
        assert_eq!(note.to_string().as_bytes(), bytes);
    }
    if let Ok(signed) = SignedCheckpoint::parse(bytes) {
        assert_eq!(signed.to_string().as_bytes(), bytes);
        assert_eq!(signed.claimed().to_string(), signed.note().text());
        let _verdict = policy(1).verify(&signed);
    }
    if let Ok(proof) = LogProof::parse(bytes) {
        assert_eq!(proof.to_string().as_bytes(), bytes);
        let _verdict = proof.verify(&entry(6), &policy(1));
    }
    if let Ok(leaf) = Leaf::parse(bytes) {
        assert_eq!(leaf.to_bytes().unwrap(), bytes);
    }
    for width in [0, 1, 2, 3, 256, 257] {
        if let Ok(entries) = read_entries(bytes, width) {
            assert_eq!(write_entries(&entries).unwrap(), bytes);
        }
        if let Ok(id) = TileId::new(TileKind::Hashes { level: 0 }, 0, width)
            && let Ok(tile) = HashTile::parse(id, bytes)
        {
            assert_eq!(tile.to_bytes(), bytes);
        }
    }
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    if let Ok(checkpoint) = text.parse::<Checkpoint>() {
        assert_eq!(checkpoint.to_string(), text);
    }
    if let Ok(signature) = NoteSignature::parse(text) {
        assert_eq!(signature.to_string(), text);
    }
    if let Ok(tile) = TileId::parse(text) {
        assert_eq!(tile.to_string(), text);
    }
    if let Ok(key) = text.parse::<VerifierKey>() {
        assert_eq!(key.to_string(), text);
    }
    let _secret = read_signing_key(text);
}

/// One good piece of each format.
fn good() -> Vec<Vec<u8>> {
    let stored = Stored::of(10);
    let mut checkpoint = stored.checkpoint(10);
    let seen = policy(0).verify(&checkpoint).unwrap();
    checkpoint
        .add(witness(1).cosign(&seen, NOW).unwrap())
        .unwrap();
    let proof = LogProof::new(6, stored.inclusion(6, 10), checkpoint.clone()).unwrap();
    let proof = proof.with_extra(b"extra".to_vec()).unwrap();
    let signature = checkpoint.note().signatures()[1].to_string();
    let path = TileId::new(TileKind::Hashes { level: 0 }, 1_234_067, 3).unwrap();
    vec![
        checkpoint.to_string().into_bytes(),
        checkpoint.claimed().to_string().into_bytes(),
        proof.to_string().into_bytes(),
        signature.into_bytes(),
        path.to_string().into_bytes(),
        witness(1).verifier().to_string().into_bytes(),
        b"PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz".to_vec(),
        forge("application/vnd.in-toto+json", b"{}", &seed(caretaker::attest::Role::Policy)),
        br#"{"caretaker-log":"heartbeat/v1","at":1800000000000}"#.to_vec(),
        br#"{"caretaker-log":"rules/v1","sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824","bytes":5}"#.to_vec(),
        write_entries(&[entry(0), entry(1), entry(2)]).unwrap(),
        vec![7; 96],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        read_by_all(&bytes);
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "[a-z0-9/+= \n\u{2014}\u{e9}x.{}\":\\\\]{0,200}") {
        read_by_all(text.as_bytes());
    }

    #[test]
    fn no_change_to_good_input_makes_a_parser_panic(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..4, any::<u8>()), 1..6),
    ) {
        let good = good();
        let mut bytes = which.get(&good).clone();
        for (place, edit, byte) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = place.index(bytes.len());
            match edit {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => bytes.truncate(at),
                _ => bytes.extend_from_within(at..),
            }
        }
        read_by_all(&bytes);
    }
}

#[test]
fn every_good_piece_is_taken_by_its_parser() {
    // So that the properties above do not pass because nothing is ever read.
    for bytes in good() {
        read_by_all(&bytes);
    }
    let good = good();
    SignedCheckpoint::parse(&good[0]).unwrap();
    LogProof::parse(&good[2]).unwrap();
    Leaf::parse(&good[7]).unwrap();
    Leaf::parse(&good[8]).unwrap();
    Leaf::parse(&good[9]).unwrap();
}

#[test]
fn a_million_signature_lines_cost_nothing() {
    let signed = Stored::of(10).checkpoint(10).to_string();
    let line = signed.lines().last().unwrap();
    let many = |count: usize| format!("{signed}{}", format!("{line}\n").repeat(count));
    assert!(matches!(
        SignedNote::parse(many(1_000_000).as_bytes()),
        Err(NoteError::TooLong { .. })
    ));
    assert!(matches!(
        LogProof::parse(many(1_000_000).as_bytes()),
        Err(LogProofError::TooLong { .. })
    ));
    assert_eq!(
        SignedNote::parse(many(100).as_bytes()),
        Err(NoteError::TooManySignatures)
    );
    let full = SignedCheckpoint::parse(many(99).as_bytes()).unwrap();
    policy(0).verify(&full).unwrap();
    // Short lines of nobody: 10^5 of them in a note of permitted length are not looked at either.
    let text = full.claimed().to_string();
    let short = format!("{text}\n{}", "\u{2014}\n".repeat(12_000));
    assert_eq!(
        SignedNote::parse(short.as_bytes()),
        Err(NoteError::TooManySignatures)
    );
}

#[test]
fn no_signature_is_added_beyond_the_limits() {
    let mut signed = Stored::of(10).checkpoint(10);
    let line = |number: usize, length: usize| {
        let bytes = vec![b'A'; length * 4];
        let encoded = String::from_utf8(bytes).unwrap();
        NoteSignature::parse(&format!("\u{2014} w{number}.example {encoded}")).unwrap()
    };
    for number in 0..99 {
        signed.add(line(number, 20)).unwrap();
    }
    signed.add(line(99, 20)).unwrap_err();
    signed.add(line(98, 20)).unwrap();
    assert_eq!(signed.note().signatures().len(), 100);
    let before = Stored::of(10).checkpoint(10);
    let mut signed = before.clone();
    signed.add(line(0, 16_384)).unwrap_err();
    assert_eq!(signed, before);
}

#[test]
fn long_proofs_and_deep_leaves_end_early() {
    let hash = Stored::of(1).head().root();
    let long = format!(
        "c2sp.org/tlog-proof@v1\nindex 0\n{}",
        format!("{hash}\n").repeat(2_000)
    );
    assert_eq!(
        LogProof::parse(long.as_bytes()),
        Err(LogProofError::Proof(ProofError::TooLong { length: 64 }))
    );
    let deep = format!("{{\"caretaker-log\":\"{}", "[".repeat(100_000));
    Leaf::parse(deep.as_bytes()).unwrap_err();
    let deep = format!(
        "{{\"caretaker-log\":\"heartbeat/v1\",\"at\":{}",
        "[".repeat(60_000)
    );
    Leaf::parse(deep.as_bytes()).unwrap_err();
    let deep = format!("{{\"payload\":{}", "[".repeat(60_000));
    Leaf::parse(deep.as_bytes()).unwrap_err();
    let name = format!("{}+00000000+AA==", "n".repeat(1_000_000));
    name.parse::<VerifierKey>().unwrap_err();
}

#[test]
fn what_an_error_repeats_moves_no_cursor() {
    let evil = "\u{1b}[2J\u{202e}evil";
    let errors = [
        SignedCheckpoint::parse(format!("{evil}\n").as_bytes())
            .unwrap_err()
            .to_string(),
        format!("{evil}\n1\nx\n")
            .parse::<Checkpoint>()
            .unwrap_err()
            .to_string(),
        NoteSignature::parse(evil).unwrap_err().to_string(),
        TileId::parse(evil).unwrap_err().to_string(),
        evil.parse::<VerifierKey>().unwrap_err().to_string(),
        LogProof::parse(evil.as_bytes()).unwrap_err().to_string(),
        Leaf::parse(format!("{{\"caretaker-log\":\"\\u001b{}\"}}", &evil[4..]).as_bytes())
            .unwrap_err()
            .to_string(),
    ];
    for error in errors {
        let bad = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!error.contains(bad), "{error:?}");
    }
}
