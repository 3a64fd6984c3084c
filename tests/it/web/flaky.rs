//! What the page says of failures that go away when the job runs again.

use caretaker::incident::{Fact, Outcome, Reproduction};

use super::http::get;
use super::scene::{Scene, oid};
use super::story::{Story, Words};
use super::text::text_of;

/// The part of an incident's page about the failure.
async fn failure(scene: &Scene, story: &Story<'_>) -> String {
    let path = format!("/incidents/{}", story.incident);
    let text = text_of(&get(&scene.router(), &path).await.body);
    let start = text.find("In the sandbox").unwrap_or_default();
    let end = text.find("1 · Gate").unwrap_or(text.len());
    text[start..end].trim_end().to_owned()
}

#[tokio::test]
async fn tests_that_fail_and_pass_at_one_commit_are_shown_with_every_run() {
    let scene = Scene::new().await;
    let mut story = Story::begin(&scene, Words::default()).await;
    let (red, green) = (
        story.test_run(oid(0xa1), false),
        story.test_run(oid(0xa1), true),
    );
    let digests = vec![red[1].digest(), green[1].digest()];
    story
        .step(Outcome {
            evidence: red.into_iter().chain(green).collect(),
            ..Outcome::fact(Fact::Reproduced(Reproduction::Flaky {
                command: vec!["cargo".to_owned(), "test".to_owned()],
                sandbox: "bubblewrap without network".to_owned(),
                passed: 1,
                failed: 1,
                evidence: digests,
            }))
        })
        .await;
    insta::assert_snapshot!(failure(&scene, &story).await, @"
    In the sandbox
    The tests are flaky: at the same commit they fail in the sandbox, in 1 of 2 runs. (bubblewrap without network)
    reproduction failed
    the tests at the failing commit
    cargo test --no-fail-fast exit code 101 after 2.3 s
    Failed: deadline::tests::due_today_is_not_late
    End of the output
    running 4 tests test deadline::tests::due_today_is_not_late ... FAILED test result: FAILED. 3 passed; 1 failed
    signed evidence 6e8daea99c35a6e78a1150685be1dfb705d0a19fda9f4e5bc4be55c315ab8953
    reproduction passed
    the tests at the failing commit
    cargo test --no-fail-fast exit code 0 after 2.3 s
    End of the output
    test result: ok. 4 passed; 0 failed
    signed evidence 22411b4e3fba498cba574eb12eeaa2403aca9ebe800aac14ad85884326c1c841
    ");
}

#[tokio::test]
async fn a_page_shows_what_became_of_another_attempt() {
    let scene = Scene::new().await;
    let mut story = Story::begin(&scene, Words::default()).await;
    let reason = "there is no cargo here".to_owned();
    let facts = [
        Fact::Reproduced(Reproduction::Unrunnable { reason }),
        Fact::RerunAsked {
            run_id: 1_042,
            attempt: 2,
        },
    ];
    for fact in facts {
        story.step(Outcome::fact(fact)).await;
    }
    let waiting = failure(&scene, &story).await;
    let again = Fact::Recurred {
        run_id: 1_042,
        attempt: 2,
        job_id: None,
    };
    story.step(Outcome::fact(again)).await;
    let failed = failure(&scene, &story).await;
    insta::assert_snapshot!(format!("{waiting}\n---\n{failed}"), @"
    In the sandbox
    The tests cannot be run here. there is no cargo here
    Run again at the same commit
    Attempt 2 of run 1042 is waited for until 2027-01-15T09:00:06Z.
    ---
    In the sandbox
    The tests cannot be run here. there is no cargo here
    Run again at the same commit
    Attempt 2 of run 1042 failed at the provider again.
    ");
}
