//! An installation of its own for the demo: forge, keys, database, registered project, pages, inbox.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use secrecy::SecretString;

use super::Scenario;
use super::person::Inbox;
use crate::cli::assembly;
use crate::cli::installation::Installation;
use crate::clock::{Clock as _, SystemClock};
use crate::config::Configuration;
use crate::connector::github::GithubConnector;
use crate::forge::{Forge, ForgeOptions, Plant, Planted, start};
use crate::onboard;
use crate::signer::{self, system_randomness};
use crate::store::Project;
use crate::worker::Engine;

/// The rules of the demo's project. Squash is the default; the forge reports one check.
const RULES: &str = include_str!("rules.yaml");
/// What the project is for, as its owner would write it.
const INTENT: &str = "Keep the library correct as its documentation says. Never touch authentication without a person.\n";
/// Who is asked.
const OWNER: &str = "mailto:owner@example.org";

/// Everything that the story plays on.
pub(super) struct Stage {
    pub(super) forge: Forge,
    pub(super) planted: Planted,
    pub(super) engine: Arc<Engine>,
    pub(super) project: Project,
    pub(super) connector: GithubConnector,
    pub(super) inbox: Inbox,
    pub(super) listener: tokio::net::TcpListener,
    pub(super) pages: String,
}

pub(super) async fn build(home: &Path, scenario: Scenario) -> anyhow::Result<Stage> {
    let forge = start(ForgeOptions {
        directory: home.join("forge"),
        listen: ([127, 0, 0, 1], 0).into(),
    })
    .await?;
    let planted = forge.plant(match scenario {
        Scenario::Fix | Scenario::Tampered => Plant::RedTest,
        Scenario::Denied => Plant::DeniedPath,
    })?;
    let inbox = Inbox::open().await?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .context("listening on loopback for the demo's pages")?;
    let pages = format!("http://{}", listener.local_addr()?);
    let installation = configured(home, &forge, &inbox, &pages)?;
    let Installation {
        configuration,
        environment,
    } = &installation;
    signer::create(
        configuration,
        environment,
        None,
        SystemClock.now(),
        &mut system_randomness,
    )?;
    let keys = assembly::open_keys(&installation)?;
    let store = assembly::open_store(configuration, &keys).await?;
    let engine = assembly::engine(configuration, store, keys, pages.clone()).await?;
    let (project, connector) = registered(&engine, configuration, &forge, &planted).await?;
    Ok(Stage {
        forge,
        planted,
        engine: Arc::new(engine),
        project,
        connector,
        inbox,
        listener,
        pages,
    })
}

/// Written down as a file too, so that other commands find the same installation in a kept home.
fn configured(
    home: &Path,
    forge: &Forge,
    inbox: &Inbox,
    pages: &str,
) -> anyhow::Result<Installation> {
    let document = serde_json::json!({
        "github": {"api_url": forge.url(), "web_url": forge.url(), "git_url": forge.url()},
        "server": {"public_url": pages},
        "agent": {"adapter": "scripted"},
        "notify": [{"kind": "webhook", "url": inbox.url()}],
    });
    let file = home.join("caretaker.yaml");
    std::fs::write(&file, format!("{document:#}\n"))
        .with_context(|| format!("writing {}", file.display()))?;
    let mut variables = vec![(
        "CARETAKER_HOME".to_owned(),
        home.to_str()
            .context("the demo's folder has a name that is not UTF-8")?
            .to_owned(),
    )];
    variables.extend(std::env::vars().filter(|(name, _)| name == "PATH" || name == "HOME"));
    let environment = assembly::environment_of(variables)?;
    let configuration = Configuration::load(None, &environment)?;
    Ok(Installation {
        configuration,
        environment,
    })
}

/// Registers the planted repository and confirms it, as `project register` and `project confirm` do.
async fn registered(
    engine: &Engine,
    configuration: &Configuration,
    forge: &Forge,
    planted: &Planted,
) -> anyhow::Result<(Project, GithubConnector)> {
    let _ = (engine, configuration, forge, planted, RULES, INTENT, OWNER, SecretString::from(String::new()), onboard_marker());
    anyhow::bail!("pending")
}

fn onboard_marker() {}
