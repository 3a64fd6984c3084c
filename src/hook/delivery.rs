//! What is read of a payload: which repositories, and which version of which object.

use serde::Deserialize;

use super::header::EventName;
use super::loose::{Listed, Members, Scalar};
use crate::change::Oid;
use crate::clock::Millis;

/// How deep objects and lists may be nested; what the service sends has about ten levels.
const DEEPEST: usize = 64;
/// How many repositories of one delivery are looked at. Polling finds the news of the others.
pub const MOST_REPOSITORIES: usize = 200;

/// What one delivery says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivery {
    /// The provider's numbers of the repositories to look at, ascending; empty when the event is no news for anybody.
    pub repositories: Vec<u64>,
    /// What it tells of, when that has a version: older ones are no news.
    pub object: Option<Object>,
}

/// A thing at the provider in one of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Event, repository and the thing's own number or name, joined by `/`.
    pub name: String,
    /// The version.
    pub version: Version,
}

/// A version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// Later ones are greater: attempt (10 digits), time (15 digits), status (1 digit).
    Ordered {
        /// The digits; of equal length, so that every alphabet orders them alike.
        digits: String,
        /// The time among them.
        at: Millis,
    },
    /// The commit that a reference points to. Of two, nobody can say which is later; only the same one is no news.
    Commit(String),
}

/// Why a payload cannot be used. Nothing of it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// Not text.
    #[error("byte {at} of the payload is not UTF-8")]
    NotText {
        /// Offset of the byte.
        at: usize,
    },
    /// Nested too deeply.
    #[error("the payload is nested deeper than {DEEPEST} levels")]
    TooDeep,
    /// The grammar is broken.
    #[error("the payload is not JSON: line {line}, column {column}")]
    NotJson {
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in bytes.
        column: usize,
    },
    /// Good JSON, but no object.
    #[error("the payload is not a JSON object")]
    NotAnObject,
    /// A member that is read stands there twice, so that it has two meanings.
    #[error("the payload has one of its members twice: line {line}, column {column}")]
    Twice {
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in bytes.
        column: usize,
    },
    /// A repository without a number.
    #[error("repository.id of the payload is not a whole number from 1 to 2^63 - 1")]
    Repository,
}

/// The members that are read, whatever the event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Payload {
    repository: Members<Numbered>,
    repositories: Repositories,
    repositories_added: Repositories,
    repositories_removed: Repositories,
    workflow_run: Members<Changing>,
    workflow_job: Members<Changing>,
    check_run: Members<Changing>,
    check_suite: Members<Changing>,
    /// Of `status`.
    id: Scalar,
    /// Of `status`.
    updated_at: Scalar,
    /// Of `push`.
    r#ref: Scalar,
    /// Of `push`.
    after: Scalar,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Numbered {
    id: Scalar,
}

type Repositories = Listed<Numbered, MOST_REPOSITORIES>;

/// Something that runs and ends.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Changing {
    id: Scalar,
    run_attempt: Scalar,
    status: Scalar,
    updated_at: Scalar,
    started_at: Scalar,
    completed_at: Scalar,
}

impl Delivery {
    /// Reads a payload whose signature was right.
    ///
    /// # Errors
    /// It is not a JSON object, or names a repository without a usable number.
    pub fn read(event: &EventName, body: &[u8]) -> Result<Self, DeliveryError> {
        let text = str::from_utf8(body).map_err(|error| DeliveryError::NotText {
            at: error.valid_up_to(),
        })?;
        if is_too_deep(text) {
            return Err(DeliveryError::TooDeep);
        }
        // As an object only: a list would be taken for one whose members stand in order.
        let payload: Members<Payload> = serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            if error.is_data() {
                DeliveryError::Twice { line, column }
            } else {
                DeliveryError::NotJson { line, column }
            }
        })?;
        let payload = payload.0.ok_or(DeliveryError::NotAnObject)?;
        payload.told_by(event)
    }
}

