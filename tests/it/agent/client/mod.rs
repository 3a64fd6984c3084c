//! External coding clients as coders.

mod launch;
mod peers;
mod proxy;
mod scripted;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caretaker::agent::client::proxy::{Protocol, Upstream};
use caretaker::agent::client::{Client, ClientBudget, ClientSetup};
use caretaker::agent::{AgentSession, Permission, ToolGuard};
use caretaker::events::{Event, EventSink, SinkError};
use caretaker::hook_gate::CoderHooks;
use caretaker::sandbox::{Mode, Sandbox};
use secrecy::SecretString;
use serde_json::Value;
use tempfile::TempDir;

use super::task;

/// The model's key, which must be found nowhere.
const KEY: &str = "sk-canary-1f7c0a9b2e";

/// A home for caretaker and a tree for a client, where Codex agrees to live.
struct Desk {
    folder: TempDir,
}

impl Desk {
    fn new() -> Self {
        let desk = Self {
            folder: tempfile::tempdir_in("/var/tmp").unwrap(),
        };
        std::fs::create_dir_all(desk.tree().join("src")).unwrap();
        std::fs::create_dir(desk.home()).unwrap();
        std::fs::write(desk.tree().join("src/lib.rs"), "a + b + 1\n").unwrap();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tree(&self) -> PathBuf {
        self.path("tree")
    }

    fn home(&self) -> PathBuf {
        self.path("home")
    }

    fn session(&self) -> AgentSession {
        AgentSession::new("S1".to_owned(), Arc::new(Nobody), self.path("gate.sock"))
    }

    fn setup(&self, client: Client, command: Vec<String>, port: u16) -> ClientSetup {
        let (protocol, below) = match client {
            Client::Claude => (Protocol::Anthropic, ""),
            Client::Gemini => (Protocol::Gemini, ""),
            _ => (Protocol::OpenAi, "/v1"),
        };
        ClientSetup {
            client,
            command,
            search: std::env::var_os("PATH"),
            model: match client {
                Client::Codex => "gpt-5.5".to_owned(),
                Client::Gemini => "gemini-2.5-flash".to_owned(),
                _ => "fake-model".to_owned(),
            },
            upstream: Upstream {
                protocol,
                base: format!("http://127.0.0.1:{port}{below}").parse().unwrap(),
                key: Some(SecretString::from(KEY)),
            },
            budget: ClientBudget {
                requests: 60,
                tool_calls: 200,
                money: None,
                tokens: 2_000_000,
                wall: Duration::from_secs(30),
            },
            home: self.home(),
        }
    }
}

fn hooks() -> CoderHooks {
    CoderHooks {
        program: env!("CARGO_BIN_EXE_caretaker").into(),
        ttl: 600,
    }
}

async fn sandbox() -> Arc<Sandbox> {
    let launcher = env!("CARGO_BIN_EXE_caretaker").into();
    Arc::new(Sandbox::detect(Mode::Bubblewrap, launcher).await.unwrap())
}

/// The gate of a session whose client asks by its hooks.
struct Nobody;

#[async_trait]
impl ToolGuard for Nobody {
    async fn before_call(&self, _tool: &str, _arguments: &Value) -> Permission {
        Permission::Refused("hooks ask at the socket".to_owned())
    }

    async fn before_end(&self) -> Permission {
        Permission::Refused("hooks ask at the socket".to_owned())
    }
}

/// Events that nobody hears.
struct Silent;

impl EventSink for Silent {
    fn record(&self, _event: &Event) -> Result<(), SinkError> {
        Ok(())
    }
}
