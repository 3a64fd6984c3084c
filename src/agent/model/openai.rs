//! `OpenAI`'s chat completions, not streamed: `POST /chat/completions` below a base that ends in the version.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::protocol::{self, AnswerError, spoken};
use super::{Answer, Conversation, Finish, ModelTurn, ToolCall, ToolResult, Turn, Usage};

pub(super) fn request(model: &str, conversation: &Conversation) -> Value {
    let mut messages = vec![json!({"role": "system", "content": conversation.system})];
    for turn in &conversation.turns {
        match turn {
            Turn::Ours(text) => messages.push(json!({"role": "user", "content": text})),
            Turn::Model(turn) => messages.extend(said(turn)),
            Turn::Results(results) => messages.extend(results.iter().map(result)),
        }
    }
    json!({"model": model, "messages": messages, "tools": functions(conversation), "stream": false})
}

/// The tools, in the form that Ollama takes too.
pub(super) fn functions(conversation: &Conversation) -> Vec<Value> {
    let function = |tool: &super::ToolDescription| {
        json!({
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
        })
    };
    conversation.tools.iter().map(function).collect()
}

fn said(turn: &ModelTurn) -> Option<Value> {
    let text = spoken(&turn.text);
    if turn.calls.is_empty() {
        return text.map(|text| json!({"role": "assistant", "content": text}));
    }
    let calls: Vec<Value> = turn
        .calls
        .iter()
        .map(|call| {
            let arguments = protocol::sound_arguments(&call.arguments).to_string();
            json!({
                "id": call.id,
                "type": "function",
                "function": {"name": protocol::sound_name(&call.name), "arguments": arguments},
            })
        })
        .collect();
    Some(json!({"role": "assistant", "content": text, "tool_calls": calls}))
}

fn result(result: &ToolResult) -> Value {
    json!({"role": "tool", "tool_call_id": result.call, "content": result.text})
}

#[derive(Deserialize)]
struct Response {
    choices: Vec<Choice>,
    usage: Option<Counted>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Value,
    refusal: Option<String>,
    tool_calls: Option<Vec<Called>>,
}

#[derive(Deserialize)]
struct Called {
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
pub(super) struct Function {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Value,
}

#[derive(Deserialize)]
struct Counted {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

pub(super) fn answer(body: &[u8]) -> Result<Answer, AnswerError> {
    let response: Response = serde_json::from_slice(body).map_err(|_| AnswerError::Form)?;
    let choice = response.choices.into_iter().next();
    let choice = choice.ok_or(AnswerError::Form)?;
    let called = choice.message.tool_calls.unwrap_or_default();
    let calls = called.into_iter().enumerate().map(|(index, called)| {
        let id = called.id.filter(|id| !id.is_empty());
        ToolCall {
            // Some servers give none; it only has to tell the calls of one turn apart.
            id: id.unwrap_or_else(|| format!("call_{index}")),
            name: called.function.name,
            arguments: read_arguments(called.function.arguments),
        }
    });
    let declined = choice
        .message
        .refusal
        .is_some_and(|words| !words.is_empty());
    let finish = match choice.finish_reason.as_deref() {
        _ if declined => Finish::Declined,
        Some("stop" | "tool_calls" | "function_call") => Finish::Complete,
        Some("length") => Finish::Cut,
        Some("content_filter") => Finish::Declined,
        _ => Finish::Unknown,
    };
    let turn = ModelTurn {
        text: words(&choice.message.content),
        calls: calls.collect(),
        native: None,
    };
    let usage = response.usage.and_then(|counted| {
        Some(Usage {
            input: counted.prompt_tokens?,
            output: counted.completion_tokens?,
        })
    });
    Ok(Answer {
        turn,
        finish,
        usage,
    })
}

/// A text, or a list of parts with texts in them.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect()
        }
        _ => String::new(),
    }
}

/// Arguments are JSON in a text; some servers leave the text out where there are none, or give the object itself.
pub(super) fn read_arguments(arguments: Value) -> Value {
    match arguments {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other,
    }
}
