//! A coder that calls tools: each call by the gate, its receipts in the proposal, and no fix from a session that was not gated.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caretaker::agent::{
    AgentDescription, AgentSession, Coder, CoderError, CoderTask, Diagnosis, FixSummary, GatedTool,
    Governance, Permission, SessionReport, ToolAccess,
};
use caretaker::approvals::Approvals;
use caretaker::approve::HumanDecision;
use caretaker::attest::predicate::{GateAnswer, GateStage};
use caretaker::attest::statement::Predicate;
use caretaker::attest::{Event, Evidence, Statement};
use caretaker::change::Sha256Digest;
use caretaker::events::{Event as StreamEvent, EventSink, SinkError};
use caretaker::hook_gate::service::ask;
use caretaker::hook_gate::{Configured, ConfiguredAnswers, Home, HookEvent, Question, receipts};
use caretaker::incident::{EscalationReason, SessionFact, Stage};
use caretaker::receipts::Door;
use caretaker::signer::system_randomness;
use serde_json::{Value, json};

use super::sums;
use super::world::{Setting, World};
use crate::attest::ledger::payload_of;

/// What one coder does when it is asked to mend.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Every call by the gate.
    Honest,
    /// One call that the gate never hears of, told all the same.
    Hides,
    /// Says nothing of what it did.
    Silent,
    /// Writes a file that the diagnosis does not name, after the gate refused that.
    Trespasses,
    /// Leaves the defect.
    Fails,
    /// Asks at its socket in another session's name.
    Impersonates,
}

/// The coder of the sums, with tools.
struct Tooled {
    manner: Manner,
    scripted: caretaker::agent::ScriptedCoder,
}

fn tooled(manner: Manner) -> Arc<dyn Coder> {
    Arc::new(Tooled {
        manner,
        scripted: sums::coder(),
    })
}

pub(super) async fn write(
    session: &AgentSession,
    tree: &Path,
    path: &str,
    content: &str,
) -> Permission {
    let arguments = json!({"path": path, "content": content});
    let asked = session.guard.before_call("write_file", &arguments).await;
    if asked == Permission::Granted {
        std::fs::write(tree.join(path), content).unwrap();
    }
    asked
}

#[async_trait]
impl Coder for Tooled {
    fn describe(&self) -> AgentDescription {
        AgentDescription {
            id: "tooled".to_owned(),
            model: None,
            remark: "A coder of the tests.".to_owned(),
        }
    }

    fn governance(&self) -> Governance {
        let tool = |name: &str, access| GatedTool {
            name: name.to_owned(),
            access,
        };
        Governance::Gated(vec![
            tool("read_file", ToolAccess::Reads),
            tool("write_file", ToolAccess::Writes { path: Some("path") }),
        ])
    }

