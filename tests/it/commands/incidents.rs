//! Looking at incidents, and waking them.

use caretaker::incident::Stage;
use serde_json::{Value, json};

use super::*;

#[tokio::test]
async fn every_incident_is_listed_newest_first() {
    let desk = Desk::new().await;
    insta::assert_snapshot!(desk.run(&["incident", "list"]).shown(), @r"
    [0]
    no incidents; the failed runs of watched projects become some
    ");
    let closed = desk.story("lint").await.close().await;
    let asked = Asked::about(&desk, "test").await;
    insta::assert_snapshot!(desk.run(&["incident", "list"]).shown(), @r"
    [0]
    inc-…  awaiting-approval          [time]  acme/difference  ci / test on main
    inc-…  closed (not-reproducible)  [time]  acme/difference  ci / lint on main
    ");

    let document = desk.run(&["incident", "list", "--json"]).json();
    let incidents = document["incidents"].as_array().unwrap();
    let mut ids: Vec<&str> = incidents
        .iter()
        .map(|incident| incident["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    let mut expected = [closed.as_str(), asked.id()];
    expected.sort_unstable();
    assert_eq!(ids, expected);
    for incident in incidents {
        assert_eq!(incident["project"], desk.project.id.as_str());
        assert!(incident["stage"].is_string());
    }
}

#[tokio::test]
async fn an_incident_is_shown_whole() {
    let desk = Desk::new().await;
    let asked = Asked::about(&desk, "test").await;
    insta::assert_snapshot!(desk.run(&["incident", "show", asked.id()]).shown(), @r"
    [0]
    incident     inc-…
    project      acme/difference (prj-…)
    stage        awaiting-approval
    opened       [time]
    changed      [time]
    why          It waits for an answer from local:ada, until [time].
    failure      code: ci / test on main at [object], run 1042 attempt 1
                 https://github.example/acme/difference/actions/runs/1042
    sandbox      fails too: cargo test
    cause        the sign is wrong
    coder        confidence 900 of 1000, scripted; answers fixed in advance; difference.rs
    fix          The difference is a difference
    change       1 path, digest [digest]
                 ~ 100644 [object] difference.rs
    commit       [object] on caretaker/fix-1
    decision     approve, class functional
                 difference.rs is sensitive
    approval     local:ada was asked, until [time]
    pull request 7, https://github.example/acme/difference/pull/7
    timeline
      [time]  opened            run 1042 failed on main at [object] (test, code)
      [time]  reproduced        fails in the sandbox too: cargo test (none)
      [time]  extracted         1 facts read from the log
      [time]  diagnosed         scripted: the sign is wrong
      [time]  screened          none of the files to change is denied
      [time]  fixed             commit [object] changes 1 files: The difference is a difference
      [time]  decided           the rules say approve (functional)
      [time]  pushed            branch pushed at [object]
      [time]  opened            pull request 7 opened: https://github.example/acme/difference/pull/7
      [time]  requested         local:ada is asked about change [digest]
      [time]  link-made         link apr-… for local:ada made, until [time]
      [time]  link-sent         link apr-… delivered
    ledger       nothing is signed yet
    ");
    insta::assert_snapshot!(desk.run(&["incident", "explain", asked.id()]).shown(), @r"
    [0]
    It waits for an answer from local:ada, until [time].
    ");

    let document = desk.run(&["incident", "show", asked.id(), "--json"]).json();
    let digest = change(&desk.repository(), desk.base, desk.head).digest;
    assert_eq!(document["stage"], "awaiting-approval");
    assert_eq!(document["failure"]["kind"], "code");
    assert_eq!(document["diagnosis"]["cause"], "the sign is wrong");
    assert_eq!(document["change"]["digest"], digest.to_string());
    assert_eq!(document["decision"]["verdict"], "approve");
    assert_eq!(document["approval"]["principal"], OWNER);
    assert_eq!(document["execution"]["pull_request"], 7);
    assert!(!document["timeline"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_not_known_yet_is_null() {
    let desk = Desk::new().await;
    let story = desk.story("test").await;
    let incident = story.rest(Some(Millis(i64::MAX)), "nothing", 0).await;
    let document = desk
        .run(&["incident", "show", incident.as_str(), "--json"])
        .json();
    for part in [
        "closed_reason",
        "class",
        "diagnosis",
        "change",
        "decision",
        "approval",
        "execution",
    ] {
        assert_eq!(document.get(part), Some(&Value::Null), "{part}");
    }
    assert_eq!(document["stage"], json!("detected"));
}

/// Break it: print `diagnosis.cause` in `cli::incident::show::investigation` as it is.
#[tokio::test]
async fn text_from_outside_cannot_steer_the_terminal() {
    let desk = Desk::new().await;
    let mut story = desk.story("te\u{1b}[2Jst").await;
    story
        .propose("\u{1b}]0;title\u{7} \u{202e}desrever\u{9b}2J")
        .await;
    let request = story.request();
    let asked = story.ask(request).await;
    for arguments in [
        &["incident", "list"][..],
        &["incident", "show", asked.id()],
        &["approval", "list"],
        &["approval", "show", asked.id()],
    ] {
        let ran = desk.run(arguments);
        assert_eq!(ran.code, Some(0));
        let steers = |character: char| {
            character.is_control() && character != '\n' || character == '\u{202e}'
        };
        assert!(!ran.out.contains(steers), "{arguments:?}: {:?}", ran.out);
    }
    let shown = desk.run(&["incident", "show", asked.id()]).out;
    assert!(shown.contains(r"\u{202e}desrever"), "{shown}");
}

#[tokio::test]
async fn an_incident_that_rests_after_failures_is_woken() {
    let desk = Desk::new().await;
    let story = desk.story("test").await;
    let later = SystemClock.now().plus_seconds(600);
    let incident = story
        .rest(Some(later), "the sandbox did not start", 3)
        .await;
    insta::assert_snapshot!(desk.run(&["incident", "explain", incident.as_str()]).shown(), @r"
    [0]
    Next, its tests run in the sandbox at the failing commit. It rests until [time]:
    the sandbox did not start.
    ");
    let due = desk.store.claim("other", SystemClock.now(), LEASE).await;
    assert_eq!(due.unwrap(), None);

    insta::assert_snapshot!(desk.run(&["incident", "retry", incident.as_str()]).shown(), @r"
    [0]
    inc-… is due now; a running worker takes it up at once
    ");
    let claim = desk.store.claim("other", SystemClock.now(), LEASE).await;
    let claim = claim.unwrap().unwrap();
    assert_eq!((&claim.incident, claim.attempts), (&incident, 1));
    let history = desk.run(&["incident", "show", incident.as_str()]).out;
    assert!(history.contains("woken-by-hand") && history.contains("by local:ada"));

    let at_work = desk.run(&["incident", "retry", incident.as_str()]).out;
    assert!(at_work.contains("a worker is at it already"), "{at_work}");
}

/// Break it: leave the look at the next step out of `Store::wake`.
#[tokio::test]
async fn an_incident_that_is_over_is_not_woken_and_the_reason_is_said() {
    let desk = Desk::new().await;
    let incident = desk.story("test").await.close().await;
    let before = desk.snapshot(&incident).await;
    insta::assert_snapshot!(desk.run(&["incident", "retry", incident.as_str()]).shown(), @r"
    [1]
    caretaker: waking inc-…: nothing is left to do about it. It ended without a merge of ours (not-reproducible): cargo test succeeds at the failing commit in the sandbox
    ");
    assert_eq!(desk.snapshot(&incident).await, before);
    let due = desk.store.claim("other", SystemClock.now(), LEASE).await;
    assert_eq!(due.unwrap(), None);
    let scope = desk.store.within(&desk.project.organisation);
    let row = scope.incident(&incident).await.unwrap().unwrap();
    assert_eq!(row.stage, Stage::Closed);
}

/// What is said of a failure that the sandbox does not show: the number of the run stands for itself.
#[tokio::test]
async fn an_incident_that_waits_for_another_attempt_says_so_and_ends_with_counts() {
    let desk = Desk::new().await;
    let mut story = desk.story("test").await;
    let digest = Sha256Digest::of(b"evidence");
    story
        .step(Outcome::fact(Fact::Reproduced(Reproduction::Green {
            command: vec!["cargo".to_owned(), "test".to_owned()],
            sandbox: "none".to_owned(),
            evidence: digest,
        })))
        .await;
    let run_id = story.snapshot.failure.run_id;
    story
        .step(Outcome::fact(Fact::RerunAsked { run_id, attempt: 2 }))
        .await;
    let incident = story.claim.incident.clone();
    let explained = desk.run(&["incident", "explain", incident.as_str()]);
    insta::assert_snapshot!(explained.shown(), @"
    [0]
    It waits for attempt 2 of run 1042, which runs the failed job again at the same commit, until
    [time]: when it passes, the failure is flaky.
    ");
    let passed = Fact::Recovered { run_id, attempt: 2 };
    story.step(Outcome::fact(passed)).await;
    let detail = story.snapshot.flake().unwrap();
    let reason = ClosedReason::Flaky;
    story
        .step(Outcome::fact(Fact::Closed { reason, detail }))
        .await;
    story.rest(None, "", 0).await;
    insta::assert_snapshot!(desk.run(&["incident", "show", incident.as_str()]).shown(), @"
    [0]
    incident     inc-…
    project      acme/difference (prj-…)
    stage        closed (flaky)
    opened       [time]
    changed      [time]
    why          It ended without a merge of ours (flaky): failed in attempt 1, passed in attempt 2 of
                 run 1042 at the same commit
    failure      code: ci / test on main at [object], run 1042 attempt 1
                 https://github.example/acme/difference/actions/runs/1042
    sandbox      succeeds: cargo test
    run again    attempt 2 of run 1042 passed
    timeline
      [time]  opened            run 1042 failed on main at [object] (test, code)
      [time]  reproduced        passes in the sandbox: cargo test (none)
      [time]  rerun-asked       attempt 2 of run 1042 is to tell whether it fails again
      [time]  recovered         run 1042 of the same job succeeded in attempt 2
      [time]  closed            closed (flaky): failed in attempt 1, passed in attempt 2 of run 1042 at the same commit
    ledger       nothing is signed yet
    ");
}
