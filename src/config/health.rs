//! Health checks: what is asked of an endpoint, how often, and what of its answer is expected.

mod commit;
mod expect;
mod path;
mod period;
mod url;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::{Deserialize, Serialize};

pub use commit::CommitSource;
pub use expect::{Expectation, JsonExpectation, Pattern, Statuses};
pub use path::{JsonPath, JsonPathError};
pub use period::{Period, PeriodError};
pub use url::{HealthUrl, HealthUrlError};

use super::yaml::{self, YamlError};

/// Checks of one project, at most.
const MOST_CHECKS: usize = 20;
/// Longest name of a check, in bytes.
const NAME_BYTES: usize = 64;
/// Headers of one check, at most.
const MOST_HEADERS: usize = 10;
/// Longest value of a header, in bytes.
const HEADER_BYTES: usize = 500;
/// Most failures or successes in a row that a check may ask for.
const MOST_IN_A_ROW: u32 = 100;
/// Shortest interval and longest, in milliseconds.
const INTERVALS: (u64, u64) = (1_000, 24 * 60 * 60 * 1_000);
/// Shortest timeout and longest, in milliseconds.
const TIMEOUTS: (u64, u64) = (100, 60_000);

/// Headers that the client sets itself, or that carry a credential: checks are kept and shown in clear text.
const REFUSED_HEADERS: &[&str] = &[
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// One endpoint that is asked again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthCheck {
    /// Its name, one of a kind in the project.
    pub name: String,
    /// Where.
    pub url: HealthUrl,
    /// How.
    #[serde(default)]
    pub method: CheckMethod,
    /// Sent along, to the endpoint's own origin only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What is expected of the answer.
    #[serde(default)]
    pub expect: Expectation,
    /// How often, counted from the beginning of one check to that of the next.
    #[serde(default = "Period::minute")]
    pub interval: Period,
    /// How long one check may take, redirects included.
    #[serde(default = "Period::ten_seconds")]
    pub timeout: Period,
    /// How many failures in a row open an incident.
    #[serde(default = "three")]
    pub failures_to_open: u32,
    /// How many successes in a row close it.
    #[serde(default = "two")]
    pub successes_to_close: u32,
    /// Where the answer says which commit is deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitSource>,
}

const fn three() -> u32 {
    3
}

const fn two() -> u32 {
    2
}

/// How an endpoint is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CheckMethod {
    /// GET.
    #[default]
    Get,
    /// HEAD: no body comes back.
    Head,
}

/// Why checks cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HealthError {
    /// Not a list of checks; the message has line and column.
    #[error(transparent)]
    Form(#[from] YamlError),
    /// A check that cannot work, or two that contradict each other.
    #[error("{origin}: {problem}")]
    Check {
        /// Where they stand.
        origin: String,
        /// What is wrong, and the mend.
        problem: String,
    },
}

/// Reads a list of checks from JSON (or YAML); `origin` names it in messages.
///
/// # Errors
/// Anything that is not exactly a list of checks that can work, with the mend.
pub fn health_checks(text: &[u8], origin: &str) -> Result<Vec<HealthCheck>, HealthError> {
    let checks: Vec<HealthCheck> = yaml::read(text, origin)?;
    problem(&checks).map_or(Ok(()), |problem| {
        Err(HealthError::Check {
            origin: origin.to_owned(),
            problem,
        })
    })?;
    Ok(checks)
}

/// What is wrong with a list of checks, if anything is.
pub(super) fn problem(checks: &[HealthCheck]) -> Option<String> {
    if checks.len() > MOST_CHECKS {
        return Some(format!(
            "{} checks; keep at most {MOST_CHECKS}",
            checks.len()
        ));
    }
    let mut names = BTreeSet::new();
    for check in checks {
        if let Some(problem) = check.problem() {
            return Some(format!("check {:?}: {problem}", check.name));
        }
        if !names.insert(&check.name) {
            return Some(format!(
                "check {:?} stands twice; give each a name of its own",
                check.name
            ));
        }
    }
    None
}

