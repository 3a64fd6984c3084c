//! Checks, statuses and branch rules, as the provider reports them.

use caretaker::approve::MergeMethod;
use caretaker::reconcile::Comparison;
use serde_json::json;

use super::comparison::{after, before, blocked_by, compared, live};
use super::provider::json;
use super::world::World;

#[tokio::test]
async fn a_red_check_of_another_suite_does_not_hide_behind_a_green_one() {
    let run = |id: u64, suite: u64, conclusion: &str| {
        json!({"id": id, "name": "test", "status": "completed", "conclusion": conclusion,
            "app": {"slug": "ci"}, "check_suite": {"id": suite}})
    };
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let runs = json!([
        run(9, 3, "success"),
        run(8, 3, "failure"),
        run(7, 4, "failure")
    ]);
    world.change(|facts| facts.check_runs = runs);
    let view = live(&world, &binding).await.unwrap();
    let conclusions: Vec<_> = view
        .checks
        .iter()
        .map(|it| it.conclusion.as_deref())
        .collect();
    assert_eq!(conclusions, [Some("success"), Some("failure")]);
    assert_eq!(blocked_by(&binding, &view), ["check"]);
}

#[tokio::test]
async fn statuses_and_running_checks_count() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    world.change(|facts| {
        facts.check_runs =
            json!([{"id": 1, "name": "slow", "status": "in_progress", "conclusion": null}]);
        facts.statuses = json!([{"context": "lint", "state": "success"}]);
    });
    let view = live(&world, &binding).await.unwrap();
    assert_eq!(
        (view.checks[0].completed, &view.checks[0].app),
        (false, &None)
    );
    assert_eq!(
        (view.checks[1].name.as_str(), view.checks[1].completed),
        ("lint", true)
    );
    assert!(matches!(compared(&binding, &view), Comparison::Pending(_)));
    world.change(|facts| facts.check_runs = json!([{"id": 1, "status": "completed"}]));
    live(&world, &binding).await.unwrap_err();
}

#[tokio::test]
async fn rules_of_the_branch_forbid_and_narrow() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Merge);
    world.change(|facts| {
        facts.rules = json!([
            {"type": "merge_queue", "parameters": {"merge_method": "SQUASH"}},
            {"type": "required_linear_history"},
            {"type": "pull_request", "parameters": {"allowed_merge_methods": ["merge", "squash"]}},
            {"type": "a_rule_of_next_year", "parameters": null},
        ]);
        facts.repository = json!({"allow_squash_merge": null});
    });
    let view = live(&world, &binding).await.unwrap();
    assert_eq!(view.blocking_rules, ["merge_queue"]);
    assert!(
        view.allowed_methods.is_empty(),
        "{:?}",
        view.allowed_methods
    );
    assert_eq!(
        blocked_by(&binding, &view),
        ["base-branch-rule", "merge-method"]
    );
}

#[tokio::test]
async fn a_provider_without_rules_is_no_obstacle_but_one_that_hides_them_is() {
    let with = |status: u16, message: &'static str| async move {
        let world = World::new(&before(), &after());
        let binding = world.binding(MergeMethod::Squash);
        world.answer_instead(move |_, asked| {
            let rules = asked.tail().starts_with("/rules/");
            rules.then(|| json(status, &json!({"message": message})))
        });
        live(&world, &binding).await.map(|view| view.blocking_rules)
    };
    let upgrade = "Upgrade to GitHub Pro or make this repository public to enable this feature.";
    assert_eq!(with(403, upgrade).await.unwrap(), Vec::<String>::new());
    assert_eq!(with(404, "Not Found").await.unwrap(), Vec::<String>::new());
    with(403, "Resource not accessible by integration")
        .await
        .unwrap_err();
    with(500, "").await.unwrap_err();
}
