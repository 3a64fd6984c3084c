//! One order of checks: the first that refuses names itself, and those behind it are never asked.

use std::cell::RefCell;

use caretaker::attest::predicate::GateStage;
use caretaker::tool_gate::{
    Answer, Call, Check, Classified, Decision, Posture, Stages, Standing, decide,
};
use serde_json::json;

use super::{Tree, USUAL, bash, call, session, write};

/// Checks of others that refuse from one stage on, and remember who was asked.
#[derive(Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is one answer of one check"
)]
struct Others {
    refuses: &'static [&'static str],
    asks: &'static [&'static str],
    approves: bool,
    smart: bool,
    interactive: bool,
    pattern: bool,
    asked: RefCell<Vec<&'static str>>,
}

impl Others {
    fn check(&self, name: &'static str) -> Check {
        self.asked.borrow_mut().push(name);
        if self.refuses.contains(&name) {
            Check::Denied {
                code: "test",
                reason: format!("{name} says no"),
            }
        } else if self.asks.contains(&name) {
            Check::Asks(format!("{name} asks"))
        } else {
            Check::Passed
        }
    }
}

impl Stages for Others {
    fn capability_token(&self, _: &Call) -> Check {
        self.check("token")
    }
    fn permission_profile(&self, _: &Call, _: Option<&str>) -> Check {
        self.check("profile")
    }
    fn deny_prompts(&self, _: &Call) -> Check {
        self.check("prompts")
    }
    fn alignment(&self, _: &Call) -> Check {
        self.check("alignment")
    }
    fn classifier(&self, _: &Call) -> Classified {
        match self.check("classifier") {
            Check::Denied { reason, .. } => Classified::Denied(reason),
            _ if self.approves => Classified::Approved,
            _ => Classified::Undecided,
        }
    }
    fn smart_auto_approve(&self) -> bool {
        self.smart
    }
    fn always_allow(&self, _: &Call) -> Option<String> {
        self.asked.borrow_mut().push("always-allow");
        self.pattern.then(|| "Write(src/**)".to_owned())
    }
    fn interactive(&self) -> bool {
        self.interactive
    }
}

fn ask(call: &Call, others: &Others) -> Decision {
    let session = session(&USUAL, false);
    let tree = Tree::new();
    decide(
        call,
        Standing::Gated(&session),
        Posture::Closed,
        &tree,
        others,
    )
}

const ALL: &[&str] = &["token", "profile", "prompts", "alignment", "classifier"];

#[test]
fn the_first_that_refuses_names_itself() {
    let bad_shell = bash("echo x > secrets/a");
    for (call, refuses, stage, asked) in [
        (
            write(".git/config"),
            ALL,
            GateStage::SelfProtection,
            &[][..],
        ),
        (
            write("secrets/x"),
            ALL,
            GateStage::CapabilityToken,
            &["token"],
        ),
        (
            write("secrets/x"),
            &ALL[1..],
            GateStage::PermissionProfile,
            &["token", "profile"],
        ),
        (
            write("secrets/x"),
            &ALL[2..],
            GateStage::PathPolicy,
            &["token", "profile"],
        ),
        (
            bad_shell,
            &ALL[2..],
            GateStage::Shell,
            &["token", "profile"],
        ),
        (
            write("src/x"),
            &ALL[2..],
            GateStage::DenyPrompts,
            &["token", "profile", "prompts"],
        ),
        (write("src/x"), &ALL[3..], GateStage::Alignment, &ALL[..4]),
        (write("src/x"), &ALL[4..], GateStage::ClassifierDeny, ALL),
    ] {
        let others = Others {
            refuses,
            interactive: true,
            ..Others::default()
        };
        let decision = ask(&call, &others);
        assert_eq!(
            (decision.answer, decision.stage),
            (Answer::Deny, stage),
            "{decision:?}"
        );
        // Break it: ask all checks before looking at any; this fails.
        assert_eq!(others.asked.into_inner(), asked, "{stage:?}");
    }
}

#[test]
fn what_nothing_settled_is_a_persons_only_when_approvals_are_interactive() {
    let settled = |others: &Others| {
        let decision = ask(&write("src/x"), others);
        (decision.answer, decision.stage)
    };
    let mut others = Others::default();
    assert_eq!(settled(&others), (Answer::Allow, GateStage::NothingAgainst));
    others.approves = true;
    assert_eq!(settled(&others), (Answer::Allow, GateStage::NothingAgainst));
    others.smart = true;
    assert_eq!(
        settled(&others),
        (Answer::Allow, GateStage::ClassifierApprove)
    );
    others.interactive = true;
    assert_eq!(
        settled(&others),
        (Answer::Allow, GateStage::ClassifierApprove)
    );
    others.smart = false;
    assert_eq!(settled(&others), (Answer::Ask, GateStage::Person));
    others.pattern = true;
    assert_eq!(settled(&others), (Answer::Allow, GateStage::AlwaysAllow));
}

/// A profile that wants a person does not get past one by being approved by a program; a pattern a person left does count.
#[test]
fn a_profile_that_asks_needs_a_person_or_is_a_refusal() {
    let mut others = Others {
        asks: &["profile"],
        approves: true,
        smart: true,
        interactive: true,
        ..Others::default()
    };
    assert_eq!(ask(&write("src/x"), &others).answer, Answer::Ask);
    // What is refused anyway is not put to a person first.
    assert_eq!(
        ask(&write("secrets/x"), &others).stage,
        GateStage::PathPolicy
    );
    others.interactive = false;
    let refused = ask(&write("src/x"), &others);
    assert_eq!(
        (refused.answer, refused.stage),
        (Answer::Deny, GateStage::PermissionProfile)
    );
}

/// A policy that enforces nothing switches off our own checks; a closed profile refuses all the same.
#[test]
fn a_pass_through_policy_leaves_the_others_checks_on() {
    let policy = caretaker::tool_gate::Policy::parse(br#"{"v":1,"task_id":"t"}"#).unwrap();
    let session = caretaker::tool_gate::Session {
        policy,
        sandboxed: false,
        profile: None,
    };
    let others = Others {
        refuses: &["profile"],
        ..Others::default()
    };
    let call = call("frobnicate", json!({}));
    let decision = decide(
        &call,
        Standing::Gated(&session),
        Posture::Closed,
        &Tree::new(),
        &others,
    );
    assert_eq!(decision.stage, GateStage::PermissionProfile);
}
