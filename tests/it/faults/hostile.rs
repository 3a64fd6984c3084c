//! What an auditor may be handed to make the verifier run for ever or out of memory: the program ends soon, in little memory, with a
//! verdict that is not "valid".

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use caretaker::attest::dsse::{IN_TOTO, TRUST_ROOT};
use caretaker::attest::trust_root::SideKey;
use caretaker::attest::{List, SecretKey, TrustRoot};
use caretaker::audit::{log_origin, write_archive};
use caretaker::log::{Checkpoint, LogSigner, TreeHash, TreeHead};

use crate::attest::ledger::{Ledger, label, root_document, root_key};

/// The address space that the program gets, in KiB; most of it is the program itself.
const LITTLE: u64 = 400_000;
/// What a bundle of the greatest length that is read needs on top.
const MUCH: u64 = LITTLE + 256 * 1_024;
/// Far more than any of this takes.
const SOON: Duration = Duration::from_mins(1);

fn log_key() -> SecretKey {
    SecretKey::from_seed(&[77; 32])
}

fn trust_root() -> TrustRoot {
    let mut document = root_document();
    let key = SideKey::from_public(label("log"), log_key().public());
    document.side_keys = Some(List::first_of([key]));
    TrustRoot::sign(&document, &[&root_key(0)]).unwrap()
}

/// Runs the verifier in that much memory.
fn verify(place: &Path, kibibytes: u64) -> (Output, Duration) {
    let begin = Instant::now();
    let pin = trust_root().digest().to_string();
    let output = Command::new("sh")
        .args(["-c", r#"ulimit -v "$0"; exec "$@""#])
        .arg(kibibytes.to_string())
        .arg(env!("CARGO_BIN_EXE_caretaker-verify"))
        .arg(place)
        .args(["--trust-root", &pin])
        .output();
    (output.unwrap(), begin.elapsed())
}

#[track_caller]
fn assert_refused(what: &str, place: &Path, kibibytes: u64) {
    let (output, took) = verify(place, kibibytes);
    let told = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        matches!(output.status.code(), Some(1 | 3)),
        "{what}: {:?} {told}{error}",
        output.status
    );
    let last = told.lines().last().unwrap_or_default();
    assert!(
        matches!(last, "verdict: invalid" | "verdict: cannot-verify"),
        "{what}: {told}{error}"
    );
    assert!(took < SOON, "{what}: {took:?}");
}

/// The members of a sound bundle but for its proofs.
fn members() -> BTreeMap<String, Vec<u8>> {
    let ledger = Ledger::merged();
    let lines = ledger
        .envelopes
        .iter()
        .flat_map(|line| [line.as_slice(), b"\n"]);
    BTreeMap::from([
        ("format".to_owned(), b"caretaker-bundle/v1\n".to_vec()),
        ("root/1.json".to_owned(), trust_root().to_bytes().unwrap()),
        (
            "events.jsonl".to_owned(),
            lines.collect::<Vec<_>>().concat(),
        ),
    ])
}

fn with(name: &str, content: Vec<u8>) -> Vec<u8> {
    let mut members = members();
    members.insert(name.to_owned(), content);
    write_archive(&members).unwrap()
}

fn signed(payload_type: &str, signature: &str, times: usize) -> Vec<u8> {
    let signatures = vec![signature; times].join(",");
    format!(r#"{{"payload":"e30=","payloadType":"{payload_type}","signatures":[{signatures}]}}"#)
        .into_bytes()
}

#[test]
fn no_member_takes_memory_or_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.caretaker");
    let signature =
        r#"{"keyid":"SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","sig":"eA=="}"#;
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let note = format!(
        "c2sp.org/tlog-proof@v1\nindex 0\n\ncaretaker/example\n1\n{}\n\n{}",
        TreeHash::of_nothing(),
        "\u{2014} caretaker/example AAAAAAA=\n".repeat(1_000_000)
    );
    let line = [signed(IN_TOTO, signature, 1).as_slice(), b"\n"].concat();
    let refused = |what: &str, bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        assert_refused(what, &path, LITTLE);
    };
    let event = |content: Vec<u8>| with("events.jsonl", content);
    refused(
        "a million signatures",
        &event(signed(IN_TOTO, signature, 1_000_000)),
    );
    let root = signed(TRUST_ROOT, signature, 1_000_000);
    refused("a million signatures of a root", &with("root/1.json", root));
    let note = with("proofs/0.tlog-proof", note.into_bytes());
    refused("a million signatures of a checkpoint", &note);
    refused("an event of depth 10^5", &event(deep.clone()));
    refused("a root of depth 10^5", &with("root/1.json", deep));
    refused("ten million empty events", &event(b"\n".repeat(10_000_000)));
    refused("a hundred thousand events", &event(line.repeat(100_000)));
    refused("no events", &event(Vec::new()));
    let long = b"A".repeat(50_000_000);
    refused("a long proof of nothing", &with("consistency/1-2", long));
    refused("a long document", &with("evidence/x", vec![0; 50_000_000]));
    refused("nothing", b"");
    let mut many = members();
    for number in 0..19_990 {
        many.insert(format!("proofs/{number}.tlog-proof"), b"x".to_vec());
    }
    std::fs::write(&path, write_archive(&many).unwrap()).unwrap();
    assert_refused("twenty thousand members", &path, LITTLE);
}

