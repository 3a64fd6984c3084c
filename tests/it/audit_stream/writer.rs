//! Writing: over restarts, by several at once, after a crash, and never behind somebody's change.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use caretaker::attest::chain::Verdict;
use caretaker::audit_stream::{AuditStream, files, verify};
use caretaker::events::EventSink as _;

use super::{event, stream, written};

fn valid(stream: &AuditStream, folder: &Path) -> u64 {
    let report = verify(&files(folder).unwrap(), stream.key(), None, &mut |_| {});
    assert_eq!(report.verdict, Verdict::Valid, "{:#?}", report.failures);
    report.events
}

fn last(folder: &Path) -> PathBuf {
    files(folder).unwrap().pop().unwrap()
}

#[test]
fn the_chain_goes_on_over_restarts_and_from_file_to_file() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..4 {
        written(folder.path(), 5, 1_000);
    }
    let files = files(folder.path()).unwrap();
    assert!(files.len() > 2, "{files:?}");
    assert_eq!(valid(&stream(folder.path()), folder.path()), 20);
}

#[test]
fn what_several_write_at_once_is_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let streams: Vec<_> = (0..4)
        .map(|_| stream(folder.path()).rotating_at(4_000))
        .collect();
    std::thread::scope(|scope| {
        for stream in &streams {
            for _ in 0..2 {
                scope.spawn(move || {
                    for number in 0..25 {
                        stream.write(&event(number)).unwrap();
                    }
                });
            }
        }
    });
    assert_eq!(valid(&streams[0], folder.path()), 200);
}

/// A writer that died leaves half a line, a whole one that it did not note, or a new file.
#[test]
fn after_a_crash_at_any_byte_the_stream_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let stream = written(folder.path(), 3, 1 << 20);
    let head = fs::read(folder.path().join("head")).unwrap();
    let file = last(folder.path());
    let before = fs::read(&file).unwrap();
    stream.write(&event(3)).unwrap();
    let after = fs::read(&file).unwrap();
    for cut in before.len()..=after.len() {
        fs::write(&file, &after[..cut]).unwrap();
        fs::write(folder.path().join("head"), &head).unwrap();
        stream.write(&event(4)).unwrap();
        let expected = if cut == after.len() { 5 } else { 4 };
        assert_eq!(valid(&stream, folder.path()), expected, "cut at {cut}");
    }
}

#[test]
fn after_a_crash_on_the_way_to_a_new_file_the_stream_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let stream = written(folder.path(), 3, 1_000_000);
    let head = fs::read(folder.path().join("head")).unwrap();
    let stream = stream.rotating_at(1);
    stream.write(&event(3)).unwrap();
    assert_eq!(files(folder.path()).unwrap().len(), 2);
    fs::write(folder.path().join("head"), &head).unwrap();
    stream.write(&event(4)).unwrap();
    assert_eq!(valid(&stream, folder.path()), 5);
}

/// Break it: in `AuditStream::mended`, take any last line, or in `AuditStream::end`, begin anew when `head` is gone.
#[test]
fn a_stream_whose_end_was_changed_is_not_written_to() {
    let changes: [(&str, fn(&Path)); 7] = [
        ("the last line is cut off", |folder| {
            let text = fs::read_to_string(last(folder)).unwrap();
            let keep: Vec<&str> = text.lines().take(2).collect();
            fs::write(last(folder), format!("{}\n", keep.join("\n"))).unwrap();
        }),
        ("the last line is altered", |folder| {
            let text = fs::read_to_string(last(folder)).unwrap();
            fs::write(last(folder), text.replace("\"number\":2", "\"number\":9")).unwrap();
        }),
        ("the last line is written twice", |folder| {
            let text = fs::read_to_string(last(folder)).unwrap();
            let line = text.lines().last().unwrap();
            fs::write(last(folder), format!("{text}{line}\n")).unwrap();
        }),
        ("the file is gone", |folder| {
            fs::remove_file(last(folder)).unwrap();
        }),
        ("the end is gone", |folder| {
            fs::remove_file(folder.join("head")).unwrap();
        }),
        ("all but the first line and the end are gone", |folder| {
            let text = fs::read_to_string(last(folder)).unwrap();
            let first = text.lines().next().unwrap();
            fs::write(last(folder), format!("{first}\n")).unwrap();
            fs::remove_file(folder.join("head")).unwrap();
        }),
        ("much more than a line stands at the end", |folder| {
            let mut bytes = fs::read(last(folder)).unwrap();
            bytes.extend(vec![b'x'; 200_000]);
            fs::write(last(folder), bytes).unwrap();
        }),
    ];
    for (name, change) in changes {
        let folder = tempfile::tempdir().unwrap();
        let stream = written(folder.path(), 3, 1 << 20);
        change(folder.path());
        let before: Vec<_> = files(folder.path())
            .unwrap()
            .iter()
            .map(fs::read)
            .map(Result::unwrap)
            .collect();
        let error = stream.record(&event(3)).unwrap_err().to_string();
        assert!(error.contains("somebody changed it"), "{name}: {error}");
        assert!(error.contains("caretaker audit verify"), "{name}: {error}");
        let after: Vec<_> = files(folder.path())
            .unwrap()
            .iter()
            .map(fs::read)
            .map(Result::unwrap)
            .collect();
        assert_eq!(before, after, "{name}");
    }
}

