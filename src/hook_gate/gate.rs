//! One event of a hook, from its bytes to the reply: look the session up, decide, put it on record, answer.

use std::path::Path;

use serde_json::{Map, Value};

use super::home::{Home, SessionId, StateError};
use super::places::Worktree;
use super::record::{Receipts, Recorded};
use super::registration::{Found, Registered, look_up, look_up_compatible};
use super::reply::{HookEvent, Reply};
use super::surroundings::Surroundings;
use crate::attest::predicate::GateStage;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::events::{Event, EventSink};
use crate::receipts::{Alignment, Checked, Door, GivenArguments};
use crate::tool_gate::{
    Answer, Call, Check, Classified, Decision, EventError, Failure, Fallback, NoStages, Posture,
    Session, Stages, Standing, ToolClass, decide, tool_class,
};

/// Whoever waits for a person's answer to a call that nothing else settled.
pub trait Approver {
    /// Waits and decides: the answer is never [`Answer::Ask`].
    fn wait(&self, session: &Registered, call: &Call, asked: &Decision) -> Decision;
}

/// Nobody waits: what is asked is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyToAsk;

impl Approver for NobodyToAsk {
    fn wait(&self, _session: &Registered, call: &Call, asked: &Decision) -> Decision {
        Decision {
            answer: Answer::Deny,
            reason: Some(format!(
                "approval gate: {} needs a person's answer, and nobody can be asked here",
                call.tool
            )),
            ..asked.clone()
        }
    }
}

/// The other checks, with the one of the session's token.
struct WithToken<'a> {
    checked: Option<&'a Checked>,
    others: &'a dyn Stages,
}

impl Stages for WithToken<'_> {
    fn capability_token(&self, call: &Call) -> Check {
        let denial = self.checked.and_then(|checked| checked.denial.as_ref());
        match denial {
            // Break it: let it pass; `hook_gate::tokens::a_call_outside_of_its_token_is_refused` fails.
            Some(denial) => Check::Denied {
                code: "capability-token",
                reason: format!("capability token ({}): {}", denial.stage, denial.reason),
            },
            None => self.others.capability_token(call),
        }
    }

    fn permission_profile(&self, call: &Call, profile: Option<&str>) -> Check {
        self.others.permission_profile(call, profile)
    }

    fn deny_prompts(&self, call: &Call) -> Check {
        self.others.deny_prompts(call)
    }

    fn alignment(&self, call: &Call) -> Check {
        self.others.alignment(call)
    }

    fn classifier(&self, call: &Call) -> Classified {
        self.others.classifier(call)
    }

    fn smart_auto_approve(&self) -> bool {
        self.others.smart_auto_approve()
    }

    fn always_allow(&self, call: &Call) -> Option<String> {
        self.others.always_allow(call)
    }

    fn interactive(&self) -> bool {
        self.others.interactive()
    }
}

/// What a decision was about, for its record.
pub(super) struct Answered<'a> {
    call: Option<&'a Call>,
    checked: Option<Checked>,
    score: Option<Alignment>,
    input: Sha256Digest,
}

/// What is asked of the gate.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The session's id, as given.
    pub session: &'a str,
    /// When.
    pub event: HookEvent,
    /// What the client wrote to the hook.
    pub input: &'a [u8],
    /// The folder the hook runs in.
    pub folder: &'a Path,
    /// Whether the worktree's own policy file gates the session.
    pub compatible: bool,
    /// What the client says it is, for receipts.
    pub role: &'a str,
    /// By which door it comes.
    pub door: Door,
    /// Now.
    pub now: Millis,
}

/// The gate behind a hook, with everything it needs.
pub struct HookGate<'a> {
    /// Its state.
    pub home: &'a Home,
    /// Where events go.
    pub events: &'a dyn EventSink,
    /// The checks of others.
    pub stages: &'a dyn Stages,
    /// Who waits for people.
    pub approver: &'a dyn Approver,
    /// What the worker knows of the session beyond its registration.
    pub surroundings: &'a Surroundings,
}

impl std::fmt::Debug for HookGate<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HookGate")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

impl<'a> HookGate<'a> {
    /// A gate with our own checks alone.
    pub fn plain(home: &'a Home, events: &'a dyn EventSink) -> Self {
        Self {
            home,
            events,
            stages: &NoStages,
            approver: &NobodyToAsk,
            surroundings: Surroundings::unknown(),
        }
    }

