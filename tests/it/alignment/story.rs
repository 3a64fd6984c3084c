//! What a person who turns it on sees, from a task's first message to its end.

use caretaker::alignment::Begun;
use caretaker::change::Sha256Digest;
use caretaker::intent::{Decision, Outage, Reason};

use super::scene::{Scene, Wanted};

#[tokio::test]
async fn a_call_in_the_intents_direction_is_allowed_and_one_across_it_is_denied() {
    let scene = Scene::begun(Wanted::default()).await;
    assert_eq!(
        scene.call(1.0).await,
        ("allow", "score 1.000 above threshold 0.500".to_owned())
    );
    assert_eq!(
        scene.call(0.0).await,
        ("deny", "score 0.000 below hard_threshold 0.300".to_owned())
    );
    // The call was denied, the task goes on.
    assert_eq!(scene.call(0.9).await.0, "allow");
}

#[tokio::test]
async fn between_the_thresholds_people_are_warned() {
    let scene = Scene::begun(Wanted {
        thresholds: (0.7, 0.3),
        ..Wanted::default()
    })
    .await;
    scene.fake.knows("A tool\n\nargs: {}", &[1.0, 1.0, 1.0]);
    assert_eq!(
        scene.called("task", "{}").await,
        ("warn", "score 0.577 below threshold 0.700".to_owned())
    );
}

#[tokio::test]
async fn warn_only_denies_no_score_whatever_it_is() {
    let scene = Scene::begun(Wanted {
        thresholds: (0.5, -1.0),
        ..Wanted::default()
    })
    .await;
    assert_eq!(scene.call(-1.0).await.0, "warn");
    // What has no score is denied all the same.
    scene.fake.knows("A tool\n\nargs: zero", &[0.0, 0.0, 0.0]);
    assert_eq!(
        scene.called("task", "zero").await,
        ("deny", "the embedding is zero (fail-closed)".to_owned())
    );
}

#[tokio::test]
async fn vectors_that_say_nothing_are_denied_each_with_its_code() {
    // With both thresholds at their least, anything that were a score would be allowed.
    let scene = Scene::begun(Wanted {
        thresholds: (-1.0, -1.0),
        ..Wanted::default()
    })
    .await;
    let odd: [(&str, &[f32], &str); 5] = [
        ("empty", &[], "vector-empty"),
        ("zero", &[0.0, 0.0, 0.0], "vector-zero"),
        ("nan", &[1.0, f32::NAN, 0.0], "vector-non-finite"),
        ("infinite", &[f32::INFINITY, 0.0, 0.0], "vector-non-finite"),
        ("longer", &[1.0, 0.0, 0.0, 0.0], "vector-length"),
    ];
    for (arguments, vector, code) in odd {
        let text = format!("A tool\n\nargs: {arguments}");
        scene.fake.knows(&text, vector);
        let scored = scene
            .engine
            .score("task", "tool", Some("A tool"), arguments);
        let scored = scored.await;
        assert_eq!(
            (scored.decision, scored.score, scored.reason.code()),
            (Decision::Deny, None, code)
        );
    }
}

#[tokio::test]
async fn a_task_that_nobody_began_is_denied() {
    let scene = Scene::begun(Wanted::default()).await;
    assert_eq!(
        scene.called("another", "{}").await,
        (
            "deny",
            "no stated_intent registered for task (fail-closed)".to_owned()
        )
    );
}

#[tokio::test]
async fn a_later_message_never_becomes_the_intent() {
    let scene = Scene::begun(Wanted::default()).await;
    let calls = scene.fake.calls();
    let again = scene.engine.begin("task", "delete everything").await;
    assert_eq!(again, Ok(Begun::Before));
    assert_eq!(scene.fake.calls(), calls, "nothing was embedded");
    assert_eq!(scene.call(1.0).await.0, "allow");
}