#[test]
fn a_key_that_others_may_read_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 1, 1 << 20);
    let key = folder.path().join("stream.key");
    assert_eq!(
        fs::metadata(&key).unwrap().permissions().mode() & 0o777,
        0o600
    );
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let clock = std::sync::Arc::new(caretaker::clock::SystemClock);
    let error = AuditStream::open(folder.path(), clock, &mut |_| Ok(())).unwrap_err();
    assert!(
        error.to_string().contains("other users may read it"),
        "{error}"
    );
}

#[test]
fn an_event_too_long_for_a_line_is_refused_and_the_stream_is_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let stream = written(folder.path(), 1, 1 << 20);
    let mut long = event(1);
    long.fields
        .insert("reason".to_owned(), "x".repeat(70_000).into());
    let error = stream.record(&long).unwrap_err().to_string();
    assert!(error.contains("at most 65536 are written"), "{error}");
    stream.write(&event(1)).unwrap();
    assert_eq!(valid(&stream, folder.path()), 2);
}

#[test]
fn a_line_of_any_length_is_followed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let stream = written(folder.path(), 1, 1 << 20);
    for length in [3_000, 7_900, 8_100, 30_000, 60_000, 10] {
        let mut long = event(1);
        let reason = "x".repeat(length);
        long.fields.insert("reason".to_owned(), reason.into());
        stream.write(&long).unwrap();
        stream.write(&event(2)).unwrap();
    }
    assert_eq!(valid(&stream, folder.path()), 13);
}

#[test]
fn the_end_is_said_anew_when_it_is_shorter() {
    let folder = tempfile::tempdir().unwrap();
    let stream = written(folder.path(), 3, 1 << 20);
    let head = folder.path().join("head");
    let said = fs::read_to_string(&head).unwrap();
    let (first, rest) = said.split_once(' ').unwrap();
    fs::write(&head, format!("{first:0>20} {rest}")).unwrap();
    stream.write(&event(3)).unwrap();
    assert_eq!(valid(&stream, folder.path()), 4);
    let now = fs::read_to_string(&head).unwrap();
    assert_eq!(now.lines().count(), 1, "{now:?}");
    assert!(now.starts_with("0 "), "{now:?}");
}

/// A writer that stands still must not hold up every tool call for ever.
#[test]
fn who_waits_for_a_writer_that_does_not_end_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let stream = written(folder.path(), 1, 1 << 20);
    let lock = fs::File::open(folder.path().join("lock")).unwrap();
    lock.lock().unwrap();
    let error = stream.record(&event(1)).unwrap_err().to_string();
    assert!(
        error.contains("another process has held its lock"),
        "{error}"
    );
    lock.unlock().unwrap();
    stream.write(&event(1)).unwrap();
    assert_eq!(valid(&stream, folder.path()), 2);
}

fn opened(folder: &Path) -> Result<AuditStream, caretaker::audit_stream::StreamError> {
    let mut fill = |buffer: &mut [u8]| {
        buffer.fill(7);
        Ok(())
    };
    let clock = std::sync::Arc::new(caretaker::clock::SystemClock);
    AuditStream::open(folder, clock, &mut fill)
}

#[test]
fn a_lost_key_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    drop(written(folder.path(), 3, 1 << 20));
    fs::remove_file(folder.path().join("stream.key")).unwrap();
    let error = opened(folder.path()).unwrap_err().to_string();
    assert!(error.contains("it is gone"), "{error}");
    assert!(!folder.path().join("stream.key").exists());
    // Whatever else was taken away with it, as long as anything is there.
    fs::remove_file(last(folder.path())).unwrap();
    opened(folder.path()).unwrap_err();
    fs::remove_file(folder.path().join("head")).unwrap();
    opened(folder.path()).unwrap();
}

#[test]
fn a_folder_that_others_may_write_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    drop(written(folder.path(), 1, 1 << 20));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    opened(folder.path()).unwrap_err();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    opened(folder.path()).unwrap();
    let link = tempfile::tempdir().unwrap().path().join("link");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(folder.path(), &link).unwrap();
    opened(&link).unwrap_err();
    fs::remove_dir_all(link.parent().unwrap()).unwrap();
}

#[test]
fn a_pipe_in_a_files_place_is_not_waited_for() {
    for name in ["stream.key", "lock", "head", "00000000000000000000.ndjson"] {
        let folder = tempfile::tempdir().unwrap();
        drop(written(folder.path(), 1, 1 << 20));
        let place = folder.path().join(name);
        fs::remove_file(&place).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&place).status();
        assert!(made.unwrap().success());
        let written = opened(folder.path()).and_then(|stream| stream.write(&event(1)));
        assert!(written.is_err(), "{name}");
    }
}
