//! The REST interface: one request in, one answer out, in the shapes of GitHub's API version 2022-11-28.

mod account;
mod actions;
mod apps;
mod assertion;
mod checks;
mod compare;
mod contents;
mod conversation;
mod deliveries;
mod guards;
mod headers;
mod limits;
mod merge;
mod objects;
mod paging;
mod permissions;
mod pull_files;
mod pulls;
mod references;
mod repositories;
mod routes;
mod workflows;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use axum::body::Bytes;
use serde_json::{Map, Value, json};

use super::Profile;
use super::error::ForgeError;
use super::state::{App, KeptAnswer, RepositoryState, Shared, Token};

pub(crate) use assertion::{is_assertion, signer};
pub(crate) use guards::checked_commits;
pub(crate) use merge::{MergeRequest, land};
pub(crate) use permissions::{Level, allows};
pub(crate) use pulls::{retarget, set_open};
use routes::Scene;

/// The API version that answers have where neither profile nor request say otherwise.
const OLD_VERSION: &str = "2022-11-28";
/// The version that lacks a pull request's `merge_commit_sha` and `assignee` and the limits' `rate`.
const NEW_VERSION: &str = "2026-03-10";
const DOCUMENTATION: &str = "https://docs.github.com/rest";
/// Requests an hour, as for a small installation.
pub(crate) const RATE_LIMIT: u64 = 5_000;

/// One request to the API, read and decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// In capitals; HEAD arrives as GET.
    pub(crate) method: String,
    /// The decoded parts of the path.
    pub(crate) segments: Vec<String>,
    /// The decoded pairs of the query, in order.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) accept: String,
    pub(crate) if_none_match: Option<String>,
    /// The API version that the request names.
    pub(crate) api_version: Option<String>,
    /// The API version of the answer.
    pub(crate) version: &'static str,
    pub(crate) has_user_agent: bool,
    pub(crate) credentials: Credentials,
    /// The path as it was sent.
    pub(crate) path: String,
    /// How many requests of this credential were under way when it arrived, with itself.
    pub(crate) together: u64,
    /// The wish for a form of installation tokens.
    pub(crate) stateless_token: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// Who asks.
#[derive(Clone, Debug, Default)]
pub(crate) enum Credentials {
    #[default]
    None,
    /// Whoever it is, this is the answer.
    Refused(Refusal),
    Token(Arc<Token>),
    App(Arc<App>),
}

/// An answer before the headers that all answers share.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Body,
}

/// What an answer carries.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Nothing,
    Json(Value),
    /// JSON that is written already, with a number that follows from it.
    Text(Bytes, u64),
    Raw(Vec<u8>),
}

/// A request that is answered with an error in GitHub's words.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
    pub(crate) errors: Vec<Value>,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Where GitHub explains it.
    pub(crate) documentation: &'static str,
}

/// What every route gives.
pub(crate) type Answer = Result<Reply, Refusal>;

impl Reply {
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Body::Json(body),
        }
    }

    pub(crate) fn ok(body: Value) -> Self {
        Self::json(200, body)
    }

    pub(crate) fn nothing() -> Self {
        Self {
            status: 204,
            headers: Vec::new(),
            body: Body::Nothing,
        }
    }

    /// The same answer with its JSON written.
    pub(crate) fn written(self) -> Self {
        let Body::Json(value) = self.body else {
            return self;
        };
        let text = value.to_string();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Self {
            body: Body::Text(Bytes::from(text), hasher.finish()),
            ..self
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}

impl Refusal {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            errors: Vec::new(),
            headers: Vec::new(),
            documentation: DOCUMENTATION,
        }
    }

    pub(crate) fn not_found() -> Self {
        Self::new(404, "Not Found")
    }

    /// 422 with one error, as GitHub words custom validations.
    pub(crate) fn invalid(resource: &str, message: impl Into<String>) -> Self {
        let error = json!({"resource": resource, "code": "custom", "message": message.into()});
        Self {
            errors: vec![error],
            ..Self::new(422, "Validation Failed")
        }
    }

    /// 422 about one field.
    pub(crate) fn invalid_field(resource: &str, field: &str, code: &str) -> Self {
        let error = json!({"resource": resource, "code": code, "field": field});
        Self {
            errors: vec![error],
            ..Self::new(422, "Validation Failed")
        }
    }

    fn reply(&self) -> Reply {
        let mut body = json!({"message": self.message, "documentation_url": self.documentation, "status": self.status.to_string()});
        if !self.errors.is_empty() {
            body["errors"] = Value::Array(self.errors.clone());
        }
        Reply {
            headers: self.headers.clone(),
            ..Reply::json(self.status, body)
        }
    }
}

impl From<ForgeError> for Refusal {
    /// A fault of the forge itself: GitHub would say nothing more than "Server Error", a stand-in says what happened.
    fn from(error: ForgeError) -> Self {
        Self::new(500, format!("Server Error: {error}"))
    }
}

impl Call {
    /// Whether it is answered in API version 2022-11-28.
    pub(crate) fn is_old_version(&self) -> bool {
        self.version == OLD_VERSION
    }

    /// The parts of the path behind a repository; `None` for everything else.
    pub(crate) fn behind_repository(&self) -> Option<Vec<&str>> {
        let segments: Vec<&str> = self.segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["repos", _, _, rest @ ..] | ["repositories", _, rest @ ..] => Some(rest.to_vec()),
            _ => None,
        }
    }

    /// A value of the query.
    pub(crate) fn query_value(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// The body as a JSON object; an empty body counts as an empty object.
    pub(crate) fn object(&self) -> Result<Map<String, Value>, Refusal> {
        if self.body.is_empty() {
            return Ok(Map::new());
        }
        match serde_json::from_slice(&self.body) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(Refusal::new(400, "Body should be a JSON object")),
            Err(_) => Err(Refusal::new(400, "Problems parsing JSON")),
        }
    }
}

