//! The container of a bundle: an ordinary zip file, in exactly one form.

use std::collections::BTreeMap;
use std::process::Command;

use caretaker::audit::{Archive, ArchiveError, write_archive};

fn members() -> BTreeMap<String, Vec<u8>> {
    let texts = [
        ("format", "one\n"),
        ("folder/a.json", "{}"),
        ("folder/b.json", ""),
        ("z", "last"),
    ];
    texts
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()))
        .collect()
}

#[test]
fn what_is_written_is_read() {
    let file = write_archive(&members()).unwrap();
    let archive = Archive::parse(&file).unwrap();
    assert_eq!(archive.member("z"), Some(&b"last"[..]));
    assert_eq!(archive.member("folder"), None);
    let folder: Vec<_> = archive.folder("folder").map(|(name, _)| name).collect();
    assert_eq!(folder, ["a.json", "b.json"]);
    let empty = write_archive(&BTreeMap::new()).unwrap();
    assert_eq!(Archive::parse(&empty).unwrap().members().count(), 0);
}

/// Python's zipfile, as an auditor may have it: it finds the same members and no fault.
#[test]
fn any_zip_program_opens_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.caretaker");
    std::fs::write(&path, write_archive(&members()).unwrap()).unwrap();
    let program = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
        print([(n, z.read(n).decode()) for n in z.namelist()])";
    let told = Command::new("python3")
        .args(["-c", program])
        .arg(&path)
        .output();
    let told = told.unwrap();
    assert!(
        told.status.success(),
        "{}",
        String::from_utf8_lossy(&told.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&told.stdout).trim(),
        r"[('folder/a.json', '{}'), ('folder/b.json', ''), ('format', 'one\n'), ('z', 'last')]"
    );
}

/// What other programs write is refused: compressed, with comments, with extra fields, with two members of one name, with bytes
/// before, between or after.
#[test]
fn the_tricks_of_zip_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = r"
import sys, zipfile, warnings
warnings.simplefilter('ignore')
d = sys.argv[1]
def make(name, *members, mode=zipfile.ZIP_STORED, comment=b'', extra=b'', date=(1980, 1, 1, 0, 0, 0), prefix=b''):
    path = d + '/' + name
    with open(path, 'wb') as f:
        f.write(prefix)
        with zipfile.ZipFile(f, 'a' if prefix else 'w', mode) as z:
            z.comment = comment
            for member, content in members:
                info = zipfile.ZipInfo(member, date)
                info.compress_type = mode
                info.extra = extra
                z.writestr(info, content)
make('deflated', ('a', b'x' * 1000), mode=zipfile.ZIP_DEFLATED)
make('comment', ('a', b'x'), comment=b'hello')
make('extra', ('a', b'x'), extra=b'\x01\x00\x04\x00abcd')
make('twice', ('a', b'x'), ('a', b'y'))
make('order', ('b', b'x'), ('a', b'y'))
make('dated', ('a', b'x'), date=(2020, 1, 1, 0, 0, 0))
make('climbing', ('../a', b'x'))
make('absolute', ('/a', b'x'))
make('capitals', ('A', b'x'))
make('bomb', ('a', b'\0' * 50_000_000), mode=zipfile.ZIP_DEFLATED)
make('prefixed', ('a', b'x'), prefix=b'#!/bin/sh\n')
";
    let told = Command::new("python3")
        .args(["-c", program])
        .arg(folder.path())
        .output();
    let told = told.unwrap();
    assert!(
        told.status.success(),
        "{}",
        String::from_utf8_lossy(&told.stderr)
    );
    let mut seen = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let refused = Archive::parse(&std::fs::read(&path).unwrap()).map(|_| ());
        assert!(refused.is_err(), "{} was read", path.display());
        seen += 1;
    }
    assert_eq!(seen, 11);
}

#[test]
fn no_byte_is_outside() {
    let file = write_archive(&members()).unwrap();
    for place in 0..file.len() {
        for bit in 0..8 {
            let mut changed = file.clone();
            changed[place] ^= 1 << bit;
            assert!(Archive::parse(&changed).is_err(), "byte {place}, bit {bit}");
        }
    }
    // Something between the members and the directory, which the end then points behind.
    let end = file.len() - 22;
    let start = u32::from_le_bytes(file[end + 16..end + 20].try_into().unwrap());
    let at = usize::try_from(start).unwrap();
    let mut hidden = [&file[..at], b"hidden", &file[at..]].concat();
    let end = hidden.len() - 22;
    hidden[end + 16..end + 20].copy_from_slice(&(start + 6).to_le_bytes());
    assert_eq!(
        Archive::parse(&hidden),
        Err(ArchiveError::Form {
            what: "end of the members",
            offset: at
        })
    );
}

#[test]
fn names_are_plain() {
    for name in [
        "",
        "a/",
        "/a",
        "a//b",
        ".",
        "..",
        "a/../b",
        "A",
        "a b",
        "a\\b",
        "ä",
        "a\0",
        &"a".repeat(129),
    ] {
        let members = BTreeMap::from([(name.to_owned(), Vec::new())]);
        assert!(
            matches!(write_archive(&members), Err(ArchiveError::Name { .. })),
            "{name:?}"
        );
    }
}
