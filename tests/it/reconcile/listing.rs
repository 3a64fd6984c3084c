//! The list of files comes in pages, is not tied to a commit, and ends without a word at 3,000.

use caretaker::approve::MergeMethod;
use caretaker::forge::{FileEdit, Moment};

use super::bench::{BRANCH, Bench, file};

fn many(count: usize) -> Vec<(String, FileEdit)> {
    let name = |n: usize| format!("many/{:02}/{n:04}.txt", n % 40);
    (0..count)
        .map(|n| (name(n), file(&format!("{n}\n"))))
        .collect()
}

async fn with(count: usize) -> Bench {
    let edits = many(count);
    let edits: Vec<_> = edits
        .iter()
        .map(|(path, edit)| (path.as_str(), edit.clone()))
        .collect();
    Bench::new(&[("README", file("read me\n"))], &edits).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_and_one_files_are_two_pages_and_land() {
    let bench = with(101).await;
    let binding = bench.binding(MergeMethod::Squash).await;
    assert_eq!(binding.change.count, 101);
    bench.lands(&binding).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_between_two_pages_is_seen() {
    let bench = with(101).await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let repository = bench.repository.clone();
    bench
        .forge
        .on("GET", "/pulls/1/files", 2, Moment::Before, move || {
            let edit = [("many/00/0000.txt", file("another\n"))];
            repository.commit(BRANCH, &edit, "one more").map(drop)
        });
    // Break: drop the comparison of `head-commit-after-list` in src/reconcile/compare.rs; the pages alone do not tell.
    let rules = bench.blocked_by(&binding).await;
    assert!(
        rules.contains(&"head-commit-after-list".to_owned()),
        "{rules:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_files_as_the_interface_lists_match() {
    for count in [2_999, 3_000] {
        let bench = with(count).await;
        let binding = bench.binding(MergeMethod::Squash).await;
        assert_eq!(bench.matched(&binding).await.binding().change.count, count);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_file_more_than_the_interface_lists_never_matches() {
    let bench = with(3_001).await;
    let binding = bench.binding(MergeMethod::Squash).await;
    assert_eq!(binding.change.count, 3_001);
    // Break: `ENTRY_LIMIT` of 30,000 in src/connector/github/trees.rs; then the count of rows still says no.
    let error = bench.live(&binding).await.unwrap_err();
    assert!(
        error.to_string().contains("more than 3000 paths"),
        "{error}"
    );
}
