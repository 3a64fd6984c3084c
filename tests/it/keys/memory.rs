//! What a signer remembers to have signed, whatever ends in between.

use std::fmt::Write as _;

use caretaker::attest::{Envelope, Role, SignError};
use caretaker::change::Sha256Digest;
use caretaker::id::IncidentId;
use caretaker::signer::Keyring;

use super::succession::{drafted, drafted_at};
use super::{Home, NOW};

fn sign(keyring: &Keyring, statement: &[u8]) -> Result<Envelope, SignError> {
    keyring.signer(Role::Executor).sign(statement)
}

/// Another file in the memory's place, as when a backup is restored.
fn exchange(home: &Home, content: &[u8]) {
    let beside = home.folder.path().join("restored");
    std::fs::write(&beside, content).unwrap();
    std::fs::rename(beside, memory(home)).unwrap();
}

fn memory(home: &Home) -> std::path::PathBuf {
    home.folder.path().join("home/signed/executor")
}

#[test]
fn another_statement_for_a_position_is_refused_after_a_restart() {
    let home = Home::made("restart");
    let trust = home.newest();
    let (one, other) = (drafted(&trust, NOW, "one"), drafted(&trust, NOW, "other"));
    let running = home.open().unwrap();
    let signed = sign(&home.open().unwrap(), &one).unwrap();
    for keyring in [home.open().unwrap(), running] {
        assert_eq!(sign(&keyring, &one).unwrap(), signed);
        let refused = sign(&keyring, &other).unwrap_err();
        assert!(
            matches!(refused, SignError::Position { seq: 0, .. }),
            "{refused}"
        );
    }
    assert_eq!(super::mode(&memory(&home)), 0o600);
    assert_eq!(
        std::fs::read_to_string(memory(&home))
            .unwrap()
            .lines()
            .count(),
        1
    );
}

#[test]
fn what_cannot_be_remembered_is_not_signed() {
    let home = Home::made("full disk");
    std::fs::write(home.folder.path().join("home/signed"), "in the way").unwrap();
    let refused = sign(&home.open().unwrap(), &drafted(&home.newest(), NOW, "one"));
    insta::assert_snapshot!(home.tidy(&refused.unwrap_err().to_string()), @"the executor signer refuses: opening its memory of what it signed, …/home/signed/executor: File exists (os error 17); without it nothing is signed; make the folder writable for this user, or mend the disk");
}

#[test]
fn a_line_that_was_cut_off_is_written_anew_and_a_damaged_one_stops_everything() {
    let home = Home::made("cut off");
    let trust = home.newest();
    let one = drafted(&trust, NOW, "one");
    sign(&home.open().unwrap(), &one).unwrap();
    let whole = std::fs::read_to_string(memory(&home)).unwrap();
    // The machine stopped while the line was written: the signature had not left, and the position is free.
    std::fs::write(memory(&home), &whole[..whole.len() - 3]).unwrap();
    sign(&home.open().unwrap(), &drafted(&trust, NOW, "other")).unwrap();
    assert!(matches!(
        sign(&home.open().unwrap(), &one),
        Err(SignError::Position { .. })
    ));
    let other = std::fs::read_to_string(memory(&home)).unwrap();
    std::fs::write(memory(&home), other.replace("inc-", "inc_")).unwrap();
    let refused = sign(&home.open().unwrap(), &one).unwrap_err().to_string();
    insta::assert_snapshot!(home.tidy(&refused), @"the executor signer refuses: using its memory of what it signed, …/home/signed/executor: it is damaged at byte 0; without it nothing is signed; put its newest copy back; docs/keys.md says what to do where there is none");
}

#[test]
fn a_line_that_is_missing_before_others_stops_everything() {
    let home = Home::made("missing");
    let trust = home.newest();
    let keyring = home.open().unwrap();
    for (seq, prev) in [(0, None), (1, Some(Sha256Digest::of(b"one")))] {
        let draft = drafted_at(&trust, NOW, "one", seq, prev);
        sign(&keyring, &draft).unwrap();
    }
    let whole = std::fs::read_to_string(memory(&home)).unwrap();
    let (_, second) = whole.split_once('\n').unwrap();
    std::fs::write(memory(&home), second).unwrap();
    let other = drafted(&trust, NOW, "other");
    let refused = sign(&home.open().unwrap(), &other).unwrap_err();
    assert!(
        refused.to_string().contains("damaged at byte 0"),
        "{refused}"
    );
}

