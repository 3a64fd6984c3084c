//! Change sets from tree objects: the golden vector, agreement with git, and objects made to mislead.

use std::collections::BTreeMap;

use caretaker::change::{ChangeSet, FileChange, Mode, ObjectFormat, Oid, RepoPath, Side};
use proptest::prelude::*;

use super::{Bench, Files, files, oid, path};
use crate::support;

/// One level of a tree that is made by `git mktree --missing`.
#[derive(Default)]
struct Level {
    leaves: Vec<(Vec<u8>, String, String)>,
    below: BTreeMap<Vec<u8>, Self>,
}

impl Level {
    fn add(&mut self, path: &[u8], mode: &str, oid: &str) {
        match path.iter().position(|byte| *byte == b'/') {
            Some(slash) => {
                let below = self.below.entry(path[..slash].to_vec()).or_default();
                below.add(&path[slash + 1..], mode, oid);
            }
            None => self
                .leaves
                .push((path.to_vec(), mode.to_owned(), oid.to_owned())),
        }
    }

    fn write(&self, bench: &Bench) -> Oid {
        let mut listing = Vec::new();
        let mut line = |mode: &str, kind: &str, oid: &str, name: &[u8]| {
            listing.extend_from_slice(format!("{mode} {kind} {oid}\t").as_bytes());
            listing.extend_from_slice(name);
            listing.push(0);
        };
        for (name, mode, oid) in &self.leaves {
            let kind = if mode == "160000" { "commit" } else { "blob" };
            line(mode, kind, oid, name);
        }
        for (name, level) in &self.below {
            line("040000", "tree", &level.write(bench).to_string(), name);
        }
        bench.git_oid(&["mktree", "-z", "--missing"], &listing)
    }
}

#[test]
fn the_golden_trees_give_the_golden_digest() {
    let Some(text) = support::corpus("github/change-cases.json") else {
        return;
    };
    let golden: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let bench = Bench::new();
    let (mut old, mut new) = (Level::default(), Level::default());
    for entry in golden["entries"].as_array().unwrap() {
        let member = |name: &str| entry[name].as_str().unwrap();
        let path = hex::decode(member("path_hex")).unwrap();
        if member("old_mode") != "000000" {
            old.add(&path, member("old_mode"), member("old_oid"));
        }
        if member("new_mode") != "000000" {
            new.add(&path, member("new_mode"), member("new_oid"));
        }
    }
    let (base, head) = (old.write(&bench), new.write(&bench));
    let change = bench
        .repository
        .change_between(&base.to_string(), &head.to_string())
        .unwrap();
    assert_eq!(
        change.digest().to_string(),
        golden["change_digest"].as_str().unwrap()
    );
    assert_eq!(
        bench
            .repository
            .change_set(base, base)
            .unwrap()
            .digest()
            .to_string(),
        golden["empty_change_digest"].as_str().unwrap()
    );
    // The same through the command, as a person or a script would ask for it.
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_caretaker"))
        .args(["change", "digest", "--json", "--repo"])
        .arg(bench.repository.path())
        .args([base.to_string(), head.to_string()])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["digest"], golden["change_digest"]);
    assert_eq!(
        document["count"],
        golden["entries"].as_array().unwrap().len()
    );
    // Its blobs are missing, so that nothing can be said about lines.
    assert_eq!(bench.repository.measure(&change).unwrap().lines, None);
}

/// What `git diff-tree` says, as a change set.
fn of_git(bench: &Bench, base: Oid, head: Oid) -> ChangeSet {
    let printed = bench.git(
        &[
            "--no-replace-objects",
            "diff-tree",
            "-r",
            "-z",
            "--no-renames",
            "--no-abbrev",
            "--ignore-submodules=none",
            &base.to_string(),
            &head.to_string(),
        ],
        b"",
    );
    let mut fields = printed.split(|byte| *byte == 0);
    let mut entries = Vec::new();
    while let (Some(header), Some(path)) = (fields.next(), fields.next()) {
        let header = std::str::from_utf8(header).unwrap();
        let words: Vec<&str> = header.trim_start_matches(':').split(' ').collect();
        let side = |mode: &str, oid: &str| Side {
            mode: mode.parse().unwrap(),
            oid: oid.parse().unwrap(),
        };
        entries.push(FileChange {
            path: RepoPath::from_bytes(path).unwrap(),
            old: side(words[0], words[2]),
            new: side(words[1], words[3]),
        });
    }
    ChangeSet::new(ObjectFormat::Sha1, entries).unwrap()
}

