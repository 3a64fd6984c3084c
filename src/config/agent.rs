//! Who diagnoses and fixes.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::address::ServiceUrl;
use super::document::AgentSection;
use super::secret::SecretSource;
use crate::incident::{Amount, Prices};

/// The coder behind the agent port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adapter {
    /// Our own loop over a model.
    Builtin,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// Copilot CLI.
    Copilot,
    /// opencode.
    Opencode,
    /// goose.
    Goose,
    /// The demo's, with answers fixed in advance; it says so in its provenance.
    Scripted,
    /// Any program that speaks the command protocol.
    Command,
}

impl Adapter {
    /// The client's program, as it is called on the search path.
    pub const fn program(self) -> Option<&'static str> {
        match self {
            Self::Builtin | Self::Scripted | Self::Command => None,
            Self::Claude => Some("claude"),
            Self::Codex => Some("codex"),
            Self::Gemini => Some("gemini"),
            Self::Qwen => Some("qwen"),
            Self::Copilot => Some("copilot"),
            Self::Opencode => Some("opencode"),
            Self::Goose => Some("goose"),
        }
    }

    /// Whether it needs a model that the configuration names.
    const fn needs_model(self) -> bool {
        !matches!(self, Self::Scripted | Self::Command)
    }
}

/// Whose protocol a model is spoken to in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelProvider {
    /// Anthropic's messages.
    Anthropic,
    /// `OpenAI`'s chat completions, which many others speak too.
    Openai,
    /// Gemini's `generateContent`.
    Gemini,
    /// Ollama's chat.
    Ollama,
}

impl ModelProvider {
    /// The provider's own address; Ollama's is this machine.
    const fn address(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::Openai => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
            Self::Ollama => "http://127.0.0.1:11434",
        }
    }
}

/// `agent.model` as it is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ModelSection {
    provider: Option<ModelProvider>,
    name: Option<String>,
    base_url: Option<ServiceUrl>,
    api_key: Option<SecretSource>,
    price: Option<Prices>,
}

/// The model behind a coder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Whose protocol it speaks.
    pub provider: ModelProvider,
    /// Its name, as the provider knows it.
    pub name: String,
    /// Where it is. Relative paths of the protocol are meant below it.
    pub base_url: ServiceUrl,
    /// Where its key is; Ollama needs none. The key never enters a sandbox.
    pub api_key: Option<SecretSource>,
    /// What its tokens cost, per million.
    pub price: Option<Prices>,
}

/// How much one task of a coder, a diagnosis or a fix, may use. What fails counts too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Requests to the model.
    pub requests: u32,
    /// Calls of tools.
    pub tool_calls: u32,
    /// Tokens sent and received together, as the provider counts them.
    pub tokens: u64,
    /// Money, in the currency of the model's prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<Amount>,
    /// Seconds on the wall.
    pub wall_seconds: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            requests: 60,
            tool_calls: 200,
            tokens: 2_000_000,
            money: None,
            wall_seconds: 1_800,
        }
    }
}

/// The configured coder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agent {
    /// Which coder; without one incidents are opened and reported, and nothing is fixed.
    pub adapter: Option<Adapter>,
    /// The program and its first arguments; those that name a file are absolute. Empty for a client means its name on `PATH`.
    pub command: Vec<String>,
    /// The files among them, to be mounted read-only in the sandbox.
    pub files: Vec<PathBuf>,
    /// The model, for coders that need one.
    pub model: Option<Model>,
    /// What one task may use.
    pub budget: Budget,
    /// The permission profile of its sessions (`approvals.profiles.NAME`).
    pub profile: Option<String>,
}

