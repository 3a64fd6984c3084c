//! The policy of one session: what it may write, and what must be green before it ends.

use serde::{Deserialize, Serialize};

use super::allowlist::Allowlist;
use crate::attest::json::{self, Json, JsonError};
use crate::attest::text::shown;
use crate::change::Sha256Digest;

/// Largest policy, in bytes.
pub const MAXIMUM_POLICY_BYTES: usize = 256 << 10;
/// Most patterns of an allowlist.
const MAXIMUM_PATTERNS: usize = 10_000;
/// Most producers.
const MAXIMUM_PRODUCERS: usize = 50;

/// Why bytes are not a policy. A session whose policy cannot be read is refused everything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Not strict JSON, or not this document.
    #[error("reading the session's policy: {0}")]
    Json(#[from] JsonError),
    /// A version that this program does not know.
    #[error(
        "reading the session's policy: version {0} is not known; write \"v\": 1, or use a caretaker that knows it"
    )]
    Version(i64),
    /// A value that makes no sense.
    #[error("reading the session's policy: {0}")]
    Value(String),
}

/// What a producer produces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProducerKind {
    /// Tests.
    Test,
    /// Test coverage.
    Coverage,
    /// A linter's findings.
    Lint,
    /// Anything else that ends with an exit code.
    Generic,
    /// A picture.
    Screenshot,
    /// A recording.
    Recording,
}

/// A command whose exit code is evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Producer {
    /// Its name in messages.
    pub name: String,
    /// What it produces.
    pub kind: ProducerKind,
    /// Program and arguments; no shell.
    pub command: Vec<String>,
    /// The folder that it runs in, from the worktree's top; left out for the top itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether the session may not end before it exits with 0.
    #[serde(default = "yes")]
    pub required: bool,
}

const fn yes() -> bool {
    true
}

/// The document (`interfaces.md`, Inputs of the offline commands).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyDocument {
    v: i64,
    task_id: String,
    #[serde(default)]
    path_allowlist: Vec<String>,
    #[serde(default)]
    producers: Vec<Producer>,
}

/// A checked policy.
#[derive(Debug, Clone)]
pub struct Policy {
    document: PolicyDocument,
    allowlist: Allowlist,
    digest: Sha256Digest,
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// Anything but a policy of version 1, written in strict JSON with known members only: [`PolicyError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, PolicyError> {
        let strict = json::read(bytes, MAXIMUM_POLICY_BYTES)?;
        check_shape(&strict)?;
        // The version comes first: what another version defines must not be reported as a misspelling.
        if let Json::Members(members) = &strict
            && let Some(Json::Integer(version)) = members.get("v")
            && *version != 1
        {
            // Break it: accept every version; `tool_gate::policy::another_version_is_refused` fails.
            return Err(PolicyError::Version(*version));
        }
        let document: PolicyDocument =
            serde_json::from_slice(bytes).map_err(|error| JsonError::Shape {
                reason: shown(&error.to_string()),
            })?;
        check(&document)?;
        Ok(Self {
            allowlist: Allowlist::new(&document.path_allowlist),
            document,
            digest: Sha256Digest::of(bytes),
        })
    }

    /// The task that the session works on.
    pub fn task(&self) -> &str {
        &self.document.task_id
    }

    /// What may be written.
    pub const fn allowlist(&self) -> &Allowlist {
        &self.allowlist
    }

    /// Every producer.
    pub fn producers(&self) -> &[Producer] {
        &self.document.producers
    }

    /// Those that run in the worktree's top folder. The command of one that runs elsewhere is another command here.
    pub fn at_top(&self) -> Vec<Producer> {
        let producers = self.producers().iter();
        producers
            .filter(|producer| producer.folder.is_none())
            .cloned()
            .collect()
    }

    /// Those without which the session may not end.
    pub fn required(&self) -> impl Iterator<Item = &Producer> {
        self.producers().iter().filter(|producer| producer.required)
    }

    /// SHA-256 of its bytes: what is pinned when the session is registered.
    pub const fn digest(&self) -> Sha256Digest {
        self.digest
    }

    /// Whether it demands nothing at all; such a session passes through.
    pub fn enforces_nothing(&self) -> bool {
        !self.allowlist.enforces() && self.required().next().is_none()
    }
}

/// Objects where objects belong: the typed reader would take an array in their place.
fn check_shape(document: &Json<'_>) -> Result<(), PolicyError> {
    let refused = |what: &str| PolicyError::Value(format!("{what} is not an object"));
    let Json::Members(members) = document else {
        return Err(refused("the document"));
    };
    if let Some(Json::List(producers)) = members.get("producers")
        && producers
            .iter()
            .any(|producer| !matches!(producer, Json::Members(_)))
    {
        return Err(refused("a producer"));
    }
    Ok(())
}

fn check(document: &PolicyDocument) -> Result<(), PolicyError> {
    let refuse = |problem: String| Err(PolicyError::Value(problem));
    if document.task_id.trim().is_empty() || document.task_id.len() > 200 {
        return refuse("task_id must have 1 to 200 bytes".to_owned());
    }
    if document.path_allowlist.len() > MAXIMUM_PATTERNS {
        return refuse(format!(
            "path_allowlist has more than {MAXIMUM_PATTERNS} patterns; name folders instead of files"
        ));
    }
    if let Some(pattern) = document
        .path_allowlist
        .iter()
        .find(|pattern| pattern.contains('\0') || pattern.len() > 4096)
    {
        return refuse(format!(
            "the pattern {} holds a NUL or has more than 4096 bytes",
            shown(pattern)
        ));
    }
    if document.producers.len() > MAXIMUM_PRODUCERS {
        return refuse(format!("there are more than {MAXIMUM_PRODUCERS} producers"));
    }
    for producer in &document.producers {
        let name = shown(&producer.name);
        if producer.name.trim().is_empty() || producer.name.len() > 100 {
            return refuse(format!(
                "the producer {name} needs a name of 1 to 100 bytes"
            ));
        }
        if producer.command.first().is_none_or(String::is_empty) {
            return refuse(format!(
                "the producer {name} has no command; write [\"program\", \"argument\", …]"
            ));
        }
        if producer
            .folder
            .as_deref()
            .is_some_and(|folder| !is_folder(folder))
        {
            return refuse(format!(
                "the folder of the producer {name} is none below the worktree's top; write it like web/app"
            ));
        }
        if producer.command.iter().any(|word| word.contains('\0')) {
            return refuse(format!("the command of the producer {name} holds a NUL"));
        }
    }
    Ok(())
}

/// Whether a text names a folder below the top in the one way that it is named.
fn is_folder(text: &str) -> bool {
    let named = |part: &str| !matches!(part, "" | "." | "..");
    // Break it: allow everything; `tool_gate::policy::a_producers_folder_lies_below_the_top` fails.
    text.len() <= 4096 && !text.contains(['\0', '\\']) && text.split('/').all(named)
}
