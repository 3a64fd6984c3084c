//! Whose wire format is spoken, and what the four have in common.

use serde_json::{Map, Value};

use super::{Answer, Conversation, ToolCall, anthropic, gemini, ollama, openai};

/// Whose wire format a model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Anthropic's messages, version 2023-06-01.
    Anthropic,
    /// `OpenAI`'s chat completions, which many others speak too.
    Openai,
    /// Gemini's `generateContent`, v1beta.
    Gemini,
    /// Ollama's chat.
    Ollama,
}

/// What a request may ask for, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// One answer's length; asked for where the protocol requires it (Anthropic).
    pub answer: u32,
    /// The window of the whole conversation; asked for where a server otherwise takes a small one and cuts silently (Ollama).
    pub context: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: 8_192,
            context: 32_768,
        }
    }
}

/// Why a response is no answer. Nothing of it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Not JSON, or not the protocol's.
    #[error("its answer is not in the form of its protocol; are base_url and provider right?")]
    Form,
    /// An error in an answer whose status says that all is well.
    #[error("its answer is an error message; look into its log")]
    Failure,
}

impl Protocol {
    /// The name in records: that of the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// The path below the base of addresses, piece by piece.
    pub fn path(self, model: &str) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Anthropic => &["v1", "messages"],
            Self::Openai => &["chat", "completions"],
            Self::Gemini => {
                return vec![
                    "v1beta".to_owned(),
                    "models".to_owned(),
                    format!("{model}:generateContent"),
                ];
            }
            Self::Ollama => &["api", "chat"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// The header that carries the key, and what stands before the key in it.
    pub const fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::Anthropic => ("x-api-key", ""),
            Self::Gemini => ("x-goog-api-key", ""),
            Self::Openai | Self::Ollama => ("authorization", "Bearer "),
        }
    }

    /// The body of a request.
    pub fn request(self, model: &str, conversation: &Conversation, limits: Limits) -> Value {
        match self {
            Self::Anthropic => anthropic::request(model, conversation, limits),
            Self::Openai => openai::request(model, conversation),
            Self::Gemini => gemini::request(conversation),
            Self::Ollama => ollama::request(model, conversation, limits),
        }
    }

    /// The answer that a response is.
    ///
    /// # Errors
    /// The response is none.
    pub fn answer(self, body: &[u8]) -> Result<Answer, AnswerError> {
        match self {
            Self::Anthropic => anthropic::answer(body),
            Self::Openai => openai::answer(body),
            Self::Gemini => gemini::answer(body),
            Self::Ollama => ollama::answer(body),
        }
    }
}

/// The words of a text that says anything; providers refuse blank ones.
pub(super) fn spoken(text: &str) -> Option<&str> {
    (!text.trim().is_empty()).then_some(text)
}

/// Whether a call can be sent back as it is: providers refuse other names, and arguments that are no object.
pub(super) fn is_sound(call: &ToolCall) -> bool {
    call.arguments.is_object() && call.name == sound_name(&call.name)
}

/// A name that every provider takes back.
pub(super) fn sound_name(name: &str) -> String {
    let takes =
        |character: &char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let name: String = name.chars().filter(takes).take(64).collect();
    if name.is_empty() {
        "unnamed".to_owned()
    } else {
        name
    }
}

/// Arguments that every provider takes back.
pub(super) fn sound_arguments(arguments: &Value) -> Value {
    if arguments.is_object() {
        arguments.clone()
    } else {
        Value::Object(Map::new())
    }
}
