//! What a client may ask of its model's server: each protocol's own requests, and nothing else under its address.

use axum::http::Method;
use serde_json::Value;

/// Longest model name in a path, in bytes.
const LONGEST_MODEL: usize = 200;

/// Whose protocol a model's server speaks, and where its key belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Anthropic's messages; key in `x-api-key`.
    Anthropic,
    /// `OpenAI`'s chat completions and responses; key in `Authorization`.
    OpenAi,
    /// Gemini's `generateContent`; key in `x-goog-api-key`.
    Gemini,
    /// Ollama, by the part of it that speaks as `OpenAI` does; it needs no key.
    Ollama,
}

/// A request as it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// What is appended to the configured base.
    pub path: String,
    /// The query, without the question mark.
    pub query: Option<&'static str>,
}

impl Route {
    /// Whether it asks only how many tokens something has.
    pub(super) fn counts(&self) -> bool {
        self.path.ends_with("/count_tokens") || self.path.ends_with(":countTokens")
    }
}

impl Protocol {
    /// Where a request goes. `None` for whatever is not the protocol's.
    pub fn route(self, method: &Method, path: &str, query: Option<&str>) -> Option<Route> {
        let (post, get) = (method == Method::POST, method == Method::GET);
        let rest = path.strip_prefix(match self {
            Self::Gemini => "/v1beta/",
            _ => "/v1/",
        })?;
        let known = match (self, rest) {
            (Self::OpenAi | Self::Ollama, "chat/completions" | "responses")
            | (Self::Anthropic, "messages" | "messages/count_tokens") => post,
            (_, "models") => get,
            (_, rest) => match rest.strip_prefix("models/") {
                Some(model) if self == Self::Gemini => {
                    get && is_model(model) || post && is_call_of_model(model)
                }
                Some(model) => get && is_model(model),
                None => false,
            },
        };
        // Break it: let everything pass; `agent::client::proxy::paths_that_are_not_the_protocols_are_refused` fails.
        known.then(|| Route {
            path: match self {
                // Its configured base ends with the version.
                Self::OpenAi => format!("/{rest}"),
                _ => path.to_owned(),
            },
            // Gemini takes a key there, so that only what is known goes on.
            query: ["alt=sse", "beta=true"]
                .into_iter()
                .find(|known| query.is_some_and(|query| query.split('&').any(|one| one == *known))),
        })
    }
}

fn is_model(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=LONGEST_MODEL).contains(&name.len()) && !name.contains("..") && name.bytes().all(plain)
}

fn is_call_of_model(name: &str) -> bool {
    let calls = ["generateContent", "streamGenerateContent", "countTokens"];
    name.rsplit_once(':')
        .is_some_and(|(model, call)| is_model(model) && calls.contains(&call))
}

/// The first thing in a request by which the server itself would reach beyond the model: a tool that runs on its side (search,
/// fetching, code, other people's tool servers) would be a way out of the sandbox.
pub fn reaches_beyond(request: &Value) -> Option<String> {
    let filled = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    let beyond = [
        "mcp_servers",
        "web_search_options",
        "container",
        "background",
        "prompt",
        "cachedContent",
    ];
    if let Some(member) = beyond.iter().find(|name| {
        let value = &request[**name];
        filled(value) && value != &Value::Bool(false)
    }) {
        return Some((*member).to_owned());
    }
    let mut tools = request["tools"].as_array().into_iter().flatten();
    tools.find_map(hosted)
}

/// The kind of a tool that the server itself would run.
fn hosted(tool: &Value) -> Option<String> {
    if let Some(kind) = tool["type"].as_str() {
        // What the client runs: `OpenAI`'s functions and free-form tools, Anthropic's custom ones.
        let own = ["function", "custom", "local_shell", "apply_patch", "shell"];
        // Tools in a named group are looked at one by one.
        if kind == "namespace" {
            let mut inner = tool["tools"].as_array().into_iter().flatten();
            return inner.find_map(hosted);
        }
        return (!own.contains(&kind)).then(|| kind.to_owned());
    }
    // Gemini's tools are named by their one member; Anthropic's without a type are custom.
    let members = tool.as_object()?;
    let own = [
        "functionDeclarations",
        "function_declarations",
        "name",
        "description",
        "input_schema",
        "cache_control",
        "strict",
        "defer_loading",
        "eager_input_streaming",
        "input_examples",
    ];
    members
        .keys()
        .find(|name| !own.contains(&name.as_str()))
        .cloned()
}
