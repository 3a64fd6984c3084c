//! What the gate gives a client that is run as a coder: its hooks, and the count of its calls.

use std::path::{Path, PathBuf};

use super::render::{Adapter, Hooks};
use crate::agent::client::{Client, ClientHooks};

/// The hooks of clients that are run as coders.
#[derive(Debug, Clone)]
pub struct CoderHooks {
    /// Our own binary: an absolute path.
    pub program: PathBuf,
    /// How long a person may take to answer, in seconds.
    pub ttl: u64,
}

impl ClientHooks for CoderHooks {
    fn render(&self, client: Client, session: &str, socket: &Path) -> String {
        let hooks = Hooks {
            program: &self.program,
            session,
            socket: Some(socket),
            home: None,
            ttl: self.ttl,
        };
        hooks.render(adapter(client))
    }

    fn program(&self) -> &Path {
        &self.program
    }

    fn count_calls(&self, client: Client, stream: &[u8]) -> Result<u64, String> {
        super::count_calls(adapter(client), stream)
    }
}

const fn adapter(client: Client) -> Adapter {
    match client {
        Client::Claude => Adapter::Claude,
        Client::Codex => Adapter::Codex,
        Client::Gemini => Adapter::Gemini,
        Client::Qwen => Adapter::Qwen,
        Client::Copilot => Adapter::Copilot,
        Client::Opencode => Adapter::Opencode,
        Client::Goose => Adapter::Goose,
    }
}
