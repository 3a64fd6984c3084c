//! The base branch moves between approval and merge. What the approved change would do there has to stay what was approved.

use caretaker::approve::MergeMethod;
use caretaker::execute::MergeAnswer;
use caretaker::forge::{FileEdit, Moment};
use caretaker::reconcile::Landing;

use super::bench::{Bench, file};

const LONG: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";

async fn bench() -> Bench {
    let before = [("src/sum.txt", file(LONG)), ("README", file("read me\n"))];
    let mended = LONG.replace("2\n3\n", "2\nthree\n");
    Bench::new(&before, &[("src/sum.txt", file(&mended))]).await
}

fn elsewhere_in_the_file() -> FileEdit {
    file(&LONG.replace("11\n", "eleven\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_to_other_files_changes_nothing() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let edit = [("README", file("read me too\n"))];
    let moved = bench.repository.commit("main", &edit, "words").unwrap();
    let proof = bench.lands(&binding).await;
    assert_eq!(proof.parent.to_string(), moved.as_str());
}

/// Git merges it without a word, and the file that results is one that nobody has seen.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_to_another_part_of_the_same_file_blocks() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let edit = [("src/sum.txt", elsewhere_in_the_file())];
    bench.repository.commit("main", &edit, "elsewhere").unwrap();
    // Break: `if false && here != entry.old` in `landing_place` of src/reconcile/compare.rs; the predicted merge still says no.
    assert_eq!(
        bench.blocked_by(&binding).await,
        ["pre-image", "predicted-merge"]
    );
    assert_eq!(bench.asked(), 0);
}

/// The same a moment later, when the comparison is done and the request is on its way: the provider pins the head alone, so it
/// merges. Then the proof says that what landed is not what was approved.
#[tokio::test(flavor = "multi_thread")]
async fn a_base_that_moves_under_the_request_is_told_by_the_proof() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let repository = bench.repository.clone();
    bench
        .forge
        .on("PUT", "/pulls/1/merge", 1, Moment::Before, move || {
            let edit = [("src/sum.txt", elsewhere_in_the_file())];
            repository.commit("main", &edit, "elsewhere").map(drop)
        });
    assert!(matches!(
        bench.merge(&binding).await,
        MergeAnswer::Merged(_)
    ));
    // Break: compare `landed.entries` with themselves in `prove` of src/reconcile/landed.rs.
    match bench.landing(&binding).await {
        Landing::Differs {
            landed,
            differences,
        } => {
            assert!(landed.ours);
            assert_eq!(differences[0].rule, "landed-change");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewound_base_blocks() {
    let bench = bench().await;
    // A second commit on main, and the fix cut from it.
    let first = bench.repository.tip("main").unwrap();
    let edit = [("LICENSE", file("free\n"))];
    let second = bench.repository.commit("main", &edit, "second").unwrap();
    let mended = file(&LONG.replace("2\n3\n", "2\nthree\n"));
    let head = bench
        .repository
        .commit_object(&[second], &[("src/sum.txt", mended)], "Mend")
        .unwrap();
    let branch = "refs/heads/caretaker/fix";
    bench.repository.force_reference(branch, &head).unwrap();
    let binding = bench.binding(MergeMethod::Squash).await;
    bench.matched(&binding).await;
    bench
        .repository
        .force_reference("refs/heads/main", &first)
        .unwrap();
    let rules = bench.blocked_by(&binding).await;
    // Merging now would bring the second commit back.
    for rule in ["merge-base", "change-digest", "commits"] {
        assert!(rules.contains(&rule.to_owned()), "{rule} in {rules:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_that_moved_the_file_into_another_directory_blocks() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let edits = [
        ("src/sum.txt", FileEdit::Remove),
        ("deploy/sum.txt", file(LONG)),
    ];
    bench
        .repository
        .commit("main", &edits, "to deploy")
        .unwrap();
    // Git would follow the rename and change deploy/sum.txt, a path that no gate has seen.
    assert_eq!(
        bench.blocked_by(&binding).await,
        ["pre-image", "predicted-merge"]
    );
}

/// The change adds a file only, and at its path nothing stands, before and after: no pre-image tells. Git moves it along with
/// the directory all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_base_that_renamed_the_whole_directory_blocks_an_added_file() {
    let before = [
        ("jobs/a.txt", file("a, with some words to be known by\n")),
        ("jobs/b.txt", file("b, with other words to be known by\n")),
        ("README", file("read me\n")),
    ];
    let bench = Bench::new(&before, &[("jobs/c.txt", file("c\n"))]).await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let edits = [
        ("jobs/a.txt", FileEdit::Remove),
        ("jobs/b.txt", FileEdit::Remove),
        ("deploy/a.txt", file("a, with some words to be known by\n")),
        ("deploy/b.txt", file("b, with other words to be known by\n")),
    ];
    bench
        .repository
        .commit("main", &edits, "jobs are deploy now")
        .unwrap();
    let rules = bench.blocked_by(&binding).await;
    // Break: drop the `match demands.predicted` in `landing_place` of src/reconcile/compare.rs.
    assert!(rules.contains(&"predicted-merge".to_owned()), "{rules:?}");
    assert!(!rules.contains(&"pre-image".to_owned()), "{rules:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_where_the_change_needs_a_directory_blocks() {
    let before = [("README", file("read me\n"))];
    let bench = Bench::new(&before, &[("tools/run.txt", file("run\n"))]).await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let edit = [("tools", file("a file\n"))];
    bench
        .repository
        .commit("main", &edit, "in the way")
        .unwrap();
    let rules = bench.blocked_by(&binding).await;
    assert!(rules.contains(&"path-conflict".to_owned()), "{rules:?}");
}

/// Head, files and every page of them stay what they were; only the base reference tells.
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_pointed_at_another_base_blocks() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let main = bench.repository.tip("main").unwrap();
    bench.repository.create_branch("release", &main).unwrap();
    bench.repository.retarget_pull(1, "release").unwrap();
    // Break: drop the comparison of `base-branch` in `pull_request` of src/reconcile/compare.rs.
    assert_eq!(bench.blocked_by(&binding).await, ["base-branch"]);
}

/// Retargeted after the comparison: the provider merges into the other branch, and the proof does not find it on ours.
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_pointed_elsewhere_under_the_request_is_told_by_the_proof() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let main = bench.repository.tip("main").unwrap();
    bench.repository.create_branch("release", &main).unwrap();
    let repository = bench.repository.clone();
    bench
        .forge
        .on("PUT", "/pulls/1/merge", 1, Moment::Before, move || {
            repository.retarget_pull(1, "release")
        });
    assert!(matches!(
        bench.merge(&binding).await,
        MergeAnswer::Merged(_)
    ));
    assert_eq!(bench.tip("main").to_string(), main.as_str());
    match bench.landing(&binding).await {
        Landing::Differs { differences, .. } => {
            let rules: Vec<_> = differences.iter().map(|it| it.rule.as_str()).collect();
            assert_eq!(rules, ["landed-on-base", "base-branch"]);
        }
        other => panic!("{other:?}"),
    }
}

/// Merged, answered, and taken off the base again before anybody looked: the provider still says that it is merged.
#[tokio::test(flavor = "multi_thread")]
async fn a_base_that_is_rewound_after_the_merge_is_told_by_the_proof() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let (repository, before) = (
        bench.repository.clone(),
        bench.repository.tip("main").unwrap(),
    );
    bench
        .forge
        .on("PUT", "/pulls/1/merge", 1, Moment::After, move || {
            repository.force_reference("refs/heads/main", &before)
        });
    assert!(matches!(
        bench.merge(&binding).await,
        MergeAnswer::Merged(_)
    ));
    match bench.landing(&binding).await {
        // Break: drop the check of `on_base` in `prove` of src/reconcile/landed.rs.
        Landing::Differs { differences, .. } => assert_eq!(differences[0].rule, "landed-on-base"),
        other => panic!("{other:?}"),
    }
}

/// The provider lets the old name lead to the new one. What was approved names the old one, and nothing follows it elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_base_branch_that_was_renamed_is_not_followed() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    bench.repository.rename_branch("main", "trunk").unwrap();
    let error = bench.live(&binding).await.unwrap_err();
    assert!(!error.is_transient(), "{error}");
    assert_eq!(bench.asked(), 0);
}
