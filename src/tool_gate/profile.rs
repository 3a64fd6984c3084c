//! Permission profiles: what a session's tools may do at all, whether or not anybody is asked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The profile of a session that names none.
pub const DEFAULT_PROFILE: &str = "default";

/// What a profile says of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// The later checks decide.
    Allow,
    /// A person is asked, whatever the classifier says.
    Ask,
    /// It is refused.
    Deny,
}

/// `approvals.profiles.NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// For every tool that is not named.
    pub default: Permission,
    /// By the tool's name as its client spells it.
    #[serde(default)]
    pub tools: BTreeMap<String, Permission>,
}

impl Profile {
    /// What it says of a tool. Names are compared without regard to case, since clients spell theirs differently; of two that
    /// fit, the stricter one holds.
    pub fn of(&self, tool: &str) -> Permission {
        let named = self
            .tools
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(tool));
        let strictness = |permission: &Permission| match permission {
            Permission::Allow => 0,
            Permission::Ask => 1,
            Permission::Deny => 2,
        };
        named
            .map(|(_, permission)| *permission)
            .max_by_key(strictness)
            .unwrap_or(self.default)
    }
}

/// What the profile of a session comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Profiled {
    /// Go on.
    Passes,
    /// Go on, but a person has to be asked.
    Asks,
    /// No.
    Refused(String),
}

/// What becomes of a call under the profile of that name. Without profiles, and without a name, everything passes; a name that
/// is not there refuses everything, since it was written to restrict something.
pub fn check(
    profiles: &BTreeMap<String, Profile>,
    name: Option<&str>,
    tool: &str,
    interactive: bool,
) -> Profiled {
    let profile = profiles.get(name.unwrap_or(DEFAULT_PROFILE));
    let Some(profile) = profile else {
        // Break it: let an unknown name pass (`tool_gate::approval::a_profile_that_is_not_there_refuses`).
        return name.map_or(Profiled::Passes, |name| {
            Profiled::Refused(format!(
                "the session's permission profile {name:?} is not in approvals.profiles"
            ))
        });
    };
    match profile.of(tool) {
        Permission::Allow => Profiled::Passes,
        Permission::Ask if interactive => Profiled::Asks,
        Permission::Ask => Profiled::Refused(format!(
            "the permission profile asks a person about {tool}, and nobody is asked while approvals.interactive is off"
        )),
        Permission::Deny => Profiled::Refused(format!("the permission profile refuses {tool}")),
    }
}
