//! The sections of `caretaker.yaml` as they are written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::address::{ListenAddress, ServiceUrl, WebhookUrl};
use super::agent::{Adapter, Budget, ModelSection};
use super::anchor::Anchors;
use super::app::AppSection;
use super::database::DatabaseUrl;
use super::health::{self, HealthAddresses, HealthCheck, HealthUrl};
use super::keys::SignerPlace;
use super::later::{Opaque, Security};
use super::schedule::PollSchedule;
use super::secret::SecretSource;
use super::{Github, Server};
use crate::approve::Principal;
use crate::attest::KeyUse;
use crate::tool_gate::profile::Profile;

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Document {
    pub(super) database: DatabaseSection,
    pub(super) server: ServerSection,
    pub(super) github: GithubSection,
    pub(super) poll: Poll,
    pub(super) health: Vec<HealthCheck>,
    pub(super) health_addresses: HealthAddresses,
    pub(super) health_self_check: Vec<HealthUrl>,
    pub(super) keys: KeysSection,
    pub(super) agent: AgentSection,
    pub(super) sandbox: Sandbox,
    pub(super) security: Security,
    pub(super) approvals: Approvals,
    pub(super) evidence: Evidence,
    pub(super) identity: Identity,
    pub(super) notify: Vec<Notifier>,
    pub(super) anchor: Anchors,
    pub(super) telemetry: Opaque,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DatabaseSection {
    pub(super) url: Option<DatabaseUrl>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServerSection {
    pub(super) listen: ListenAddress,
    pub(super) public_url: Option<ServiceUrl>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GithubSection {
    pub(super) api_url: Option<ServiceUrl>,
    pub(super) web_url: Option<ServiceUrl>,
    pub(super) git_url: Option<ServiceUrl>,
    pub(super) app: AppSection,
    pub(super) webhook_secret: Option<SecretSource>,
}

impl GithubSection {
    /// All three addresses, or none (then GitHub's own): with one left at its default, tokens of one host would go to another.
    pub(super) fn resolve(self, folder: &Path) -> Result<Github, (&'static str, String)> {
        let app = self.app.resolve(folder)?;
        let webhook_secret = self.webhook_secret;
        let webhook_secret = webhook_secret
            .map(|source| source.resolved_against(folder))
            .or_else(|| app.as_ref().and_then(|app| app.webhook_secret.clone()));
        let own = |text: &str| {
            text.parse()
                .map_err(|_| ("github", format!("{text} is not a URL")))
        };
        match (self.api_url, self.web_url, self.git_url) {
            (None, None, None) => Ok(Github {
                api_url: own("https://api.github.com")?,
                web_url: own("https://github.com")?,
                git_url: own("https://github.com")?,
                app,
                webhook_secret,
            }),
            (Some(api_url), Some(web_url), git_url) => Ok(Github {
                api_url,
                git_url: git_url.unwrap_or_else(|| web_url.clone()),
                web_url,
                app,
                webhook_secret,
            }),
            _ => Err((
                "github",
                "api_url and web_url are set together (git_url is web_url unless set too), so that no token goes to another host; add the missing one".to_owned(),
            )),
        }
    }
}

/// When CI runs are looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Poll {
    /// Fixed moments. Without them the pace follows what happens: see the next three.
    pub schedule: Option<PollSchedule>,
    /// How often a repository is looked at while nothing runs, in seconds.
    pub quiet_seconds: u32,
    /// How often while something runs.
    pub busy_seconds: u32,
    /// Requests an hour that a repository may cost, those answered "not modified" included; above that, looks are put off.
    pub requests_per_hour: u32,
}

impl Default for Poll {
    fn default() -> Self {
        Self {
            schedule: None,
            quiet_seconds: 60,
            busy_seconds: 20,
            requests_per_hour: 120,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct KeysSection {
    pub(super) dir: Option<PathBuf>,
    pub(super) roles: RolesSection,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RolesSection {
    proposer: Option<RoleSection>,
    policy: Option<RoleSection>,
    approver: Option<RoleSection>,
    executor: Option<RoleSection>,
    root: Option<RoleSection>,
    log: Option<RoleSection>,
}

impl RolesSection {
    pub(super) fn named(self) -> impl Iterator<Item = (KeyUse, RoleSection)> {
        let roles = [
            (KeyUse::Proposer, self.proposer),
            (KeyUse::Policy, self.policy),
            (KeyUse::Approver, self.approver),
            (KeyUse::Executor, self.executor),
            (KeyUse::Root, self.root),
            (KeyUse::Log, self.log),
        ];
        roles
            .into_iter()
            .filter_map(|(key, role)| role.map(|role| (key, role)))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RoleSection {
    #[serde(default)]
    pub(super) secret: Option<SecretSource>,
    #[serde(default)]
    pub(super) signer: Option<SignerPlace>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AgentSection {
    pub(super) adapter: Option<Adapter>,
    pub(super) command: Vec<String>,
    pub(super) model: ModelSection,
    pub(super) budget: Budget,
    pub(super) profile: Option<String>,
}

/// How untrusted programs are confined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sandbox {
    /// The means.
    pub mode: SandboxMode,
}

/// A means of confinement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    /// The strongest that this machine has; none at all is an error, not a fallback.
    #[default]
    Auto,
    /// bubblewrap.
    Bubblewrap,
    /// Landlock with seccomp and limits.
    Landlock,
    /// No confinement, by choice of the operator.
    None,
}

/// Approvals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Approvals {
    /// How long an approval link is valid, in seconds.
    pub link_ttl_seconds: u32,
    /// Whether tool calls wait for a person.
    pub interactive: bool,
    /// How long a tool call waits for a person, in seconds.
    pub timeout_seconds: u32,
    /// Whether a classifier may approve tool calls.
    pub smart_auto_approve: bool,
    /// What a session's tools may do at all, by the profile's name.
    pub profiles: BTreeMap<String, Profile>,
    /// Who may answer tool calls over HTTP; with none, whoever is at this machine.
    pub tokens: Vec<AnswerToken>,
}

/// A token with which somebody answers tool calls over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerToken {
    /// Whose answers they are, e.g. `mailto:ada@example.org`.
    pub principal: Principal,
    /// Where the token is.
    pub secret: SecretSource,
}

impl Approvals {
    /// The same with the tokens' files resolved against a folder.
    pub(super) fn resolved_against(mut self, folder: &Path) -> Self {
        for token in &mut self.tokens {
            token.secret = token.secret.clone().resolved_against(folder);
        }
        self
    }
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            link_ttl_seconds: 24 * 60 * 60,
            interactive: false,
            timeout_seconds: 600,
            smart_auto_approve: false,
            profiles: BTreeMap::new(),
            tokens: Vec::new(),
        }
    }
}

/// How long evidence is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Evidence {
    /// Days after an incident ended; without them for ever.
    pub keep_days: Option<u32>,
}

/// Longest time that evidence is kept by number: a hundred years.
const LONGEST_DAYS: u32 = 36_525;

/// Longest validity of an approval link: thirty days.
const LONGEST_LINK_SECONDS: u32 = 30 * 24 * 60 * 60;

/// Targets of the self-check, at most.
const MOST_TARGETS: usize = 5;

/// How an approver proves who they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Identity {
    /// What every approval needs.
    pub require: IdentityMethod,
    /// What approvals of a class need beyond that; not available in this version.
    pub(super) per_class: BTreeMap<String, Value>,
}

/// A proof of identity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdentityMethod {
    /// Holding the one-time link.
    #[default]
    Link,
    /// A GitHub login.
    Github,
    /// A login by `OpenID` Connect.
    Oidc,
    /// A passkey.
    Passkey,
    /// An SSH key.
    Ssh,
    /// Two people.
    TwoPerson,
}

