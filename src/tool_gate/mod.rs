//! The tool gate: one decision about one call of a tool, behind every door (our own loop, foreign clients' hooks, the library).
//!
//! [`decide()`] is a function of the call, the session's policy, where paths are ([`Places`]) and what other checks say
//! ([`Stages`]). It reads no file and keeps no state. The order of the checks is the order of
//! [`GateStage`](crate::attest::predicate::GateStage): session, self-protection, capability token, permission profile, path
//! policy, shell, deny prompts and alignment, classifier, always-allow, person. The first that refuses names itself.

mod allowlist;
pub mod always_allow;
pub mod approval;
mod arguments;
mod call;
pub mod call_pattern;
pub mod classifier;
mod decide;
pub mod decider;
mod descriptions;
mod failure;
mod given;
pub mod patch;
mod policy;
pub mod profile;
mod protected;
pub mod shell;
mod stages;
mod tools;
mod touch;

pub use allowlist::{Allowlist, fits};
pub use arguments::{Effects, MAXIMUM_PATHS, effects};
pub use call::{Call, EventError, MAXIMUM_EVENT_BYTES};
pub use decide::{Answer, Decision, Session, Standing, decide};
pub use descriptions::tool_description;
pub use failure::{Failure, Fallback, Posture};
pub use policy::{MAXIMUM_POLICY_BYTES, Policy, PolicyError, Producer, ProducerKind};
pub use stages::{Check, Classified, NoStages, Stages};
pub use tools::{ToolClass, tool_class};
pub use touch::{Access, Below, Mention, Place, Places, Touch};

/// The commands that a call gives, each as its simple commands; `None` for one that cannot be taken apart. Nothing for a call
/// that runs none.
pub fn given_commands(call: &Call) -> Vec<Option<shell::Commands>> {
    given::commands(call)
        .into_iter()
        .map(|command| match command {
            given::Given::Text(text) => shell::commands(text),
            given::Given::Words(words) => shell::commands_of_words(words),
            given::Given::Unreadable => None,
        })
        .collect()
}

/// The texts of the commands that a call gives.
pub fn command_texts(call: &Call) -> Vec<String> {
    given::commands(call)
        .into_iter()
        .map(|command| match command {
            given::Given::Text(text) => text.to_owned(),
            given::Given::Words(words) => words.join(" "),
            given::Given::Unreadable => String::new(),
        })
        .collect()
}

/// Whether a path relative to the worktree is one that no gated session may write, whatever its policy says.
pub fn is_protected(path: &[u8]) -> bool {
    protected::is_protected(path)
}
