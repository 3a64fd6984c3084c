//! What a running worker answers with: everything that is configured.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::configured::{Configured, People};
use super::gate::{HookGate, Question};
use super::home::{Home, SessionId};
use super::registration::{Found, look_up};
use super::reply::Reply;
use super::service::Answers;
use super::surroundings::Surroundings;
use crate::approvals::Approvals;
use crate::clock::Clock;
use crate::events::EventSink;

/// The gate with its configuration, its people and its means.
#[derive(Clone)]
pub struct ConfiguredAnswers {
    /// The gate's state.
    pub home: Home,
    /// Profiles, prompts that are refused, scores, the classifier.
    pub configured: Configured,
    /// The queue.
    pub approvals: Approvals,
    /// Where people and scores are waited for.
    pub runtime: Handle,
    /// Where events go.
    pub events: Arc<dyn EventSink>,
    /// What the time is for sessions of the worker's own.
    pub clock: Arc<dyn Clock>,
    /// The permission profile of sessions of the worker's own (`agent.profile`).
    pub profile: Option<String>,
    /// Our own binary.
    pub launcher: PathBuf,
    /// How long the producers of one end of a turn may take.
    pub within: Duration,
}

impl ConfiguredAnswers {
    /// Answers a question of a session with these surroundings. Waits where it must: not to be called on a runtime's own thread.
    pub fn answer_within(&self, question: &Question<'_>, surroundings: &Surroundings) -> Reply {
        let registered = SessionId::parse(question.session)
            .ok()
            .map(|id| look_up(&self.home, &id));
        let intent = match registered {
            Some(Found::Registered(session)) => session.intent,
            _ => None,
        };
        let stages = self
            .configured
            .of_session(question.session, intent.as_deref());
        let people = People {
            approvals: self.approvals.clone(),
            runtime: self.runtime.clone(),
            role: question.role.to_owned(),
        };
        let gate = HookGate {
            stages: &stages,
            approver: &people,
            surroundings,
            ..HookGate::plain(&self.home, self.events.as_ref())
        };
        gate.reply(question, &self.launcher, self.within)
    }
}

impl Answers for ConfiguredAnswers {
    fn answer(&self, question: &Question<'_>) -> Reply {
        self.answer_within(question, Surroundings::unknown())
    }
}

/// Answers for one session alone, at a socket of its own: its sandbox shows no other, so that an agent cannot ask in another's name.
pub struct SessionAnswers {
    /// The session.
    pub session: String,
    /// What answers.
    pub answers: Arc<ConfiguredAnswers>,
    /// What there is around the session.
    pub surroundings: Surroundings,
}

impl Answers for SessionAnswers {
    fn answer(&self, question: &Question<'_>) -> Reply {
        // Break it: answer for any session; `worker::gated::a_sessions_socket_answers_for_it_alone` fails.
        if question.session != self.session {
            return Reply::block("this socket answers for another session");
        }
        self.answers.answer_within(question, &self.surroundings)
    }
}