fn any_files() -> impl Strategy<Value = Files> {
    let component = prop_oneof![
        Just(b"a".to_vec()),
        Just(b"a.b".to_vec()),
        Just(b"A".to_vec()),
        Just(b"b ".to_vec()),
        Just(b"\xff\n\"".to_vec()),
        Just("ü".as_bytes().to_vec()),
    ];
    let path = prop::collection::vec(component, 1..4).prop_map(|parts| parts.join(&b'/'));
    let content = (
        prop::sample::select(vec![
            Mode::Regular,
            Mode::Executable,
            Mode::Symlink,
            Mode::Gitlink,
        ]),
        prop::sample::select(vec!["one", "two", "three\n"]),
    );
    prop::collection::btree_map(path, content, 0..7).prop_map(|map| {
        let mut kept = Files::new();
        for (path, (mode, text)) in map {
            let inside = |other: &Vec<u8>| {
                path.starts_with(&[other.as_slice(), b"/"].concat())
                    || other.starts_with(&[path.as_slice(), b"/"].concat())
            };
            if kept.keys().any(inside) {
                continue;
            }
            let bytes = if mode == Mode::Gitlink {
                let digit = if text == "one" { "1" } else { "2" };
                digit.repeat(40).into_bytes()
            } else {
                text.as_bytes().to_vec()
            };
            kept.insert(path, (mode, bytes));
        }
        kept
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    // Break it: in `Walk::compare_nodes`, recurse only when both sides are directories.
    #[test]
    fn the_change_set_is_what_git_diff_tree_prints(old in any_files(), new in any_files()) {
        let bench = Bench::new();
        let (base, head) = (bench.tree(&old), bench.tree(&new));
        let change = bench.repository.change_set(base, head).unwrap();
        prop_assert_eq!(&change, &of_git(&bench, base, head));
        let tracked = bench.repository.tracked_paths(head).unwrap();
        let expected: Vec<&[u8]> = new.keys().map(Vec::as_slice).collect();
        prop_assert_eq!(tracked.iter().map(RepoPath::as_bytes).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_mode_alone_and_a_file_turned_link_are_changes() {
    let bench = Bench::new();
    let old = bench.tree(&files(&[
        ("run.sh", Mode::Regular, "target"),
        ("tolink", Mode::Regular, "target"),
    ]));
    let new = bench.tree(&files(&[
        ("run.sh", Mode::Executable, "target"),
        ("tolink", Mode::Symlink, "target"),
    ]));
    let change = bench.repository.change_set(old, new).unwrap();
    assert_eq!(change, of_git(&bench, old, new));
    let modes: Vec<(Mode, Mode, bool)> = change
        .entries()
        .iter()
        .map(|entry| {
            let same = entry.old.oid == entry.new.oid;
            (entry.old.mode, entry.new.mode, same)
        })
        .collect();
    assert_eq!(
        modes,
        [
            (Mode::Regular, Mode::Executable, true),
            (Mode::Regular, Mode::Symlink, true)
        ]
    );
}

// Break it: in `Walk::compare_nodes`, let `leaf` give `absent` for the mode `Gitlink`.
#[test]
fn a_submodule_that_gitmodules_hides_is_still_seen() {
    let bench = Bench::new();
    let hidden =
        "[submodule \"sub\"]\n\tpath = sub\n\turl = https://example.org/sub\n\tignore = all\n";
    let tree = |commit: &str| {
        bench.tree(&files(&[
            (".gitmodules", Mode::Regular, hidden),
            ("sub", Mode::Gitlink, &commit.repeat(40)),
        ]))
    };
    let (old, new) = (tree("1"), tree("2"));
    bench.git(&["config", "diff.ignoreSubmodules", "all"], b"");
    bench.git(&["config", "submodule.sub.ignore", "all"], b"");
    let change = bench.repository.change_set(old, new).unwrap();
    assert_eq!(change.paths().collect::<Vec<_>>(), [&path("sub")]);
}

#[test]
fn replacement_objects_and_grafts_have_no_say() {
    let bench = Bench::new();
    let text = |text: &str| bench.tree(&files(&[("a", Mode::Regular, text)]));
    let (old, new, decoy) = (text("old"), text("new"), text("decoy"));
    let root = bench.commit(old, &[]);
    let head = bench.commit(new, &[root]);
    let false_head = bench.commit(decoy, &[]);
    bench.git(
        &["replace", &head.to_string(), &false_head.to_string()],
        b"",
    );
    let change = bench
        .repository
        .change_between(&root.to_string(), &head.to_string())
        .unwrap();
    assert_eq!(change, of_git(&bench, old, new));
    assert_eq!(bench.repository.commit_tree(head).unwrap(), new);
    bench.git(&["replace", &new.to_string(), &old.to_string()], b"");
    assert_eq!(bench.repository.change_set(old, new).unwrap(), change);

    std::fs::create_dir_all(bench.repository.path().join("info")).unwrap();
    std::fs::write(
        bench.repository.path().join("info/grafts"),
        format!("{head}\n"),
    )
    .unwrap();
    let error = caretaker::workspace::open_read_only(bench.repository.path()).unwrap_err();
    assert!(
        error.to_string().contains("rewrites its history"),
        "{error}"
    );
}

/// Writes a tree object as it is, which git would refuse to make.
fn raw_tree(bench: &Bench, entries: &[(&str, &str, Oid)]) -> Oid {
    let mut data = Vec::new();
    for (mode, name, oid) in entries {
        data.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        data.extend_from_slice(oid.as_bytes());
    }
    oid(&bench.git(
        &["hash-object", "-t", "tree", "-w", "--literally", "--stdin"],
        &data,
    ))
}

#[test]
fn trees_that_two_programs_could_read_differently_are_refused() {
    let bench = Bench::new();
    let blob = bench.git_oid(&["hash-object", "-w", "--stdin"], b"x");
    let empty = bench.tree(&Files::new());
    let zero = Oid::zero(ObjectFormat::Sha1);
    for (entries, reason) in [
        (
            vec![("100644", "a", blob), ("100644", "a", blob)],
            "listed twice",
        ),
        (
            vec![("100644", "b", blob), ("100644", "a", blob)],
            "out of order",
        ),
        (
            vec![
                ("100644", "a", blob),
                ("100644", "a.b", blob),
                ("40000", "a", empty),
            ],
            "both as file and as directory",
        ),
        (vec![("100664", "a", blob)], "mode 100664"),
        (vec![("0100644", "a", blob)], "mode 0100644"),
        (vec![("040000", "a", empty)], "mode 040000"),
        (vec![("100644", "a/b", blob)], "slash"),
        (vec![("100644", ".GIT", blob)], ".git"),
        (vec![("100644", "..", blob)], ".."),
        (vec![("100644", "", blob)], "empty"),
        (vec![("100644", "a", zero)], "all-zero"),
    ] {
        let tree = raw_tree(&bench, &entries);
        let error = bench
            .repository
            .change_set(empty, tree)
            .unwrap_err()
            .to_string();
        assert!(error.contains(reason), "{error} lacks {reason}");
    }
}

// Break it: raise `TREE_READS` without bound; this then runs for hours.
#[test]
fn a_tree_that_contains_itself_many_times_over_is_refused_in_bounded_time() {
    let bench = Bench::new();
    let empty = bench.tree(&Files::new());
    let mut tree = empty;
    let names: Vec<String> = ('a'..='p').map(String::from).collect();
    for _ in 0..12 {
        let entries: Vec<(&str, &str, Oid)> = names
            .iter()
            .map(|name| ("40000", name.as_str(), tree))
            .collect();
        tree = raw_tree(&bench, &entries);
    }
    let error = bench
        .repository
        .change_set(empty, tree)
        .unwrap_err()
        .to_string();
    assert!(error.contains("directories"), "{error}");
}

#[test]
fn a_missing_object_is_named() {
    let bench = Bench::new();
    let missing: Oid = "1".repeat(40).parse().unwrap();
    let blob = bench.git_oid(&["hash-object", "-w", "--stdin"], b"x");
    let tree = raw_tree(&bench, &[("40000", "gone", missing)]);
    let error = bench
        .repository
        .tracked_paths(tree)
        .unwrap_err()
        .to_string();
    assert!(error.contains(&missing.to_string()), "{error}");
    let error = bench
        .repository
        .change_set(blob, tree)
        .unwrap_err()
        .to_string();
    assert!(error.contains("it is a blob"), "{error}");
    assert!(bench.repository.contains(tree) && !bench.repository.contains(missing));
}

#[test]
fn lines_and_binary_files_are_counted_within_bounds() {
    let bench = Bench::new();
    let old = bench.tree(&files(&[
        ("a.txt", Mode::Regular, "one\ntwo\nthree\n"),
        ("b.bin", Mode::Regular, "\0\x01"),
        ("mode", Mode::Regular, "same\n"),
        ("sub", Mode::Gitlink, &"1".repeat(40)),
    ]));
    let new = bench.tree(&files(&[
        ("a.txt", Mode::Regular, "one\n2\nthree\nfour\n"),
        ("b.bin", Mode::Regular, "\0\x02"),
        ("mode", Mode::Executable, "same\n"),
        ("new", Mode::Regular, "no newline"),
        ("sub", Mode::Gitlink, &"2".repeat(40)),
    ]));
    let change = bench.repository.change_set(old, new).unwrap();
    let measured = bench.repository.measure(&change).unwrap();
    assert_eq!(
        (measured.lines, measured.binary),
        (Some(3 + 1 + 2), Some(1))
    );

    let large = "x\n".repeat(3 << 20);
    let large = bench.tree(&files(&[("large", Mode::Regular, &large)]));
    let change = bench.repository.change_set(old, large).unwrap();
    assert_eq!(bench.repository.measure(&change).unwrap().lines, None);
}
