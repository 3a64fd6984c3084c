//! The view before a merge, read from a provider and compared.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use caretaker::approve::{Binding, MergeMethod};
use caretaker::change::RepoPath;
use caretaker::connector::{Connector as _, ConnectorError};
use caretaker::reconcile::{Comparison, Demands, LiveView, compare};
use serde_json::json;

use super::provider::{NOW, Provider, json};
use super::world::{Files, World, files, oid};

pub(super) const FILE: u32 = 0o100_644;
pub(super) const PROGRAM: u32 = 0o100_755;
pub(super) const LINK: u32 = 0o120_000;
const SUBMODULE: u32 = 0o160_000;

pub(super) fn before() -> Files {
    files(&[
        ("README", FILE, "read me"),
        ("src/a.rs", FILE, "a"),
        ("src/deep/er/b.rs", FILE, "b"),
        ("tools/run", FILE, "run"),
        (
            "vendor/lib",
            SUBMODULE,
            "1111111111111111111111111111111111111111",
        ),
        ("was/file", FILE, "x"),
    ])
}

/// One of each: added, changed, removed, mode alone, file to link, submodule, file to directory, directory to file.
pub(super) fn after() -> Files {
    files(&[
        ("README", FILE, "read me"),
        ("src/a.rs", FILE, "a, mended"),
        ("src/new/ä b#?.rs", FILE, "new"),
        ("src/deep", LINK, "a.rs"),
        ("tools/run", PROGRAM, "run"),
        (
            "vendor/lib",
            SUBMODULE,
            "2222222222222222222222222222222222222222",
        ),
        ("was/file/now/directory", FILE, "x"),
    ])
}

pub(super) async fn live(
    world: &Arc<World>,
    binding: &Binding,
) -> Result<LiveView, ConnectorError> {
    world.serve().await.connector().live(binding).await
}

pub(super) fn compared(binding: &Binding, live: &LiveView) -> Comparison {
    let demands = Demands {
        required_checks: &[],
        allow_no_checks: false,
        predicted: Some(&live.entries.clone()),
    };
    compare(binding, live, &demands, NOW)
}

pub(super) fn blocked_by(binding: &Binding, live: &LiveView) -> Vec<String> {
    match compared(binding, live) {
        Comparison::Blocked(differences) => differences.into_iter().map(|it| it.rule).collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_honest_pull_request_matches_what_was_approved() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let view = live(&world, &binding).await.unwrap();
    let facts = world.facts();
    assert_eq!(view.entries, world.change_set(facts.base, facts.head));
    assert_eq!(view.entries.count(), 8);
    assert_eq!(view.base_tip, oid(facts.base));
    assert_eq!(view.path_conflicts, Vec::<RepoPath>::new());
    assert_eq!(view.allowed_methods, ["merge", "squash", "rebase"]);
    let comparison = compared(&binding, &view);
    assert!(
        matches!(comparison, Comparison::Matched(_)),
        "{comparison:?}"
    );
}

#[tokio::test]
async fn only_directories_that_differ_are_read() {
    let mut before = before();
    for n in 0..50 {
        before.insert(format!("untouched{n}/file"), (FILE, "same".to_owned()));
    }
    let mut after = before.clone();
    after.insert("src/a.rs".to_owned(), (FILE, "mended".to_owned()));
    let world = World::new(&before, &after);
    let provider = world.serve().await;
    let binding = world.binding(MergeMethod::Squash);
    provider.connector().live(&binding).await.unwrap();
    let asked = provider.asked();
    let trees = asked
        .iter()
        .filter(|it| it.tail().starts_with("/git/trees/"));
    // Root and src, before and after; the base tip's trees are those of the merge base.
    assert_eq!(trees.count(), 4);
    assert!(
        asked
            .iter()
            .all(|it| it.method == "GET" && it.query("recursive").is_none())
    );
}

#[tokio::test]
async fn the_protocol_reads_in_its_order_and_the_head_again_at_the_end() {
    let world = World::new(&before(), &after());
    let provider = world.serve().await;
    provider
        .connector()
        .live(&world.binding(MergeMethod::Squash))
        .await
        .unwrap();
    let asked: Vec<_> = provider
        .asked()
        .iter()
        .map(|it| it.tail().to_owned())
        .collect();
    let first = |what: &str| {
        asked
            .iter()
            .position(|tail| tail.starts_with(what))
            .unwrap()
    };
    let last = |what: &str| {
        asked
            .iter()
            .rposition(|tail| tail.as_str() == what)
            .unwrap()
    };
    let order = [
        first("/pulls/7"),
        first("/git/ref/"),
        first("/compare/"),
        first("/git/trees/"),
        last("/pulls/7/files"),
        last("/pulls/7"),
        first("/commits/"),
        first("/rules/"),
    ];
    assert!(order.is_sorted(), "{order:?} in {asked:?}");
}

#[tokio::test]
async fn a_base_that_moved_elsewhere_matches_and_one_that_moved_here_does_not() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let start = world.facts().base;
    let mut elsewhere = before();
    elsewhere.insert("README".to_owned(), (FILE, "read me too".to_owned()));
    let moved = world.commit(&elsewhere, &[start], "elsewhere");
    world.change(|facts| facts.base = moved);
    let view = live(&world, &binding).await.unwrap();
    assert!(matches!(compared(&binding, &view), Comparison::Matched(_)));

    let mut here = elsewhere;
    here.insert("src/a.rs".to_owned(), (FILE, "a, elsewhere".to_owned()));
    let moved = world.commit(&here, &[moved], "here");
    world.change(|facts| facts.base = moved);
    let view = live(&world, &binding).await.unwrap();
    // Break it: fill `base_sides` from the merge base in live.rs; this then fails.
    assert_eq!(blocked_by(&binding, &view), ["pre-image"]);
}

