//! `add-checkpoint`, answer by answer.

use std::sync::{Arc, Barrier};

use caretaker::attest::SecretKey;
use caretaker::clock::Millis;
use caretaker::log::{
    Checkpoint, LogPolicy, LogSigner, NoteSignature, SignatureType, SignedAt, SignedCheckpoint,
    TreeHash, TreeHead, VerifierKey,
};
use caretaker::witness::{Answer, MAX_BODY, RequestError, Witness};

use super::scene::{Place, body, cosigned, forked, status, step};
use crate::log::scene::{LOG_SEED, NOW, ORIGIN, Stored, log, name, witness as other_witness};

/// The log's checkpoint, signed by another key under a name.
fn signed_by(seed: [u8; 32], origin: &str, head: TreeHead) -> SignedCheckpoint {
    let signer = LogSigner::new(name(origin), SecretKey::from_seed(&seed));
    signer.sign(Checkpoint::new(name(origin), head)).unwrap()
}

#[test]
fn a_log_that_was_rolled_back_gets_no_cosignature() {
    let place = Place::new();
    let witness = place.witness();
    let stored = Stored::of(30);
    cosigned(witness.add_checkpoint(&step(&stored, 0, 20), NOW));
    for old in [0, 4, 10] {
        let answer = witness.add_checkpoint(&step(&stored, old, 10), NOW);
        assert_eq!(answer, Answer::Conflict { size: 20 });
    }
    // A size that was never cosigned does not lead on either.
    let answer = witness.add_checkpoint(&step(&stored, 15, 30), NOW);
    assert_eq!(answer, Answer::Conflict { size: 20 });
    let backwards = witness.add_checkpoint(&body(20, &[], &stored.checkpoint(10)), NOW);
    let expected = RequestError::Backwards { old: 20, size: 10 };
    assert_eq!(backwards, Answer::Malformed(expected));
}

#[test]
fn only_known_logs_by_their_own_keys_are_cosigned_for() {
    let place = Place::new();
    let witness = place.witness();
    let head = Stored::of(5).head();
    let ask = |checkpoint: &SignedCheckpoint| {
        status(&witness.add_checkpoint(&body(0, &[], checkpoint), NOW))
    };
    assert_eq!(ask(&signed_by(LOG_SEED, "example.com/unknown", head)), 404);
    assert_eq!(ask(&signed_by([9; 32], ORIGIN, head)), 403);
    // A witness's word is not the log's.
    let mut checkpoint = signed_by([9; 32], ORIGIN, head);
    let trusted = LogPolicy::new(vec![log().verifier()], vec![], 0);
    let trusted = trusted
        .unwrap()
        .verify(&signed_by(LOG_SEED, ORIGIN, head))
        .unwrap();
    checkpoint
        .add(other_witness(1).cosign(&trusted, NOW).unwrap())
        .unwrap();
    assert_eq!(ask(&checkpoint), 403);
    // Lines of others beside the log's do no harm.
    let mut checkpoint = signed_by(LOG_SEED, ORIGIN, head);
    checkpoint
        .add(other_witness(1).cosign(&trusted, NOW).unwrap())
        .unwrap();
    let other = signed_by([9; 32], ORIGIN, head);
    checkpoint
        .add(other.note().signatures()[0].clone())
        .unwrap();
    assert_eq!(ask(&checkpoint), 200);
    // A line of the log's own key that is not its signature over this text does.
    let moved = signed_by(LOG_SEED, ORIGIN, Stored::of(4).head());
    let mut checkpoint = signed_by(LOG_SEED, ORIGIN, head);
    checkpoint
        .add(moved.note().signatures()[0].clone())
        .unwrap();
    assert_eq!(ask(&checkpoint), 403);
}

#[test]
fn several_logs_and_several_keys_of_one_are_told_apart() {
    let place = Place::new();
    let key = |seed: [u8; 32], origin: &str| {
        let public = SecretKey::from_seed(&seed).public();
        VerifierKey::new(name(origin), SignatureType::Log, public)
    };
    let keys = vec![
        key(LOG_SEED, ORIGIN),
        key([8; 32], ORIGIN),
        key([7; 32], "example.com/second"),
    ];
    let witness = Witness::open(&place.path(), keys).unwrap();
    let stored = Stored::of(30);
    cosigned(witness.add_checkpoint(&step(&stored, 0, 5), NOW));
    // Another key of the same log continues it, and no second history.
    let next = signed_by([8; 32], ORIGIN, stored.head_at(9));
    let proof = stored.consistency(5, 9);
    cosigned(witness.add_checkpoint(&body(5, &proof, &next), NOW));
    let second = forked(0, 9);
    let new = signed_by([8; 32], ORIGIN, second.head());
    let answer = witness.add_checkpoint(&body(9, &[], &new), NOW);
    assert_eq!(answer, Answer::Conflict { size: 9 });
    // Another log begins by itself; neither signs for the other.
    let begun = signed_by([7; 32], "example.com/second", second.head());
    cosigned(witness.add_checkpoint(&body(0, &[], &begun), NOW));
    let stranger = signed_by([7; 32], ORIGIN, stored.head());
    let answer = witness.add_checkpoint(&body(9, &stored.consistency(9, 30), &stranger), NOW);
    assert_eq!(status(&answer), 403);
    let sizes: Vec<_> = witness
        .logs()
        .iter()
        .map(|(_, seen)| seen.unwrap().head.size())
        .collect();
    assert_eq!(sizes, [9, 9]);
    drop(witness);
    // A log that is served no more is not forgotten.
    let witness = Witness::open(&place.path(), vec![key([7; 32], "example.com/second")]).unwrap();
    assert_eq!(witness.retired(), [name(ORIGIN)]);
    let grown = signed_by([7; 32], "example.com/second", second.head());
    cosigned(witness.add_checkpoint(&body(9, &[], &grown), NOW));
    drop(witness);
    let witness = place.witness();
    let answer = witness.add_checkpoint(&step(&stored, 0, 30), NOW);
    assert_eq!(answer, Answer::Conflict { size: 9 });
}

