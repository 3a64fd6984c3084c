//! `caretaker app`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;
use tokio::net::TcpListener;

use super::hosting::app_interface;
use super::installation::Installation;
use super::runtime::{block_on, stop_on_signal};
use super::{Verdict, complain, print};
use crate::attest::text::shown;
use crate::clock::SystemClock;
use crate::config::ListenAddress;
use crate::connector::github::app::{AppView, ManifestExchange, Permissions, of_app};
use crate::onboard::app::{Created, Flow, Places, Plan, Reception};
use crate::signer::system_randomness;

/// How long one call to the provider may take.
const CALL_DEADLINE: Duration = Duration::from_secs(30);
/// Any free port of this machine.
const ANY_PORT: ListenAddress = ListenAddress(SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
    0,
));

#[derive(Debug, Subcommand)]
pub(super) enum AppCommand {
    /// Make the App: serves one page on this machine, whose button brings you to GitHub and back. Keeps the App's private key
    /// in a file and prints what to add to the configuration.
    Create(CreateArguments),
    /// Show the configured App and its permissions: which are missing, which are more than needed. Exit code 1 when some are
    /// missing.
    Show(ShowArguments),
}

/// The App that is wanted.
#[derive(Debug, Args)]
pub(super) struct CreateArguments {
    /// The organisation that is to own it; without it, your own account.
    #[arg(long, value_name = "NAME")]
    organisation: Option<String>,
    /// Its name, which GitHub wants to be unlike any other; it can still be changed on GitHub's page.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where the page is served: a port of this machine, such as 127.0.0.1:4711. Without it, any free one.
    #[arg(long, value_name = "ADDRESS")]
    serve_once: Option<ListenAddress>,
    /// Where the private key goes; a file that is there is never written over. Else github-app.pem in `CARETAKER_HOME`.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Let GitHub send hints to `server.public_url`, which it must reach; polling finds everything without them too.
    #[arg(long)]
    webhook: bool,
    /// Do not ask for running failed jobs again; flaky ones are then told by running them here.
    #[arg(long)]
    no_reruns: bool,
    /// How long the page waits, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout_seconds: u64,
    /// Print one JSON document; the page's address then goes to standard error.
    #[arg(long)]
    json: bool,
}

/// How to print.
#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &AppCommand, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let installation = Installation::load(config)?;
    match command {
        AppCommand::Create(arguments) => create(&installation, arguments),
        AppCommand::Show(arguments) => show(&installation, arguments),
    }
}

fn create(installation: &Installation, arguments: &CreateArguments) -> anyhow::Result<Verdict> {
    let plan = plan(installation, arguments)?;
    let places = places(installation, arguments);
    let api_url = installation.configuration.github.api_url.as_str();
    let exchange = ManifestExchange::new(api_url, CALL_DEADLINE, Arc::new(SystemClock))?;
    let created = block_on(async {
        let address = arguments.serve_once.unwrap_or(ANY_PORT).0;
        let stop = stop_on_signal()?;
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("listening on {address}"))?;
        let key_file = places.key_file.display().to_string();
        let flow = Flow::prepare(listener, &plan, &key_file, &mut system_randomness)?;
        let reception = Reception::prepare(exchange, plan, places)?;
        let invitation = format!(
            "open this page in a browser of this machine, and nobody else's:\n  {}",
            flow.url()
        );
        if arguments.json {
            complain(&invitation);
        } else {
            print(&invitation)?;
        }
        let patience = Duration::from_secs(arguments.timeout_seconds);
        let created = flow
            .run(Arc::new(reception), patience, stop.cancelled())
            .await?;
        Ok(created)
    })?;
    print_created(&created, arguments.json)?;
    Ok(Verdict::Done)
}

fn plan(installation: &Installation, arguments: &CreateArguments) -> anyhow::Result<Plan> {
    let configuration = &installation.configuration;
    let public = configuration.server.public_url.as_ref();
    let webhook = match (arguments.webhook, public) {
        (false, _) => None,
        (true, Some(base)) => Some(format!("{}/webhooks/github", base.as_str())),
        (true, None) => anyhow::bail!(
            "--webhook needs server.public_url, the address at which GitHub reaches this server; set it, or leave --webhook out"
        ),
    };
    let name = arguments.name.clone();
    let plan = Plan {
        name: name.unwrap_or_else(|| usual_name(arguments.organisation.as_deref())),
        organisation: arguments.organisation.clone(),
        web_url: configuration.github.web_url.clone(),
        homepage: public
            .unwrap_or(&configuration.github.web_url)
            .as_str()
            .to_owned(),
        webhook,
        reruns: !arguments.no_reruns,
    };
    plan.check()?;
    Ok(plan)
}

