//! The port to language models that call tools: a conversation in, one answer out.
//!
//! What a provider's wire format looks like is pure (`anthropic`, `openai`, `gemini`, `ollama`: conversation to request, response to
//! answer, behind [`Protocol`]); [`HttpModel`] sends it, once; [`persist`] asks again where that may help. What a provider says
//! about a failure is never repeated: it may repeat what was sent, and it is a stranger's.

mod anthropic;
mod gemini;
mod http;
mod ollama;
mod openai;
pub mod persist;
mod protocol;
mod refusal;

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

pub use http::{HttpModel, HttpModelError, ModelSettings};
pub use protocol::{AnswerError, Limits, Protocol};
pub use refusal::{Refusal, refusal};

/// All that a model is told: the request is made from this and nothing else.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    /// What the job is.
    pub system: String,
    /// What it may call.
    pub tools: Vec<ToolDescription>,
    /// What was said, oldest first.
    pub turns: Vec<Turn>,
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDescription {
    /// Its name: ASCII letters, digits, `_` and `-`, at most 64.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// JSON Schema of its arguments, an object. Only `type`, `properties`, `required`, `items` and `description`, which every provider
    /// takes.
    pub schema: Value,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// What we say.
    Ours(String),
    /// What the model said.
    Model(ModelTurn),
    /// What its calls came to, one for each call of the turn before.
    Results(Vec<ToolResult>),
}

/// What a model said in one turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelTurn {
    /// Its words.
    pub text: String,
    /// The tools it calls, in its order.
    pub calls: Vec<ToolCall>,
    /// The turn as its provider wrote it, where the provider wants it back unchanged (Gemini signs its thoughts).
    pub native: Option<Value>,
}

/// A call of a tool, as the model wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The provider's name for this call; empty where the provider gives none.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments. What is no JSON object is kept as it is (as text when it is not even JSON), and no tool takes it.
    pub arguments: Value,
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The call's id.
    pub call: String,
    /// The call's tool.
    pub tool: String,
    /// What the model is told.
    pub text: String,
    /// Whether it was not done.
    pub failed: bool,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// As the model wanted.
    Complete,
    /// At a limit of length: what it says last may be half of it.
    Cut,
    /// The model or its provider will not answer.
    Declined,
    /// For a reason that is in no list here.
    Unknown,
}

/// Tokens, as the provider counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Sent, cached ones included.
    pub input: u64,
    /// Received, thoughts included.
    pub output: u64,
}

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What the model says.
    pub turn: ModelTurn,
    /// How it ended.
    pub finish: Finish,
    /// What it took. A provider that does not count leaves this out, and four bytes are then taken for a token.
    pub usage: Option<Usage>,
}

/// Whether asking again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It may.
    Retry,
    /// It may, but not before so much time has passed.
    Wait(Duration),
    /// It will not.
    Permanent,
}

/// Why there is no answer, in our own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("asking the model {model}: {detail}")]
pub struct ModelError {
    /// Which model.
    pub model: String,
    /// Whether asking again may help.
    pub class: Class,
    /// What happened and the mend.
    pub detail: String,
}

/// A language model.
#[async_trait]
pub trait LanguageModel: Send + Sync {
    /// Its name for people and records, e.g. `ollama:qwen3`.
    fn name(&self) -> &str;

    /// Tokens that an answer has at most, as far as that is known.
    fn longest_answer(&self) -> u64 {
        Limits::default().answer.into()
    }

    /// Asks once.
    ///
    /// # Errors
    /// There is no usable answer; the class says whether another request may bring one.
    async fn ask(&self, conversation: &Conversation) -> Result<Answer, ModelError>;
}
