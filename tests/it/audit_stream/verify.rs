//! Verification: what must never pass.

use std::fs;
use std::path::Path;

use caretaker::attest::chain::Verdict;
use caretaker::audit_stream::{AuditStream, Head, StreamReport, files, verify, verify_folder};
use proptest::prelude::*;

use super::{event, written};

fn report(stream: &AuditStream, folder: &Path, seen: Option<Head>) -> StreamReport {
    verify(&files(folder).unwrap(), stream.key(), seen, &mut |_| {})
}

fn only_file(folder: &Path) -> std::path::PathBuf {
    let mut files = files(folder).unwrap();
    assert_eq!(files.len(), 1);
    files.remove(0)
}

/// Every bit of a stream.
///
/// Break it: leave the verification of the signature out of `line::read`.
#[test]
fn unsigned_and_altered_lines_never_pass() {
    let folder = tempfile::tempdir().unwrap();
    let stream = written(folder.path(), 3, 1 << 20);
    let file = only_file(folder.path());
    let sound = fs::read(&file).unwrap();
    for place in 0..sound.len() {
        for bit in [0, 3, 5] {
            let mut bytes = sound.clone();
            bytes[place] ^= 1 << bit;
            fs::write(&file, &bytes).unwrap();
            let report = report(&stream, folder.path(), None);
            assert_eq!(report.verdict, Verdict::Invalid, "byte {place}, bit {bit}");
        }
    }
    // The last line without its signature, which no later line vouches for.
    let text = String::from_utf8(sound).unwrap();
    let (before, last) = text.trim_end().rsplit_once('\n').unwrap();
    let unsigned = format!("{}}}", last.split(",\"sig\"").next().unwrap());
    for line in [unsigned.clone(), unsigned.replace('}', ",\"sig\":\"\"}")] {
        fs::write(&file, format!("{before}\n{line}\n")).unwrap();
        let report = report(&stream, folder.path(), None);
        assert_eq!(report.verdict, Verdict::Invalid, "{line}");
    }
    // A member more, before and behind what is signed.
    for line in [
        last.replace("{\"event\"", "{\"extra\":1,\"event\""),
        last.replace("\"}", "\",\"extra\":1}"),
        last.replace(",\"sig\"", ",\"seq\":2,\"sig\""),
    ] {
        fs::write(&file, format!("{before}\n{line}\n")).unwrap();
        let report = report(&stream, folder.path(), None);
        assert_eq!(report.verdict, Verdict::Invalid, "{line}");
    }
}

proptest! {
    /// Break it: leave the comparison with the line before out of `Check::line`.
    #[test]
    fn lines_cannot_be_dropped_doubled_or_moved(from in 0..6_usize, to in 0..6_usize, what in 0..3_u8) {
        let folder = tempfile::tempdir().unwrap();
        let stream = written(folder.path(), 6, 1 << 20);
        let file = only_file(folder.path());
        let text = fs::read_to_string(&file).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        let before = lines.clone();
        match what {
            // The first ones may be missing from what one has (it then begins later), the last ones need an end that was seen.
            0 if (1..5).contains(&from) => { lines.remove(from); }
            1 => lines.insert(to, before[from]),
            _ => lines.swap(from, to),
        }
        prop_assume!(lines != before);
        fs::write(&file, format!("{}\n", lines.join("\n"))).unwrap();
        prop_assert_eq!(report(&stream, folder.path(), None).verdict, Verdict::Invalid);
    }
}

