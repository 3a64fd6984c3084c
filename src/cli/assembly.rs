//! Putting the parts together as the configuration says.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use secrecy::ExposeSecret as _;

use super::coders;
use super::connectors::GithubConnectors;
use super::hosting::Hosting;
use super::installation::Installation;
use crate::anchor::Anchor;
use crate::anchor::timestamp::{self, Roots, Timestamp};
use crate::anchor::witness::{self, Witness};
use crate::approvals::Approvals;
use crate::attest::TrustHistory;
use crate::audit_stream::{self, AuditStream};
use crate::change::Sha256Digest;
use crate::clock::{Clock as _, SystemClock};
use crate::config::{Configuration, Notifier, SandboxMode};
use crate::events::EventSink;
use crate::hook::HookKey;
use crate::id::OrganisationId;
use crate::notify::{Notifiers, Webhook};
use crate::probe::{AddressRules, HttpProbe, Probe, SystemLookup};
use crate::sandbox::{Limits, Mode, Sandbox};
use crate::signer::{Keyring, system_randomness};
use crate::store::Store;
use crate::watch::health::{HealthWatch, SelfCheck};
use crate::web::{ScopedToken, ToolCalls, Webhooks};
use crate::worker::{Anchoring, Engine, Settings, ShownTo, Time, Tools};
use crate::workspace::Identity;

/// How long one call to the provider may take.
const CALL_DEADLINE: Duration = Duration::from_secs(30);
/// How long a claim lasts without a sign of life, and so how long the incidents of a killed process stand still.
const LEASE: Duration = Duration::from_secs(30);
/// The configuration key that names the secret of webhooks.
pub(super) const WEBHOOK_SECRET: &str = "github.webhook_secret";

/// Opens the configured database for writing, and makes sure that it knows the organisation that the keys act for.
pub(super) async fn open_store(
    configuration: &Configuration,
    organisation: &OrganisationId,
) -> anyhow::Result<Store> {
    let store = Store::open(configuration.database.secret()).await?;
    let now = store.now().await?;
    store
        .ensure_organisation(organisation, organisation.as_str(), now)
        .await?;
    Ok(store)
}

/// The organisation that a trust root speaks for.
pub(super) fn organisation(history: &TrustHistory) -> anyhow::Result<OrganisationId> {
    let name = history.newest().document().org.as_str();
    name.parse()
        .with_context(|| format!("reading the trust root: its organisation is {name:?}"))
}

/// Opens the keys.
pub(super) fn open_keys(installation: &Installation) -> anyhow::Result<Arc<Keyring>> {
    let Installation {
        configuration,
        environment,
    } = installation;
    let keyring = Keyring::open(configuration, environment, SystemClock.now())?;
    Ok(Arc::new(keyring))
}

/// A worker's means, as configured.
pub(super) async fn engine(
    installation: &Installation,
    store: Store,
    keys: Arc<Keyring>,
    hosting: Hosting,
    public_url: String,
) -> anyhow::Result<Engine> {
    let configuration = &installation.configuration;
    let launcher = std::env::current_exe().context("finding caretaker's own program file")?;
    let mode = match configuration.sandbox.mode {
        SandboxMode::Auto => Mode::Auto,
        SandboxMode::Bubblewrap => Mode::Bubblewrap,
        SandboxMode::Landlock => Mode::Landlock,
        SandboxMode::None => Mode::None,
    };
    let sandbox = Arc::new(Sandbox::detect(mode, launcher.clone()).await?);
    let connectors = GithubConnectors::new(hosting, &store, &keys);
    Ok(Engine {
        coder: coders::coder(installation, &sandbox)?,
        connectors: Arc::new(connectors),
        notifiers: notifiers(configuration)?,
        sandbox,
        store,
        keys,
        tools: Tools::of_process(),
        time: Time::Database,
        random: system_randomness,
        settings: Settings {
            home: configuration.home.clone(),
            launcher,
            public_url: public_url.trim_end_matches('/').to_owned(),
            link_ttl: Duration::from_secs(configuration.approvals.link_ttl_seconds.into()),
            evidence_days: configuration.evidence.keep_days,
            lease: LEASE,
            tests: Limits::default(),
            author: Identity {
                name: "caretaker".to_owned(),
                email: "caretaker@localhost".to_owned(),
            },
        },
        anchoring: anchoring(configuration)?,
        walked: tokio::sync::Mutex::default(),
        events: events(configuration)?,
        gate: None,
        failpoint: None,
    })
}