    async fn diagnose(
        &self,
        task: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<Diagnosis, CoderError> {
        let session = session.unwrap();
        let read = json!({"path": "sums.py"});
        let allowed = session.guard.before_call("read_file", &read).await;
        assert_eq!(allowed, Permission::Granted);
        let written = write(session, tree, "sums.py", "").await;
        let Permission::Refused(reason) = written else {
            panic!("a diagnosis could write");
        };
        assert!(
            reason.contains("no capability token for the tool write_file"),
            "{reason}"
        );
        session.report(report(2));
        self.scripted.diagnose(task, tree, None).await
    }

    async fn fix(
        &self,
        _: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<FixSummary, CoderError> {
        let session = session.unwrap();
        let mut calls = 2;
        let right = if self.manner == Manner::Fails {
            sums::MODULE
        } else {
            sums::RIGHT_MODULE
        };
        let module = format!("{right}\n\n# Looked at.\n");
        let asked = write(session, tree, "sums.py", &module).await;
        assert_eq!(asked, Permission::Granted);
        let asked = write(session, tree, "test_more.py", sums::NEW_TEST).await;
        assert_eq!(asked, Permission::Granted);
        if matches!(self.manner, Manner::Trespasses | Manner::Honest) {
            calls += 1;
            let asked = write(session, tree, "README.md", "Mine.\n").await;
            let Permission::Refused(reason) = asked else {
                panic!("a file that the diagnosis does not name could be written");
            };
            assert!(
                reason.contains("capability token (constraints)"),
                "{reason}"
            );
        }
        match self.manner {
            Manner::Trespasses => std::fs::write(tree.join("README.md"), "Mine.\n").unwrap(),
            Manner::Hides => calls += 1,
            Manner::Impersonates => impersonate(session),
            Manner::Honest => {
                let may_end = session.guard.before_end().await;
                assert_eq!(may_end, Permission::Granted);
            }
            Manner::Silent | Manner::Fails => {}
        }
        if self.manner == Manner::Fails {
            let Permission::Refused(reason) = session.guard.before_end().await else {
                panic!("a session could end without its tests");
            };
            assert!(
                reason.contains("required verification failed (tests-1)"),
                "{reason}"
            );
        }
        if self.manner != Manner::Silent {
            session.report(report(calls));
        }
        Ok(FixSummary {
            title: "Add instead of subtracting".to_owned(),
            summary: "The sign was wrong.".to_owned(),
        })
    }
}

pub(super) const fn report(calls: u64) -> SessionReport {
    SessionReport {
        calls,
        requests: 3,
        input_tokens: 100,
        output_tokens: 20,
        cost: None,
    }
}

fn question<'a>(session: &'a str, input: &'a [u8], folder: &'a Path) -> Question<'a> {
    Question {
        session,
        event: HookEvent::PreToolUse,
        input,
        folder,
        compatible: false,
        role: "worker",
        door: Door::HookGate,
        now: super::world::NOW,
    }
}

fn impersonate(session: &AgentSession) {
    let socket = session.socket.clone();
    let own = session.id.clone();
    std::thread::spawn(move || {
        let event = br#"{"tool_name":"read_file","tool_input":{"path":"sums.py"}}"#;
        let within = Duration::from_secs(20);
        let other = ask(&socket, &question("S1", event, Path::new("/")), within).unwrap();
        assert!(other.blocked);
        assert_eq!(other.reason, "this socket answers for another session");
        let mine = ask(&socket, &question(&own, event, Path::new("/")), within).unwrap();
        assert!(!mine.blocked, "{}", mine.reason);
    })
    .join()
    .unwrap();
}

/// A world whose worker has a gate.
async fn world(manner: Manner) -> World {
    gated(tooled(manner)).await
}

/// The same with any coder.
pub(super) async fn gated(coder: Arc<dyn Coder>) -> World {
    gated_with(Setting {
        coder: Some(coder),
        ..Setting::sums()
    })
    .await
}

/// The same with any setting.
pub(super) async fn gated_with(setting: Setting) -> World {
    let mut world = World::new(setting).await;
    let events = Arc::clone(&world.engine.events);
    world.engine.gate = Some(Arc::new(gate(&world, events)));
    world
}

pub(super) fn gate(world: &World, events: Arc<dyn EventSink>) -> ConfiguredAnswers {
    let engine = &world.engine;
    ConfiguredAnswers {
        home: Home::new(world.home()),
        configured: Configured::default(),
        approvals: Approvals::new(
            engine.store.clone(),
            engine.keys.organisation().clone(),
            Arc::clone(&events),
            world.clock.clone(),
            system_randomness,
            60,
        ),
        runtime: tokio::runtime::Handle::current(),
        events,
        clock: world.clock.clone(),
        profile: None,
        launcher: PathBuf::from(env!("CARGO_BIN_EXE_caretaker")),
        within: Duration::from_mins(1),
    }
}

pub(super) async fn evidence(world: &World, digest: Sha256Digest) -> Vec<u8> {
    let scoped = world.engine.store.within(&world.project.organisation);
    scoped.evidence(&digest).await.unwrap().unwrap().1
}