/// A text of the body; `None` when it is absent or null, 422 when it is something else or contains a NUL.
pub(crate) fn text(object: &Map<String, Value>, name: &str) -> Result<Option<String>, Refusal> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.contains('\0') => Ok(Some(text.clone())),
        Some(_) => Err(Refusal::new(
            422,
            format!("Invalid request.\n\nFor '/{name}': expected a string."),
        )),
    }
}

/// A flag of the body; `None` when it is absent or null, 422 when it is something else.
pub(crate) fn flag(object: &Map<String, Value>, name: &str) -> Result<Option<bool>, Refusal> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(Refusal::new(
            422,
            format!("Invalid request.\n\nFor '/{name}': expected a boolean."),
        )),
    }
}

/// A text of the body that must be there.
pub(crate) fn required_text(object: &Map<String, Value>, name: &str) -> Result<String, Refusal> {
    let missing = || {
        Refusal::new(
            422,
            format!("Invalid request.\n\n\"{name}\" wasn't supplied."),
        )
    };
    text(object, name)?
        .filter(|text| !text.is_empty())
        .ok_or_else(missing)
}

/// An answer that depends on the repository's state alone, kept until that changes.
pub(crate) fn kept(
    scene: Scene<'_>,
    state: &RepositoryState,
    render: impl FnOnce() -> Answer,
) -> Answer {
    let call = scene.call;
    let request = format!("{:?}", (&call.segments, &call.query, call.version));
    let answers = &scene.repository.answers;
    let reply = |kept: KeptAnswer| Reply {
        status: 200,
        headers: kept.headers,
        body: Body::Text(kept.text, kept.hash),
    };
    if let Some(known) = answers.get(&request, state.version) {
        return Ok(reply(known));
    }
    let rendered = render()?.written();
    if let (200, Body::Text(text, hash)) = (rendered.status, &rendered.body) {
        let answer = KeptAnswer {
            text: text.clone(),
            hash: *hash,
            headers: rendered.headers.clone(),
        };
        answers.keep(request, state.version, answer);
    }
    Ok(rendered)
}

/// Answers one request to the API.
pub(crate) fn answer(shared: &Shared, call: &Call) -> Reply {
    let reply = admitted(shared, call)
        .and_then(|()| limits::charge(shared, call))
        .and_then(|()| routes::route(shared, call))
        .unwrap_or_else(|refusal| refusal.reply());
    let reply = distorted(shared, call, renewed(call, reply));
    headers::complete(shared, call, reply)
}

/// The answer with what a test changed about it.
fn distorted(shared: &Shared, call: &Call, reply: Reply) -> Reply {
    let whole = || match &reply.body {
        Body::Json(value) => value.clone(),
        Body::Text(text, _) => serde_json::from_slice(text).unwrap_or_default(),
        Body::Nothing | Body::Raw(_) => Value::Null,
    };
    if !matches!(reply.body, Body::Json(_) | Body::Text(..)) {
        return reply;
    }
    match shared.traffic.distorted(&call.method, &call.path, whole) {
        None => reply,
        Some(changed) => Reply {
            body: Body::Json(changed),
            ..reply
        },
    }
}

/// The API versions that a forge speaks, its usual one first.
fn supported(profile: Profile) -> &'static [&'static str] {
    match profile {
        Profile::Github20221128 => &[OLD_VERSION, NEW_VERSION],
        Profile::Github20260310 => &[NEW_VERSION, OLD_VERSION],
        Profile::EnterpriseServer => &[OLD_VERSION],
    }
}

/// The version in which a request that names this one is answered.
pub(crate) fn version_for(profile: Profile, named: Option<&str>) -> &'static str {
    let versions = supported(profile);
    versions
        .iter()
        .find(|version| Some(**version) == named)
        .or(versions.first())
        .copied()
        .unwrap_or(OLD_VERSION)
}

/// The answer without what the newer API version dropped.
fn renewed(call: &Call, reply: Reply) -> Reply {
    match reply.body {
        Body::Json(mut value) if !call.is_old_version() => {
            drop_members(&mut value);
            Reply {
                body: Body::Json(value),
                ..reply
            }
        }
        _ => reply,
    }
}

/// Takes `merge_commit_sha` and `assignee` out of every pull request inside.
fn drop_members(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_members),
        Value::Object(members) => {
            if members.remove("merge_commit_sha").is_some() {
                members.remove("assignee");
            }
            members.values_mut().for_each(drop_members);
        }
        _ => {}
    }
}

/// What GitHub checks before it looks at the path.
fn admitted(shared: &Shared, call: &Call) -> Result<(), Refusal> {
    if !call.has_user_agent {
        return Err(Refusal::new(
            403,
            "Request forbidden by administrative rules. Please make sure your request has a User-Agent header",
        ));
    }
    if let Some(version) = call
        .api_version
        .as_deref()
        .filter(|version| *version != call.version)
    {
        let supported = supported(shared.profile).join(", ");
        return Err(Refusal::new(
            400,
            format!(
                "\"{version}\" is not a supported version of the REST API. The supported versions are: {supported}"
            ),
        ));
    }
    match &call.credentials {
        Credentials::Refused(refusal) => Err(refusal.clone()),
        _ => Ok(()),
    }
}