/// Somebody who is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Notifier {
    /// One JSON POST a notice. It carries approval links, so its address is as good as an approval.
    Webhook {
        /// Where to.
        url: WebhookUrl,
    },
}

/// Names under which nobody ever finds a profile, or that no tool has: a rule that was written to refuse would refuse nothing.
fn check_profiles(profiles: &BTreeMap<String, Profile>) -> Result<(), (&'static str, String)> {
    let unusable = |name: &str| {
        name.trim() != name
            || name.is_empty()
            || name
                .chars()
                .any(|found| found.is_control() || found.is_whitespace())
    };
    let refuse = |problem: String| Err(("approvals.profiles", problem));
    for (name, profile) in profiles {
        // Break it: leave this out; `config::a_profile_that_can_never_match_is_refused` fails.
        if unusable(name) {
            return refuse(format!(
                "the profile {name:?} has an empty name or one with blanks, which no session can have; write it without"
            ));
        }
        if let Some(tool) = profile.tools.keys().find(|tool| unusable(tool)) {
            return refuse(format!(
                "the profile {name:?} names the tool {tool:?}, which no client has: it is empty or has blanks; write it as the client does"
            ));
        }
    }
    Ok(())
}

/// What single values cannot tell.
pub(super) fn check(document: &Document) -> Result<(), (&'static str, String)> {
    if let Some(profile) = &document.agent.profile
        && !document.approvals.profiles.contains_key(profile)
    {
        return Err((
            "agent.profile",
            "there is no such profile under approvals.profiles; every call would be refused"
                .to_owned(),
        ));
    }
    check_profiles(&document.approvals.profiles)?;
    // Break it: answer `Ok(())` at once; whoever finds the port can then open pages whose only guard is the link
    // (`config::keys_that_contradict_each_other_are_refused`).
    if !document.server.listen.is_loopback() && document.identity.require == IdentityMethod::Link {
        let problem = "is reachable from other machines, while approval links are the only proof of identity; \
             listen on 127.0.0.1, behind a proxy that authenticates";
        return Err((
            "server.listen",
            format!("{} {problem}", document.server.listen),
        ));
    }
    if let Some(problem) = health::problem(&document.health) {
        return Err(("health", problem));
    }
    if document.health_self_check.len() > MOST_TARGETS {
        return Err((
            "health_self_check",
            format!(
                "more than {MOST_TARGETS} targets; two that have nothing to do with each other are enough"
            ),
        ));
    }
    let ttl = document.approvals.link_ttl_seconds;
    if ttl == 0 || ttl > LONGEST_LINK_SECONDS {
        return Err((
            "approvals.link_ttl_seconds",
            format!("{ttl} is not between 1 and {LONGEST_LINK_SECONDS} (thirty days)"),
        ));
    }
    let poll = &document.poll;
    let paces = [
        ("poll.quiet_seconds", poll.quiet_seconds, 3600),
        ("poll.busy_seconds", poll.busy_seconds, 3600),
        ("poll.requests_per_hour", poll.requests_per_hour, 100_000),
    ];
    if let Some((key, found, most)) = paces
        .into_iter()
        .find(|(_, found, most)| *found == 0 || found > most)
    {
        return Err((key, format!("{found} is not between 1 and {most}")));
    }
    if document
        .evidence
        .keep_days
        .is_some_and(|days| days == 0 || days > LONGEST_DAYS)
    {
        return Err((
            "evidence.keep_days",
            format!("not between 1 and {LONGEST_DAYS}; leave it out to keep evidence for ever"),
        ));
    }
    if document.approvals.timeout_seconds == 0 {
        return Err((
            "approvals.timeout_seconds",
            "0 would refuse every call at once; write a number of seconds".to_owned(),
        ));
    }
    Ok(())
}

impl From<ServerSection> for Server {
    fn from(section: ServerSection) -> Self {
        Self {
            listen: section.listen,
            public_url: section.public_url,
        }
    }
}