/// The signed outcomes of a session, in order.
pub(super) async fn outcomes(
    world: &World,
    session: &SessionFact,
) -> Vec<(String, GateAnswer, GateStage)> {
    let list: Vec<Sha256Digest> =
        serde_json::from_slice(&evidence(world, session.outcomes).await).unwrap();
    let mut outcomes = Vec::new();
    for digest in list {
        let envelope = evidence(world, digest).await;
        let statement = Statement::parse(&payload_of(&envelope)).unwrap();
        let Predicate::Evidence(Evidence::GateOutcome(outcome)) = statement.predicate() else {
            panic!("not an outcome");
        };
        assert_eq!(outcome.session.as_str(), session.id);
        outcomes.push((
            outcome.tool.as_str().to_owned(),
            outcome.answer,
            outcome.stage,
        ));
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_has_a_receipt_and_the_proposal_names_the_last_one() {
    let world = world(Manner::Honest).await;
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    let snapshot = world.snapshot().await;
    let diagnosed = snapshot.diagnosis().unwrap().session.clone().unwrap();
    let session = snapshot.fix().unwrap().session.clone().unwrap();
    assert_eq!(
        (diagnosed.calls, diagnosed.refused, diagnosed.receipts),
        (2, 1, 3)
    );
    // The root, three calls, the end inside, the checks outside.
    assert_eq!(
        (session.calls, session.refused, session.receipts),
        (3, 1, 6)
    );
    assert_eq!((session.requests, session.input_tokens), (3, 100));
    assert!(!session.advisory);

    let folder = world.home().join("hook-gate").join(&session.id);
    let kept = receipts(&folder).unwrap();
    assert_eq!(kept.last().unwrap().hash.digest(), &session.receipt);
    let call = &kept[1].payload["x_gate"];
    assert!(call["token_id"].as_str().unwrap().starts_with("cap:"));
    let statement = call["intent"]["statement"].as_str().unwrap();
    assert!(statement.contains(world.incident.as_str()), "{statement}");
    assert!(statement.ends_with("Decode as documented."), "{statement}");
    assert_eq!(call["intent"]["tools"], json!(["read_file", "write_file"]));
    assert_eq!(call["door"], "loop");
    assert_eq!(
        outcomes(&world, &session).await,
        [
            (
                "write_file".to_owned(),
                GateAnswer::Allow,
                GateStage::NothingAgainst
            ),
            (
                "write_file".to_owned(),
                GateAnswer::Allow,
                GateStage::NothingAgainst
            ),
            (
                "write_file".to_owned(),
                GateAnswer::Deny,
                GateStage::CapabilityToken
            ),
        ]
    );
    assert_eq!(
        evidence(&world, session.record).await,
        std::fs::read(folder.join("receipts.jsonl")).unwrap()
    );
    let completion: Value =
        serde_json::from_slice(&evidence(&world, session.completion.unwrap()).await).unwrap();
    assert_eq!(
        (&completion["place"], &completion["passed"]),
        (&json!("outside"), &json!(true))
    );
    assert_eq!(completion["items"][0]["name"], "tests-1");

    let proposal = proposal(&world).await;
    let signed = proposal["session"].clone();
    assert_eq!(signed["receipts"]["sha256"], session.receipt.to_string());
    assert_eq!(signed["receipts"]["count"], 6);
    assert_eq!(signed["record"]["sha256"], session.record.to_string());

    world.answer(HumanDecision::Approve).await;
    assert_eq!(world.settle().await, Stage::Resolved);
    assert_eq!(world.verify().await.verdict.name(), "valid");
    // Its socket is gone with the session.
    let sockets = std::fs::read_dir(world.home().join("hook-gate")).unwrap();
    let left = sockets.filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|extension| extension == "sock")
    });
    assert_eq!(left.count(), 0);
}

pub(super) async fn proposal(world: &World) -> Value {
    let scoped = world.engine.store.within(&world.project.organisation);
    let ledger = scoped.ledger(&world.incident).await.unwrap().unwrap();
    let payload = payload_of(&ledger.rows[0].envelope);
    let statement = Statement::parse(&payload).unwrap();
    assert!(matches!(statement.as_event(), Some(Event::Proposal(_))));
    let value: Value = serde_json::from_slice(&payload).unwrap();
    value["predicate"].clone()
}

