//! The change digest: golden vector, totality, injectivity.

use caretaker::change::{
    ChangeDocument, ChangeSet, FileChange, Mode, ObjectFormat, Oid, RepoPath, Side,
};
use proptest::prelude::*;

use crate::support;

fn golden() -> Option<serde_json::Value> {
    support::corpus("github/change-cases.json").map(|text| serde_json::from_slice(&text).unwrap())
}

fn entry(value: &serde_json::Value) -> FileChange {
    let text = |member: &str| value[member].as_str().unwrap();
    let side = |mode: &str, oid: &str| Side {
        mode: text(mode).parse().unwrap(),
        oid: text(oid).parse().unwrap(),
    };
    FileChange {
        path: RepoPath::from_bytes(&hex::decode(text("path_hex")).unwrap()).unwrap(),
        old: side("old_mode", "old_oid"),
        new: side("new_mode", "new_oid"),
    }
}

#[test]
fn the_golden_change_set_has_the_golden_digest() {
    let Some(golden) = golden() else { return };
    let entries: Vec<FileChange> = golden["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(entry)
        .collect();
    let digest = |entries: Vec<FileChange>| {
        ChangeSet::new(ObjectFormat::Sha1, entries)
            .unwrap()
            .digest()
            .to_string()
    };
    assert_eq!(
        digest(entries.clone()),
        golden["change_digest"].as_str().unwrap()
    );
    assert_eq!(
        digest(vec![]),
        golden["empty_change_digest"].as_str().unwrap()
    );
    assert_eq!(
        digest(entries[..1].to_vec()),
        golden["first_entry_only_digest"].as_str().unwrap()
    );
}

#[test]
fn an_abbreviated_or_malformed_object_id_cannot_be_represented() {
    for text in [
        "",
        "0123456",
        &"a".repeat(39),
        &"a".repeat(41),
        &"A".repeat(40),
        &"g".repeat(40),
        &format!("{}\0", "a".repeat(39)),
    ] {
        let error = text.parse::<Oid>().unwrap_err().to_string();
        assert!(error.contains("40 or 64"), "{error}");
    }
}

#[test]
fn hostile_paths_are_refused_with_the_reason() {
    for (path, reason) in [
        (&b""[..], "empty"),
        (b"/etc/passwd", "slash"),
        (b"a//b", "empty component"),
        (b"../x", ".."),
        (b"a/./b", ". or .."),
        (b"a\0b", "NUL"),
        (b".git/config", ".git"),
        (b"sub/.GIT/hooks/x", ".git"),
        (b"dir/", "slash"),
    ] {
        let error = RepoPath::from_bytes(path).unwrap_err().to_string();
        assert!(error.contains(reason), "{error} lacks {reason}");
    }
    assert_eq!(
        RepoPath::from_bytes(b"a\x1b[31m\xe2\x80\xae\xff")
            .unwrap()
            .to_string(),
        "a\\u{1b}[31m\\u{202e}\\xff"
    );
}

prop_compose! {
    fn any_side()(mode in prop::sample::select(vec![Mode::Absent, Mode::Regular, Mode::Executable, Mode::Symlink, Mode::Gitlink]), byte in 1_u8..=255) -> Side {
        if mode == Mode::Absent { Side::absent(ObjectFormat::Sha1) } else { Side { mode, oid: Oid::from_bytes(&[byte; 20]).unwrap() } }
    }
}

// Break it: leave the old or the new mode out of `change::digest::compute`; a script that is made executable then has the
// digest of one that is not.
#[test]
fn what_differs_in_a_mode_alone_has_another_digest() {
    let side = |mode| Side {
        mode,
        oid: "a".repeat(40).parse().unwrap(),
    };
    let digest = |old, new| {
        let entry = FileChange {
            path: "run.sh".parse().unwrap(),
            old: side(old),
            new: side(new),
        };
        let set = ChangeSet::new(ObjectFormat::Sha1, vec![entry]);
        set.unwrap().digest()
    };
    let made_executable = digest(Mode::Regular, Mode::Executable);
    assert_ne!(made_executable, digest(Mode::Regular, Mode::Symlink));
    assert_ne!(made_executable, digest(Mode::Symlink, Mode::Executable));
}

fn any_entries() -> impl Strategy<Value = Vec<FileChange>> {
    prop::collection::btree_map(
        "[a-c]{1,3}(/[a-c]{1,2}){0,2}",
        (any_side(), any_side()),
        0..6,
    )
    .prop_map(|map| {
        map.into_iter()
            .filter(|(_, (old, new))| old != new)
            .map(|(path, (old, new))| FileChange {
                path: path.parse().unwrap(),
                old,
                new,
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn the_digest_does_not_depend_on_the_order_of_entries(entries in any_entries(), seed in any::<u64>()) {
        let mut shuffled = entries.clone();
        let length = shuffled.len();
        if length > 1 {
            shuffled.rotate_left(usize::try_from(seed % length as u64).unwrap());
            shuffled.swap(0, length - 1);
        }
        let digest = |entries| ChangeSet::new(ObjectFormat::Sha1, entries).unwrap().digest();
        prop_assert_eq!(digest(entries), digest(shuffled));
    }

    #[test]
    fn different_change_sets_have_different_digests(a in any_entries(), b in any_entries()) {
        let a = ChangeSet::new(ObjectFormat::Sha1, a).unwrap();
        let b = ChangeSet::new(ObjectFormat::Sha1, b).unwrap();
        prop_assert_eq!(a == b, a.digest() == b.digest());
    }

    #[test]
    fn the_document_round_trips_and_refuses_a_wrong_digest(entries in any_entries()) {
        let set = ChangeSet::new(ObjectFormat::Sha1, entries).unwrap();
        let document = ChangeDocument::from(&set);
        let text = serde_json::to_string(&document).unwrap();
        let mut read: ChangeDocument = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&ChangeSet::try_from(&read).unwrap(), &set);
        read.count += 1;
        prop_assert!(ChangeSet::try_from(&read).is_err());
    }
}