#[test]
fn an_end_that_was_seen_has_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let stream = written(folder.path(), 4, 1 << 20);
    let seen: Head = report(&stream, folder.path(), None)
        .head
        .unwrap()
        .parse()
        .unwrap();
    stream.write(&event(4)).unwrap();
    assert_eq!(
        report(&stream, folder.path(), Some(seen)).verdict,
        Verdict::Valid
    );
    let file = only_file(folder.path());
    let text = fs::read_to_string(&file).unwrap();
    let kept: Vec<&str> = text.lines().take(3).collect();
    fs::write(&file, format!("{}\n", kept.join("\n"))).unwrap();
    let cut = report(&stream, folder.path(), Some(seen));
    assert_eq!(cut.verdict, Verdict::Invalid);
    assert!(
        cut.failures[0].reason.contains("does not reach"),
        "{:?}",
        cut.failures
    );
    // Without it nobody can tell.
    assert_eq!(report(&stream, folder.path(), None).verdict, Verdict::Valid);
}

#[test]
fn a_whole_other_stream_does_not_pass_for_this_one() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let stream = written(ours.path(), 1, 1 << 20);
    let fill = &mut |bytes: &mut [u8]| {
        bytes.fill(8);
        Ok(())
    };
    let clock = std::sync::Arc::new(caretaker::clock::SystemClock);
    let other = AuditStream::open(theirs.path(), clock, fill).unwrap();
    other.write(&event(0)).unwrap();
    assert_eq!(
        report(&stream, theirs.path(), None).verdict,
        Verdict::Invalid
    );
}

#[test]
fn garbage_ends_in_a_verdict_and_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let stream = written(folder.path(), 1, 1 << 20);
    let file = only_file(folder.path());
    for (bytes, expected) in [
        (Vec::new(), Verdict::CannotVerify),
        (b"\n".to_vec(), Verdict::Invalid),
        (b"{}\n[]\nnull\n".to_vec(), Verdict::Invalid),
        (vec![b'['; 60_000], Verdict::Invalid),
        (
            [vec![b'['; 60_000], b"\n".to_vec()].concat(),
            Verdict::Invalid,
        ),
        (vec![0; 10_000_000], Verdict::Invalid),
        (b"\n".repeat(300_000), Verdict::Invalid),
    ] {
        fs::write(&file, &bytes).unwrap();
        let report = report(&stream, folder.path(), None);
        assert_eq!(report.verdict, expected);
        assert!(report.failures.len() <= 100);
    }
}

fn whole(stream: &AuditStream, folder: &Path) -> StreamReport {
    verify_folder(folder, stream.key(), None, &mut |_| {}).unwrap()
}

#[test]
fn a_folder_is_held_against_its_own_end() {
    let folder = tempfile::tempdir().unwrap();
    let stream = written(folder.path(), 20, 1_000);
    assert_eq!(whole(&stream, folder.path()).verdict, Verdict::Valid);
    let files = files(folder.path()).unwrap();
    assert!(files.len() > 2);
    let last = files.last().unwrap();
    let text = fs::read_to_string(last).unwrap();
    // Whole lines of the last file, and the file as a whole.
    let cut = text.trim_end().rfind('\n').map_or(0, |at| at + 1);
    fs::write(last, &text[..cut]).unwrap();
    assert_eq!(whole(&stream, folder.path()).verdict, Verdict::Invalid);
    fs::remove_file(last).unwrap();
    assert_eq!(whole(&stream, folder.path()).verdict, Verdict::Invalid);
    fs::write(last, &text).unwrap();
    assert_eq!(whole(&stream, folder.path()).verdict, Verdict::Valid);
    // What is gone from the beginning, and what says where the end is.
    let first = fs::read(&files[0]).unwrap();
    fs::remove_file(&files[0]).unwrap();
    assert_eq!(whole(&stream, folder.path()).verdict, Verdict::CannotVerify);
    fs::write(&files[0], first).unwrap();
    fs::remove_file(folder.path().join("head")).unwrap();
    assert_eq!(whole(&stream, folder.path()).verdict, Verdict::CannotVerify);
}

#[test]
fn a_folder_without_its_files_is_not_valid() {
    let folder = tempfile::tempdir().unwrap();
    let stream = written(folder.path(), 3, 1 << 20);
    fs::remove_file(only_file(folder.path())).unwrap();
    assert_eq!(whole(&stream, folder.path()).verdict, Verdict::Invalid);
}
