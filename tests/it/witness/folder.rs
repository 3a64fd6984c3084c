//! Key and memory of a witness: who may read them, and what happens when they are gone or changed.

use std::os::unix::fs::PermissionsExt;

use caretaker::log::{KeyName, PolicyError, SignatureType, VerifierKey, read_signing_key};
use caretaker::witness::{KEY_FILE, STATE_FILE, Witness, WitnessError, init};

use super::scene::{Place, cosigned, fill, status, step};
use crate::log::scene::{NOW, Stored, log, witness as other_witness};

#[test]
fn nobody_else_may_read_the_key() {
    let place = Place::new();
    let key = place.file(KEY_FILE);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&key), 0o600);
    let text = std::fs::read_to_string(&key).unwrap();
    let (_, read) = read_signing_key(text.trim_end()).unwrap();
    assert_eq!(read, place.key);
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("a/b");
    let name = KeyName::new("w").unwrap();
    init(&made, &name, &mut fill).unwrap();
    assert_eq!(mode(&made), 0o700);
    for readable in [0o640, 0o604, 0o666] {
        std::fs::set_permissions(&key, PermissionsExt::from_mode(readable)).unwrap();
        let refused = place.open().unwrap_err();
        assert!(
            matches!(refused, WitnessError::Readable { .. }),
            "{refused}"
        );
        assert!(refused.to_string().contains("chmod 600"), "{refused}");
        assert!(!format!("{refused} {refused:?}").contains("PRIVATE"));
    }
}

#[test]
fn a_key_that_is_none_is_refused_without_being_shown() {
    let place = Place::new();
    let key = place.file(KEY_FILE);
    let text = std::fs::read_to_string(&key).unwrap();
    // The same key, made for a log.
    let (secret, _) = read_signing_key(text.trim_end()).unwrap();
    let name = place.key.name().clone();
    let as_log = VerifierKey::new(name, SignatureType::Log, secret.public());
    let log_key = text
        .replace(&place.key.hash().to_string(), &as_log.hash().to_string())
        .replace("+BBcX", "+ARcX");
    read_signing_key(log_key.trim_end()).unwrap();
    for changed in ["", "PRIVATE+KEY+x", &text[..text.len() - 9], &log_key] {
        std::fs::write(&key, changed).unwrap();
        let refused = place.open().unwrap_err();
        assert!(matches!(refused, WitnessError::Key { .. }), "{refused}");
        assert!(!format!("{refused} {refused:?}").contains("FxcX"));
    }
    std::fs::remove_file(&key).unwrap();
    assert!(matches!(place.open(), Err(WitnessError::File { .. })));
}

#[test]
fn there_is_one_witness_in_a_folder() {
    let place = Place::new();
    let name = KeyName::new("w").unwrap();
    for gone in ["nothing", KEY_FILE] {
        std::fs::remove_file(place.file(gone)).unwrap_or(());
        let refused = init(&place.path(), &name, &mut fill).unwrap_err();
        assert!(matches!(refused, WitnessError::There { .. }), "{refused}");
    }
}

#[test]
fn a_witness_of_no_log_does_not_run() {
    let place = Place::new();
    let refused = Witness::open(&place.path(), Vec::new()).unwrap_err();
    assert!(
        matches!(refused, WitnessError::Logs(PolicyError::NoLog)),
        "{refused}"
    );
    for keys in [
        vec![other_witness(1).verifier()],
        vec![log().verifier(), log().verifier()],
    ] {
        let refused = Witness::open(&place.path(), keys).unwrap_err();
        assert!(matches!(refused, WitnessError::Logs(_)), "{refused}");
    }
    let refused = Witness::open(&place.path(), vec![place.key.clone()]).unwrap_err();
    assert!(matches!(refused, WitnessError::Own { .. }), "{refused}");
}

#[test]
fn a_witness_without_its_memory_does_not_run() {
    let place = Place::new();
    std::fs::remove_file(place.file(STATE_FILE)).unwrap();
    let refused = place.open().unwrap_err();
    assert!(
        matches!(refused, WitnessError::Forgotten { .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("Restore it"), "{refused}");
}

#[test]
fn a_memory_that_was_cut_or_changed_is_refused() {
    let place = Place::new();
    let stored = Stored::of(30);
    cosigned(place.witness().add_checkpoint(&step(&stored, 0, 8), NOW));
    let state = place.file(STATE_FILE);
    let whole = std::fs::read(&state).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let mut others = vec![
        b"garbage".to_vec(),
        [whole.as_slice(), b"\n"].concat(),
        [whole.as_slice(), whole.as_slice()].concat(),
        vec![b'\n'; 100],
        // One line less, and the rest as it was.
        text.replacen(text.lines().nth(1).unwrap(), "", 1)
            .into_bytes(),
    ];
    others.extend((0..whole.len()).map(|length| whole[..length].to_vec()));
    others.extend((0..whole.len()).map(|at| {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        changed
    }));
    for other in others {
        std::fs::write(&state, &other).unwrap();
        let refused = place.open().unwrap_err();
        assert!(matches!(refused, WitnessError::State { .. }), "{refused}");
        assert!(refused.to_string().contains("Restore it"), "{refused}");
    }
    // That of another witness, whole.
    let name = KeyName::new("another.example/witness").unwrap();
    let another = tempfile::tempdir().unwrap();
    init(another.path(), &name, &mut fill).unwrap();
    std::fs::copy(another.path().join(STATE_FILE), &state).unwrap();
    assert!(matches!(place.open(), Err(WitnessError::State { .. })));
    std::fs::write(&state, &whole).unwrap();
    assert_eq!(place.witness().logs()[0].1.unwrap().head.size(), 8);
}

#[test]
fn one_process_at_a_time() {
    let place = Place::new();
    let witness = place.witness();
    let refused = place.open().unwrap_err();
    assert!(matches!(refused, WitnessError::Running { .. }), "{refused}");
    drop(witness);
    place.witness();
}

#[test]
fn what_cannot_be_remembered_is_not_cosigned() {
    let place = Place::new();
    let witness = place.witness();
    let stored = Stored::of(30);
    cosigned(witness.add_checkpoint(&step(&stored, 0, 8), NOW));
    // The disk takes nothing more: something that is no file stands where the next state is written.
    std::fs::create_dir(place.file("state.new")).unwrap();
    let answer = witness.add_checkpoint(&step(&stored, 8, 9), NOW);
    assert_eq!(status(&answer), 500, "{answer:?}");
    std::fs::remove_dir(place.file("state.new")).unwrap();
    // Nothing was taken for cosigned.
    assert_eq!(witness.logs()[0].1.unwrap().head.size(), 8);
    cosigned(witness.add_checkpoint(&step(&stored, 8, 9), NOW));
    drop(witness);
    assert_eq!(place.witness().logs()[0].1.unwrap().head.size(), 9);
}
