//! The one decision, in the one order of `decisions.md`: first deny wins and names its stage.

use super::arguments::{Effects, effects};
use super::call::Call;
use super::failure::{Failure, Fallback, Posture};
use super::policy::Policy;
use super::protected::is_protected;
use super::stages::{Check, Classified, Stages};
use super::tools::ToolClass;
use super::touch::{Access, Below, Place, Places, Touch};
use crate::attest::predicate::GateStage;
use crate::attest::text::shown;

/// What is known of the session that makes a call.
#[derive(Debug, Clone, Copy)]
pub enum Standing<'a> {
    /// It was registered, and its policy is the pinned one.
    Gated(&'a Session),
    /// It was not, or what was registered cannot be read.
    Failed(Failure),
}

/// A registered session.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its policy.
    pub policy: Policy,
    /// Whether it runs in the sandbox, whose writable set is the real limit. Elsewhere what cannot be classified is refused.
    pub sandboxed: bool,
    /// Its permission profile, where it has another than the default one.
    pub profile: Option<String>,
}

/// What the gate answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The call goes on.
    Allow,
    /// It does not.
    Deny,
    /// A person decides. Never handed to a client: whoever asks waits.
    Ask,
}

/// The answer, and the check that gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The answer.
    pub answer: Answer,
    /// The check.
    pub stage: GateStage,
    /// A code for events.
    pub code: &'static str,
    /// Why, in words for the agent; always there unless the call goes on with nothing against it.
    pub reason: Option<String>,
    /// What the tool can do.
    pub class: ToolClass,
}

impl Decision {
    /// Whether the call writes, executes or sends.
    pub const fn is_consequential(&self) -> bool {
        self.class.is_consequential()
    }

    fn deny(class: ToolClass, stage: GateStage, code: &'static str, reason: String) -> Self {
        Self {
            answer: Answer::Deny,
            stage,
            code,
            reason: Some(reason),
            class,
        }
    }

    const fn allow(class: ToolClass, stage: GateStage, code: &'static str) -> Self {
        Self {
            answer: Answer::Allow,
            stage,
            code,
            reason: None,
            class,
        }
    }

    /// What a guard's own failure comes to.
    pub fn failed(
        failure: Failure,
        stage: GateStage,
        posture: Posture,
        class: ToolClass,
        reason: String,
    ) -> Self {
        let answer = match failure.fallback(posture, class.is_consequential()) {
            Fallback::AllowWithEvent => Answer::Allow,
            Fallback::Deny => Answer::Deny,
        };
        Self {
            answer,
            // What goes on although a guard failed is never said to have been allowed by that guard.
            stage: if answer == Answer::Allow && stage != GateStage::Session {
                GateStage::NothingAgainst
            } else {
                stage
            },
            code: failure.code(),
            reason: Some(reason),
            class,
        }
    }
}

/// Decides about a call. Where paths are is asked only of a session that enforces something, and each of the others' checks only
/// when those before had nothing against the call.
pub fn decide(
    call: &Call,
    standing: Standing<'_>,
    posture: Posture,
    places: &dyn Places,
    stages: &dyn Stages,
) -> Decision {
    let session = match standing {
        Standing::Gated(session) => session,
        Standing::Failed(failure) => {
            let class = effects(call, &[]).class;
            let reason = standing_words(failure);
            return Decision::failed(failure, GateStage::Session, posture, class, reason);
        }
    };
    let policy = &session.policy;
    let effects = effects(call, &policy.at_top());
    let own = OwnChecks {
        call,
        session,
        effects: &effects,
        places,
    };
    // A policy that enforces nothing passes through: our own checks rest, the others' do not.
    let enforced = !policy.enforces_nothing();
    let class = effects.class;
    let first = if enforced {
        own.excess().or_else(|| own.self_protection())
    } else {
        None
    };
    let asks = |check| checked(check, class, posture, stages.interactive());
    let mut profile_asks = None;
    first
        .or_else(|| asks((GateStage::CapabilityToken, stages.capability_token(call))))
        .or_else(
            || match stages.permission_profile(call, session.profile.as_deref()) {
                Check::Asks(reason) if stages.interactive() => {
                    profile_asks = Some(reason);
                    None
                }
                check => asks((GateStage::PermissionProfile, check)),
            },
        )
        .or_else(|| if enforced { own.paths() } else { None })
        .or_else(|| if enforced { own.shell() } else { None })
        .or_else(|| asks((GateStage::DenyPrompts, stages.deny_prompts(call))))
        .or_else(|| asks((GateStage::Alignment, stages.alignment(call))))
        .unwrap_or_else(|| settle(call, class, stages, profile_asks))
}