/// As long as names may be.
fn usual_name(organisation: Option<&str>) -> String {
    let name = organisation.map_or_else(
        || "caretaker".to_owned(),
        |organisation| format!("caretaker-{organisation}"),
    );
    name.chars().take(34).collect()
}

fn places(installation: &Installation, arguments: &CreateArguments) -> Places {
    let key_file = match &arguments.key_file {
        Some(file) => std::path::absolute(file).unwrap_or_else(|_| file.clone()),
        None => installation.configuration.home.join("github-app.pem"),
    };
    let beside = key_file.with_extension("webhook-secret");
    Places {
        webhook_secret_file: arguments.webhook.then_some(beside),
        key_file,
    }
}

fn print_created(created: &Created, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let document = json!({
            "id": created.id,
            "slug": created.slug,
            "name": created.name,
            "install_url": created.install_url,
            "configuration": created.configuration,
            "missing": created.missing,
        });
        return print(&document.to_string());
    }
    let mut lines = vec![
        format!("{} is App number {}.", shown(&created.name), created.id),
        String::new(),
        "add to the configuration:".to_owned(),
        String::new(),
        created.configuration.clone(),
        String::new(),
        "then install it on repositories:".to_owned(),
        format!("  {}", shown(&created.install_url)),
    ];
    if !created.missing.is_empty() {
        lines.push(format!(
            "note: it lacks {}; add it on the App's page",
            created.missing
        ));
    }
    print(&lines.join("\n"))
}

fn show(installation: &Installation, arguments: &ShowArguments) -> anyhow::Result<Verdict> {
    let interface = app_interface(installation)?.context(
        "looking for the App: github.app is not configured; `caretaker app create` makes an App and prints the keys",
    )?;
    let view = match block_on(async { Ok(interface.app().await) })? {
        Ok(view) => view,
        Err(error) if error.is_transient() => {
            complain(&error.to_string());
            return Ok(Verdict::CannotTell);
        }
        Err(error) => return Err(error.into()),
    };
    let missing = of_app(false).beyond(&view.permissions);
    let beyond = view.permissions.beyond(&of_app(true));
    print(&if arguments.json {
        as_json(&view, &missing, &beyond)
    } else {
        as_lines(&view, &missing, &beyond)
    })?;
    Ok(if missing.is_empty() {
        Verdict::Done
    } else {
        Verdict::Refused
    })
}

fn as_json(view: &AppView, missing: &Permissions, beyond: &Permissions) -> String {
    json!({
        "id": view.id,
        "slug": view.slug,
        "name": view.name,
        "owner": view.owner,
        "page": view.page,
        "permissions": view.permissions,
        "missing": missing,
        "more_than_needed": beyond,
        "events": view.events,
    })
    .to_string()
}

fn as_lines(view: &AppView, missing: &Permissions, beyond: &Permissions) -> String {
    let owner = view.owner.as_deref().map_or("unknown", |owner| owner);
    let mut lines = vec![
        format!(
            "{}  {}  ({})",
            view.id,
            shown(&view.slug),
            shown(&view.name)
        ),
        format!("owner        {}", shown(owner)),
        format!("permissions  {}", listed(&view.permissions)),
        format!("missing      {}", listed(missing)),
        format!("unneeded     {}", listed(beyond)),
    ];
    if !missing.is_empty() {
        lines.push(
            "add what is missing on the App's page, then let each owner accept the change"
                .to_owned(),
        );
    }
    if !beyond.is_empty() {
        lines.push(
            "take what is unneeded out on the App's page; tokens are made without it in any case"
                .to_owned(),
        );
    }
    lines.join("\n")
}

/// Permissions on one line. Their names are the provider's.
fn listed(permissions: &Permissions) -> String {
    if permissions.is_empty() {
        return "none".to_owned();
    }
    let each = permissions
        .iter()
        .map(|(name, access)| format!("{} {}", shown(name), access.word()));
    each.collect::<Vec<_>>().join(", ")
}