    /// The session of a question, or the reply that there is none in order.
    pub(super) fn session(&self, question: &Question<'_>) -> Result<Box<Registered>, Reply> {
        let fail = |failure, posture, reason: &str| {
            self.failed(question, failure, posture, ToolClass::Unknown, reason)
        };
        let Ok(id) = SessionId::parse(question.session) else {
            return Err(fail(
                Failure::UnsafeSession,
                Posture::Closed,
                "the session id is not one that the gate hands out; nothing was looked at",
            ));
        };
        let found = if question.compatible {
            look_up_compatible(self.home, &id, question.folder)
        } else {
            look_up(self.home, &id)
        };
        match found {
            Found::Registered(session) => Ok(session),
            Found::Unknown => Err(fail(
                Failure::UnknownSession,
                Posture::Closed,
                "this session was never registered with the gate; nothing was looked at",
            )),
            Found::PolicyMissing(posture) => Err(fail(
                Failure::PolicyMissing,
                posture,
                "the session is registered, but its policy is missing; register it again",
            )),
            Found::PolicyUnreadable(posture, reason) => {
                Err(fail(Failure::PolicyUnreadable, posture, &reason))
            }
            Found::StateUnreadable(reason) => {
                Err(fail(Failure::StateUnreadable, Posture::Closed, &reason))
            }
        }
    }

    /// Answers before a tool is used.
    pub fn before_tool(&self, question: &Question<'_>) -> Reply {
        let session = match self.session(question) {
            Ok(session) => session,
            Err(reply) => return reply,
        };
        let call = match Call::read(question.input) {
            Ok(call) => call,
            Err(error) => {
                let failure = if error == EventError::TooLong {
                    Failure::EventTooLarge
                } else {
                    Failure::EventUnreadable
                };
                let decision = Decision::failed(
                    failure,
                    GateStage::Session,
                    session.posture,
                    ToolClass::Unknown,
                    error.to_string(),
                );
                let answered = Answered {
                    call: None,
                    checked: None,
                    score: None,
                    input: Sha256Digest::of(question.input),
                };
                return self.answer(question, &session, decision, answered);
            }
        };
        let arguments = serde_json::to_vec(&call.arguments).unwrap_or_default();
        let given = GivenArguments::read(&arguments);
        let ruleset = session.policy.digest();
        let tokens = session.tokens.as_ref();
        let checked =
            tokens.map(|tokens| tokens.check(self.home, &call, &given, ruleset, question.now));
        let decision = match self.surroundings.take_call() {
            Ok(()) => self.decided(&session, &call, checked.as_ref()),
            Err(reason) => beyond_budget(&call, reason),
        };
        let answered = Answered {
            call: Some(&call),
            checked,
            score: self.stages.score(),
            input: given.digest,
        };
        self.answer(question, &session, decision, answered)
    }

    fn decided(&self, session: &Registered, call: &Call, checked: Option<&Checked>) -> Decision {
        let places = Worktree {
            top: session.worktree.clone(),
            state: self.home.whole(),
            home: std::env::var_os("HOME").map(std::path::PathBuf::from),
            folds: session.folds,
        };
        let gated = Session {
            policy: session.policy.clone(),
            sandboxed: session.sandboxed,
            profile: session.profile.clone(),
        };
        let stages = WithToken {
            checked,
            others: self.stages,
        };
        let decision = decide(
            call,
            Standing::Gated(&gated),
            session.posture,
            &places,
            &stages,
        );
        if decision.answer == Answer::Ask {
            self.approver.wait(session, call, &decision)
        } else {
            decision
        }
    }

    /// Puts a decision on record and says what the client is told. Not on record means not allowed, for what is consequential.
    pub(super) fn answer(
        &self,
        question: &Question<'_>,
        session: &Registered,
        decision: Decision,
        answered: Answered<'_>,
    ) -> Reply {
        let call = answered.call;
        let tool = call.map_or("unreadable", |call| call.tool.as_str());
        let allowed = decision.answer == Answer::Allow;
        let decision = Decision {
            // A reason is one line: what it quotes may hold more.
            reason: decision.reason.map(|reason| one_line(&reason)),
            ..decision
        };
        let stage = stage_name(decision.stage);
        let recorded = Recorded {
            allowed,
            stage: &stage,
            reason: decision.reason.as_deref().unwrap_or(decision.code),
            tool,
            agent: call
                .and_then(|call| call.subagent.as_deref())
                .unwrap_or(question.role),
            input: answered.input,
            checked: answered.checked.as_ref(),
            score: answered.score,
        };
        let written = self.record(session, &recorded, question);
        self.tell(
            question,
            Some(session),
            call,
            &decision,
            &stage,
            written.is_ok(),
        );
        if let Err(error) = written
            && allowed
        {
            let words = format!("the receipt of this call cannot be written: {error}");
            // Break it: allow all the same; `hook_gate::receipts::without_a_receipt_nothing_consequential_goes_on` fails.
            return self.failed(
                question,
                Failure::ReceiptUnwritable,
                session.posture,
                decision.class,
                &words,
            );
        }
        if allowed {
            match decision.reason {
                Some(reason) => Reply::allow_with(reason),
                None => Reply::allow(),
            }
        } else {
            Reply::block(decision.reason.unwrap_or_default())
        }
    }