/// The words for a session that is not in order.
fn standing_words(failure: Failure) -> String {
    match failure {
        Failure::UnknownSession => "this session was never registered with the gate",
        Failure::UnsafeSession => "the session's id is not one that the gate hands out",
        Failure::PolicyMissing => {
            "the session is registered, but its policy is missing; register it again"
        }
        Failure::PolicyUnreadable => {
            "the session's policy cannot be read or is not the one it was registered with; register it again"
        }
        _ => "the session's state cannot be read; register it again",
    }
    .to_owned()
}

/// One of the others' checks as a decision; `None` when it has nothing against the call.
fn checked(
    (stage, check): (GateStage, Check),
    class: ToolClass,
    posture: Posture,
    interactive: bool,
) -> Option<Decision> {
    match check {
        Check::Passed => None,
        Check::Denied { code, reason } => Some(Decision::deny(class, stage, code, reason)),
        Check::Asks(reason) if interactive => Some(Decision {
            answer: Answer::Ask,
            stage: GateStage::Person,
            code: "asks",
            reason: Some(reason),
            class,
        }),
        Check::Asks(reason) => Some(Decision::deny(
            class,
            stage,
            "nobody-to-ask",
            format!("{reason}; a person would have to answer, and approvals.interactive is off"),
        )),
        Check::Unavailable {
            failure,
            code,
            reason,
        } => match failure.fallback(posture, class.is_consequential()) {
            Fallback::Deny => Some(Decision::deny(class, stage, code, reason)),
            Fallback::AllowWithEvent => None,
        },
    }
}

/// From the classifier on: what is left is refused, approved, or a person's.
fn settle(
    call: &Call,
    class: ToolClass,
    stages: &dyn Stages,
    profile_asks: Option<String>,
) -> Decision {
    match stages.classifier(call) {
        Classified::Denied(reason) => {
            return Decision::deny(
                class,
                GateStage::ClassifierDeny,
                "classifier-denied",
                reason,
            );
        }
        Classified::Approved if stages.smart_auto_approve() && profile_asks.is_none() => {
            return Decision::allow(class, GateStage::ClassifierApprove, "classifier-approved");
        }
        Classified::Approved | Classified::Undecided => {}
    }
    if !stages.interactive() {
        return Decision::allow(class, GateStage::NothingAgainst, "nothing-against");
    }
    if stages.always_allow(call).is_some() {
        return Decision::allow(class, GateStage::AlwaysAllow, "always-allowed");
    }
    Decision {
        answer: Answer::Ask,
        stage: GateStage::Person,
        code: "asks",
        reason: Some(profile_asks.unwrap_or_else(|| "nothing settled this call".to_owned())),
        class,
    }
}

/// The checks of this module.
struct OwnChecks<'a> {
    call: &'a Call,
    session: &'a Session,
    effects: &'a Effects,
    places: &'a dyn Places,
}

