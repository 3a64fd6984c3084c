//! The checks that an installation's configuration adds to the gate's own: permission profiles, prompts that are refused, scores, the
//! classifier, and people.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;

use super::gate::Approver;
use super::registration::Registered;
use crate::alignment::{Alignment, Scored};
use crate::approvals::{Answer as Answered, Approvals, AskError, Question as Asked};
use crate::attest::predicate::GateStage;
use crate::attest::{Label, Text};
use crate::change::Sha256Digest;
use crate::config::{Configuration, DenyPrompts};
use crate::intent::{Reason, action_text};
use crate::receipts::Alignment as ReceiptScore;
use crate::tool_gate::approval::{AskingSettings, Settled, Step, settle};
use crate::tool_gate::classifier::Looked;
use crate::tool_gate::profile::{self, Profile, Profiled};
use crate::tool_gate::{
    Answer, Call, Check, Classified, Decision, Failure, Stages, ToolClass, command_texts, effects,
    given_commands, shell, tool_description,
};

/// Where calls are scored against their session's intent.
#[derive(Clone)]
pub enum Scoring {
    /// Nowhere: it is off.
    Off,
    /// Only in the running worker, so that who asks elsewhere is refused.
    Elsewhere,
    /// Here.
    Here(Arc<Alignment>, Handle),
}

/// What the configuration says about calls of tools.
#[derive(Clone)]
pub struct Configured {
    profiles: BTreeMap<String, Profile>,
    settings: AskingSettings,
    deny_prompts: DenyPrompts,
    scoring: Scoring,
}

impl Default for Configured {
    /// What counts where nothing is configured.
    fn default() -> Self {
        Self {
            profiles: BTreeMap::new(),
            settings: AskingSettings {
                interactive: false,
                smart_auto_approve: false,
            },
            deny_prompts: DenyPrompts::default(),
            scoring: Scoring::Off,
        }
    }
}

impl Configured {
    /// Of a configuration.
    pub fn new(configuration: &Configuration, scoring: Scoring) -> Self {
        let approvals = &configuration.approvals;
        Self {
            profiles: approvals.profiles.clone(),
            settings: AskingSettings {
                interactive: approvals.interactive,
                smart_auto_approve: approvals.smart_auto_approve,
            },
            deny_prompts: configuration.deny_prompts.clone(),
            scoring,
        }
    }

    /// The same with calls scored there.
    #[must_use]
    pub fn scored(self, scoring: Scoring) -> Self {
        Self { scoring, ..self }
    }

    /// The checks for one session; `session` and `intent` are what it was registered with.
    pub const fn of_session<'a>(
        &'a self,
        session: &'a str,
        intent: Option<&'a str>,
    ) -> SessionStages<'a> {
        SessionStages {
            configured: self,
            session,
            intent,
            score: OnceLock::new(),
        }
    }
}

/// The checks for one session.
pub struct SessionStages<'a> {
    configured: &'a Configured,
    session: &'a str,
    intent: Option<&'a str>,
    score: OnceLock<ReceiptScore>,
}

impl SessionStages<'_> {
    fn profiled(&self, call: &Call, profile: Option<&str>) -> Profiled {
        let configured = self.configured;
        profile::check(
            &configured.profiles,
            profile,
            &call.tool,
            configured.settings.interactive,
        )
    }

    fn action(call: &Call) -> String {
        let description = tool_description(&call.tool);
        action_text(&call.tool, description, &call.arguments.to_string())
    }
}

impl Stages for SessionStages<'_> {
    fn permission_profile(&self, call: &Call, profile: Option<&str>) -> Check {
        match self.profiled(call, profile) {
            Profiled::Passes => Check::Passed,
            Profiled::Asks => Check::Asks(format!(
                "the permission profile asks a person about {}",
                call.tool
            )),
            Profiled::Refused(reason) => Check::Denied {
                code: "profile",
                reason,
            },
        }
    }

    fn deny_prompts(&self, call: &Call) -> Check {
        let prompts = &self.configured.deny_prompts;
        let found = self
            .intent
            .and_then(|intent| {
                prompts
                    .matching(intent)
                    .map(|number| ("the session's intent", number))
            })
            .or_else(|| {
                prompts
                    .matching(&Self::action(call))
                    .map(|number| ("the call", number))
            });
        found.map_or(Check::Passed, |(place, number)| Check::Denied {
            code: "deny-prompt",
            reason: format!("{place} matches security.deny_prompts, pattern {number}"),
        })
    }

    fn alignment(&self, call: &Call) -> Check {
        let (alignment, handle) = match &self.configured.scoring {
            Scoring::Off => return Check::Passed,
            // Break it: let it pass (`hook_gate::configured::what_only_the_worker_can_score_is_refused_elsewhere`).
            Scoring::Elsewhere => {
                return Check::Unavailable {
                    failure: Failure::AlignmentUnavailable,
                    code: "alignment-elsewhere",
                    reason: "calls are scored by the running worker only: render the hooks with --socket".to_owned(),
                };
            }
            Scoring::Here(alignment, handle) => (alignment, handle),
        };
        let scored = handle.block_on(async {
            if let Some(intent) = self.intent {
                // Without an intent every call of the task is refused, which is what a failed beginning comes to.
                drop(alignment.begin(self.session, intent).await);
            }
            let arguments = call.arguments.to_string();
            alignment
                .score(
                    self.session,
                    &call.tool,
                    tool_description(&call.tool),
                    &arguments,
                )
                .await
        });
        if let Some(score) = measured(&scored, self.intent) {
            let _first_counts = self.score.set(score);
        }
        if scored.is_denied() {
            Check::Denied {
                code: scored.reason.code(),
                reason: format!("intent_alignment: {}", scored.reason),
            }
        } else {
            Check::Passed
        }
    }

    fn score(&self) -> Option<ReceiptScore> {
        self.score.get().cloned()
    }

    fn classifier(&self, call: &Call) -> Classified {
        // Whether it is approved counts only where people are asked; what is never done, always.
        let settings = AskingSettings {
            interactive: true,
            smart_auto_approve: true,
        };
        match settle(
            Profiled::Passes,
            looked(call, &mut Taken::default()),
            settings,
        ) {
            Settled::Deny(_, reason) => Classified::Denied(reason),
            Settled::Allow(Step::ClassifierApprove) => Classified::Approved,
            Settled::Allow(_) | Settled::Ask => Classified::Undecided,
        }
    }

    fn smart_auto_approve(&self) -> bool {
        self.configured.settings.smart_auto_approve
    }

    fn interactive(&self) -> bool {
        self.configured.settings.interactive
    }
}

