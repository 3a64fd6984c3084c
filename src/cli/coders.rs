//! The configured coder, put together.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::installation::Installation;
use crate::agent::builtin::{Budget, BuiltinCoder, BuiltinSettings, PATIENCE, Programs};
use crate::agent::client::proxy::{Protocol as Spoken, Upstream};
use crate::agent::client::{Client, ClientBudget, ClientCoder, ClientSetup};
use crate::agent::model::{HttpModel, Limits as ModelLimits, ModelSettings, Protocol};
use crate::agent::{Coder, CommandCoder, ScriptedCoder};
use crate::clock::SystemClock;
use crate::config::{self, Adapter, Agent, Environment, ModelProvider};
use crate::hook_gate::CoderHooks;
use crate::incident::MoneyBudget;
use crate::sandbox::{Limits, Sandbox};
use crate::worker::Tools;

/// The coder that the configuration names; none where it names none.
///
/// # Errors
/// A program, a model or a key that is not there.
pub(super) fn coder(
    installation: &Installation,
    sandbox: &Arc<Sandbox>,
) -> anyhow::Result<Option<Arc<dyn Coder>>> {
    let Installation {
        configuration,
        environment,
    } = installation;
    let agent = &configuration.agent;
    Ok(match agent.adapter {
        None => None,
        Some(Adapter::Scripted) => Some(Arc::new(ScriptedCoder::for_demo()?)),
        Some(Adapter::Command) => {
            let file = configuration.file.as_deref();
            let folder = file.and_then(Path::parent).unwrap_or(&configuration.home);
            let sandbox = Arc::clone(sandbox);
            let coder = CommandCoder::new(&agent.command, folder, sandbox, Limits::default())?;
            Some(Arc::new(coder))
        }
        Some(Adapter::Builtin) => Some(Arc::new(builtin(agent, environment, sandbox)?)),
        Some(adapter) => match client(adapter) {
            Some(client) => Some(Arc::new(outside(client, installation, sandbox)?)),
            None => None,
        },
    })
}

fn builtin(
    agent: &Agent,
    environment: &Environment,
    sandbox: &Arc<Sandbox>,
) -> anyhow::Result<BuiltinCoder> {
    let model = model(agent)?;
    let settings = ModelSettings {
        protocol: match model.provider {
            ModelProvider::Anthropic => Protocol::Anthropic,
            ModelProvider::Openai => Protocol::Openai,
            ModelProvider::Gemini => Protocol::Gemini,
            ModelProvider::Ollama => Protocol::Ollama,
        },
        name: model.name.clone(),
        base: model.base_url.url().clone(),
        key: key(model, environment)?,
        limits: ModelLimits::default(),
    };
    let budget = Budget {
        requests: agent.budget.requests.into(),
        tool_calls: agent.budget.tool_calls.into(),
        tokens: agent.budget.tokens,
        money: money(agent, model),
        wall: Duration::from_secs(agent.budget.wall_seconds.into()),
    };
    let tools = Tools::of_process();
    let programs = Programs {
        environment: tools.shared_variables(),
        readable: tools.readable().to_vec(),
        limits: Limits::default(),
    };
    let model = HttpModel::new(settings, Arc::new(SystemClock))?;
    let settings = BuiltinSettings {
        budget,
        patience: PATIENCE,
        programs,
    };
    let random = || getrandom::u64().unwrap_or(u64::MAX);
    Ok(BuiltinCoder::new(
        Arc::new(model),
        Arc::clone(sandbox),
        settings,
        random,
    ))
}

/// The client of others that an adapter names.
const fn client(adapter: Adapter) -> Option<Client> {
    match adapter {
        Adapter::Claude => Some(Client::Claude),
        Adapter::Codex => Some(Client::Codex),
        Adapter::Gemini => Some(Client::Gemini),
        Adapter::Qwen => Some(Client::Qwen),
        Adapter::Copilot => Some(Client::Copilot),
        Adapter::Opencode => Some(Client::Opencode),
        Adapter::Goose => Some(Client::Goose),
        Adapter::Builtin | Adapter::Scripted | Adapter::Command => None,
    }
}

fn outside(
    client: Client,
    installation: &Installation,
    sandbox: &Arc<Sandbox>,
) -> anyhow::Result<ClientCoder> {
    let configuration = &installation.configuration;
    let agent = &configuration.agent;
    let model = model(agent)?;
    let upstream = Upstream {
        protocol: match model.provider {
            ModelProvider::Anthropic => Spoken::Anthropic,
            ModelProvider::Openai => Spoken::OpenAi,
            ModelProvider::Gemini => Spoken::Gemini,
            ModelProvider::Ollama => Spoken::Ollama,
        },
        base: model.base_url.url().clone(),
        key: key(model, &installation.environment)?,
    };
    let setup = ClientSetup {
        client,
        command: agent.command.clone(),
        search: std::env::var_os("PATH"),
        model: model.name.clone(),
        upstream,
        budget: ClientBudget {
            requests: agent.budget.requests.into(),
            tool_calls: agent.budget.tool_calls.into(),
            tokens: agent.budget.tokens,
            money: money(agent, model),
            wall: Duration::from_secs(agent.budget.wall_seconds.into()),
        },
        home: configuration.home.clone(),
    };
    let hooks = CoderHooks {
        program: std::env::current_exe()?,
        ttl: configuration.approvals.timeout_seconds.into(),
    };
    Ok(ClientCoder::new(
        setup,
        Arc::clone(sandbox),
        Arc::new(hooks),
    )?)
}

fn model(agent: &Agent) -> anyhow::Result<&config::Model> {
    agent
        .model
        .as_ref()
        .ok_or_else(|| anyhow::anyhow!("agent.model is missing; name the model there"))
}

fn money(agent: &Agent, model: &config::Model) -> Option<MoneyBudget> {
    model.price.map(|prices| MoneyBudget {
        prices,
        most: agent.budget.money,
    })
}

fn key(model: &config::Model, environment: &Environment) -> anyhow::Result<Option<SecretString>> {
    let source = model.api_key.as_ref();
    let key = source.map(|source| source.resolve("the model", "agent.model.api_key", environment));
    Ok(key.transpose()?)
}