impl Payload {
    fn told_by(self, event: &EventName) -> Result<Delivery, DeliveryError> {
        let version = match event.as_str() {
            "workflow_run" => self.workflow_run.0.as_ref().and_then(Changing::version),
            "workflow_job" => self.workflow_job.0.as_ref().and_then(Changing::version),
            "check_run" => self.check_run.0.as_ref().and_then(Changing::version),
            "check_suite" => self.check_suite.0.as_ref().and_then(Changing::version),
            "status" => self.status().version(),
            "push" => self.pushed(),
            // Rare, and all that matters: renamed, transferred, archived, deleted, made public. A repository's own time does not
            // change with each of them, so none is ever taken for old.
            "repository" | "public" => None,
            "installation" | "installation_repositories" => return Ok(self.installed()),
            // Signed by the service, and no news of anything that is watched.
            _ => return Ok(Delivery::default()),
        };
        let Some(repository) = self.repository.0 else {
            return Ok(Delivery::default());
        };
        let repository = number(&repository.id).ok_or(DeliveryError::Repository)?;
        let object = version.map(|(own, version)| Object {
            name: format!("{event}/{repository}/{own}"),
            version,
        });
        Ok(Delivery {
            repositories: vec![repository],
            object,
        })
    }

    /// A commit status has its members at the top.
    fn status(&self) -> Changing {
        Changing {
            id: self.id.clone(),
            updated_at: self.updated_at.clone(),
            ..Changing::default()
        }
    }

    /// The reference that was pushed to, and where it points now.
    fn pushed(&self) -> Option<(String, Version)> {
        match (&self.r#ref, &self.after) {
            (Scalar::Text(name), Scalar::Text(after)) if !name.contains(char::is_control) => {
                let commit: Oid = after.parse().ok()?;
                Some((name.clone(), Version::Commit(commit.to_string())))
            }
            _ => None,
        }
    }

    /// An installation names the repositories that it gained or lost; without a list (when it is suspended, say) only polling
    /// tells, since its account's name is not a number.
    fn installed(self) -> Delivery {
        let lists = [
            self.repositories,
            self.repositories_added,
            self.repositories_removed,
        ];
        let listed = lists.iter().flat_map(|list| &list.0);
        let mut repositories: Vec<u64> = listed.filter_map(|one| number(&one.id)).collect();
        repositories.sort_unstable();
        repositories.dedup();
        repositories.truncate(MOST_REPOSITORIES);
        Delivery {
            repositories,
            object: None,
        }
    }
}

impl Changing {
    /// Its number and version; none when any part of the version cannot be read, since then nothing can be called older.
    fn version(&self) -> Option<(String, Version)> {
        let id = number(&self.id)?;
        let attempt = match self.run_attempt {
            Scalar::Absent => 1,
            Scalar::Number(attempt) if attempt < 10_u64.pow(10) => attempt,
            _ => return None,
        };
        let mut latest = None;
        for time in [&self.updated_at, &self.started_at, &self.completed_at] {
            match time {
                Scalar::Absent => {}
                Scalar::Text(text) => latest = latest.max(Some(moment(text)?)),
                _ => return None,
            }
        }
        let at = latest?;
        // Times have seconds only: what ends in the second in which it began is told apart by this.
        let rank = match &self.status {
            Scalar::Absent => 0,
            Scalar::Text(word) => match word.as_str() {
                "queued" | "requested" | "waiting" | "pending" => 0,
                "in_progress" => 1,
                "completed" => 2,
                _ => return None,
            },
            _ => return None,
        };
        let digits = format!("{attempt:010}{:015}{rank}", at.0);
        Some((id.to_string(), Version::Ordered { digits, at }))
    }
}

/// A moment from 1970 on that has at most 15 digits.
fn moment(text: &str) -> Option<Millis> {
    let moment: jiff::Timestamp = text.parse().ok()?;
    let millis = moment.as_millisecond();
    (0..10_i64.pow(15))
        .contains(&millis)
        .then_some(Millis(millis))
}

/// A number by which the provider calls something.
fn number(scalar: &Scalar) -> Option<u64> {
    match scalar {
        Scalar::Number(number) if (1..=i64::MAX.unsigned_abs()).contains(number) => Some(*number),
        _ => None,
    }
}

/// Whether brackets outside of texts are nested too deeply. Looked at before anything is parsed.
fn is_too_deep(text: &str) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                if depth > DEEPEST {
                    return true;
                }
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}
