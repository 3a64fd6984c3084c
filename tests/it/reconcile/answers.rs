//! What the provider says instead of what was expected.

use caretaker::approve::MergeMethod;
use caretaker::connector::{Connector as _, ConnectorError};
use caretaker::execute::{AfterMerge, MergeAnswer, OrderError, after};
use caretaker::forge::{Ci, Fault, FaultAction, MergeMethods};
use caretaker::reconcile::{Comparison, Landing};

use super::bench::{BRANCH, Bench, file, ordered, ordered_by};

async fn bench() -> Bench {
    let before = [("a", file("a\n")), ("README", file("read me\n"))];
    Bench::new(&before, &[("a", file("b\n"))]).await
}

fn instead(bench: &Bench, method: &str, path: &str, code: u16, body: &serde_json::Value) {
    bench.forge.fault(Fault {
        method: method.to_owned(),
        path: path.to_owned(),
        nth: 1,
        action: FaultAction::Status {
            code,
            body: body.to_string(),
            headers: Vec::new(),
        },
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abbreviated_object_id_is_no_object_id() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let tip = bench.tip("main").to_string();
    let body = serde_json::json!({"ref": "refs/heads/main", "node_id": "x",
        "object": {"type": "commit", "sha": &tip[..12], "url": "http://localhost/"}});
    instead(&bench, "GET", "/git/ref/heads/main", 200, &body);
    let error = bench.live(&binding).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Refused { .. }), "{error}");
    // Nothing is wrong with the pull request: the next look matches.
    bench.matched(&binding).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_with_a_merge_queue_is_not_merged_past_it() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let rules = serde_json::json!([{"type": "merge_queue", "parameters": {}}]);
    instead(&bench, "GET", "/rules/branches/main", 200, &rules);
    // Break: drop the loop over `blocking_rules` in src/reconcile/compare.rs.
    match bench.compared(&binding).await {
        Comparison::Blocked(differences) => {
            let found: Vec<_> = differences.iter().map(|it| it.found.as_str()).collect();
            assert_eq!(found, ["merge_queue"]);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_the_repository_does_not_allow_blocks_with_that_reason() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let allowed = MergeMethods {
        merge: true,
        squash: false,
        rebase: true,
    };
    bench.repository.set_merge_methods(allowed).unwrap();
    assert_eq!(bench.blocked_by(&binding).await, ["merge-method"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_without_the_required_check_waits() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    instead(
        &bench,
        "GET",
        "/check-runs",
        200,
        &serde_json::json!({"total_count": 0, "check_runs": []}),
    );
    let comparison = bench.compared(&binding).await;
    assert!(
        matches!(comparison, Comparison::Pending(_)),
        "{comparison:?}"
    );
}

/// The same name by another app is another check.
#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_the_required_name_by_another_app_does_not_count() {
    use caretaker::forge::NewCheckRun;
    let bench = bench().await;
    bench.repository.set_ci(Ci::Off).unwrap();
    // A new head, so that no automatic check is on it.
    let edit = [("a", file("c\n"))];
    let main = bench.repository.tip("main").unwrap();
    let head = bench
        .repository
        .commit_object(&[main], &edit, "Mend")
        .unwrap();
    let branch = format!("refs/heads/{BRANCH}");
    bench.repository.force_reference(&branch, &head).unwrap();
    let binding = bench.binding(MergeMethod::Squash).await;
    let check = NewCheckRun {
        sha: head,
        name: "test".to_owned(),
        app_id: 99,
        app_slug: "somebody-elses-app".to_owned(),
        status: "completed".to_owned(),
        conclusion: Some("success".to_owned()),
    };
    bench.repository.add_check_run(check).unwrap();
    // Break: leave out the comparison of apps in `checks` of src/reconcile/compare.rs.
    let comparison = bench.compared(&binding).await;
    assert!(
        matches!(comparison, Comparison::Pending(_)),
        "{comparison:?}"
    );
}

/// Each kind of 405 that the forge itself gives when something happens after the comparison.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_after_the_comparison_stops_with_the_providers_reason() {
    type Act = fn(&Bench);
    let cases: [(&str, Act); 3] = [
        ("still a draft", |bench| {
            bench.repository.convert_to_draft(1).unwrap();
        }),
        ("Squash merges are not allowed", |bench| {
            let allowed = MergeMethods {
                merge: true,
                squash: false,
                rebase: true,
            };
            bench.repository.set_merge_methods(allowed).unwrap();
        }),
        ("not mergeable", |bench| {
            bench.repository.close_pull(1).unwrap();
        }),
    ];
    for (words, act) in cases {
        let bench = bench().await;
        let binding = bench.binding(MergeMethod::Squash).await;
        let order = ordered(&*bench.matched(&binding).await);
        act(&bench);
        let answer = bench.connector.merge(&order).await.unwrap();
        assert!(
            matches!(&answer, MergeAnswer::NotAllowed(reason) if reason.contains(words)),
            "{answer:?}"
        );
        assert!(matches!(after(&answer, 1), AfterMerge::Stop(reason) if reason.contains(words)));
        assert_eq!(bench.landing(&binding).await, Landing::Nothing);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_waited_for_and_a_bare_403_is_a_missing_permission() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let order = ordered(&*bench.matched(&binding).await);
    let body = serde_json::json!({"message": "Resource not accessible by integration"});
    instead(&bench, "PUT", "/merge", 403, &body);
    let answer = bench.connector.merge(&order).await.unwrap();
    assert!(
        matches!(after(&answer, 1), AfterMerge::Stop(_)),
        "{answer:?}"
    );
    assert_eq!(bench.landing(&binding).await, Landing::Nothing);
    let before = bench.repository.tip("main").unwrap();
    // Last, since nothing is sent while it lasts.
    bench.forge.fault(Fault {
        method: "PUT".to_owned(),
        path: "/merge".to_owned(),
        nth: 1,
        action: FaultAction::Status {
            code: 403,
            body: r#"{"message":"You have exceeded a secondary rate limit."}"#.to_owned(),
            headers: vec![("retry-after".to_owned(), "30".to_owned())],
        },
    });
    let answer = bench.connector.merge(&order).await.unwrap();
    assert!(
        matches!(after(&answer, 1), AfterMerge::WaitThenCompare(_)),
        "{answer:?}"
    );
    assert_eq!(bench.repository.tip("main").unwrap(), before);
}

/// Answers that leave open what happened are never an occasion to ask again.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_whose_answer_is_lost_is_found_where_it_landed() {
    for action in [FaultAction::CloseAfterEffect, FaultAction::Truncate(10)] {
        let bench = bench().await;
        let binding = bench.binding(MergeMethod::Squash).await;
        let order = ordered(&*bench.matched(&binding).await);
        bench.forge.fault(Fault {
            method: "PUT".to_owned(),
            path: "/merge".to_owned(),
            nth: 1,
            action,
        });
        let answer = bench.connector.merge(&order).await.unwrap();
        assert!(matches!(answer, MergeAnswer::Ambiguous(_)), "{answer:?}");
        assert_eq!(after(&answer, 1), AfterMerge::ProveLanding);
        match bench.landing(&binding).await {
            Landing::Proven(proof) => assert!(proof.ours),
            other => panic!("{other:?}"),
        }
        assert_eq!(bench.asked(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_that_never_happened_leaves_nothing() {
    for action in [
        FaultAction::CloseBeforeEffect,
        FaultAction::Status {
            code: 502,
            body: "{}".to_owned(),
            headers: Vec::new(),
        },
    ] {
        let bench = bench().await;
        let binding = bench.binding(MergeMethod::Squash).await;
        let order = ordered(&*bench.matched(&binding).await);
        bench.forge.fault(Fault {
            method: "PUT".to_owned(),
            path: "/merge".to_owned(),
            nth: 1,
            action,
        });
        let answer = bench.connector.merge(&order).await.unwrap();
        assert!(matches!(answer, MergeAnswer::Ambiguous(_)), "{answer:?}");
        assert_eq!(bench.landing(&binding).await, Landing::Nothing);
        assert_eq!(bench.asked(), 1);
    }
}

// The line to break is named in `caretaker::execute::order`.
#[tokio::test(flavor = "multi_thread")]
async fn an_authority_for_one_change_orders_no_other() {
    let bench = bench().await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let matched = bench.matched(&binding).await;
    let mut other = binding.clone();
    other.title.push('!');
    let refused = ordered_by(&other, &matched).unwrap_err();
    assert!(
        matches!(refused, OrderError::OtherChange { .. }),
        "{refused}"
    );
}