impl Agent {
    pub(super) fn resolve(
        section: AgentSection,
        folder: &Path,
    ) -> Result<Self, (&'static str, String)> {
        let key = "agent.command";
        match (section.adapter, section.command.as_slice()) {
            (Some(Adapter::Command), [] | [_, ..])
                if section
                    .command
                    .first()
                    .is_none_or(|program| program.trim().is_empty()) =>
            {
                return Err((key, "the adapter is `command`, but no program is named; write it as a list, as in [python3, coder.py]".to_owned()));
            }
            (None | Some(Adapter::Scripted | Adapter::Builtin), [_, ..]) => {
                return Err((key, "a program is named, but the adapter runs none; set agent.adapter: command or a client's name, or remove it".to_owned()));
            }
            _ => {}
        }
        let model = resolve_model(section.adapter, section.model, folder)?;
        check_budget(section.budget)?;
        check_money(section.budget, model.as_ref())?;
        if section
            .command
            .iter()
            .any(|argument| argument.contains('\0'))
        {
            return Err((key, "an argument holds a NUL byte; remove it".to_owned()));
        }
        let mut agent = Self {
            adapter: section.adapter,
            model,
            budget: section.budget,
            profile: section.profile,
            ..Self::default()
        };
        for argument in section.command {
            let file = folder.join(&argument);
            match file.to_str() {
                Some(absolute) if file.is_file() => {
                    agent.command.push(absolute.to_owned());
                    agent.files.push(file);
                }
                _ => agent.command.push(argument),
            }
        }
        Ok(agent)
    }
}

fn resolve_model(
    adapter: Option<Adapter>,
    section: ModelSection,
    folder: &Path,
) -> Result<Option<Model>, (&'static str, String)> {
    let key = "agent.model";
    let refuse = |reason: &str| Err((key, reason.to_owned()));
    if section == ModelSection::default() {
        return match adapter {
            Some(adapter) if adapter.needs_model() => refuse(
                "the adapter needs a model; write agent.model {provider: anthropic|openai|gemini|ollama, name, api_key: env:NAME}",
            ),
            _ => Ok(None),
        };
    }
    if !adapter.is_some_and(Adapter::needs_model) {
        return refuse(
            "a model is named, but the adapter uses none; set agent.adapter: builtin or a client's name, or remove it",
        );
    }
    let Some(provider) = section.provider else {
        return refuse(
            "its provider is missing; write one of anthropic, openai, gemini and ollama",
        );
    };
    let name = section.name.unwrap_or_default();
    let sound = (1..=200).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_graphic())
        && !name.contains("..");
    if !sound {
        return refuse(
            "its name is 1 to 200 printable ASCII characters without blanks, as the provider spells it",
        );
    }
    if section.api_key.is_none() && provider != ModelProvider::Ollama {
        return refuse("its key is missing; write where it is, as in api_key: env:MODEL_KEY");
    }
    let base_url = match section.base_url {
        Some(url) => url,
        None => provider
            .address()
            .parse()
            .map_err(|_| (key, "the provider's own address is not a URL".to_owned()))?,
    };
    Ok(Some(Model {
        provider,
        name,
        base_url,
        api_key: section
            .api_key
            .map(|source| source.resolved_against(folder)),
        price: section.price,
    }))
}

/// A budget that nothing could be held against would look like one.
fn check_money(budget: Budget, model: Option<&Model>) -> Result<(), (&'static str, String)> {
    let Some(money) = budget.money else {
        return Ok(());
    };
    if money.micro() == 0 {
        let reason = "a budget of nothing lets nothing be asked; write more, or leave it out";
        return Err(("agent.budget.money", reason.to_owned()));
    }
    // Break it: leave this out; `config::money::a_budget_in_money_needs_prices` fails.
    if model.is_none_or(|model| model.price.is_none()) {
        let reason = "a budget in money needs the model's prices; write agent.model.price: {input: \"3.00\", output: \"15.00\", currency: USD}, per million tokens, or leave the budget out";
        return Err(("agent.budget.money", reason.to_owned()));
    }
    Ok(())
}

fn check_budget(budget: Budget) -> Result<(), (&'static str, String)> {
    let zero = budget.requests == 0
        || budget.tool_calls == 0
        || budget.tokens == 0
        || budget.wall_seconds == 0;
    if zero || budget.wall_seconds > 86_400 {
        return Err((
            "agent.budget",
            "each limit is at least 1, and wall_seconds at most 86400; correct it, or leave it out"
                .to_owned(),
        ));
    }
    Ok(())
}
