//! What happens when a guard itself fails.

use caretaker::attest::predicate::GateStage;
use caretaker::tool_gate::{
    Answer, Check, Failure, Fallback, NoStages, Posture, Stages, Standing, decide,
};
use serde_json::json;

use super::{Call, Tree, USUAL, call, write};

fn answers(failure: Failure) -> [bool; 4] {
    [
        (Posture::Closed, true),
        (Posture::Closed, false),
        (Posture::Open, true),
        (Posture::Open, false),
    ]
    .map(|(posture, consequential)| {
        failure.fallback(posture, consequential) == Fallback::AllowWithEvent
    })
}

/// One row a failure: allowed when closed and consequential, closed and not, open and consequential, open and not.
#[test]
fn the_table_is_as_the_documentation_says() {
    let rows: String = Failure::ALL
        .iter()
        .map(|failure| {
            let words = answers(*failure).map(|allowed| if allowed { "allow" } else { "deny" });
            format!("{failure:<24}{}\n", words.join(" ").trim_end())
        })
        .collect();
    insta::assert_snapshot!(rows, @r"
    unknown-session         allow allow allow allow
    unsafe-session-id       allow allow allow allow
    policy-missing          deny deny allow allow
    policy-unreadable       deny deny allow allow
    state-unreadable        deny deny allow allow
    event-unreadable        deny deny allow allow
    event-too-large         deny deny deny deny
    receipt-unwritable      deny allow allow allow
    gate-panicked           deny deny deny deny
    gate-deadline           deny deny deny deny
    socket-silent           deny deny deny deny
    alignment-unavailable   deny deny deny deny
    token-unavailable       deny deny deny deny
    stage-unavailable       deny deny deny deny
    ");
}

#[test]
fn a_session_that_is_not_in_order_is_judged_by_the_table() {
    let tree = Tree::new();
    let ask = |failure, posture| {
        decide(
            &write("src/a"),
            Standing::Failed(failure),
            posture,
            &tree,
            &NoStages,
        )
    };
    for failure in [Failure::UnknownSession, Failure::UnsafeSession] {
        let decision = ask(failure, Posture::Closed);
        assert_eq!(decision.answer, Answer::Allow);
        assert_eq!(
            (decision.stage, decision.code),
            (GateStage::Session, failure.code())
        );
        assert!(decision.reason.is_some(), "said why nobody looked");
    }
    for failure in [Failure::PolicyMissing, Failure::PolicyUnreadable] {
        let closed = ask(failure, Posture::Closed);
        assert_eq!(
            (closed.answer, closed.stage),
            (Answer::Deny, GateStage::Session)
        );
        assert!(closed.reason.unwrap().contains("register it again"));
        assert_eq!(ask(failure, Posture::Open).answer, Answer::Allow);
    }
}

struct Broken(fn() -> Check);

impl Stages for Broken {
    fn alignment(&self, _call: &Call) -> Check {
        (self.0)()
    }
}

#[test]
fn an_embedder_that_is_down_denies_in_either_posture_under_its_own_code() {
    let session = super::session(&USUAL, true);
    for posture in [Posture::Closed, Posture::Open] {
        let stages = Broken(|| Check::Unavailable {
            failure: Failure::AlignmentUnavailable,
            code: "embedder-timeout",
            reason: "the score cannot be had".to_owned(),
        });
        let read = call("Read", json!({"file_path": "x"}));
        let decision = decide(
            &read,
            Standing::Gated(&session),
            posture,
            &Tree::new(),
            &stages,
        );
        assert_eq!(
            (decision.answer, decision.stage, decision.code),
            (Answer::Deny, GateStage::Alignment, "embedder-timeout")
        );
    }
}
