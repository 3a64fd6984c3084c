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
use crate::config::{Configuration, Environment, Poll};
use crate::connector::Connector;
use crate::forge::{Forge, ForgeOptions, Plant, Planted, start};
use crate::id::{Entropy, IncidentId, ProjectId};
use crate::onboard::{self, Office, Registration};
use crate::signer::{self, system_randomness};
use crate::store::{Project, WatchMode};
use crate::watch::Watch;
use crate::worker::Engine;

/// The rules of the demo's project. Squash is the default; the forge reports one check.
const RULES: &str = include_str!("rules.yaml");
/// What the project is for, as its owner would write it.
const INTENT: &str = "Keep the library correct as its documentation says. Never touch authentication without a person.\n";
/// Who is asked.
const OWNER: &str = "mailto:owner@example.org";

/// Everything that the story plays on.
pub(super) struct Stage {
    /// Stops when it is dropped.
    _forge: Forge,
    pub(super) planted: Planted,
    pub(super) engine: Arc<Engine>,
    pub(super) project: Project,
    pub(super) inbox: Inbox,
    listener: std::net::TcpListener,
    pub(super) pages: String,
}

pub(super) async fn build(home: &Path, scenario: Scenario) -> anyhow::Result<Stage> {
    let forge = start(ForgeOptions::new(
        home.join("forge"),
        ([127, 0, 0, 1], 0).into(),
    ))
    .await?;
    let planted = forge.plant(match scenario {
        Scenario::Fix | Scenario::Tampered => Plant::RedTest,
        Scenario::Denied => Plant::DeniedPath,
    })?;
    let inbox = Inbox::open().await?;
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
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
    let store = assembly::open_store(configuration, keys.organisation()).await?;
    let engine = assembly::engine(configuration, store, keys, pages.clone()).await?;
    let project = registered(&engine, configuration, &forge, &planted).await?;
    Ok(Stage {
        _forge: forge,
        planted,
        engine: Arc::new(engine),
        project,
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
    let environment = Environment::new(variables, home);
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
) -> anyhow::Result<Project> {
    let organisation = engine.keys.organisation();
    let client = assembly::github_client();
    let connect = |full_name: &str, token: SecretString| {
        let connector = assembly::github(&client, &configuration.github, full_name, token, None)?;
        Ok(Arc::new(connector) as Arc<dyn Connector>)
    };
    let office = Office {
        store: &engine.store,
        organisation,
        web_url: &configuration.github.web_url,
        connect: &connect,
        seal: engine.keys.credentials(),
    };
    let url = planted.repository.url();
    let registration = Registration {
        url: &url,
        token: SecretString::from(forge.token().to_owned()),
        watch: WatchMode::Ci,
        schedule: None,
        rules: RULES.as_bytes(),
        rules_file: "the demo's rules",
        intent: INTENT,
        owner: OWNER.parse()?,
    };
    let now = engine.now().await?;
    let mut entropy = Entropy::default();
    system_randomness(&mut entropy)?;
    let id = ProjectId::new(now, entropy);
    let random = &mut system_randomness;
    let registered = onboard::register(&office, &registration, id.clone(), random, now).await?;
    let shown = Some(&registered.project.draft_digest);
    Ok(onboard::confirm(&engine.store, organisation, &id, shown, now).await?)
}

impl Stage {
    /// The listener of the pages, to be served from now on.
    pub(super) fn listener(&self) -> anyhow::Result<tokio::net::TcpListener> {
        Ok(tokio::net::TcpListener::from_std(
            self.listener.try_clone()?,
        )?)
    }

    /// Looks at the CI runs once: the planted failure becomes an incident.
    pub(super) async fn watch(&self) -> anyhow::Result<IncidentId> {
        let connectors = Arc::clone(&self.engine.connectors);
        let mut watch = Watch::new(
            self.engine.store.clone(),
            connectors,
            system_randomness,
            Poll::default(),
            "demo".to_owned(),
        );
        let reports = watch.round().await?;
        let opened = reports.into_iter().flat_map(|(_, report)| report.opened);
        let opened = opened.into_iter().next();
        opened.context("the planted failure did not become an incident")
    }
}