#[test]
fn no_file_takes_memory_or_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.caretaker");
    // A gigabyte that takes no room on the disk.
    File::create(&path).unwrap().set_len(1 << 30).unwrap();
    assert_refused("a gigabyte", &path, LITTLE);
    // As long as is still read.
    let file = File::create(&path).unwrap();
    file.set_len(caretaker::audit::MAX_BUNDLE as u64).unwrap();
    assert_refused("the longest that is read", &path, MUCH);
    let content = vec![b'x'; 200 << 20];
    std::fs::write(&path, with("events.jsonl", content)).unwrap();
    assert_refused("an event of 200 MB", &path, MUCH);
    // Members that say they have a gigabyte, and more than four.
    let sound = write_archive(&members()).unwrap();
    for claimed in [1_u32 << 30, u32::MAX] {
        let mut bent = sound.clone();
        bent[18..22].copy_from_slice(&claimed.to_le_bytes());
        bent[22..26].copy_from_slice(&claimed.to_le_bytes());
        std::fs::write(&path, &bent).unwrap();
        assert_refused("a member that says it is long", &path, LITTLE);
    }
}

/// Bombs and tricks of other zip programs, as files.
#[test]
fn zip_bombs_do_not_go_off() {
    let folder = tempfile::tempdir().unwrap();
    let program = r"
import sys, zipfile
d = sys.argv[1]
with zipfile.ZipFile(d + '/bomb.caretaker', 'w', zipfile.ZIP_DEFLATED) as z:
    with z.open('events.jsonl', 'w') as f:
        for _ in range(1024):
            f.write(b'\0' * (1 << 20))
with zipfile.ZipFile(d + '/nested.caretaker', 'w', zipfile.ZIP_DEFLATED) as z:
    z.write(d + '/bomb.caretaker', 'events.jsonl')
with zipfile.ZipFile(d + '/many.caretaker', 'w', zipfile.ZIP_STORED) as z:
    for n in range(65000):
        z.writestr('m%06d' % n, b'')
";
    let made = Command::new("python3")
        .args(["-c", program])
        .arg(folder.path())
        .output();
    let made = made.unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    for name in ["bomb", "nested", "many"] {
        let path = folder.path().join(format!("{name}.caretaker"));
        assert_refused(name, &path, LITTLE);
    }
}

/// A log whose operator is the attacker: the checkpoint is signed, what lies below it is not what it says.
#[test]
fn no_folder_takes_memory_or_time() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let signer = LogSigner::new(log_origin("example").unwrap(), log_key());
    let checkpoint = |size: u64| {
        let head = TreeHead::new(size, TreeHash::of_leaf(b"x")).unwrap();
        let checkpoint = Checkpoint::new(log_origin("example").unwrap(), head);
        let note = signer.sign(checkpoint).unwrap().to_string();
        std::fs::write(place("checkpoint"), note).unwrap();
    };
    std::fs::create_dir_all(place("root")).unwrap();
    std::fs::create_dir_all(place("tile/entries")).unwrap();
    std::fs::write(place("root/1.json"), trust_root().to_bytes().unwrap()).unwrap();
    checkpoint((1 << 63) - 1);
    assert_refused("2^63-1 leaves and no file", folder.path(), LITTLE);
    let entries = File::create(place("tile/entries/000")).unwrap();
    entries.set_len(1 << 30).unwrap();
    assert_refused("entries of a gigabyte", folder.path(), LITTLE);
    // As many leaves as it says, none of which is one.
    let mut leaves = vec![0xff_u8; 2];
    leaves.resize(2 + 65_535, b'{');
    std::fs::write(place("tile/entries/000"), leaves.repeat(256)).unwrap();
    checkpoint(256);
    assert_refused("leaves of 65,535 brackets", folder.path(), LITTLE);
    let root = File::create(place("root/2.json")).unwrap();
    root.set_len(1 << 30).unwrap();
    assert_refused("a trust root of a gigabyte", folder.path(), LITTLE);
}
