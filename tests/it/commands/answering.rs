//! Answering at the command line: by the one who was asked, about exactly what was asked, once.

use caretaker::approve::{Consumption, HumanDecision};
use caretaker::incident::{Step, next};
use caretaker::store::Consumed;

use super::*;

impl Desk {
    /// Nothing was answered, and the link that was sent still works.
    async fn unanswered(&self, asked: &Asked) {
        assert_eq!(self.snapshot(&asked.incident).await.answer(), None);
        let now = SystemClock.now();
        let view = self.store.approval_by_token(&asked.token.hash(), now).await;
        let state = view.unwrap().unwrap().state;
        assert_eq!(state, caretaker::store::ApprovalState::Live);
    }
}

#[tokio::test]
async fn the_local_owner_approves_and_the_sent_link_is_spent() {
    let desk = Desk::new().await;
    let asked = Asked::about(&desk, "test").await;
    let arguments = ["approval", "approve", asked.id(), "--comment", " fine "];
    insta::assert_snapshot!(desk.run(&arguments).shown(), @r"
    [0]
    approved: exactly the change [digest] may be merged as pull request 7; a running worker signs the answer and goes on
    ");

    let now = SystemClock.now();
    let snapshot = desk.snapshot(&asked.incident).await;
    assert_eq!(snapshot.answer(), Some(HumanDecision::Approve));
    assert_eq!(
        (&snapshot.link, next(&snapshot, now)),
        (&None, Step::DraftApproval)
    );
    let scope = desk.store.within(&desk.project.organisation);
    let record = scope.evidence(&snapshot.consumption().unwrap()).await;
    let record: Consumption = serde_json::from_slice(&record.unwrap().unwrap().1).unwrap();
    let request = snapshot.request().unwrap();
    assert_eq!(record.request, request.digest());
    assert_eq!(record.principal, request.principal);
    assert_eq!(record.comment.as_deref(), Some("fine"));
    assert_ne!(record.token, asked.token.hash());
    let consume = desk
        .store
        .consume(&asked.token, HumanDecision::Reject, None, now);
    assert_eq!(consume.await.unwrap(), Consumed::Gone);

    insta::assert_snapshot!(desk.run(&["approval", "reject", asked.id()]).shown(), @r"
    [1]
    caretaker: answering an approval request: inc-…: it was answered already (approve); nothing was written
    ");
    insta::assert_snapshot!(desk.run(&["approval", "resend", asked.id()]).shown(), @r"
    [1]
    caretaker: revoking an approval link: inc-…: it was answered already (approve); nothing was written
    ");
    let shown = desk.run(&["approval", "show", asked.id(), "--json"]).json();
    assert_eq!(
        (&shown["state"], &shown["decision"]),
        (&"answered".into(), &"approve".into())
    );
    assert_eq!(shown["comment"], "fine");
    let history = desk.run(&["incident", "show", asked.id()]).out;
    assert!(history.contains("answered-locally"), "{history}");
}

#[tokio::test]
async fn the_local_owner_rejects() {
    let desk = Desk::new().await;
    let asked = Asked::about(&desk, "test").await;
    insta::assert_snapshot!(desk.run(&["approval", "reject", asked.id()]).shown(), @r"
    [0]
    rejected: a running worker signs the answer and closes pull request 7
    ");
    let snapshot = desk.snapshot(&asked.incident).await;
    assert_eq!(snapshot.answer(), Some(HumanDecision::Reject));
}

/// Break it: leave the comparison of principals out of `cli::approval::answer` and of `Store::answer_locally`.
#[tokio::test]
async fn nobody_answers_for_somebody_else() {
    let desk = Desk::new().await;
    let asked = Asked::about(&desk, "test").await;
    let arguments = ["approval", "approve", asked.id()];
    insta::assert_snapshot!(desk.run_as("eve", &arguments).shown(), @r"
    [1]
    caretaker: answering for inc-…: local:ada was asked and you are local:eve. The answer is given through the link that was sent there; `caretaker approval resend inc-…` has a new one sent
    ");
    desk.unanswered(&asked).await;

    let desk = Desk::of("mailto:ada@example.org").await;
    let asked = Asked::about(&desk, "test").await;
    let ran = desk.run(&["approval", "reject", asked.id()]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.error.contains("mailto:ada@example.org was asked"),
        "{}",
        ran.error
    );
    desk.unanswered(&asked).await;
}

#[tokio::test]
async fn another_change_than_the_one_asked_about_is_not_approved() {
    let desk = Desk::new().await;
    let mut story = desk.story("test").await;
    story.propose("the sign is wrong").await;
    let mut request = story.request();
    let other = commit(&desk.repository(), "a * b", Some(desk.base));
    request.binding.head_commit = other;
    let asked = story.ask(request).await;
    insta::assert_snapshot!(desk.run(&["approval", "approve", asked.id()]).shown(), @r"
    [1]
    caretaker: answering for inc-…: nothing was answered, since the change in the repository here is [digest] and [digest] was asked about. Something other than caretaker changed the repository or the database: reject the change, and look at both
    ");
    desk.unanswered(&asked).await;
    // What is wrong can always be rejected.
    assert_eq!(desk.run(&["approval", "reject", asked.id()]).code, Some(0));
}

#[tokio::test]
async fn the_same_files_on_another_base_are_another_change() {
    let desk = Desk::new().await;
    let mut story = desk.story("test").await;
    story.propose("the sign is wrong").await;
    let mut request = story.request();
    let orphan = commit(&desk.repository(), "a - b", None);
    request.binding.head_commit = orphan;
    let asked = story.ask(request).await;
    let ran = desk.run(&["approval", "approve", asked.id()]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.error
            .contains("the head's parent in the repository here is"),
        "{}",
        ran.error
    );
    desk.unanswered(&asked).await;
}

#[tokio::test]
async fn nothing_is_approved_that_cannot_be_computed_here() {
    let desk = Desk::new().await;
    let asked = Asked::about(&desk, "test").await;
    std::fs::remove_dir_all(desk.repository()).unwrap();
    insta::assert_snapshot!(desk.run(&["approval", "approve", asked.id()]).shown(), @r"
    [3]
    caretaker: answering for inc-…: the change cannot be computed here, so nothing was answered: opening the git repository …/home/repositories/prj-….git: there is no git repository; name its top directory or its .git directory. Answer on the machine and in the CARETAKER_HOME of the worker that made the fix, or through the link
    ");
    desk.unanswered(&asked).await;
    assert!(!desk.repository().exists(), "looking must not make one");
    assert_eq!(desk.run(&["approval", "reject", asked.id()]).code, Some(0));
}

/// Break it: leave the look at `expires_at` out of `by_hand::open_question`; what `approval::CONSUME` says then is not the reason.
#[tokio::test]
async fn an_answer_that_comes_too_late_does_not_count() {
    let desk = Desk::new().await;
    let mut story = desk.story("test").await;
    story.propose("the sign is wrong").await;
    let mut request = story.request();
    request.binding.expires_at = SystemClock.now().plus_millis(1);
    let asked = story.ask(request).await;
    insta::assert_snapshot!(desk.run(&["approval", "approve", asked.id()]).shown(), @r"
    [1]
    caretaker: answering an approval request: inc-…: the time for an answer ended at [time]; when the job fails again, it is asked anew; nothing was written
    ");
    insta::assert_snapshot!(desk.run(&["approval", "resend", asked.id()]).shown(), @r"
    [1]
    caretaker: revoking an approval link: inc-…: the time for an answer ended at [time]; when the job fails again, it is asked anew; nothing was written
    ");
    assert_eq!(desk.snapshot(&asked.incident).await.answer(), None);
}

#[tokio::test]
async fn a_remark_longer_than_is_signed_is_refused() {
    let desk = Desk::new().await;
    let asked = Asked::about(&desk, "test").await;
    let long = "x".repeat(501);
    let arguments = ["approval", "reject", asked.id(), "--comment", &long];
    insta::assert_snapshot!(desk.run(&arguments).shown(), @r"
    [1]
    caretaker: writing the remark: it is longer than 500 bytes; nothing was written
    ");
    desk.unanswered(&asked).await;
}
