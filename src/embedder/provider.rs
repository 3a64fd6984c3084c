//! Who can embed, and what each has that is not configured.

use std::fmt;
use std::str::FromStr;

use crate::intent::{DEFAULT_DRIFT_FLOOR, Thresholds};

/// The id of the model that runs in this process: its name, and the beginning of its weights' SHA-256.
pub const EMBEDDED_ID: &str = "embedded:all-MiniLM-L6-v2@53aa51172d14";

/// Somebody, or something, that embeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// `OpenAI`.
    Openai,
    /// Google's Gemini, by its interface in the form of `OpenAI`'s.
    Gemini,
    /// Ollama, by its interface in the form of `OpenAI`'s.
    Ollama,
    /// Anything else with an interface of that form.
    OpenaiCompatible,
    /// The model that runs in this process.
    Embedded,
}

/// Why a name is not that of an embedder. The words are those that operators of such checks know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// A provider of models without embeddings.
    #[error(
        "provider anthropic does not provide an embedding API; use openai, gemini, ollama, openai-compatible or embedded"
    )]
    Anthropic,
    /// Nobody that is known.
    #[error(
        "unknown embedding provider: {0:?}; known are openai, gemini, ollama, openai-compatible and embedded"
    )]
    Unknown(String),
}

impl Provider {
    /// Its name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::OpenaiCompatible => "openai-compatible",
            Self::Embedded => "embedded",
        }
    }

    /// The model unless one is configured; `None` where it has to be.
    pub const fn default_model(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("text-embedding-3-small"),
            Self::Gemini => Some("gemini-embedding-001"),
            Self::Ollama => Some("nomic-embed-text"),
            Self::Embedded => Some("all-MiniLM-L6-v2"),
            Self::OpenaiCompatible => None,
        }
    }

    /// The address unless one is configured; `None` where it has to be, or where there is none.
    pub const fn default_base(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("https://api.openai.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta/openai"),
            Self::Ollama => Some("http://localhost:11434/v1"),
            Self::OpenaiCompatible | Self::Embedded => None,
        }
    }

    /// The variable that holds its key unless another is configured; `None` where no key is needed.
    pub const fn default_key_variable(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("OPENAI_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama | Self::OpenaiCompatible | Self::Embedded => None,
        }
    }

    /// Thresholds (soft, hard) that were found with a model, where that was done; all others have to be configured.
    pub fn default_thresholds(self, model: &str) -> Option<(f64, f64)> {
        match self {
            Self::Openai if Some(model) == self.default_model() => Some(Thresholds::DEFAULT),
            // 38 pairs of intents and tool calls: 0.17 loses 1 of 16 aligned calls and catches 12 of 13 others; it loses calls such as
            // `ls` too, so nothing is denied until somebody has looked at their own scores.
            Self::Embedded => Some((0.17, -1.0)),
            _ => None,
        }
    }

    /// The floor of the mean unless one is configured.
    pub const fn default_drift_floor(self) -> f64 {
        match self {
            Self::Embedded => 0.10,
            _ => DEFAULT_DRIFT_FLOOR,
        }
    }

    /// How many numbers a model's vectors usually have, where that is known. It is told, never relied upon.
    pub fn usual_dimension(self, model: &str) -> Option<usize> {
        match (self, model) {
            (Self::Openai, "text-embedding-3-small") => Some(1536),
            (Self::Ollama, "nomic-embed-text") => Some(768),
            (Self::Embedded, _) => Some(384),
            _ => None,
        }
    }
}

impl FromStr for Provider {
    type Err = ProviderError;

    fn from_str(text: &str) -> Result<Self, ProviderError> {
        match text {
            "openai" => Ok(Self::Openai),
            "gemini" => Ok(Self::Gemini),
            "ollama" => Ok(Self::Ollama),
            "openai-compatible" => Ok(Self::OpenaiCompatible),
            "embedded" => Ok(Self::Embedded),
            "anthropic" => Err(ProviderError::Anthropic),
            other => Err(ProviderError::Unknown(other.chars().take(60).collect())),
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