    /// Adds a receipt.
    pub(super) fn record(
        &self,
        session: &Registered,
        recorded: &Recorded<'_>,
        question: &Question<'_>,
    ) -> Result<(), StateError> {
        Receipts::open(self.home, session, question.door)?
            .add(recorded, question.now)
            .map(drop)
    }

    /// What a guard's failure comes to, with its event.
    pub(super) fn failed(
        &self,
        question: &Question<'_>,
        failure: Failure,
        posture: Posture,
        class: ToolClass,
        reason: &str,
    ) -> Reply {
        let class = match (class, Call::read(question.input)) {
            (ToolClass::Unknown, Ok(call)) => tool_class(&call.tool),
            _ => class,
        };
        let fallback = failure.fallback(posture, class.is_consequential());
        let mut fields = fields(question);
        fields.insert("code".into(), failure.code().into());
        let allowed = fallback == Fallback::AllowWithEvent;
        fields.insert("decision".into(), word(allowed).into());
        self.emit("gate_decision", question.session, fields);
        match fallback {
            Fallback::AllowWithEvent => Reply::allow_with(reason),
            Fallback::Deny => Reply::block(reason),
        }
    }

    fn tell(
        &self,
        question: &Question<'_>,
        session: Option<&Registered>,
        call: Option<&Call>,
        decision: &Decision,
        stage: &str,
        on_record: bool,
    ) {
        let mut fields = fields(question);
        fields.insert(
            "decision".into(),
            word(decision.answer == Answer::Allow).into(),
        );
        fields.insert("stage".into(), stage.into());
        fields.insert("code".into(), decision.code.into());
        fields.insert("class".into(), decision.class.name().into());
        fields.insert("receipt".into(), on_record.into());
        if let Some(call) = call {
            let tool: String = call.tool.chars().take(128).collect();
            fields.insert("tool".into(), tool.into());
            if call.subagent.is_some() {
                fields.insert("subagent".into(), true.into());
            }
        }
        if let Some(session) = session {
            fields.insert("advisory".into(), (!session.sandboxed).into());
        }
        let task = session.map_or(question.session, |session| session.policy.task());
        // Break it: leave this out; `hook_gate::automatic::what_the_classifier_approves_is_told_as_the_softwares_own_decision` fails.
        if decision.stage == GateStage::ClassifierApprove {
            let mut own = fields.clone();
            own.insert("actor".into(), CLASSIFIER.into());
            self.emit("auto_approve_decision", task, own);
        }
        self.emit("gate_decision", task, fields);
    }

    pub(super) fn emit(&self, name: &'static str, task: &str, fields: Map<String, Value>) {
        let task: String = task.chars().take(200).collect();
        // The receipt is the record; a stream that is down is its own alarm.
        drop(self.events.record(&Event::new(name, task, fields)));
    }
}

/// Who decides where the classifier approves: a name that no person may have.
const CLASSIFIER: &str = "system:classifier";

/// The denial of a call that is one too many.
fn beyond_budget(call: &Call, reason: String) -> Decision {
    Decision {
        answer: Answer::Deny,
        stage: GateStage::Session,
        code: "tool-budget",
        reason: Some(reason),
        class: tool_class(&call.tool),
    }
}

fn fields(question: &Question<'_>) -> Map<String, Value> {
    let session: String = question.session.chars().take(128).collect();
    Map::from_iter([
        ("session".to_owned(), session.into()),
        ("event".to_owned(), question.event.name().into()),
    ])
}

fn one_line(reason: &str) -> String {
    reason.replace('\n', "\\n")
}

const fn word(allowed: bool) -> &'static str {
    if allowed { "allow" } else { "deny" }
}

/// A stage by the name that receipts and outcomes give it.
fn stage_name(stage: GateStage) -> String {
    serde_json::to_value(stage)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}