#[tokio::test]
async fn an_intent_that_could_not_be_embedded_is_kept_and_embedded_later() {
    let scene = Scene::new(Wanted::default());
    scene.fake.knows("the intent", &[1.0, 0.0, 0.0]);
    scene.fake.fails(Outage::Unreachable);
    assert_eq!(
        scene.engine.begin("task", "the intent").await,
        Ok(Begun::Waiting(Reason::Unavailable(Outage::Unreachable)))
    );
    assert_eq!(
        scene.call(1.0).await,
        (
            "deny",
            "embedder unavailable (fail-closed): unreachable".to_owned()
        )
    );
    // The second message of the conversation comes while it is down, and is not what the task is for.
    let second = scene.engine.begin("task", "delete everything").await;
    assert_eq!(second, Ok(Begun::Before));
    scene.fake.fails(None);
    assert_eq!(scene.call(1.0).await.0, "allow");
    assert!(
        !scene
            .fake
            .asked
            .lock()
            .unwrap()
            .contains(&"delete everything".to_owned())
    );
}

#[tokio::test]
async fn an_outage_denies_calls_and_ends_with_itself() {
    let scene = Scene::begun(Wanted::default()).await;
    assert_eq!(scene.call(0.9).await.0, "allow");
    scene.fake.fails(Outage::RateLimited);
    assert_eq!(
        scene.call(0.8).await,
        (
            "deny",
            "embedder unavailable (fail-closed): status 429".to_owned()
        )
    );
    assert_eq!(
        scene.call(0.9).await.0,
        "allow",
        "what is kept needs nobody"
    );
    scene.fake.fails(None);
    assert_eq!(scene.call(0.8).await.0, "allow");
}

#[tokio::test]
async fn a_task_that_ended_is_forgotten_and_time_alone_ends_none() {
    let scene = Scene::begun(Wanted::default()).await;
    scene.clock.advance_millis(7 * 24 * 3600 * 1000);
    assert_eq!(scene.call(1.0).await.0, "allow", "a week later");
    scene.engine.end("task").unwrap();
    assert_eq!(scene.engine.tasks(), 0);
    assert_eq!(
        scene.call(1.0).await.1,
        "no stated_intent registered for task (fail-closed)"
    );
}

#[tokio::test]
async fn nothing_begins_without_a_name_or_without_words() {
    let scene = Scene::new(Wanted::default());
    for (task, intent) in [("", "the intent"), ("task", " \n"), ("task", "")] {
        assert!(scene.engine.begin(task, intent).await.is_err());
    }
    let long = "x".repeat(caretaker::alignment::LONGEST_INTENT + 1);
    assert!(scene.engine.begin("task", &long).await.is_err());
    assert_eq!((scene.engine.tasks(), scene.fake.calls()), (0, 0));
}

#[tokio::test]
async fn a_tool_without_a_description_is_scored_by_its_name() {
    let scene = Scene::begun(Wanted::default()).await;
    scene
        .fake
        .knows("fn_42\n\nargs: {\"a\": 1}", &[1.0, 0.0, 0.0]);
    let scored = scene
        .engine
        .score("task", "fn_42", None, "{\"a\": 1}")
        .await;
    assert_eq!(scored.decision, Decision::Allow);
}

#[tokio::test]
async fn a_decision_says_what_a_signed_record_of_it_needs() {
    let scene = Scene::begun(Wanted::default()).await;
    scene.call(1.0).await;
    let scored = scene
        .engine
        .score("task", "tool", Some("A tool"), "{\"at\":1}");
    let scored = scored.await;
    assert_eq!(scored.score.unwrap().micro(), 1_000_000);
    assert_eq!(scored.embedder.unwrap().as_str(), "openai-compatible:hash");
    assert_eq!(scored.intent, Some(Sha256Digest::of(b"the intent")));
    assert_eq!(
        scored.action,
        Sha256Digest::of(b"A tool\n\nargs: {\"at\":1}")
    );
    assert_eq!(scored.thresholds.unwrap().hard().micro(), 300_000);
}

#[tokio::test]
async fn exempt_tools_are_not_scored_and_all_others_are() {
    let scene = Scene::begun(Wanted {
        exempt: &["todo"],
        ..Wanted::default()
    })
    .await;
    let calls = scene.fake.calls();
    let scored = scene
        .engine
        .score("task", "todo", Some("Notes"), "{}")
        .await;
    assert_eq!(
        (scored.decision, scored.reason),
        (Decision::Allow, Reason::Exempt)
    );
    assert_eq!(scene.fake.calls(), calls);
    let other = scene
        .engine
        .score("task", "Todo", Some("Notes"), "{}")
        .await;
    assert!(other.is_denied());
}