#[test]
fn who_runs_on_notices_that_the_memory_was_cut_or_exchanged() {
    let home = Home::made("rolled back");
    let trust = home.newest();
    let running = home.open().unwrap();
    let prev = Some(Sha256Digest::of(b"one"));
    let second = |detail| drafted_at(&trust, NOW, detail, 1, prev);
    sign(&running, &drafted(&trust, NOW, "first")).unwrap();
    let older = std::fs::read(memory(&home)).unwrap();
    sign(&running, &second("second")).unwrap();
    let newer = std::fs::read(memory(&home)).unwrap();
    let refusal = || {
        let refused = sign(&running, &second("other")).unwrap_err();
        home.tidy(&refused.to_string())
    };
    std::fs::write(memory(&home), &older).unwrap();
    let cut = refusal();
    std::fs::write(memory(&home), &newer).unwrap();
    sign(&running, &second("second")).unwrap();
    exchange(&home, &older);
    let exchanged = [refusal(), refusal()];
    assert_eq!(exchanged[0], exchanged[1]);
    std::fs::remove_file(memory(&home)).unwrap();
    assert_eq!(refusal(), exchanged[0]);
    insta::assert_snapshot!([cut, exchanged[0].clone()].join("\n"), @r"
    the executor signer refuses: using its memory of what it signed, …/home/signed/executor: it was cut; without it nothing is signed; put its newest copy back; docs/keys.md says what to do where there is none
    the executor signer refuses: using its memory of what it signed, …/home/signed/executor: a file without what was signed took its place; without it nothing is signed; put its newest copy back; docs/keys.md says what to do where there is none
    ");
    exchange(&home, &newer);
    sign(&running, &second("second")).unwrap();
    let refused = sign(&running, &second("other")).unwrap_err();
    assert!(matches!(refused, SignError::Position { seq: 1, .. }));
}

#[test]
fn a_long_memory_is_shortened_and_keeps_what_is_new() {
    let home = Home::made("long");
    let trust = home.newest();
    let mut lines = String::new();
    let mut before = String::new();
    // Each twice: what counts is the length of the file.
    for number in (0..66_000_u32).chain(0..66_000) {
        let mut entropy = [0; 10];
        entropy[..4].copy_from_slice(&number.to_be_bytes());
        let incident = IncidentId::new(NOW.plus_seconds(-1_000_000 + i64::from(number)), entropy);
        let said = format!("{incident} 0 {}", Sha256Digest::of(&entropy));
        let check = Sha256Digest::of(format!("{before} {said}").as_bytes()).to_string();
        check[..8].clone_into(&mut before);
        writeln!(lines, "{said} {before}").unwrap();
    }
    let one = drafted(&trust, NOW, "one");
    std::fs::create_dir_all(memory(&home).parent().unwrap()).unwrap();
    std::fs::write(memory(&home), lines).unwrap();
    let running = home.open().unwrap();
    sign(&home.open().unwrap(), &one).unwrap();
    assert!(std::fs::metadata(memory(&home)).unwrap().len() < 5 << 20);
    let refused = sign(&running, &drafted(&trust, NOW, "other"));
    assert!(matches!(refused, Err(SignError::Position { .. })));
}

#[test]
fn what_does_not_continue_the_chain_is_not_signed() {
    let home = Home::made("chain");
    let trust = home.newest();
    let keyring = home.open().unwrap();
    let signer = keyring.signer(Role::Executor);
    let first = signer
        .sign_after(&drafted(&trust, NOW, "first"), &[])
        .unwrap();
    let stored = [first.to_bytes().unwrap()];
    let other = drafted_at(&trust, NOW, "second", 1, Some(Sha256Digest::of(b"another")));
    let broken = [b"{}".to_vec()];
    let next = drafted_at(&trust, NOW, "second", 1, Some(first.digest()));
    let messages = [
        signer.sign_after(&other, &stored),
        signer.sign_after(&next, &[]),
        signer.sign_after(&next, &broken),
    ]
    .map(|signed| home.tidy(&signed.unwrap_err().to_string()));
    insta::assert_snapshot!(messages.join("\n"), @r"
    the executor signer refuses: no verifier would count its signature on this statement (prev: expected [digest], found [digest])
    the executor signer refuses: no verifier would count its signature on this statement (seq: expected 0, found 1)
    the executor signer refuses: no verifier would count its signature on this statement (envelope: expected the stored form of an envelope, found event 0: reading an envelope: not the expected document: missing field `payload` at line 1 column 2)
    ");
    signer.sign_after(&next, &stored).unwrap();
}
