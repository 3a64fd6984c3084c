//! Merging: what lands, and every reason why nothing does.

use caretaker::forge::MergeMethods;
use serde_json::{Value, json};

use super::bench::{Bench, file};

/// A pull request of two commits beside a base that moved on; its number.
async fn two_commits(bench: &Bench) -> u64 {
    bench.branch("fix", &[("src/b.txt", file("fixed\n"))]);
    bench
        .repository
        .commit("fix", &[("c.txt", file("c\n"))], "Second step")
        .unwrap();
    bench
        .repository
        .commit("main", &[("src/a.txt", file("changed\n"))], "Meanwhile")
        .unwrap();
    bench.pull("fix").await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_method_lands_the_same_tree_with_its_own_parents() {
    for (method, parents) in [("merge", 2), ("squash", 1), ("rebase", 1)] {
        let bench = Bench::new().await;
        let number = two_commits(&bench).await;
        let (base, head) = (
            bench.repository.tip("main").unwrap(),
            bench.repository.tip("fix").unwrap(),
        );
        let expected = bench.bare(&["merge-tree", "--write-tree", base.as_str(), head.as_str()]);
        let body = json!({"merge_method": method, "sha": head.as_str(), "commit_title": "A title", "commit_message": "A body\n\nCaretaker-Execution: 7"});
        let merged = bench.put(&format!("/pulls/{number}/merge"), body).await;
        assert_eq!(
            (merged.status, &merged.body["merged"]),
            (200, &json!(true)),
            "{method}: {}",
            merged.body
        );
        let landed = merged.body["sha"].as_str().unwrap();
        assert_eq!(bench.repository.tip("main").unwrap(), landed);
        assert_eq!(
            bench.bare(&["rev-parse", &format!("{landed}^{{tree}}")]),
            expected,
            "{method}"
        );
        let line = bench.bare(&["rev-list", "--parents", "-n1", landed]);
        assert_eq!(line.split(' ').count() - 1, parents, "{method}");
        let message = bench.bare(&["log", "-1", "--format=%B", landed]);
        if method == "rebase" {
            assert_eq!(message, "Second step");
            assert_eq!(
                bench.bare(&["rev-parse", &format!("{landed}~2")]),
                base.as_str()
            );
        } else {
            assert_eq!(message, "A title\n\nA body\n\nCaretaker-Execution: 7");
            assert_eq!(
                bench.bare(&["rev-parse", &format!("{landed}^1")]),
                base.as_str()
            );
        }
        let pull = bench.get(&format!("/pulls/{number}")).await.body;
        assert_eq!(
            (&pull["merged"], &pull["state"], &pull["merge_commit_sha"]),
            (&json!(true), &json!("closed"), &json!(landed))
        );
        assert_eq!(
            (&pull["merged_by"]["login"], &pull["changed_files"]),
            (&json!("caretaker-bot"), &json!(2))
        );
        assert_eq!(
            bench.get(&format!("/pulls/{number}/merge")).await.status,
            204
        );
        let again = bench
            .put(&format!("/pulls/{number}/merge"), json!({}))
            .await;
        assert_eq!(
            (again.status, again.message()),
            (405, "Pull Request is not mergeable")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn default_words_are_githubs() {
    let bench = Bench::new().await;
    bench.branch("one", &[("one.txt", file("1\n"))]);
    let one = bench.pull("one").await;
    let landed = bench.repository.merge_by_person(one, "squash").unwrap();
    assert_eq!(
        bench.bare(&["log", "-1", "--format=%B", landed.as_str()]),
        "Work on one (#1)\n\nIn detail."
    );
    bench.branch("two", &[("two.txt", file("2\n"))]);
    let two = bench.pull("two").await;
    let landed = bench.repository.merge_by_person(two, "merge").unwrap();
    assert_eq!(
        bench.bare(&["log", "-1", "--format=%B", landed.as_str()]),
        "Merge pull request #2 from acme/two\n\nMerge two"
    );
    let pull = bench.repository.pull(two).unwrap();
    assert_eq!(
        (pull.merge_commit, pull.merged_by.as_deref()),
        (Some(landed), Some("maya"))
    );
}

/// What the merge of pull request 1 says.
async fn attempt(bench: &Bench, body: Value) -> (u16, String) {
    let answer = bench.put("/pulls/1/merge", body).await;
    (answer.status, answer.message().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_lands_that_must_not() {
    let bench = Bench::new().await;
    let number = two_commits(&bench).await;
    let before = bench.repository.tip("main").unwrap();

    // Break the comparison with `request.sha` in api/merge.rs to see this fail: the pin on the head is what makes a merge
    // after an unseen push impossible.
    let (status, message) = attempt(&bench, json!({"sha": "1".repeat(40)})).await;
    assert_eq!(
        (status, message.as_str()),
        (
            409,
            "Head branch was modified. Review and try the merge again."
        )
    );

    bench.repository.convert_to_draft(number).unwrap();
    let (status, message) = attempt(&bench, json!({})).await;
    assert_eq!(
        (status, message.as_str()),
        (405, "Pull Request is still a draft")
    );
    bench.repository.mark_ready(number).unwrap();

    bench
        .repository
        .set_merge_methods(MergeMethods {
            merge: false,
            squash: true,
            rebase: false,
        })
        .unwrap();
    assert_eq!(attempt(&bench, json!({})).await.0, 405);
    assert_eq!(
        attempt(&bench, json!({"merge_method": "rebase"})).await.1,
        "Rebase merges are not allowed on this repository."
    );
    assert_eq!(
        attempt(&bench, json!({"merge_method": "octopus"})).await.0,
        422
    );

    bench.repository.set_archived(true).unwrap();
    assert_eq!(
        attempt(&bench, json!({"merge_method": "squash"})).await.0,
        403
    );
    bench.repository.set_archived(false).unwrap();

    let conflict = bench
        .repository
        .commit("main", &[("src/b.txt", file("otherwise\n"))], "Conflict")
        .unwrap();
    let (status, message) = attempt(&bench, json!({"merge_method": "squash"})).await;
    assert_eq!(
        (status, message.as_str()),
        (405, "Pull Request is not mergeable")
    );
    bench
        .repository
        .force_reference("refs/heads/main", &before)
        .unwrap();

    bench.repository.close_pull(number).unwrap();
    assert_eq!(
        attempt(&bench, json!({"merge_method": "squash"})).await.0,
        405
    );
    assert_eq!(bench.repository.tip("main").unwrap(), before);
    assert_ne!(before, conflict);
    assert_eq!(bench.put("/pulls/9/merge", json!({})).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_branch_goes_when_the_repository_wants_it() {
    let bench = Bench::new().await;
    bench.repository.set_delete_branch_on_merge(true).unwrap();
    bench.branch("fix", &[("c.txt", file("c\n"))]);
    let number = bench.pull("fix").await;
    bench.repository.merge_by_person(number, "squash").unwrap();
    assert!(bench.repository.tip("fix").is_err());
    let pull = bench.repository.pull(number).unwrap();
    assert!(pull.merge_commit.is_some(), "{pull:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_head_is_pinned_so_a_retargeted_pull_request_lands_elsewhere() {
    let bench = Bench::new().await;
    let head = bench.branch("fix", &[("c.txt", file("c\n"))]);
    bench
        .repository
        .create_branch("release", &bench.repository.tip("main").unwrap())
        .unwrap();
    let number = bench.pull("fix").await;
    bench.repository.retarget_pull(number, "release").unwrap();
    let merged = bench
        .put(
            &format!("/pulls/{number}/merge"),
            json!({"sha": head.as_str()}),
        )
        .await;
    assert_eq!(merged.status, 200);
    assert_eq!(
        bench.repository.tip("release").unwrap(),
        merged.body["sha"].as_str().unwrap()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebase_skips_what_the_base_has_and_refuses_conflicts() {
    let bench = Bench::new().await;
    bench.branch("fix", &[("c.txt", file("c\n"))]);
    bench
        .repository
        .commit("fix", &[("d.txt", file("d\n"))], "The other step")
        .unwrap();
    let base = bench
        .repository
        .commit("main", &[("c.txt", file("c\n"))], "The same step")
        .unwrap();
    bench.pull("fix").await;
    let landed = bench.repository.merge_by_person(1, "rebase").unwrap();
    assert_eq!(
        bench.bare(&["log", "--format=%s %an %cn", &format!("{base}..{landed}")]),
        "The other step maya web-flow"
    );

    // Each commit has to apply by itself, even where the whole would merge.
    bench.branch("detour", &[("src/b.txt", file("wrong\n"))]);
    bench
        .repository
        .commit("detour", &[("src/b.txt", file("right\n"))], "Corrected")
        .unwrap();
    bench
        .repository
        .commit("main", &[("src/b.txt", file("right\n"))], "Right at once")
        .unwrap();
    bench.pull("detour").await;
    let refused = bench
        .put("/pulls/2/merge", json!({"merge_method": "rebase"}))
        .await;
    assert_eq!(
        (refused.status, refused.message()),
        (405, "This branch can't be rebased")
    );
    assert_eq!(
        bench
            .put("/pulls/2/merge", json!({"merge_method": "squash"}))
            .await
            .status,
        200
    );
}
