//! Scratch trees: written without a repository, read back without trust.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use caretaker::change::{Mode, Oid};
use caretaker::workspace::{Snapshot, TreeLimits, WorkspaceError};

use super::{Bench, Files, files, sources};

struct Scratch {
    bench: Bench,
    base: Oid,
    tree: PathBuf,
}

fn scratch(content: &Files) -> Scratch {
    let bench = Bench::new();
    let base = bench.tree(content);
    let tree = bench.place.path().join("scratch");
    let limits = TreeLimits::default();
    bench.repository.checkout(base, &tree, &limits).unwrap();
    Scratch { bench, base, tree }
}

impl Scratch {
    fn snapshot(&self) -> Result<Snapshot, WorkspaceError> {
        let limits = TreeLimits::default();
        self.bench
            .repository
            .snapshot(&self.tree, self.base, &limits)
    }

    fn write(&self, name: &str, bytes: &str) {
        let path = self.tree.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn refusal(&self) -> String {
        self.snapshot().unwrap_err().to_string()
    }
}

fn every_kind() -> Files {
    let mut content = files(&[
        (
            ".gitattributes",
            Mode::Regular,
            "* text eol=crlf\n*.txt filter=evil\n",
        ),
        ("a/b/run.sh", Mode::Executable, "#!/bin/sh\n"),
        ("crlf.txt", Mode::Regular, "one\r\ntwo\n"),
        ("dangling", Mode::Symlink, "no/where"),
        ("outside", Mode::Symlink, "/etc/passwd"),
        ("sub", Mode::Gitlink, &"1".repeat(40)),
        (" lead\n\"", Mode::Regular, ""),
    ]);
    content.insert(b"\xff".to_vec(), (Mode::Regular, b"\0\xff".to_vec()));
    content
}

#[test]
fn what_is_checked_out_and_not_touched_reads_back_as_the_same_tree() {
    let scratch = scratch(&every_kind());
    let snapshot = scratch.snapshot().unwrap();
    assert_eq!(snapshot.tree, scratch.base);
    assert_eq!(snapshot.changes.count(), 0);
    assert!(!scratch.tree.join(".git").exists());
    assert_eq!(
        std::fs::read(scratch.tree.join("crlf.txt")).unwrap(),
        b"one\r\ntwo\n"
    );
    assert_eq!(
        std::fs::read_link(scratch.tree.join("outside")).unwrap(),
        PathBuf::from("/etc/passwd")
    );
    assert_eq!(
        std::fs::read_dir(scratch.tree.join("sub")).unwrap().count(),
        0
    );
}

#[test]
fn edits_of_every_kind_become_the_change_set() {
    let scratch = scratch(&every_kind());
    scratch.write("new/file", "x");
    scratch.write("crlf.txt", "one\r\nthree\n");
    std::fs::remove_file(scratch.tree.join("dangling")).unwrap();
    std::fs::remove_dir(scratch.tree.join("sub")).unwrap();
    std::fs::set_permissions(
        scratch.tree.join("a/b/run.sh"),
        std::fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    std::fs::remove_file(scratch.tree.join(" lead\n\"")).unwrap();
    std::os::unix::fs::symlink("crlf.txt", scratch.tree.join(" lead\n\"")).unwrap();
    let snapshot = scratch.snapshot().unwrap();
    let modes: Vec<(String, Mode, Mode)> = snapshot
        .changes
        .entries()
        .iter()
        .map(|entry| (entry.path.to_string(), entry.old.mode, entry.new.mode))
        .collect();
    let expected = [
        (" lead\\u{a}\"", Mode::Regular, Mode::Symlink),
        ("a/b/run.sh", Mode::Executable, Mode::Regular),
        ("crlf.txt", Mode::Regular, Mode::Regular),
        ("dangling", Mode::Symlink, Mode::Absent),
        ("new/file", Mode::Absent, Mode::Regular),
        ("sub", Mode::Gitlink, Mode::Absent),
    ];
    assert_eq!(
        modes,
        expected.map(|(path, old, new)| (path.to_owned(), old, new))
    );
    let blob = snapshot.changes.entries()[2].new.oid;
    let stored = scratch
        .bench
        .git(&["cat-file", "blob", &blob.to_string()], b"");
    assert_eq!(stored, b"one\r\nthree\n");
    scratch
        .bench
        .git(&["fsck", "--strict", "--no-dangling"], b"");
}

// Break it: use `statat` without `SYMLINK_NOFOLLOW` in `Scan::entry`.
#[test]
fn links_are_kept_as_links_and_never_followed() {
    let scratch = scratch(&sources(&[("a", "x")]));
    let secret = scratch.bench.place.path().join("secret");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(secret.join("key"), "top secret").unwrap();
    std::os::unix::fs::symlink(&secret, scratch.tree.join("directory")).unwrap();
    std::os::unix::fs::symlink(secret.join("key"), scratch.tree.join("file")).unwrap();
    let snapshot = scratch.snapshot().unwrap();
    for entry in snapshot.changes.entries() {
        assert_eq!(entry.new.mode, Mode::Symlink);
        let blob = scratch
            .bench
            .repository
            .read_blob(entry.new.oid, 4096)
            .unwrap();
        assert!(blob.starts_with(secret.as_os_str().as_bytes()));
    }
    assert_eq!(snapshot.changes.count(), 2);
}

#[test]
fn the_scratch_tree_itself_must_not_be_a_link() {
    let scratch = scratch(&sources(&[("a", "x")]));
    let link = scratch.bench.place.path().join("link");
    std::os::unix::fs::symlink(&scratch.tree, &link).unwrap();
    let limits = TreeLimits::default();
    scratch
        .bench
        .repository
        .snapshot(&link, scratch.base, &limits)
        .unwrap_err();
}

#[test]
fn a_repository_inside_is_refused_by_name_in_any_spelling() {
    for name in [".git", "deep/er/.git", ".GIT", "sub/.Git"] {
        for directory in [true, false] {
            let scratch = scratch(&sources(&[("a", "x")]));
            if directory {
                scratch.write(&format!("{name}/config"), "[core]\n\tfsmonitor = evil\n");
            } else {
                scratch.write(name, "gitdir: /elsewhere\n");
            }
            let error = scratch.refusal();
            assert!(
                error.contains(name) && error.contains("repository"),
                "{error}"
            );
        }
    }
}

#[test]
fn pipes_sockets_and_hard_links_are_refused_by_name() {
    let scratch_tree = scratch(&sources(&[("a", "x")]));
    rustix::fs::mknodat(
        rustix::fs::CWD,
        scratch_tree.tree.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let error = scratch_tree.refusal();
    assert!(
        error.contains("pipe: it is a socket, pipe or device"),
        "{error}"
    );

    let scratch_tree = scratch(&sources(&[("a", "x")]));
    let socket = std::os::unix::net::UnixListener::bind(scratch_tree.tree.join("socket")).unwrap();
    assert!(scratch_tree.refusal().contains("socket"));
    drop(socket);

    let scratch_tree = scratch(&sources(&[("a", "x")]));
    let outside = scratch_tree.bench.place.path().join("outside");
    std::fs::write(&outside, "x").unwrap();
    std::fs::hard_link(&outside, scratch_tree.tree.join("linked")).unwrap();
    assert!(scratch_tree.refusal().contains("hard links"));
}

#[test]
fn content_written_into_a_submodule_is_refused() {
    let scratch = scratch(&every_kind());
    scratch.write("sub/file", "x");
    assert!(scratch.refusal().contains("submodule"));
}

// Break it: remove the line that asks `self.base.contains_key(path)` from `LeftOut::file`; tracked files then vanish.
#[test]
fn the_base_decides_what_is_ignored_and_the_agent_does_not() {
    let scratch = scratch(&files(&[
        (".gitignore", Mode::Regular, "/out/\n*.log\n!keep.log\n"),
        ("lib/.gitignore", Mode::Regular, "generated.*\n"),
        ("tracked.log", Mode::Regular, "old"),
        ("out/tracked", Mode::Regular, "old"),
    ]));
    scratch.write(".gitignore", "evil.rs\n");
    scratch.write("evil.rs", "fn main() {}");
    scratch.write("out/built", "x");
    scratch.write("out/tracked", "new");
    scratch.write("sub/out/file", "x");
    scratch.write("run.log", "x");
    scratch.write("keep.log", "x");
    scratch.write("tracked.log", "new");
    scratch.write("lib/generated.rs", "x");
    scratch.write("generated.rs", "x");
    let snapshot = scratch.snapshot().unwrap();
    let changed: Vec<String> = snapshot.changes.paths().map(ToString::to_string).collect();
    assert_eq!(
        changed,
        [
            ".gitignore",
            "evil.rs",
            "generated.rs",
            "keep.log",
            "out/tracked",
            "sub/out/file",
            "tracked.log"
        ]
    );
    let left_out: Vec<String> = snapshot.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(left_out, ["lib/generated.rs", "out/built", "run.log"]);
    assert_eq!(snapshot.left_out_count, 3);
}

#[test]
fn leftovers_of_tools_are_no_part_of_a_change_even_without_ignore_rules() {
    let scratch = scratch(&sources(&[
        ("Cargo.toml", "[package]"),
        ("pkg/a.py", "x"),
        ("target.rs", "x"),
    ]));
    scratch.write("target/debug/.git/x", "x");
    scratch.write("pkg/__pycache__/a.pyc", "x");
    scratch.write("pkg/target/kept", "x");
    scratch.write("node_modules/a/b", "x");
    let snapshot = scratch.snapshot().unwrap();
    let changed: Vec<String> = snapshot.changes.paths().map(ToString::to_string).collect();
    assert_eq!(changed, ["pkg/target/kept"]);
}

#[test]
fn limits_hold_in_both_directions() {
    let scratch = scratch(&sources(&[("a", "12345"), ("b", "x")]));
    let limits = |files, bytes| TreeLimits { files, bytes };
    let repository = &scratch.bench.repository;
    let place = scratch.bench.place.path().join("other");
    for limit in [limits(1, 100), limits(9, 5)] {
        let error = repository
            .checkout(scratch.base, &place, &limit)
            .unwrap_err();
        assert!(error.to_string().contains("more than the limit"), "{error}");
        assert!(!place.exists());
        let error = repository
            .snapshot(&scratch.tree, scratch.base, &limit)
            .unwrap_err();
        assert!(error.to_string().contains("more than the limit"), "{error}");
    }
    let mut deep = scratch.tree.clone();
    for _ in 0..200 {
        deep.push("d");
    }
    std::fs::create_dir_all(deep).unwrap();
    assert!(scratch.refusal().contains("depth"));
}

#[test]
fn a_directory_in_use_is_not_overwritten() {
    let scratch = scratch(&sources(&[("a", "x")]));
    let limits = TreeLimits::default();
    let error = scratch
        .bench
        .repository
        .checkout(scratch.base, &scratch.tree, &limits)
        .unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
    assert!(scratch.tree.join("a").exists());
}

#[test]
fn a_file_that_cannot_be_written_leaves_an_empty_directory() {
    let bench = Bench::new();
    let long = "n".repeat(300);
    let tree = bench.tree(&sources(&[("a", "x"), ("b/c", "x"), (&long, "x")]));
    let place = bench.place.path().join("scratch");
    bench
        .repository
        .checkout(tree, &place, &TreeLimits::default())
        .unwrap_err();
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
}
