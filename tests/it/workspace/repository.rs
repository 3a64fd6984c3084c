//! Opening repositories, names, merge bases, commits and branches.

use caretaker::change::{ChangeSet, Mode, Oid};
use caretaker::clock::Millis;
use caretaker::gate::{Cleared, Measured, Rules, RulesDocument, evaluate};
use caretaker::workspace::{Identity, Resolved, TrustedRepository, open_read_only};

use super::{Bench, files, git, path};

#[test]
fn a_trusted_repository_is_bare_without_hooks_and_opens_again() {
    let bench = Bench::new();
    let place = bench.repository.path();
    assert!(place.join("HEAD").exists() && !place.join(".git").exists());
    assert!(!place.join("hooks").join("pre-push.sample").exists());
    TrustedRepository::open_or_create(place).unwrap();
}

#[test]
fn of_many_that_make_one_repository_at_once_each_opens_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("deep/project.git");
    let barrier = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                TrustedRepository::open_or_create(&place).unwrap();
            });
        }
    });
    let left = std::fs::read_dir(place.parent().unwrap()).unwrap();
    assert_eq!(left.count(), 1, "nothing unfinished is left");
}

#[test]
fn what_is_no_bare_repository_is_not_taken_for_one() {
    let place = tempfile::tempdir().unwrap();
    git(place.path(), &["init", "-q"], b"", &[]);
    let error = TrustedRepository::open_or_create(place.path()).unwrap_err();
    assert!(
        error.to_string().contains("opening the git repository"),
        "{error}"
    );

    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("a file"), "x").unwrap();
    TrustedRepository::open_or_create(other.path()).unwrap_err();
    assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 1);

    let sha256 = tempfile::tempdir().unwrap();
    git(
        sha256.path(),
        &["init", "-q", "--bare", "--object-format=sha256"],
        b"",
        &[],
    );
    let error = open_read_only(sha256.path()).unwrap_err().to_string();
    assert!(error.contains("SHA-1"), "{error}");

    let error = open_read_only(&other.path().join("absent")).unwrap_err();
    assert!(error.to_string().contains("no git repository"), "{error}");
}

#[test]
fn names_are_branches_tags_remote_branches_and_complete_ids() {
    let bench = Bench::new();
    let tree = bench.tree(&files(&[("a", Mode::Regular, "a")]));
    let (one, two) = (bench.commit(tree, &[]), {
        let tree = bench.tree(&files(&[("a", Mode::Regular, "b")]));
        bench.commit(tree, &[])
    });
    bench.git(&["update-ref", "refs/heads/main", &one.to_string()], b"");
    bench.git(
        &["update-ref", "refs/remotes/origin/main", &two.to_string()],
        b"",
    );
    bench.git(&["update-ref", "refs/hidden/x", &two.to_string()], b"");
    bench.git(&["tag", "-a", "-m", "t", "v1", &two.to_string()], b"");
    bench.git(&["tag", "both", &two.to_string()], b"");
    bench.git(&["update-ref", "refs/heads/both", &one.to_string()], b"");
    let resolve = |name: &str| bench.repository.resolve(name);
    assert_eq!(resolve("main").unwrap(), Resolved::Commit(one));
    assert_eq!(resolve("refs/heads/main").unwrap(), Resolved::Commit(one));
    assert_eq!(resolve("origin/main").unwrap(), Resolved::Commit(two));
    assert_eq!(resolve("v1").unwrap(), Resolved::Commit(two));
    assert_eq!(resolve(&tree.to_string()).unwrap(), Resolved::Tree(tree));
    let abbreviated = one.to_string()[..10].to_owned();
    for (name, reason) in [
        ("both", "ambiguous"),
        (abbreviated.as_str(), "abbreviated"),
        ("HEAD", "no branch, tag or remote branch"),
        ("main~1", "no such reference name"),
        ("main@{1}", "no such reference name"),
        ("../../refs/hidden/x", "no such reference name"),
        ("refs/hidden/x", "no branch, tag"),
        ("", "no such reference name"),
        ("a\0b", "no such reference name"),
    ] {
        let error = resolve(name).unwrap_err().to_string();
        assert!(error.contains(reason), "{name:?}: {error} lacks {reason}");
    }
}

#[test]
fn a_change_is_measured_from_the_merge_base() {
    let bench = Bench::new();
    let tree = |text: &str| bench.tree(&files(&[("a", Mode::Regular, text)]));
    let root = bench.commit(tree("0"), &[]);
    let ours = bench.commit(tree("1"), &[root]);
    let theirs = bench.commit(tree("2"), &[root]);
    assert_eq!(bench.repository.merge_base(ours, theirs).unwrap(), root);
    let change = bench
        .repository
        .change_between(&ours.to_string(), &theirs.to_string())
        .unwrap();
    assert_eq!(change, bench.repository.change_set(root, theirs).unwrap());

    let stranger = bench.commit(tree("3"), &[]);
    let error = bench.repository.merge_base(ours, stranger).unwrap_err();
    assert!(error.to_string().contains("unrelated"), "{error}");

    // A criss-cross: both sides merged the other, so that there are two bases and none describes the change.
    let one = bench.commit(tree("4"), &[ours, theirs]);
    let two = bench.commit(tree("5"), &[theirs, ours]);
    let error = bench.repository.merge_base(one, two).unwrap_err();
    assert!(error.to_string().contains("2 of them"), "{error}");
}