impl HealthCheck {
    /// The method, for a request.
    pub const fn method(&self) -> Method {
        match self.method {
            CheckMethod::Get => Method::GET,
            CheckMethod::Head => Method::HEAD,
        }
    }

    /// The headers, for a request; a check that was read by [`health_checks`] has no others.
    pub fn header_map(&self) -> HeaderMap {
        let header = |(name, value): (&String, &String)| {
            Some((
                name.parse::<HeaderName>().ok()?,
                HeaderValue::from_str(value).ok()?,
            ))
        };
        self.headers.iter().filter_map(header).collect()
    }

    /// Whether the answer's body is looked at.
    pub fn reads_body(&self) -> bool {
        self.expect.reads_body() || matches!(self.commit, Some(CommitSource::Json(_)))
    }

    fn problem(&self) -> Option<String> {
        let named = |text: &str| {
            text.chars()
                .all(|letter| letter.is_ascii_alphanumeric() || " ._-".contains(letter))
        };
        if self.name.trim().len() != self.name.len()
            || self.name.is_empty()
            || self.name.len() > NAME_BYTES
            || !named(&self.name)
        {
            return Some(format!(
                "a name is 1 to {NAME_BYTES} letters, digits, spaces, dots, dashes and underscores"
            ));
        }
        let outside = |period: &Period, (least, most): (u64, u64)| {
            !(least..=most).contains(&period.milliseconds())
        };
        if outside(&self.interval, INTERVALS) {
            return Some("interval is not between 1s and 24h".to_owned());
        }
        if outside(&self.timeout, TIMEOUTS) {
            return Some("timeout is not between 100ms and 60s".to_owned());
        }
        for (key, count) in [
            ("failures_to_open", self.failures_to_open),
            ("successes_to_close", self.successes_to_close),
        ] {
            if !(1..=MOST_IN_A_ROW).contains(&count) {
                return Some(format!("{key} is not between 1 and {MOST_IN_A_ROW}"));
            }
        }
        if self.method == CheckMethod::Head && self.reads_body() {
            return Some(
                "an answer to HEAD has no body; use GET, or expect nothing of the body".to_owned(),
            );
        }
        self.header_problem().or_else(|| self.expect.problem())
    }

    fn header_problem(&self) -> Option<String> {
        if self.headers.len() > MOST_HEADERS {
            return Some(format!("more than {MOST_HEADERS} headers"));
        }
        let mut names = BTreeSet::new();
        for (name, value) in &self.headers {
            let Ok(parsed) = name.parse::<HeaderName>() else {
                return Some(format!("{name:?} is no name of a header"));
            };
            if REFUSED_HEADERS.contains(&parsed.as_str()) {
                return Some(format!(
                    "the header {parsed} is not sent: it belongs to the connection, or carries a credential, and checks are kept in clear text"
                ));
            }
            if value.len() > HEADER_BYTES || HeaderValue::from_str(value).is_err() {
                return Some(format!(
                    "the value of the header {parsed} is longer than {HEADER_BYTES} bytes or has characters that no header has"
                ));
            }
            if !names.insert(parsed.as_str().to_owned()) {
                return Some(format!("the header {parsed} stands twice"));
            }
        }
        None
    }
}

/// What the operator lets health checks do.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    /// Checks of projects that are registered without any of their own.
    pub checks: Vec<HealthCheck>,
    /// Addresses beyond the public internet.
    pub addresses: HealthAddresses,
    /// Asked when a check fails: when none of them answers, the outage is ours. Empty: the hosting service alone.
    pub self_check: Vec<HealthUrl>,
}

/// Which addresses beyond the public internet may be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HealthAddresses {
    /// Private networks.
    pub private: Permission,
    /// This machine.
    pub loopback: Permission,
}

/// Whether something is allowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// No.
    #[default]
    Refuse,
    /// Yes.
    Allow,
}

impl Permission {
    /// Whether it is a yes.
    pub const fn allows(self) -> bool {
        matches!(self, Self::Allow)
    }
}
