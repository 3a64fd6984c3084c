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
    insta::assert_snapshot!(home.tidy(&refused.unwrap_err().to_string()), @"");
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
    insta::assert_snapshot!(home.tidy(&refused), @"");
}

#[test]
fn a_long_memory_is_shortened_and_keeps_what_is_new() {
    let home = Home::made("long");
    let trust = home.newest();
    let mut lines = String::new();
    for number in 0..66_000_u32 {
        let mut entropy = [0; 10];
        entropy[..4].copy_from_slice(&number.to_be_bytes());
        let incident = IncidentId::new(NOW.plus_seconds(-1_000_000 + i64::from(number)), entropy);
        let said = format!("{incident} 0 {}", Sha256Digest::of(&entropy));
        let check = Sha256Digest::of(said.as_bytes()).to_string();
        writeln!(lines, "{said} {}", &check[..8]).unwrap();
    }
    let one = drafted(&trust, NOW, "one");
    std::fs::create_dir_all(memory(&home).parent().unwrap()).unwrap();
    std::fs::write(memory(&home), lines.repeat(2)).unwrap();
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
    insta::assert_snapshot!(messages.join("\n"), @"");
    signer.sign_after(&next, &stored).unwrap();
}
