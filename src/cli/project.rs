//! `caretaker project`.

mod change;
mod health;
mod show;
mod watching;
mod when;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::hosting::Hosting;
use super::installation::Installation;
use super::runtime::block_on;
use super::{Verdict, assembly, credential_events, print};
use crate::approve::Principal;
use crate::attest::Role;
use crate::attest::text::shown;
use crate::change::Sha256Digest;
use crate::clock::{Clock as _, SystemClock};
use crate::config::{PollSchedule, read_file};
use crate::id::{Entropy, ProjectId};
use crate::onboard::{self, Confirmation, Office, Registered, Registration};
use crate::signer::{CredentialSeal, open_signer, system_randomness, trust_history};
use crate::store::{Project, Store, WatchMode};

/// The rules of a project that names none: those for an ecosystem that is not known.
const STARTER_RULES: &str = include_str!("../../onboarding/rules/generic.yaml");
const STARTER_NAME: &str = "the starter rules";

#[derive(Debug, Subcommand)]
pub(super) enum ProjectCommand {
    /// Register a repository: reads it, and keeps a draft that a person confirms. Prints the draft's id and digest.
    Register(Box<RegisterArguments>),
    /// Confirm a draft: it is watched from now on.
    Confirm(ConfirmArguments),
    /// List every project.
    List(ListArguments),
    /// Show a project with its rules and its intent document.
    Show(ProjectArguments),
    /// Stop watching a project; incidents under way go on.
    Pause(ProjectArguments),
    /// Watch a paused project again.
    Resume(ProjectArguments),
    /// Put another token in the place of a project's, after the provider has shown what it may do.
    #[command(visible_alias = "token")]
    Credential(change::CredentialArguments),
    /// Take over the name of a repository that was renamed or transferred. The project is a draft again, to be confirmed.
    Rename(ProjectArguments),
    /// Stop watching a project for good and forget its credential. Its history and its ledgers stay.
    Remove(change::RemoveArguments),
    /// Let a frozen project merge again, after a person looked at what had landed. It is written into the history.
    Unfreeze(ProjectArguments),
}