impl OwnChecks<'_> {
    fn place(&self, touch: &Touch) -> Place {
        self.places.place(self.call.folder.as_deref(), touch)
    }

    fn deny(&self, stage: GateStage, code: &'static str, reason: String) -> Decision {
        Decision::deny(self.effects.class, stage, code, reason)
    }

    fn excess(&self) -> Option<Decision> {
        // Break it: leave this out; `tool_gate::arguments::a_call_that_names_too_much_is_refused_fast` fails.
        let reason = self.effects.excess.as_ref()?;
        Some(self.deny(
            GateStage::PathPolicy,
            "too-much-at-once",
            format!("call of {} refused: {reason}", shown(&self.call.tool)),
        ))
    }

    fn self_protection(&self) -> Option<Decision> {
        self.touched_protected()
            .or_else(|| self.mentioned_state())
            .or_else(|| self.below_protected())
    }

    fn protected(&self, what: &str) -> Decision {
        self.deny(
            GateStage::SelfProtection,
            "self-protection",
            format!(
                "protected path refused: {} decides about this session and is never open to it",
                shown(what)
            ),
        )
    }

    fn mentioned_state(&self) -> Option<Decision> {
        let effects = self.effects;
        let folder = self.call.folder.as_deref();
        // Break it: leave this out; `hook_gate::mentions::no_spelling_reads_the_gates_state` fails.
        let found = effects
            .mentioned
            .iter()
            .chain(&effects.shell.mentions)
            .find(|mention| self.places.reaches_state(folder, mention))?;
        Some(self.protected(&found.text))
    }

    fn below_protected(&self) -> Option<Decision> {
        let touches = self.effects.named.iter().chain(&self.effects.shell.touches);
        for touch in touches.filter(|touch| touch.whole) {
            // Break it: leave this out; `hook_gate::nested::a_folder_that_holds_a_repository_stays` fails.
            match self.places.below(self.call.folder.as_deref(), touch) {
                Below::Harmless => {}
                Below::Protected(name) => {
                    return Some(self.protected(&format!("{}/{name}", touch.given)));
                }
                Below::TooMuch => {
                    return Some(self.deny(
                        GateStage::SelfProtection,
                        "too-much-at-once",
                        format!(
                            "removing or moving {} refused: it holds more than is looked through; take its folders one by one",
                            shown(&touch.given)
                        ),
                    ));
                }
            }
        }
        None
    }

    fn touched_protected(&self) -> Option<Decision> {
        let touches = self.effects.named.iter().chain(&self.effects.shell.touches);
        for touch in touches {
            let refused = match self.place(touch) {
                Place::GateState => true,
                Place::Inside { path, spelled } => {
                    // Break it: look at the resolved path alone;
                    // `tool_gate::protected::a_link_in_place_of_a_protected_folder_protects_it_too` fails.
                    touch.access == Access::Write && (is_protected(&path) || is_protected(&spelled))
                }
                Place::Outside | Place::Nowhere(_) => false,
            };
            if refused {
                return Some(self.protected(&touch.given));
            }
        }
        None
    }

    fn out_of_scope(&self, touches: &[Touch], stage: GateStage) -> Option<Decision> {
        let allowlist = self.session.policy.allowlist();
        let writes = touches.iter().filter(|touch| touch.access == Access::Write);
        for touch in writes {
            let allowed = match self.place(touch) {
                Place::Inside { path, .. } => {
                    !allowlist.enforces() || allowlist.allows(&path, self.places.folds())
                }
                Place::Outside | Place::GateState | Place::Nowhere(_) => false,
            };
            if !allowed {
                return Some(self.deny(
                    stage,
                    "out-of-scope",
                    format!(
                        "out-of-scope write refused: {} not under allowlist {}",
                        shown(&touch.given),
                        allowlist.shown()
                    ),
                ));
            }
        }
        None
    }

    fn paths(&self) -> Option<Decision> {
        let effects = self.effects;
        if let Some(reason) = &effects.unreadable
            && effects.class != ToolClass::Read
        {
            return Some(self.deny(
                GateStage::PathPolicy,
                "unreadable-arguments",
                format!("call of {} refused: {reason}", shown(&self.call.tool)),
            ));
        }
        let out = self.out_of_scope(&effects.named, GateStage::PathPolicy);
        out.or_else(|| {
            // Break it: take unknown tools for readers; `tool_gate::table::an_unknown_tool_is_refused_outside_the_sandbox` fails.
            (effects.class == ToolClass::Unknown && !self.contained()).then(|| {
                self.deny(
                    GateStage::PathPolicy,
                    "unclassified-tool",
                    format!(
                        "unclassified tool refused: {} is not a tool that the gate knows; use the client's own tools",
                        shown(&self.call.tool)
                    ),
                )
            })
        })
    }

    fn shell(&self) -> Option<Decision> {
        let shell = &self.effects.shell;
        let out = self.out_of_scope(&shell.touches, GateStage::Shell);
        let elsewhere = "git runs elsewhere than in the worktree's top folder, where a folder of the agent's own may be taken for a repository".to_owned();
        out.or_else(|| {
            // Break it: let git run anywhere; `tool_gate::shell::git_runs_in_the_worktrees_top_only` fails.
            let reason = shell.unclassified.first().or_else(|| {
                (!shell.git_folders.iter().all(|folder| self.is_top(folder))).then_some(&elsewhere)
            })?;
            (!self.contained()).then(|| {
                self.deny(
                    GateStage::Shell,
                    "unclassified-command",
                    format!("unclassified command refused: {reason}"),
                )
            })
        })
    }

    fn is_top(&self, folder: &Touch) -> bool {
        matches!(self.place(folder), Place::Inside { path, .. } if path.is_empty())
    }

    /// Whether a sandbox keeps what could not be classified within bounds.
    const fn contained(&self) -> bool {
        self.session.sandboxed && !self.effects.leaves_sandbox
    }
}
