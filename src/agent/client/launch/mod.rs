//! How each client is started for one task: its arguments, its environment, and the files of its private home.
//!
//! Pure: what is written here is put on disk and run elsewhere.

mod by_settings;
mod codex;
mod openai;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::prompt::Job;
use super::table::Client;

/// What stands where a key would: the key itself is with the proxy, outside.
pub const NO_KEY: &str = "the-key-is-with-the-proxy";

/// What a start is made from.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The client's private home: absolute.
    pub home: &'a Path,
    /// The tree it works in: absolute.
    pub tree: &'a Path,
    /// The port of its private loopback behind which its model is.
    pub port: u16,
    /// The model's name.
    pub model: &'a str,
    /// The client's configuration of hooks, as rendered for this session.
    pub hooks: &'a str,
    /// What it is asked.
    pub prompt: &'a str,
    /// What it is asked to do.
    pub job: Job,
}

/// How a client is started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// What follows the program.
    pub arguments: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Files of its home, by their path from there, with what is in them.
    pub files: Vec<(PathBuf, String)>,
    /// Files and folders of its home that it cannot change.
    pub sealed: Vec<PathBuf>,
    /// Folders of its home that it writes in and that can be neither moved nor replaced: each holds something sealed.
    pub folders: Vec<PathBuf>,
}

impl Start<'_> {
    /// The start of a client.
    ///
    /// # Errors
    /// The rendered hooks are not what this client reads, or a path is not text.
    pub fn launch(&self, client: Client) -> Result<Launch, String> {
        let mut launch = match client {
            Client::Claude => self.claude(),
            Client::Codex => self.codex(),
            Client::Gemini => self.gemini(),
            Client::Qwen => self.qwen(),
            Client::Copilot => self.copilot(),
            Client::Opencode => Ok(self.opencode()),
            Client::Goose => self.goose(),
        }?;
        launch.set("HOME", text(self.home)?);
        launch.set("PATH", "/usr/local/bin:/usr/bin:/bin");
        launch.set("TERM", "dumb");
        launch.set("NO_COLOR", "1");
        launch.environment.sort();
        Ok(launch)
    }

    fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A path in the home.
    fn at(&self, name: &str) -> Result<String, String> {
        text(&self.home.join(name)).map(str::to_owned)
    }

    /// The `hooks` member of rendered hooks.
    fn hooks_member(&self) -> Result<Value, String> {
        let document: Value = serde_json::from_str(self.hooks)
            .map_err(|error| format!("the rendered hooks are not JSON: {error}"))?;
        match document.get("hooks") {
            Some(hooks @ Value::Object(_)) => Ok(hooks.clone()),
            _ => Err("the rendered hooks have no member \"hooks\"".to_owned()),
        }
    }
}

impl Launch {
    fn with(arguments: &[&str]) -> Self {
        Self {
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            ..Self::default()
        }
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.environment.push((name.to_owned(), value.into()));
    }

    fn set_all(&mut self, variables: &[(&str, &str)]) {
        for (name, value) in variables {
            self.set(name, *value);
        }
    }

    /// A file that the client cannot change.
    fn seal(&mut self, path: &str, content: String) {
        self.files.push((path.into(), content));
        self.sealed.push(path.into());
    }
}

fn text(path: &Path) -> Result<&str, String> {
    path.to_str()
        .ok_or_else(|| format!("the path {} is not UTF-8", path.display()))
}

fn pretty(document: &Value) -> String {
    // A value made here always serialises.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}
