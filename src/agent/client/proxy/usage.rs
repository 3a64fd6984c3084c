//! How many tokens an answer says it cost, whole or as it streams by. Best effort: what is not understood counts nothing.

use serde_json::Value;

/// Longest line, and longest whole document, that is looked into, in bytes.
const LONGEST: usize = 8 << 20;

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Sent.
    pub input: u64,
    /// Received.
    pub output: u64,
}

/// Reads an answer as it comes.
#[derive(Debug, Default)]
pub struct UsageReader {
    /// The line that is not yet whole, or the document.
    held: Vec<u8>,
    /// Whether what is held grew too long, so that the rest of it is passed over.
    passed_over: bool,
    streams: bool,
    tokens: Tokens,
}

impl UsageReader {
    /// Of an answer that streams events (`text/event-stream`, NDJSON), or of one document.
    pub fn new(streams: bool) -> Self {
        Self {
            streams,
            ..Self::default()
        }
    }

    /// The next bytes.
    pub fn read(&mut self, bytes: &[u8]) {
        if !self.streams {
            self.hold(bytes);
            return;
        }
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.hold(&rest[..end]);
            self.line();
            rest = &rest[end + 1..];
        }
        self.hold(rest);
    }

    /// What was understood, at the end of the answer or where it broke off.
    pub fn tokens(mut self) -> Tokens {
        self.line();
        self.tokens
    }

    fn hold(&mut self, bytes: &[u8]) {
        // Break it: hold everything; an answer without a line's end then takes memory without bounds
        // (`agent::client::proxy::tokens_are_counted_in_every_protocols_answers` looks at what is held).
        if self.passed_over || self.held.len() + bytes.len() > LONGEST {
            self.passed_over = true;
            self.held.clear();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    fn line(&mut self) {
        let line = std::mem::take(&mut self.held);
        if std::mem::take(&mut self.passed_over) {
            return;
        }
        let text = line.strip_prefix(b"data:").unwrap_or(&line);
        // Few lines speak of usage; the others need not be read.
        if memchr::memmem::find(text, b"sage").is_none() {
            return;
        }
        if let Ok(value) = serde_json::from_slice::<Value>(text) {
            self.take(&value);
        }
    }

    /// Within one answer counts grow, so that the largest is the answer's.
    fn take(&mut self, value: &Value) {
        let places = [
            &value["usage"],
            &value["response"]["usage"],
            &value["message"]["usage"],
            &value["usageMetadata"],
        ];
        for usage in places {
            let sum = |names: &[&str]| {
                names
                    .iter()
                    .filter_map(|name| usage[*name].as_u64())
                    .fold(0, u64::saturating_add)
            };
            let input = sum(&[
                "prompt_tokens",
                "input_tokens",
                "cache_creation_input_tokens",
                "cache_read_input_tokens",
                "promptTokenCount",
                "toolUsePromptTokenCount",
            ]);
            let output = sum(&[
                "completion_tokens",
                "output_tokens",
                "candidatesTokenCount",
                "thoughtsTokenCount",
            ]);
            self.tokens.input = self.tokens.input.max(input);
            self.tokens.output = self.tokens.output.max(output);
        }
    }
}
