//! An installation of its own for the demo: forge, keys, database, registered project, pages, inbox.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use secrecy::SecretString;

use super::Scenario;
use super::person::Inbox;
use crate::attest::Role;
use crate::cli::assembly;
use crate::cli::hosting::Hosting;
use crate::cli::installation::Installation;
use crate::clock::{Clock as _, SystemClock};
use crate::config::{Configuration, Environment, Poll};
use crate::forge::{Forge, ForgeOptions, NewJob, NewStep, Plant, Planted, start};
use crate::id::{Entropy, IncidentId, ProjectId};
use crate::onboard::{self, Confirmation, Office, Registration};
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
        Scenario::Flaky => Plant::FlakyTest,
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
    // The demo acts with a token of its forge; there is no App whose tokens would have a history.
    let (hosting, _) = Hosting::of(&installation);
    let engine = assembly::engine(&installation, store, keys, hosting.clone(), pages.clone());
    let engine = engine.await?;
    let project = registered(&engine, &hosting, configuration, &forge, &planted).await?;
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
    hosting: &Hosting,
    configuration: &Configuration,
    forge: &Forge,
    planted: &Planted,
) -> anyhow::Result<Project> {
    let organisation = engine.keys.organisation();
    let connect = |full_name: &str, token: SecretString| hosting.connector(full_name, token, None);
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
        health: &[],
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
    let confirmation = Confirmation {
        shown: Some(&registered.project.draft_digest),
        by: &registration.owner,
        signer: engine.keys.signer(Role::Policy),
        trust: engine.keys.history(),
        random: system_randomness,
    };
    Ok(onboard::confirm(&engine.store, organisation, &id, &confirmation, now).await?)
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
        let reports = self.eyes().round().await?;
        let opened = reports.into_iter().flat_map(|(_, report)| report.opened);
        let opened = opened.into_iter().next();
        opened.context("the planted failure did not become an incident")
    }

    /// What looks at the CI runs.
    pub(super) fn eyes(&self) -> Watch {
        let connectors = Arc::clone(&self.engine.connectors);
        Watch::new(
            self.engine.store.clone(),
            connectors,
            system_randomness,
            Poll::default(),
            "demo".to_owned(),
        )
    }

    /// The forge's runner takes up the attempt that was asked for; this time every test passes.
    pub(super) fn run_again(&self) -> anyhow::Result<()> {
        let step = |name: &str| NewStep {
            name: name.to_owned(),
            conclusion: Some("success".to_owned()),
        };
        let job = NewJob {
            name: "test".to_owned(),
            conclusion: Some("success".to_owned()),
            steps: vec![step("Set up job"), step("Run cargo test --locked")],
            log: Some(b"test result: ok. 2 passed; 0 failed; 0 ignored\n".to_vec()),
        };
        let planted = &self.planted;
        Ok(planted
            .repository
            .complete_run(planted.run, "success", vec![job])?)
    }
}