#[tokio::test]
async fn files_and_directories_in_each_others_place_are_conflicts() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let start = world.facts().base;
    let mut base = before();
    base.insert("src/deep/er/c.rs".to_owned(), (FILE, "kept".to_owned()));
    base.insert("src/new".to_owned(), (FILE, "in the way".to_owned()));
    let moved = world.commit(&base, &[start], "in the way");
    world.change(|facts| facts.base = moved);
    let view = live(&world, &binding).await.unwrap();
    let conflicts: Vec<_> = view
        .path_conflicts
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(conflicts, ["src/deep", "src/new/ä b#?.rs"]);
    assert!(blocked_by(&binding, &view).contains(&"path-conflict".to_owned()));
}

#[tokio::test]
async fn a_push_between_files_and_the_second_look_is_seen() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let moved = world.commit(&before(), &[world.facts().base], "other");
    let looks = AtomicUsize::new(0);
    world.answer_instead(move |world, asked| {
        if asked.tail() == "/pulls/7" && looks.fetch_add(1, Ordering::SeqCst) == 1 {
            world.change(|facts| facts.head = moved);
        }
        None
    });
    let view = live(&world, &binding).await.unwrap();
    assert_eq!(view.pull.head_commit, binding.head_commit);
    let rules = blocked_by(&binding, &view);
    assert!(
        rules.contains(&"head-commit-after-list".to_owned()),
        "{rules:?}"
    );
}

#[tokio::test]
async fn a_retarget_between_the_two_looks_is_seen() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let looks = AtomicUsize::new(0);
    world.answer_instead(move |world, asked| {
        if asked.tail() == "/pulls/7" && looks.fetch_add(1, Ordering::SeqCst) == 1 {
            let base = json!({"ref": "release", "repo": {"id": 42}});
            world.change(|facts| facts.pull = json!({"base": base}));
        }
        None
    });
    let view = live(&world, &binding).await.unwrap();
    assert_eq!(blocked_by(&binding, &view), ["base-branch"]);
}