#[test]
fn an_empty_log_and_the_same_tree_again_are_cosigned_at_their_time() {
    let place = Place::new();
    let witness = place.witness();
    let stored = Stored::of(30);
    let at = |signature: NoteSignature, size: u64| {
        let mut checkpoint = stored.checkpoint(size);
        checkpoint.add(signature).unwrap();
        let keys = [place.key.clone()];
        checkpoint.note().verify(&keys).unwrap()[0].at
    };
    let empty = cosigned(witness.add_checkpoint(&step(&stored, 0, 0), NOW));
    assert_eq!(at(empty, 0), SignedAt::Seconds(1_800_000_000));
    // Everything follows from nothing, without proof.
    let answer = witness.add_checkpoint(
        &body(0, &[TreeHash::of_nothing()], &stored.checkpoint(5)),
        NOW,
    );
    assert_eq!(status(&answer), 422);
    cosigned(witness.add_checkpoint(&step(&stored, 0, 5), NOW));
    let later = cosigned(witness.add_checkpoint(&step(&stored, 5, 5), NOW.plus_seconds(60)));
    assert_eq!(at(later, 5), SignedAt::Seconds(1_800_000_060));
    let proven = body(5, &[TreeHash::of_nothing()], &stored.checkpoint(5));
    assert_eq!(status(&witness.add_checkpoint(&proven, NOW)), 422);
    // A clock before 1970 states nothing, and nothing is remembered.
    let answer = witness.add_checkpoint(&step(&stored, 5, 9), Millis(-1));
    assert_eq!(status(&answer), 500);
    cosigned(witness.add_checkpoint(&step(&stored, 5, 9), NOW));
}

#[test]
fn of_two_trees_at_once_one_is_cosigned() {
    let place = Place::new();
    let witness = Arc::new(place.witness());
    let first = Stored::of(40);
    cosigned(witness.add_checkpoint(&step(&first, 0, 8), NOW));
    let mut at = 8;
    for new in 9..20_u64 {
        // Two histories from here on, both of which follow from what was cosigned.
        let second = forked(usize::try_from(at).unwrap(), 40);
        let barrier = Arc::new(Barrier::new(2));
        let asked = [step(&first, at, new), step(&second, at, new)].map(|body| {
            let (witness, barrier) = (Arc::clone(&witness), Arc::clone(&barrier));
            std::thread::spawn(move || {
                barrier.wait();
                witness.add_checkpoint(&body, NOW)
            })
        });
        let answers = asked.map(|thread| thread.join().unwrap());
        let signed = answers
            .iter()
            .filter(|answer| status(answer) == 200)
            .count();
        assert_eq!(signed, 1, "{answers:?}");
        if status(&answers[1]) == 200 {
            // The second history won; the story is told.
            return;
        }
        at = new;
    }
}

#[test]
fn what_is_no_request_is_refused_unread() {
    let place = Place::new();
    let witness = place.witness();
    let stored = Stored::of(30);
    let note = stored.checkpoint(5).to_string();
    let hash = TreeHash::of_nothing().to_string();
    let many = format!("{hash}\n").repeat(64);
    let bodies = [
        String::new(),
        "old".to_owned(),
        format!("old 0\n{note}"),
        format!("old 0\n\n{}", note.trim_end()),
        format!("old 0\n\n\n{note}"),
        format!("old 00\n\n{note}"),
        format!("old +0\n\n{note}"),
        format!("old -1\n\n{note}"),
        format!("old  0\n\n{note}"),
        format!("old 0 \n\n{note}"),
        format!("old 0\r\n\r\n{note}"),
        format!("old 18446744073709551616\n\n{note}"),
        format!("new 0\n\n{note}"),
        format!("old 1\nno hash\n\n{note}"),
        format!("old 1\n{}\n\n{note}", hash.trim_end_matches('=')),
        format!("old 1\n{many}\n{note}"),
        format!("old 6\n\n{note}"),
        "old 0\n\nexample.com/audit/caretaker\n5\n".to_owned(),
        format!("old 0\n\n{}", "\u{2014} x AAAAAAA=\n".repeat(100_000)),
        "x".repeat(MAX_BODY + 1),
    ];
    for text in bodies {
        let answer = witness.add_checkpoint(text.as_bytes(), NOW);
        assert_eq!(status(&answer), 400, "{answer:?} {text:.200}");
    }
    assert_eq!(
        status(&witness.add_checkpoint(b"old 0\n\n\xff\n", NOW)),
        400
    );
    // As many as there may be are a proof, if no good one.
    cosigned(witness.add_checkpoint(&step(&stored, 0, 5), NOW));
    let most = format!("{hash}\n").repeat(63);
    let answer = witness.add_checkpoint(
        format!("old 5\n{most}\n{}", stored.checkpoint(9)).as_bytes(),
        NOW,
    );
    assert_eq!(status(&answer), 422);
}