fn cleared(change: &ChangeSet) -> Cleared {
    let rules = Rules::compile(RulesDocument::default(), b"").unwrap();
    let decision = evaluate(&rules, &Measured::nothing_but(change));
    decision.cleared(change).unwrap()
}

fn author() -> Identity {
    Identity {
        name: "caretaker".to_owned(),
        email: "caretaker@example.org".to_owned(),
    }
}

struct Fix {
    bench: Bench,
    parent: Oid,
    tree: Oid,
    cleared: Cleared,
}

fn fix() -> Fix {
    let bench = Bench::new();
    let tree = |text: &str| bench.tree(&files(&[("src/a.rs", Mode::Regular, text)]));
    let (old, new) = (tree("old"), tree("new"));
    let parent = bench.commit(old, &[]);
    let cleared = cleared(&bench.repository.change_set(old, new).unwrap());
    Fix {
        parent,
        tree: new,
        cleared,
        bench,
    }
}

#[test]
fn a_cleared_change_becomes_one_commit_that_git_accepts() {
    let fix = fix();
    let write = |message: &str| {
        let time = Millis(1_700_000_000_999);
        let repository = &fix.bench.repository;
        repository.commit(&fix.cleared, fix.tree, fix.parent, &author(), message, time)
    };
    let commit = write("Fix it\n\nCaretaker-Proposal: x").unwrap();
    assert_eq!(write("Fix it\n\nCaretaker-Proposal: x").unwrap(), commit);
    let shown = fix
        .bench
        .git(&["cat-file", "commit", &commit.to_string()], b"");
    let who = "caretaker <caretaker@example.org> 1700000000 +0000";
    assert_eq!(
        String::from_utf8(shown).unwrap(),
        format!(
            "tree {}\nparent {}\nauthor {who}\ncommitter {who}\n\nFix it\n\nCaretaker-Proposal: x\n",
            fix.tree, fix.parent
        )
    );
    fix.bench.git(&["fsck", "--strict", "--no-dangling"], b"");
    for message in ["", " \n", "a\0b"] {
        write(message).unwrap_err();
    }
}

// Break it: leave the comparison with `cleared.change()` out of `TrustedRepository::commit`.
#[test]
fn another_change_than_the_cleared_one_is_not_committed() {
    let fix = fix();
    let other = fix.bench.tree(&files(&[("src/b.rs", Mode::Regular, "x")]));
    let error = fix
        .bench
        .repository
        .commit(&fix.cleared, other, fix.parent, &author(), "m", Millis(0))
        .unwrap_err();
    assert!(
        error.to_string().contains("cleared another change"),
        "{error}"
    );
}

#[test]
fn an_author_that_git_would_rewrite_is_refused() {
    let fix = fix();
    for (name, email) in [
        ("", "a@b"),
        ("a", ""),
        ("a <x>", "a@b"),
        ("a\nauthor b", "a@b"),
        ("a", "a@b> 0"),
        (" a", "a@b"),
    ] {
        let author = Identity {
            name: name.to_owned(),
            email: email.to_owned(),
        };
        let repository = &fix.bench.repository;
        repository
            .commit(&fix.cleared, fix.tree, fix.parent, &author, "m", Millis(0))
            .unwrap_err();
    }
}

#[test]
fn only_branches_of_fixes_are_written_and_removed() {
    let fix = fix();
    let (repository, branch) = (&fix.bench.repository, "caretaker/0000-1");
    repository.write_branch(branch, fix.parent).unwrap();
    repository.write_branch(branch, fix.parent).unwrap();
    assert_eq!(repository.branch(branch).unwrap(), Some(fix.parent));
    repository.delete_branch(branch).unwrap();
    repository.delete_branch(branch).unwrap();
    assert_eq!(repository.branch(branch).unwrap(), None);
    for name in [
        "main",
        "caretaker/",
        "caretaker/../main",
        "caretaker/a b",
        "caretaker/a\0",
    ] {
        repository.write_branch(name, fix.parent).unwrap_err();
        repository.delete_branch(name).unwrap_err();
    }
}

#[test]
fn files_are_read_by_commit_and_path_within_a_limit_and_links_are_not_followed() {
    let bench = Bench::new();
    let tree = bench.tree(&files(&[
        ("dir/file", Mode::Regular, "12345"),
        ("link", Mode::Symlink, "dir/file"),
    ]));
    let commit = bench.commit(tree, &[]);
    let read = |name: &str, cap| bench.repository.read_file(commit, &path(name), cap);
    assert_eq!(read("dir/file", 5).unwrap().unwrap(), b"12345");
    assert_eq!(read("dir", 5).unwrap(), None);
    assert_eq!(read("dir/file/x", 5).unwrap(), None);
    assert!(
        read("dir/file", 4)
            .unwrap_err()
            .to_string()
            .contains("4 bytes")
    );
    assert!(
        read("link", 9)
            .unwrap_err()
            .to_string()
            .contains("symbolic link")
    );
}