/// What the call's receipt says of its score; nothing of a tool that is not scored.
fn measured(scored: &Scored, intent: Option<&str>) -> Option<ReceiptScore> {
    if scored.reason == Reason::Exempt {
        return None;
    }
    let embedder = scored.embedder.as_ref()?;
    let thresholds = scored.thresholds?;
    // What was refused although the score would do (no event could be written) must not read as if the score had refused it.
    let counts = scored.reason != Reason::Unrecorded;
    Some(ReceiptScore {
        score_micro: scored
            .score
            .filter(|_| counts)
            .map(|score| score.micro().into()),
        embedder: Label::new(embedder.as_str()).ok()?,
        dimensions: scored.dimension.unwrap_or_default() as u64,
        intent: scored
            .intent
            .unwrap_or_else(|| Sha256Digest::of(intent.unwrap_or_default().as_bytes())),
        action: scored.action,
        threshold_micro: thresholds.soft().micro().into(),
        hard_threshold_micro: thresholds.hard().micro().into(),
        reason: Text::clipped(&scored.reason.to_string()),
    })
}

/// What a call gives the classifier to look at.
#[derive(Default)]
struct Taken {
    commands: shell::Commands,
    text: String,
}

/// What the classifier looks at; `taken` keeps what it borrows. Of several commands it sees all.
fn looked<'a>(call: &Call, taken: &'a mut Taken) -> Looked<'a> {
    match effects(call, &[]).class {
        ToolClass::Read => return Looked::Reads,
        ToolClass::Execute => {}
        _ => return Looked::Other,
    }
    let given = given_commands(call);
    if given.is_empty() {
        return Looked::Other;
    }
    if given.iter().any(Option::is_none) {
        taken.text = command_texts(call).join("\n");
        return Looked::Text(&taken.text);
    }
    for commands in given.into_iter().flatten() {
        taken.commands.join(commands);
    }
    Looked::Commands {
        commands: &taken.commands.commands,
        redirects: taken.commands.redirects,
    }
}

/// People, asked through the queue.
pub struct People {
    /// The queue.
    pub approvals: Approvals,
    /// Where its work runs.
    pub runtime: Handle,
    /// The role of the agent.
    pub role: String,
}

impl Approver for People {
    fn wait(&self, session: &Registered, call: &Call, asked: &Decision) -> Decision {
        let worktree = session.worktree.to_string_lossy();
        let question = Asked {
            worktree: &worktree,
            works_in: call.folder.as_deref(),
            session: &session.session,
            task: session.policy.task(),
            role: &self.role,
            tool: &call.tool,
            arguments: &call.arguments,
        };
        decided(self.runtime.block_on(self.approvals.ask(&question)), asked)
    }
}

/// What an answer makes of a call.
pub fn decided(answer: Result<Answered, AskError>, asked: &Decision) -> Decision {
    let (answer, stage, code, reason) = match answer {
        Ok(Answered::Always(id)) => (
            Answer::Allow,
            GateStage::AlwaysAllow,
            "always-allow",
            format!("always allowed ({id})"),
        ),
        Ok(Answered::Allowed) => (
            Answer::Allow,
            GateStage::Person,
            "person-allowed",
            "a person allowed it".to_owned(),
        ),
        Ok(Answered::Refused(reason)) => {
            (Answer::Deny, GateStage::Person, "person-refused", reason)
        }
        // Break it: allow it (`hook_gate::configured::when_nobody_can_be_asked_the_call_is_refused`).
        Err(error) => (
            Answer::Deny,
            GateStage::Person,
            "nobody-to-ask",
            format!("nobody can be asked: {error}"),
        ),
    };
    Decision {
        answer,
        stage,
        code,
        reason: Some(reason),
        class: asked.class,
    }
}
