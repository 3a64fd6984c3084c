//! Calls of tools that a person is asked about: one queue for every process, on both databases.

use std::sync::{Arc, Mutex};

use caretaker::approvals::{Answer, Approvals, Question};
use caretaker::clock::{FixedClock, SystemClock};
use caretaker::events::{Event, EventSink, SinkError};
use caretaker::id::{AlwaysId, ToolCallId};
use caretaker::signer::system_randomness;
use caretaker::store::{CallAnswer, CallDecision, NewCall, Resolved, ToolCall};
use caretaker::tool_gate::always_allow::Pattern;
use caretaker::tool_gate::call_pattern::CallOrigin;
use caretaker::tool_gate::decider::{AuthMethod, Decider};
use serde_json::json;

use super::*;

/// Keeps events, or refuses them.
#[derive(Default)]
struct Kept {
    events: Mutex<Vec<Event>>,
    refuses: std::sync::atomic::AtomicBool,
}

impl EventSink for Kept {
    fn record(&self, event: &Event) -> Result<(), SinkError> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(SinkError("the disk is full".to_owned()));
        }
        self.events.lock().unwrap().push(event.clone());
        Ok(())
    }
}

fn ada() -> Decider {
    Decider::person("os-user:ada", AuthMethod::LocalShell, None).unwrap()
}

fn pattern(number: u32) -> Pattern {
    Pattern::of(
        "Bash",
        &json!({"command": "cargo publish", "number": number}),
    )
}

async fn ask(world: &World, number: u32) -> ToolCallId {
    let origin = CallOrigin::default();
    let id = ToolCallId::new(NOW, world.fresh());
    let call = NewCall {
        id: id.clone(),
        session: "s-1",
        task: "inc-1",
        role: "worker",
        pattern: pattern(number),
        arguments: "{\"command\":\"cargo publish\"}",
        nonce: &"ab".repeat(16),
        ttl_seconds: 600,
        origin: &origin,
    };
    let organisation = &world.project.organisation;
    world
        .store
        .ask_about_call(organisation, &call, NOW)
        .await
        .unwrap();
    id
}

async fn answer(
    world: &World,
    id: &ToolCallId,
    decision: CallDecision,
    nonce: Option<&str>,
    seconds: i64,
) -> Resolved {
    let decider = ada();
    let answer = CallAnswer {
        decision,
        nonce,
        decider: &decider,
        reason: Some("because"),
        pattern: None,
    };
    let always = AlwaysId::new(NOW, world.fresh());
    let organisation = &world.project.organisation;
    let store = &world.store;
    let mut record = fine;
    let resolved = store.resolve_call(
        organisation,
        id,
        &answer,
        &always,
        after(seconds),
        &mut record,
    );
    resolved.await.unwrap()
}

/// The same, when it has to count.
async fn answered_now(
    world: &World,
    id: &ToolCallId,
    decision: CallDecision,
    nonce: Option<&str>,
    seconds: i64,
) {
    let resolved = answer(world, id, decision, nonce, seconds).await;
    assert!(matches!(resolved, Resolved::Done(_)), "{resolved:?}");
}

async fn call(world: &World, id: &ToolCallId) -> ToolCall {
    let found = world.store.tool_call(&world.project.organisation, id).await;
    found.unwrap().unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "what is put on record may fail")]
fn fine(_: &ToolCall) -> Result<(), String> {
    Ok(())
}

const NONCE: &str = "abababababababababababababababab";