/// What a refused session comes to: a person is asked to look, and nothing was proposed.
async fn escalated(manner: Manner) -> (EscalationReason, String) {
    let world = world(manner).await;
    let before = world.planted.repository.references().unwrap();
    assert_eq!(world.settle().await, Stage::Escalated);
    assert_eq!(world.planted.repository.references().unwrap(), before);
    let snapshot = world.snapshot().await;
    assert!(snapshot.fix().is_none());
    let (reason, detail) = snapshot.escalation().unwrap();
    (reason, detail.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_a_call_that_the_gate_never_saw_gives_no_fix() {
    let (reason, detail) = escalated(Manner::Hides).await;
    assert_eq!(reason, EscalationReason::AgentUngated);
    assert!(
        detail.ends_with("it made 3 calls of tools, and the gate saw 2"),
        "{detail}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coder_that_does_not_say_what_it_did_gives_no_fix() {
    let (reason, detail) = escalated(Manner::Silent).await;
    assert_eq!(reason, EscalationReason::AgentUngated);
    assert!(
        detail.ends_with("the coder did not say how many calls it made"),
        "{detail}"
    );
}

/// The token refused the write; what is written past the gate is found by the checks after the session.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_bound_to_the_diagnosed_files_by_its_token() {
    let (reason, detail) = escalated(Manner::Trespasses).await;
    assert_eq!(reason, EscalationReason::FixUnproven);
    assert!(
        detail.contains("files outside the allowlist are changed (README.md)"),
        "{detail}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fix_whose_checks_fail_outside_the_session_is_not_proposed() {
    let (reason, detail) = escalated(Manner::Fails).await;
    assert_eq!(reason, EscalationReason::FixUnproven);
    assert_eq!(
        detail,
        "completion blocked: required verification failed (tests-1)"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sessions_socket_answers_for_it_alone() {
    // The question at the socket is a receipt more than the coder told, which is no harm.
    let world = world(Manner::Impersonates).await;
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    let snapshot = world.snapshot().await;
    let session = snapshot.fix().unwrap().session.clone().unwrap();
    let asked = outcomes(&world, &session).await;
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[2].0, "read_file");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_gate_a_coder_that_calls_tools_is_not_asked() {
    let world = World::new(Setting {
        coder: Some(tooled(Manner::Honest)),
        ..Setting::sums()
    })
    .await;
    assert_eq!(world.settle().await, Stage::Escalated);
    let snapshot = world.snapshot().await;
    let (reason, detail) = snapshot.escalation().unwrap();
    assert_eq!(reason, EscalationReason::CoderFailed);
    assert!(detail.contains("this worker has no gate"), "{detail}");
}

struct Panics;

impl EventSink for Panics {
    fn record(&self, _: &StreamEvent) -> Result<(), SinkError> {
        panic!("the stream is broken")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_panics_refuses() {
    let mut world = World::new(Setting {
        coder: Some(Arc::new(AsksOnce)),
        ..Setting::sums()
    })
    .await;
    world.engine.gate = Some(Arc::new(gate(&world, Arc::new(Panics))));
    assert_eq!(world.settle().await, Stage::Escalated);
    let snapshot = world.snapshot().await;
    let (_, detail) = snapshot.escalation().unwrap();
    assert!(
        detail.contains("the gate failed while it decided"),
        "{detail}"
    );
}

/// Tells what the gate said.
struct AsksOnce;

#[async_trait]
impl Coder for AsksOnce {
    fn describe(&self) -> AgentDescription {
        sums::coder().describe()
    }

    fn governance(&self) -> Governance {
        Governance::Gated(vec![GatedTool {
            name: "read_file".to_owned(),
            access: ToolAccess::Reads,
        }])
    }

    async fn diagnose(
        &self,
        _: &CoderTask,
        _: &Path,
        session: Option<&AgentSession>,
    ) -> Result<Diagnosis, CoderError> {
        let guard = &session.unwrap().guard;
        let asked = guard
            .before_call("read_file", &json!({"path": "sums.py"}))
            .await;
        Err(CoderError::Answer {
            coder: "asks".to_owned(),
            task: "diagnose",
            reason: format!("{asked:?}"),
        })
    }

    async fn fix(
        &self,
        _: &CoderTask,
        _: &Path,
        _: Option<&AgentSession>,
    ) -> Result<FixSummary, CoderError> {
        panic!("it was asked to mend")
    }
}

/// A world whose coder asks the gate about everything.
pub(super) async fn honest() -> World {
    world(Manner::Honest).await
}
