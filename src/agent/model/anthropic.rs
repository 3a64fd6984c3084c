//! Anthropic's messages, version 2023-06-01: `POST /v1/messages`, not streamed.

use serde::Deserialize;
use serde_json::{Value, json};

use super::protocol::{self, AnswerError, Limits, spoken};
use super::{Answer, Conversation, Finish, ModelTurn, ToolCall, ToolResult, Turn, Usage};

pub(super) fn request(model: &str, conversation: &Conversation, limits: Limits) -> Value {
    let mut messages: Vec<Value> = conversation.turns.iter().filter_map(message).collect();
    // What comes before a mark is cached: the tools and the system text, and all that was said so far.
    let mark = json!({"type": "ephemeral"});
    let last = messages
        .last_mut()
        .and_then(|message| message.get_mut("content"))
        .and_then(Value::as_array_mut)
        .and_then(|content| content.last_mut())
        .and_then(Value::as_object_mut);
    if let Some(last) = last {
        last.insert("cache_control".to_owned(), mark.clone());
    }
    let tools: Vec<Value> = conversation
        .tools
        .iter()
        .map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema})
        })
        .collect();
    json!({
        "model": model,
        "max_tokens": limits.answer,
        "system": [{"type": "text", "text": conversation.system, "cache_control": mark}],
        "tools": tools,
        "messages": messages,
    })
}

fn message(turn: &Turn) -> Option<Value> {
    let (role, content) = match turn {
        Turn::Ours(text) => ("user", vec![json!({"type": "text", "text": text})]),
        Turn::Model(turn) => ("assistant", said(turn)),
        Turn::Results(results) => ("user", results.iter().map(result).collect()),
    };
    (!content.is_empty()).then(|| json!({"role": role, "content": content}))
}

fn said(turn: &ModelTurn) -> Vec<Value> {
    if let Some(Value::Array(native)) = &turn.native {
        return native.clone();
    }
    let text = spoken(&turn.text).map(|text| json!({"type": "text", "text": text}));
    let calls = turn.calls.iter().map(|call| {
        json!({
            "type": "tool_use",
            "id": call.id,
            "name": protocol::sound_name(&call.name),
            "input": protocol::sound_arguments(&call.arguments),
        })
    });
    text.into_iter().chain(calls).collect()
}

fn result(result: &ToolResult) -> Value {
    json!({"type": "tool_result", "tool_use_id": result.call, "content": result.text, "is_error": result.failed})
}

#[derive(Deserialize)]
struct Response {
    content: Vec<Value>,
    stop_reason: Option<String>,
    usage: Option<Counted>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(default)]
    input: Value,
}

#[derive(Deserialize)]
struct Counted {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

pub(super) fn answer(body: &[u8]) -> Result<Answer, AnswerError> {
    let response: Response = serde_json::from_slice(body).map_err(|_| AnswerError::Form)?;
    let mut turn = ModelTurn::default();
    let mut native = Vec::new();
    for value in response.content {
        let block = Block::deserialize(&value).map_err(|_| AnswerError::Form)?;
        match block.kind.as_str() {
            "text" => {
                let text = block.text.unwrap_or_default();
                if spoken(&text).is_none() {
                    // Not taken back.
                    continue;
                }
                turn.text.push_str(&text);
            }
            "tool_use" => turn.calls.push(ToolCall {
                // A result without its call's id belongs to nothing.
                id: block
                    .id
                    .filter(|id| !id.is_empty())
                    .ok_or(AnswerError::Form)?,
                name: block.name.unwrap_or_default(),
                arguments: block.input,
            }),
            _ => {}
        }
        native.push(value);
    }
    if turn.calls.iter().all(protocol::is_sound) && !native.is_empty() {
        turn.native = Some(Value::Array(native));
    }
    let finish = match response.stop_reason.as_deref() {
        Some("end_turn" | "tool_use" | "stop_sequence" | "pause_turn") => Finish::Complete,
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Cut,
        Some("refusal") => Finish::Declined,
        _ => Finish::Unknown,
    };
    let usage = response.usage.and_then(|counted| {
        let cached = [
            counted.cache_creation_input_tokens,
            counted.cache_read_input_tokens,
        ];
        let cached = cached.into_iter().flatten();
        Some(Usage {
            input: cached.fold(counted.input_tokens?, u64::saturating_add),
            output: counted.output_tokens?,
        })
    });
    Ok(Answer {
        turn,
        finish,
        usage,
    })
}