/// What is to be watched.
#[derive(Debug, Args)]
pub(super) struct RegisterArguments {
    /// Address of the repository, as in `https://github.com/OWNER/NAME`.
    url: String,
    /// The environment variable that holds the token; it is read once and kept sealed. Without it, caretaker acts as the
    /// configured GitHub App, which must be installed on the repository.
    #[arg(long, value_name = "VAR")]
    token_env: Option<String>,
    /// What is watched.
    #[arg(long, value_enum, default_value_t = Watched::Ci)]
    watch: Watched,
    /// The health checks, as a JSON list; with `--watch health`.
    #[arg(long, value_name = "JSON", conflicts_with = "health_file")]
    health: Option<String>,
    /// The health checks, in a JSON or YAML file; without either, those of the configuration.
    #[arg(long, value_name = "FILE")]
    health_file: Option<PathBuf>,
    /// When it is looked at, a cron expression with seconds in UTC, as in "0 */2 * * * *"; else as poll.schedule says.
    #[arg(long, value_name = "CRON")]
    schedule: Option<PollSchedule>,
    /// The rules file; without it, starter rules that a person should replace.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// The intent document: what the project is for and what must not happen to it.
    #[arg(long, value_name = "FILE")]
    intent: Option<PathBuf>,
    /// Who answers for the project and is asked for approvals, as in `mailto:owner@example.org`; else the current user.
    #[arg(long, value_name = "PRINCIPAL")]
    owner: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Watched {
    /// CI runs.
    Ci,
    /// Health endpoints.
    Health,
}

/// Which draft.
#[derive(Debug, Args)]
pub(super) struct ConfirmArguments {
    /// The project, as `project register` printed it.
    project: ProjectId,
    /// Confirm only the draft with this digest.
    #[arg(long, value_name = "DIGEST")]
    digest: Option<Sha256Digest>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// How to print.
#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Which project.
#[derive(Debug, Args)]
pub(super) struct ProjectArguments {
    /// The project, as `project list` prints it.
    project: ProjectId,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &ProjectCommand, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let installation = Installation::load(config)?;
    block_on(perform(command, &installation))
}

async fn perform(command: &ProjectCommand, installation: &Installation) -> anyhow::Result<Verdict> {
    match command {
        ProjectCommand::Register(arguments) => {
            let registered = register(installation, arguments).await?;
            print_registered(&registered, arguments.json)?;
        }
        ProjectCommand::Confirm(arguments) => {
            let (store, organisation) = installation.open_database().await?;
            let now = store.now().await?;
            let configuration = &installation.configuration;
            let history = Arc::new(trust_history(configuration)?);
            let signer = open_signer(
                Role::Policy,
                configuration,
                &installation.environment,
                &history,
                SystemClock.now(),
            )
            .context("confirming a project needs the key of policy, which signs that its rules come into force")?;
            let confirmation = Confirmation {
                shown: arguments.digest.as_ref(),
                by: &installation.current_user()?,
                signer: signer.as_ref(),
                trust: &history,
                random: system_randomness,
            };
            let id = &arguments.project;
            let project = onboard::confirm(&store, &organisation, id, &confirmation, now).await?;
            say(&project, "is watched from now on", arguments.json)?;
        }
        ProjectCommand::List(arguments) => {
            let (store, organisation) = installation.open_database().await?;
            let projects = watching::read(&store, &organisation).await?;
            print(&show::list(&projects, store.now().await?, arguments.json))?;
        }
        ProjectCommand::Show(arguments) => {
            let (store, organisation) = installation.open_database().await?;
            let record = watching::record(&store, &organisation, &arguments.project).await?;
            let project = &record.watching.project;
            let rows = store.health_of(&organisation, &project.id).await?;
            let checks = health::standings(project, &rows);
            let now = store.now().await?;
            print(&show::record(&record, &checks, now, arguments.json))?;
        }
        ProjectCommand::Pause(arguments) => {
            let (store, organisation) = installation.open_database().await?;
            let project = onboard::pause(&store, &organisation, &arguments.project).await?;
            say(&project, "is not watched for now", arguments.json)?;
        }
        ProjectCommand::Resume(arguments) => {
            let (store, organisation) = installation.open_database().await?;
            let project = onboard::resume(&store, &organisation, &arguments.project).await?;
            say(&project, "is watched again", arguments.json)?;
        }
        ProjectCommand::Credential(arguments) => {
            change::credential(installation, arguments).await?;
        }
        ProjectCommand::Rename(arguments) => change::rename(installation, arguments).await?,
        ProjectCommand::Remove(arguments) => return change::remove(installation, arguments).await,
        ProjectCommand::Unfreeze(arguments) => {
            let (store, organisation) = installation.open_database().await?;
            let by = installation.current_user()?;
            let id = &arguments.project;
            let project = onboard::unfreeze(&store, &organisation, id, &by).await?;
            say(&project, "may merge again", arguments.json)?;
        }
    }
    Ok(Verdict::Done)
}

/// Needs the trust root, for the organisation's name, and the key that seals credentials; none of the keys that sign.
async fn register(
    installation: &Installation,
    arguments: &RegisterArguments,
) -> anyhow::Result<Registered> {
    // Break it: leave this out; a project is then registered that is never looked at
    // (`onboard::command::wrong_words_are_told_apart_from_what_cannot_be_done`).
    if let Some(schedule) = &arguments.schedule {
        let comes = schedule.comes_after(SystemClock.now());
        comes.context("reading --schedule")?;
    }
    let configuration = &installation.configuration;
    let (hosting, mut recorder) = Hosting::of(installation);
    let variable = arguments.token_env.as_deref();
    let token = hosting.credential(installation, variable, &arguments.url);
    let token = token.await?;
    let owner = owner(installation, arguments.owner.as_deref())?;
    let (rules, rules_file) = match &arguments.rules {
        Some(path) => (read_file(path, "rules")?, path.display().to_string()),
        None => (STARTER_RULES.into(), STARTER_NAME.to_owned()),
    };
    let checks = health::given(configuration, arguments)?;
    let intent = match &arguments.intent {
        Some(path) => String::from_utf8(read_file(path, "intent")?).with_context(|| {
            format!(
                "reading the intent document {}: it is not UTF-8",
                path.display()
            )
        })?,
        None => String::new(),
    };
    let organisation = assembly::organisation(&trust_history(configuration)?)?;
    let seal = CredentialSeal::read(configuration)?;
    let store = Store::open(configuration.database.secret()).await?;
    let now = store.now().await?;
    store
        .ensure_organisation(&organisation, organisation.as_str(), now)
        .await?;
    let connect = |full_name: &str, token| hosting.connector(full_name, token, None);
    let office = Office {
        store: &store,
        organisation: &organisation,
        web_url: &configuration.github.web_url,
        connect: &connect,
        seal: &seal,
    };
    let registration = Registration {
        url: &arguments.url,
        token,
        watch: match arguments.watch {
            Watched::Ci => WatchMode::Ci,
            Watched::Health => WatchMode::Health,
        },
        health: &checks,
        schedule: arguments.schedule.as_ref(),
        rules: &rules,
        rules_file: &rules_file,
        intent: &intent,
        owner,
    };
    let mut entropy = Entropy::default();
    system_randomness(&mut entropy)?;
    let id = ProjectId::new(now, entropy);
    let random = &mut system_randomness;
    let registered = onboard::register(&office, &registration, id, random, now).await;
    recorder.flush(&store, &organisation).await;
    let mut registered = registered?;
    let stored = &registered.project;
    credential_events::tell(
        configuration,
        "credential_stored",
        stored.id.as_str(),
        [("actor", serde_json::json!(stored.owner.to_string()))],
    );
    if arguments.rules.is_none() {
        let warning = "these are starter rules for any project; write rules of your own and register with --rules";
        registered.warnings.insert(0, warning.to_owned());
    }
    Ok(registered)
}

fn owner(installation: &Installation, given: Option<&str>) -> anyhow::Result<Principal> {
    if let Some(given) = given {
        return given.parse().context("reading --owner");
    }
    installation
        .current_user()
        .context("the owner of the project; name another one with --owner")
}

fn print_registered(registered: &Registered, as_json: bool) -> anyhow::Result<()> {
    let Registered { project, warnings } = registered;
    if as_json {
        let document = json!({
            "id": project.id,
            "draft_digest": project.draft_digest,
            "warnings": warnings,
        });
        return print(&document.to_string());
    }
    let mut lines = vec![
        format!("{}  {}  (draft)", project.id, shown(&project.full_name)),
        format!("draft digest {}", project.draft_digest),
    ];
    lines.extend(warnings.iter().map(|warning| format!("note: {warning}")));
    lines.push(format!(
        "look at it with `caretaker project show {id}`, then `caretaker project confirm {id} --digest {digest}`",
        id = project.id,
        digest = project.draft_digest
    ));
    print(&lines.join("\n"))
}

fn say(project: &Project, what: &str, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return print(&show::whole(project).to_string());
    }
    print(&format!(
        "{} {} {what}",
        project.id,
        shown(&project.full_name)
    ))
}