#[tokio::test]
async fn flags_words_and_numbers_of_the_pull_request_are_passed_on() {
    let cases = [
        (json!({"draft": true}), "pull-request-draft"),
        (json!({"state": "closed"}), "pull-request-open"),
        (json!({"stack": {"id": 1}}), "pull-request-stacked"),
        (
            json!({"auto_merge": {"merge_method": "squash"}}),
            "auto-merge",
        ),
        (json!({"commits": 2}), "commits"),
        (json!({"changed_files": 9}), "listed-file-count"),
        (json!({"mergeable": false}), "mergeable"),
    ];
    for (members, rule) in cases {
        let world = World::new(&before(), &after());
        let binding = world.binding(MergeMethod::Squash);
        world.change(|facts| facts.pull = members);
        let view = live(&world, &binding).await.unwrap();
        assert_eq!(blocked_by(&binding, &view), [rule]);
    }
}

#[tokio::test]
async fn a_deleted_fork_or_another_repository_behind_the_name_blocks() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let head =
        json!({"ref": "caretaker/fix", "sha": binding.head_commit.to_string(), "repo": null});
    world.change(|facts| facts.pull = json!({"head": head}));
    let view = live(&world, &binding).await.unwrap();
    assert_eq!(blocked_by(&binding, &view), ["head-repository"]);
    world.change(|facts| {
        facts.pull = json!({});
        facts.repository = json!({"id": 43});
    });
    let error = live(&world, &binding).await.unwrap_err();
    assert!(error.to_string().contains("does not belong"), "{error}");
}

#[tokio::test]
async fn missing_answers_and_members_that_matter_are_errors() {
    for member in [
        "state",
        "head",
        "base",
        "commits",
        "changed_files",
        "number",
    ] {
        let world = World::new(&before(), &after());
        let binding = world.binding(MergeMethod::Squash);
        world.change(|facts| facts.pull = json!({member: null}));
        let error = live(&world, &binding).await.unwrap_err();
        assert!(!error.is_transient(), "{member}: {error}");
    }
}

#[tokio::test]
async fn names_that_are_not_utf8_are_refused_with_that_reason() {
    let world = World::new(&before(), &after());
    let base = world.commit_raw(b"caf\xe9", "x", &[]);
    let head = world.commit_raw(b"caf\xe8", "x", &[base]);
    let binding = world.binding(MergeMethod::Squash);
    world.change(|facts| (facts.base, facts.head) = (base, head));
    let error = live(&world, &binding).await.unwrap_err();
    assert!(error.to_string().contains("not UTF-8"), "{error}");
}

#[tokio::test]
async fn a_hundred_and_one_files_are_read_in_two_pages() {
    let mut after = before();
    for n in 0..101 {
        after.insert(format!("many/{n}"), (FILE, n.to_string()));
    }
    let world = World::new(&before(), &after);
    let binding = world.binding(MergeMethod::Squash);
    let view = live(&world, &binding).await.unwrap();
    assert_eq!(view.files.len(), 101);
    assert!(matches!(compared(&binding, &view), Comparison::Matched(_)));
}

#[tokio::test]
async fn more_entries_than_are_compared_are_an_error_not_a_cut() {
    let mut after = before();
    for n in 0..3_001 {
        after.insert(format!("many/{n}"), (FILE, "x".to_owned()));
    }
    let world = World::new(&before(), &after);
    let error = live(&world, &world.binding(MergeMethod::Squash))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("more than 3000 paths"),
        "{error}"
    );
}

#[tokio::test]
async fn unrelated_histories_and_a_missing_base_are_errors() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let alone = world.commit(&after(), &[], "another root");
    world.change(|facts| facts.base = alone);
    let error = live(&world, &binding).await.unwrap_err();
    assert!(error.to_string().contains("no common ancestor"), "{error}");
    let mut binding = binding;
    binding.base_ref = "gone".to_owned();
    let error = live(&world, &binding).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Absent { .. }), "{error}");
}

/// A provider is not even asked for a branch whose name would reach elsewhere.
#[tokio::test]
async fn a_base_name_that_is_no_branch_name_is_not_asked_for() {
    let provider = Provider::start(|_| json(200, &json!({}))).await;
    for name in [
        "",
        "a/../../../user",
        "a..b",
        "a b",
        "a//b",
        "a?x",
        "/a",
        ".a",
        "a.lock",
        "a\\b",
        "@",
    ] {
        provider.connector().branch(name).await.unwrap_err();
    }
    assert_eq!(provider.count("GET"), 0);
}
