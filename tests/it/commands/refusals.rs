//! What cannot be done is refused with its reason and its mend.

use super::*;

/// An incident that nobody opened.
const NOBODYS: &str = "inc-00000000000000000000000000";

const EVERY: [&[&str]; 7] = [
    &["incident", "show"],
    &["incident", "explain"],
    &["incident", "retry"],
    &["approval", "show"],
    &["approval", "resend"],
    &["approval", "approve"],
    &["approval", "reject"],
];

#[tokio::test]
async fn an_incident_that_nobody_opened_is_not_known() {
    let desk = Desk::new().await;
    for command in EVERY {
        let ran = desk.run(&[command, &[NOBODYS]].concat());
        let expected = format!(
            "caretaker: there is no incident {NOBODYS}; `caretaker incident list` shows those there are\n"
        );
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{command:?}");
        assert_eq!(ran.error, expected, "{command:?}");
    }
}

#[test]
fn what_is_no_id_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    for command in EVERY {
        let ran = run(
            &folder.path().join("home"),
            "ada",
            &[command, &["7"]].concat(),
        );
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{command:?}");
        assert!(
            ran.error.contains("copy it from `caretaker incident list`"),
            "{}",
            ran.error
        );
    }
}

#[test]
fn without_a_database_it_is_said_what_makes_one() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    insta::assert_snapshot!(run(&home, "ada", &["incident", "list"]).shown(), @r"
    [1]
    caretaker: opening the database …/home/caretaker.db: there is no such file; make one with `caretaker project register`, `caretaker serve` or `caretaker demo --keep`, or set database.url to the right one
    ");
    for command in EVERY {
        let ran = run(&home, "ada", &[command, &[NOBODYS]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{command:?}");
        assert!(
            ran.error.contains("there is no such file; make one"),
            "{}",
            ran.error
        );
    }
    assert!(!home.exists(), "looking must not make one");
}

#[tokio::test]
async fn where_nobody_is_asked_nothing_can_be_answered() {
    let desk = Desk::new().await;
    let incident = desk.story("test").await.close().await;
    insta::assert_snapshot!(desk.run(&["approval", "show", incident.as_str()]).shown(), @r"
    [1]
    caretaker: nobody is asked about inc-…, which is closed. It ended without a merge of ours (not-reproducible): cargo test succeeds at the failing commit in the sandbox
    ");
    for command in ["resend", "approve", "reject"] {
        let ran = desk.run(&["approval", command, incident.as_str()]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.error.contains("nobody is asked about"), "{}", ran.error);
    }
}

#[tokio::test]
async fn a_question_of_an_incident_that_is_over_is_not_answered() {
    let desk = Desk::new().await;
    seal(&desk.home());
    let mut story = desk.story("test").await;
    story.propose("the sign is wrong").await;
    let request = story.request();
    story
        .step(Outcome::fact(Fact::Requested {
            request: Box::new(request),
        }))
        .await;
    let incident = story.close().await;
    insta::assert_snapshot!(desk.run(&["approval", "approve", incident.as_str()]).shown(), @r"
    [1]
    caretaker: answering an approval request: inc-…: it is over; `caretaker incident explain` says how it ended; nothing was written
    ");
    assert_eq!(desk.snapshot(&incident).await.answer(), None);
}
