//! Gemini's `generateContent`, v1beta: `POST /v1beta/models/MODEL:generateContent`.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::protocol::{self, AnswerError, spoken};
use super::{Answer, Conversation, Finish, ModelTurn, ToolCall, ToolResult, Turn, Usage};

/// Reasons of the service's filters.
const DECLINED: [&str; 7] = [
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
];

pub(super) fn request(conversation: &Conversation) -> Value {
    let contents: Vec<Value> = conversation.turns.iter().filter_map(content).collect();
    let tools: Vec<Value> = conversation
        .tools
        .iter()
        .map(|tool| {
            json!({"name": tool.name, "description": tool.description, "parameters": tool.schema})
        })
        .collect();
    json!({
        "systemInstruction": {"parts": [{"text": conversation.system}]},
        "contents": contents,
        "tools": [{"functionDeclarations": tools}],
    })
}

fn content(turn: &Turn) -> Option<Value> {
    let (role, parts) = match turn {
        Turn::Ours(text) => ("user", vec![json!({"text": text})]),
        Turn::Model(turn) => ("model", said(turn)),
        Turn::Results(results) => ("user", results.iter().map(result).collect()),
    };
    (!parts.is_empty()).then(|| json!({"role": role, "parts": parts}))
}

fn said(turn: &ModelTurn) -> Vec<Value> {
    // Signatures of thoughts stand in the parts, and a request without them is refused.
    if let Some(Value::Array(native)) = &turn.native {
        return native.clone();
    }
    let text = spoken(&turn.text).map(|text| json!({"text": text}));
    let calls = turn.calls.iter().map(|call| {
        let arguments = protocol::sound_arguments(&call.arguments);
        json!({"functionCall": named(&call.id, &call.name, "args", arguments)})
    });
    text.into_iter().chain(calls).collect()
}

fn result(result: &ToolResult) -> Value {
    let member = if result.failed { "error" } else { "result" };
    let response = json!({member: result.text});
    json!({"functionResponse": named(&result.call, &result.tool, "response", response)})
}

/// The service gives an id only sometimes, and wants it back then.
fn named(id: &str, name: &str, member: &str, value: Value) -> Value {
    let mut named = Map::new();
    if !id.is_empty() {
        named.insert("id".to_owned(), id.into());
    }
    named.insert("name".to_owned(), protocol::sound_name(name).into());
    named.insert(member.to_owned(), value);
    Value::Object(named)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    candidates: Vec<Candidate>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<Counted>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    parts: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    function_call: Option<Called>,
}

#[derive(Deserialize)]
struct Called {
    id: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    args: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

pub(super) fn answer(body: &[u8]) -> Result<Answer, AnswerError> {
    let response: Response = serde_json::from_slice(body).map_err(|_| AnswerError::Form)?;
    let blocked = response
        .prompt_feedback
        .is_some_and(|feedback| feedback.block_reason.is_some());
    let candidate = response.candidates.into_iter().next();
    let (parts, reason) = match candidate {
        Some(candidate) => (
            candidate
                .content
                .map_or_else(Vec::new, |content| content.parts),
            candidate.finish_reason,
        ),
        None if blocked => (Vec::new(), None),
        None => return Err(AnswerError::Form),
    };
    let finish = match reason.as_deref() {
        _ if blocked => Finish::Declined,
        Some("STOP") => Finish::Complete,
        Some("MAX_TOKENS") => Finish::Cut,
        Some(reason) if DECLINED.contains(&reason) => Finish::Declined,
        _ => Finish::Unknown,
    };
    let usage = response.usage_metadata.and_then(|counted| {
        let more = counted.tool_use_prompt_token_count.unwrap_or(0);
        let thoughts = counted.thoughts_token_count.unwrap_or(0);
        Some(Usage {
            input: counted.prompt_token_count?.saturating_add(more),
            // Left out where nothing was said.
            output: thoughts.saturating_add(counted.candidates_token_count.unwrap_or(0)),
        })
    });
    Ok(Answer {
        turn: turn(parts)?,
        finish,
        usage,
    })
}

fn turn(parts: Vec<Value>) -> Result<ModelTurn, AnswerError> {
    let mut turn = ModelTurn::default();
    for value in &parts {
        let part = Part::deserialize(value).map_err(|_| AnswerError::Form)?;
        if let Some(text) = part.text.filter(|_| !part.thought) {
            turn.text.push_str(&text);
        }
        if let Some(called) = part.function_call {
            let arguments = match called.args {
                Value::Null => Value::Object(Map::new()),
                arguments => arguments,
            };
            turn.calls.push(ToolCall {
                id: called.id.unwrap_or_default(),
                name: called.name,
                arguments,
            });
        }
    }
    if turn.calls.iter().all(protocol::is_sound) && !parts.is_empty() {
        turn.native = Some(Value::Array(parts));
    }
    Ok(turn)
}
