//! Ollama's chat, not streamed: `POST /api/chat`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::openai::{Function, functions, read_arguments};
use super::protocol::{self, AnswerError, Limits, spoken};
use super::{Answer, Conversation, Finish, ModelTurn, ToolCall, ToolResult, Turn, Usage};

pub(super) fn request(model: &str, conversation: &Conversation, limits: Limits) -> Value {
    let mut messages = vec![json!({"role": "system", "content": conversation.system})];
    for turn in &conversation.turns {
        match turn {
            Turn::Ours(text) => messages.push(json!({"role": "user", "content": text})),
            Turn::Model(turn) => messages.extend(said(turn)),
            Turn::Results(results) => messages.extend(results.iter().map(result)),
        }
    }
    json!({
        "model": model,
        "messages": messages,
        "tools": functions(conversation),
        "stream": false,
        "options": {"num_ctx": limits.context},
    })
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
            let arguments = protocol::sound_arguments(&call.arguments);
            json!({"function": {"name": protocol::sound_name(&call.name), "arguments": arguments}})
        })
        .collect();
    Some(json!({"role": "assistant", "content": text.unwrap_or_default(), "tool_calls": calls}))
}

fn result(result: &ToolResult) -> Value {
    let tool = protocol::sound_name(&result.tool);
    json!({"role": "tool", "tool_name": tool, "content": result.text})
}

#[derive(Deserialize)]
struct Response {
    message: Option<Message>,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    tool_calls: Option<Vec<Called>>,
}

#[derive(Deserialize)]
struct Called {
    function: Function,
}

pub(super) fn answer(body: &[u8]) -> Result<Answer, AnswerError> {
    let response: Response = serde_json::from_slice(body).map_err(|_| AnswerError::Form)?;
    if response.error.is_some() {
        return Err(AnswerError::Failure);
    }
    let message = response.message.ok_or(AnswerError::Form)?;
    let called = message.tool_calls.unwrap_or_default();
    let calls = called.into_iter().map(|called| ToolCall {
        id: String::new(),
        name: called.function.name,
        arguments: read_arguments(called.function.arguments),
    });
    let finish = match response.done_reason.as_deref() {
        Some("stop") => Finish::Complete,
        Some("length") => Finish::Cut,
        _ => Finish::Unknown,
    };
    // What it still held of the last request is not counted again; without the answer's count nothing was counted.
    let usage = response.eval_count.map(|output| Usage {
        input: response.prompt_eval_count.unwrap_or(0),
        output,
    });
    Ok(Answer {
        turn: ModelTurn {
            text: message.content.unwrap_or_default(),
            calls: calls.collect(),
            native: None,
        },
        finish,
        usage,
    })
}