/// What checkpoints of the log are shown to, as configured.
fn anchoring(configuration: &Configuration) -> anyhow::Result<Anchoring> {
    let configured = &configuration.anchor;
    let mut outside = Vec::new();
    for authority in &configured.timestamps {
        let (name, url) = (authority.name.clone(), authority.url.url().clone());
        let roots = Roots::read(&authority.roots)?;
        let anchor = Timestamp::new(name, url, roots, timestamp::DEADLINE)?;
        outside.push(shown_to(anchor, authority.every_seconds));
    }
    for named in &configured.witnesses {
        let anchor = Witness::new(&named.name, named.url.url(), &named.key, witness::DEADLINE)?;
        outside.push(shown_to(anchor, named.every_seconds));
    }
    Ok(Anchoring {
        outside,
        branch: configured.branch.clone(),
    })
}

fn shown_to(anchor: impl Anchor + 'static, every_seconds: u32) -> ShownTo {
    ShownTo {
        anchor: Arc::new(anchor),
        every: Duration::from_secs(every_seconds.into()),
    }
}

/// The audit stream of this installation.
pub(super) fn events(configuration: &Configuration) -> anyhow::Result<Arc<dyn EventSink>> {
    let folder = configuration.home.join(audit_stream::FOLDER);
    let stream = AuditStream::open(&folder, Arc::new(SystemClock), &mut system_randomness)?;
    Ok(Arc::new(stream))
}

/// The queue of tool calls that wait for a person.
pub(super) fn approvals(
    installation: &Installation,
    store: Store,
    organisation: OrganisationId,
) -> anyhow::Result<Approvals> {
    let configuration = &installation.configuration;
    Ok(Approvals::new(
        store,
        organisation,
        events(configuration)?,
        Arc::new(SystemClock),
        system_randomness,
        configuration.approvals.timeout_seconds,
    ))
}

/// The same for the pages, with those who may answer there.
pub(super) fn tool_calls(
    installation: &Installation,
    store: Store,
    organisation: OrganisationId,
) -> anyhow::Result<ToolCalls> {
    let mut tokens = Vec::new();
    for token in &installation.configuration.approvals.tokens {
        let principal = token.principal.to_string();
        let secret =
            token
                .secret
                .resolve(&principal, "approvals.tokens", &installation.environment)?;
        tokens.push(ScopedToken {
            hash: Sha256Digest::of(secret.expose_secret().as_bytes()),
            principal,
        });
    }
    Ok(ToolCalls {
        approvals: approvals(installation, store, organisation)?,
        tokens: tokens.into(),
    })
}

/// What checks deliveries of webhooks; none when no secret is configured.
pub(super) fn webhooks(installation: &Installation) -> anyhow::Result<Option<Arc<Webhooks>>> {
    let github = &installation.configuration.github;
    let Some(source) = &github.webhook_secret else {
        return Ok(None);
    };
    let secret = source.resolve("webhooks", WEBHOOK_SECRET, &installation.environment)?;
    let key = HookKey::new(secret.expose_secret().as_bytes())?;
    Ok(Some(Arc::new(Webhooks::new(key, github.host()))))
}

fn notifiers(configuration: &Configuration) -> anyhow::Result<Notifiers> {
    let mut list: Vec<Box<dyn crate::notify::Notifier>> = Vec::new();
    for notifier in &configuration.notify {
        match notifier {
            Notifier::Webhook { url } => {
                list.push(Box::new(Webhook::new(url.secret().clone(), CALL_DEADLINE)?));
            }
        }
    }
    Ok(Notifiers::new(list))
}

/// Asks endpoints as configured. What it needs and is missing (root certificates, say) is an error here.
pub(super) fn probe(configuration: &Configuration) -> anyhow::Result<Arc<HttpProbe>> {
    let lookup = Arc::new(SystemLookup);
    let rules = address_rules(configuration);
    Ok(Arc::new(HttpProbe::new(rules, lookup, &[])?))
}

/// Which addresses endpoints may have.
pub(super) fn address_rules(configuration: &Configuration) -> AddressRules {
    let addresses = &configuration.health.addresses;
    AddressRules {
        private: addresses.private.allows(),
        loopback: addresses.loopback.allows(),
    }
}

/// What is asked when a check fails; unless configured, the hosting service, which a worker must reach anyway.
pub(super) fn self_check_targets(configuration: &Configuration) -> Vec<url::Url> {
    let configured = &configuration.health.self_check;
    if configured.is_empty() {
        return vec![configuration.github.web_url.url().clone()];
    }
    configured
        .iter()
        .map(|target| target.url().clone())
        .collect()
}

/// The watch over endpoints.
pub(super) fn health(
    configuration: &Configuration,
    engine: &Engine,
) -> anyhow::Result<HealthWatch> {
    let probe = probe(configuration)?;
    let targets = self_check_targets(configuration);
    let reach = SelfCheck::new(Arc::clone(&probe) as Arc<dyn Probe>, targets);
    let (store, connectors) = (engine.store.clone(), Arc::clone(&engine.connectors));
    Ok(HealthWatch::new(
        store,
        connectors,
        probe,
        Arc::new(reach),
        system_randomness,
    ))
}