on_both! {
    async fn a_call_waits_is_answered_once_and_stays_as_it_was_answered(world) {
        let id = ask(&world, 1).await;
        let pending = world.store.pending_calls(&world.project.organisation, after(1)).await.unwrap();
        assert_eq!(pending.len(), 1);
        let Resolved::Done(done) = answer(&world, &id, CallDecision::Allow, Some(NONCE), 1).await else {
            panic!("not done");
        };
        let resolution = done.resolution.clone().unwrap();
        assert_eq!((resolution.decision, resolution.decider), (CallDecision::Allow, ada()));
        for decision in [CallDecision::Reject, CallDecision::Allow, CallDecision::Always] {
            assert_eq!(answer(&world, &id, decision, Some(NONCE), 2).await, Resolved::Gone);
        }
        assert_eq!(call(&world, &id).await, *done);
        assert!(world.store.pending_calls(&world.project.organisation, after(2)).await.unwrap().is_empty());
    }

    async fn an_answer_repeats_the_nonce(world) {
        let id = ask(&world, 1).await;
        for nonce in [None, Some(""), Some("cd"), Some("ABABABABABABABABABABABABABABABAB")] {
            assert_eq!(answer(&world, &id, CallDecision::Allow, nonce, 1).await, Resolved::WrongNonce);
        }
        assert_eq!(call(&world, &id).await.resolution, None);
        let unknown = ToolCallId::new(NOW, world.fresh());
        assert_eq!(answer(&world, &unknown, CallDecision::Allow, Some(NONCE), 1).await, Resolved::Unknown);
    }

    async fn one_of_many_answers_counts(world) {
        let id = ask(&world, 1).await;
        let world = Arc::new(world);
        let mut answers = tokio::task::JoinSet::new();
        for place in 0..8 {
            let (world, id) = (Arc::clone(&world), id.clone());
            let decision = if place % 2 == 0 { CallDecision::Allow } else { CallDecision::Reject };
            answers.spawn(async move { answer(&world, &id, decision, Some(NONCE), 1).await });
        }
        let answers = answers.join_all().await;
        let done: Vec<_> = answers.iter().filter(|answer| matches!(answer, Resolved::Done(_))).collect();
        assert_eq!(done.len(), 1);
        assert_eq!(*done[0], Resolved::Done(Box::new(call(&world, &id).await)));
    }

    // The fault of the neighbour: at the end of the time the waiting hook wrote its refusal over a person's answer.
    async fn the_end_of_the_time_is_final_and_overwrites_nothing(world) {
        let organisation = world.project.organisation.clone();
        let expire = async |id: &ToolCallId, seconds: i64| {
            let decider = Decider::system("approval-queue/ttl-expiry");
            let mut record = fine;
            let ended = world.store.expire_call(&organisation, id, &decider, after(seconds), &mut record);
            ended.await.unwrap().unwrap().resolution
        };
        let answered = ask(&world, 1).await;
        answered_now(&world, &answered, CallDecision::Allow, Some(NONCE), 599).await;
        assert_eq!(expire(&answered, 601).await.unwrap().decision, CallDecision::Allow);

        let forgotten = ask(&world, 2).await;
        assert_eq!(expire(&forgotten, 599).await, None, "not before its time");
        assert_eq!(answer(&world, &forgotten, CallDecision::Allow, Some(NONCE), 600).await, Resolved::Gone);
        let ended = expire(&forgotten, 600).await.unwrap();
        assert_eq!((ended.decision, ended.decider.identifier()), (CallDecision::Reject, "system:approval-queue/ttl-expiry"));
        assert_eq!(answer(&world, &forgotten, CallDecision::Allow, Some(NONCE), 601).await, Resolved::Gone);
        assert_eq!(call(&world, &forgotten).await.resolution, Some(ended));
    }

    async fn always_allows_exactly_this_until_it_is_taken_back(world) {
        let organisation = world.project.organisation.clone();
        let allowed = async |number| world.store.always_allowed(&organisation, &pattern(number)).await.unwrap();
        let id = ask(&world, 1).await;
        assert_eq!(allowed(1).await, None);
        answered_now(&world, &id, CallDecision::Always, Some(NONCE), 1).await;
        let always = allowed(1).await.unwrap();
        assert_eq!(allowed(2).await, None, "other arguments");
        // The same once more is the same pattern.
        let again = ask(&world, 1).await;
        answered_now(&world, &again, CallDecision::Always, Some(NONCE), 1).await;
        assert_eq!(world.store.always_list(&organisation).await.unwrap().len(), 1);
        assert!(world.store.revoke_always(&organisation, &always, &ada(), after(2)).await.unwrap());
        assert!(!world.store.revoke_always(&organisation, &always, &ada(), after(3)).await.unwrap());
        assert_eq!(allowed(1).await, None);
        let listed = world.store.always_list(&organisation).await.unwrap();
        assert_eq!(listed[0].revoked, Some((ada(), after(2))));
    }

    async fn another_organisation_sees_and_answers_nothing(world) {
        let id = ask(&world, 1).await;
        let other = OrganisationId::new(NOW, [99; 10]);
        world.store.ensure_organisation(&other, "other", NOW).await.unwrap();
        assert!(world.store.pending_calls(&other, after(1)).await.unwrap().is_empty());
        assert_eq!(world.store.tool_call(&other, &id).await.unwrap(), None);
        let decider = ada();
        let given = CallAnswer { decision: CallDecision::Allow, nonce: Some(NONCE), decider: &decider, reason: None, pattern: None };
        let always = AlwaysId::new(NOW, world.fresh());
        let mut record = fine;
        let resolved = world.store.resolve_call(&other, &id, &given, &always, after(1), &mut record);
        assert_eq!(resolved.await.unwrap(), Resolved::Unknown);
        assert_eq!(call(&world, &id).await.resolution, None);
    }

    async fn the_queue_is_bounded(world) {
        let organisation = world.project.organisation.clone();
        let mut refused = None;
        for number in 0..1_001 {
            let call = NewCall {
                id: ToolCallId::new(after(number), [7; 10]),
                session: "s-1",
                task: "inc-1",
                role: "worker",
                pattern: pattern(0),
                arguments: "{}",
                nonce: NONCE,
                ttl_seconds: 600,
                origin: &CallOrigin::default(),
            };
            refused = world.store.ask_about_call(&organisation, &call, NOW).await.err();
        }
        let refused = refused.unwrap().to_string();
        assert!(refused.contains("1000 calls wait for an answer already"), "{refused}");
    }

    // From any process: the one that waits has nothing to do with the one that answers but the database.
    async fn an_answer_releases_whoever_waits_elsewhere(world) {
        let events = Arc::new(Kept::default());
        let queue = async |store| {
            Approvals::new(store, world.project.organisation.clone(), events.clone(), Arc::new(SystemClock), system_randomness, 600)
        };
        let waiting = queue(world.store.clone()).await;
        let answering = queue(Store::open(&world.url).await.unwrap()).await;
        let arguments = json!({"command": "cargo publish"});
        let question = Question { session: "s-1", task: "inc-1", role: "worker", tool: "Bash", arguments: &arguments, worktree: "/work", works_in: None };
        for (decision, expected) in [
            (CallDecision::Reject, Answer::Refused("because".to_owned())),
            (CallDecision::Allow, Answer::Allowed),
            (CallDecision::Always, Answer::Allowed),
        ] {
            let answer = async {
                loop {
                    let pending = answering.pending().await.unwrap();
                    let Some(call) = pending.first() else {
                        tokio::task::yield_now().await;
                        continue;
                    };
                    let decider = ada();
                    let given = CallAnswer { decision, nonce: Some(&call.nonce), decider: &decider, reason: Some("because"), pattern: None };
                    let begun = std::time::Instant::now();
                    let resolved = answering.resolve(&call.id, &given).await.unwrap();
                    assert!(matches!(resolved, Resolved::Done(_)));
                    return begun;
                }
            };
            let (answered, _) = tokio::join!(waiting.ask(&question), answer);
            assert_eq!(answered.unwrap(), expected);
        }
        // Now it is always allowed, and nobody is asked.
        assert!(matches!(waiting.ask(&question).await.unwrap(), Answer::Always(_)));
        // Elsewhere somebody is asked.
        let elsewhere = Question { works_in: Some("/work/other"), ..question };
        let asked = async {
            while answering.pending().await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            answer = waiting.ask(&elsewhere) => panic!("{answer:?}"),
            () = asked => {}
        }
        let events = events.events.lock().unwrap();
        let told: Vec<_> = events.iter().map(|event| (event.event, event.fields["actor"].as_str().unwrap())).collect();
        assert_eq!(told, [
            ("human_approval_decision", "os-user:ada"),
            ("human_approval_decision", "os-user:ada"),
            ("human_approval_decision", "os-user:ada"),
            ("always_allow_promotion", "os-user:ada"),
        ]);
        assert!(!format!("{events:?}").contains("cargo publish"), "arguments are not in the stream");
    }

    // The line to break is named in `approvals`.
    async fn a_pattern_that_is_stated_allows_what_it_stands_for_in_its_project(world) {
        let events = Arc::new(Kept::default());
        let queue = Approvals::new(
            world.store.clone(), world.project.organisation.clone(), events.clone(), Arc::new(SystemClock), system_randomness, 600,
        );
        let organisation = &world.project.organisation;
        let (first, second) = (json!({"command": "cargo test parser"}), json!({"command": "cargo test reader"}));
        let question = |arguments, worktree| Question {
            session: "s-1", task: "task", role: "worker", tool: "Bash", arguments, worktree, works_in: None,
        };
        let person = async {
            let call = loop {
                match queue.pending().await.unwrap().pop() {
                    Some(call) => break call,
                    None => tokio::task::yield_now().await,
                }
            };
            let decider = ada();
            let state = async |decision, pattern| {
                let given = CallAnswer { decision, nonce: Some(&call.nonce), decider: &decider, reason: None, pattern: Some(pattern) };
                queue.resolve(&call.id, &given).await
            };
            // Of another call, of none, beside another answer: nothing is decided.
            for (decision, pattern) in [
                (CallDecision::Always, "cargo build *"),
                (CallDecision::Always, "sh **"),
                (CallDecision::Allow, "cargo test *"),
            ] {
                let refused = state(decision, pattern).await.unwrap_err().to_string();
                assert!(refused.contains("the pattern is not taken"), "{refused}");
            }
            assert_eq!(queue.call(&call.id).await.unwrap().unwrap().resolution, None);
            assert!(matches!(state(CallDecision::Always, "cargo test *").await.unwrap(), Resolved::Done(_)));
        };
        let one = question(&first, "/work");
        let (answered, ()) = tokio::join!(queue.ask(&one), person);
        assert_eq!(answered.unwrap(), Answer::Allowed);
        assert!(matches!(queue.ask(&question(&second, "/work")).await.unwrap(), Answer::Always(_)));
        assert!(world.store.always_list(organisation).await.unwrap().is_empty(), "not exactly this one besides");

        // Not in another worktree, and not once it was taken back.
        let refusing = async {
            let call = loop {
                match queue.pending().await.unwrap().pop() {
                    Some(call) => break call,
                    None => tokio::task::yield_now().await,
                }
            };
            let decider = ada();
            let given = CallAnswer { decision: CallDecision::Reject, nonce: Some(&call.nonce), decider: &decider, reason: Some("no"), pattern: None };
            let resolved = queue.resolve(&call.id, &given).await;
            assert!(matches!(resolved.unwrap(), Resolved::Done(_)));
        };
        let refused = Answer::Refused("no".to_owned());
        let elsewhere = question(&second, "/elsewhere");
        let (answered, ()) = tokio::join!(queue.ask(&elsewhere), refusing);
        assert_eq!(answered.unwrap(), refused);
        let listed = world.store.pattern_list(organisation).await.unwrap();
        assert_eq!((listed.len(), listed[0].pattern.as_str(), listed[0].scope.as_str()), (1, "cargo test *", "/work"));
        assert!(world.store.revoke_pattern(organisation, &listed[0].id, &ada(), after(1)).await.unwrap());
        assert!(!world.store.revoke_pattern(organisation, &listed[0].id, &ada(), after(2)).await.unwrap());
        assert!(world.store.call_patterns(organisation, "/work", "Bash").await.unwrap().is_empty());
        let told = events.events.lock().unwrap();
        let promoted: Vec<_> = told.iter().filter(|event| event.event == "always_allow_promotion").collect();
        assert_eq!(promoted.len(), 1);
        assert_eq!(promoted[0].fields["pattern"], true);
    }

    // A worker's session has another worktree for each incident: what counts is whose incident it is.
    async fn a_pattern_of_an_incidents_session_counts_in_its_project(world) {
        let organisation = &world.project.organisation;
        let incident = world.open("a job").await;
        let project = world.store.project_of_incident(organisation, &incident).await.unwrap();
        assert_eq!(project, Some(world.project.id.clone()));
        let other = caretaker::id::OrganisationId::new(NOW, [9; 10]);
        assert_eq!(world.store.project_of_incident(&other, &incident).await.unwrap(), None);
    }

    async fn a_question_that_nobody_answers_is_a_refusal_and_not_a_hang(world) {
        let events = Arc::new(Kept::default());
        let clock = Arc::new(FixedClock::at(NOW));
        let queue = Approvals::new(
            world.store.clone(), world.project.organisation.clone(), events.clone(), clock.clone(), system_randomness, 600,
        );
        let arguments = json!({"file_path": "a"});
        let question = Question { session: "s-1", task: "inc-1", role: "worker", tool: "Write", arguments: &arguments, worktree: "/work", works_in: None };
        let later = async {
            while queue.pending().await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            clock.advance_millis(600_000);
        };
        let (answered, ()) = tokio::join!(queue.ask(&question), later);
        let Answer::Refused(why) = answered.unwrap() else { panic!("allowed") };
        assert_eq!(why, "approval gate: no decision within TTL for Write; denied");
        let events = events.events.lock().unwrap();
        assert_eq!(events[0].fields["actor"], "system:approval-queue/ttl-expiry");
    }

    async fn what_cannot_be_put_on_record_is_not_decided(world) {
        let events = Arc::new(Kept::default());
        events.refuses.store(true, Ordering::SeqCst);
        let queue = Approvals::new(
            world.store.clone(), world.project.organisation.clone(), events.clone(), Arc::new(FixedClock::at(after(1))), system_randomness, 600,
        );
        let id = ask(&world, 1).await;
        let decider = ada();
        let given = CallAnswer { decision: CallDecision::Always, nonce: Some(NONCE), decider: &decider, reason: None, pattern: None };
        let error = queue.resolve(&id, &given).await.unwrap_err().to_string();
        assert!(error.contains("the disk is full"), "{error}");
        assert_eq!(call(&world, &id).await.resolution, None);
        assert_eq!(world.store.always_allowed(&world.project.organisation, &pattern(1)).await.unwrap(), None);
    }

    async fn the_sweeper_ends_what_a_dead_agent_left(world) {
        let events = Arc::new(Kept::default());
        let queue = Approvals::new(
            world.store.clone(), world.project.organisation.clone(), events.clone(), Arc::new(FixedClock::at(after(601))), system_randomness, 600,
        );
        let id = ask(&world, 1).await;
        assert_eq!(queue.sweep().await.unwrap(), 1);
        assert_eq!(queue.sweep().await.unwrap(), 0);
        let ended = call(&world, &id).await.resolution.unwrap();
        assert_eq!(ended.decider.identifier(), "system:approval-queue/sweeper");
    }
}
