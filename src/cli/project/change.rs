//! Changing a project that is registered: its credential, its address, or that it is there.

use std::path::Path;

use clap::Args;
use serde_json::json;

use super::super::credential_events;
use super::super::hosting::Hosting;
use super::super::installation::Installation;
use super::super::{Verdict, print};
use super::{ProjectArguments, show};
use crate::approve::Principal;
use crate::attest::text::shown;
use crate::change::Sha256Digest;
use crate::id::{OrganisationId, ProjectId};
use crate::onboard::app::Recorder;
use crate::onboard::{self, ConnectTo, Replaced, Tending};
use crate::signer::{CredentialSeal, system_randomness};
use crate::store::{Project, Removal, Store};
use crate::worker::repository_folder;

/// Which project, and where the new token is.
#[derive(Debug, Args)]
pub(in crate::cli) struct CredentialArguments {
    /// The project, as `project list` prints it.
    project: ProjectId,
    /// The environment variable that holds the new token; it is read once and kept sealed. Without it, caretaker acts as the
    /// configured GitHub App from now on.
    #[arg(long, value_name = "VAR")]
    token_env: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Which project, and that it is meant.
#[derive(Debug, Args)]
pub(in crate::cli) struct RemoveArguments {
    /// The project, as `project list` prints it.
    project: ProjectId,
    /// Remove it without another question.
    #[arg(long, conflicts_with = "digest")]
    yes: bool,
    /// Remove it if this is the digest of its draft, as `project show` prints it.
    #[arg(long, value_name = "DIGEST")]
    digest: Option<Sha256Digest>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// What tending a project needs of this installation.
struct Means {
    store: Store,
    organisation: OrganisationId,
    seal: CredentialSeal,
    by: Principal,
    hosting: Hosting,
    recorder: Recorder,
}

impl Means {
    async fn of(installation: &Installation) -> anyhow::Result<Self> {
        let (store, organisation) = installation.open_database().await?;
        let (hosting, recorder) = Hosting::of(installation);
        Ok(Self {
            seal: CredentialSeal::read(&installation.configuration)?,
            by: installation.current_user()?,
            store,
            organisation,
            hosting,
            recorder,
        })
    }

    /// What is needed to change a project, with a way to the provider.
    fn tending<'a>(
        &'a self,
        installation: &'a Installation,
        connect: ConnectTo<'a>,
    ) -> Tending<'a> {
        Tending {
            store: &self.store,
            organisation: &self.organisation,
            web_url: &installation.configuration.github.web_url,
            connect,
            seal: &self.seal,
            by: &self.by,
        }
    }

    /// Writes down what happened to tokens.
    async fn record(&mut self) {
        self.recorder.flush(&self.store, &self.organisation).await;
    }
}

pub(super) async fn credential(
    installation: &Installation,
    arguments: &CredentialArguments,
) -> anyhow::Result<()> {
    let mut means = Means::of(installation).await?;
    let id = &arguments.project;
    let project = onboard::find_present(&means.store, &means.organisation, id).await?;
    let (hosting, variable) = (means.hosting.clone(), arguments.token_env.as_deref());
    let token = hosting.credential(installation, variable, &project.url);
    let token = token.await?;
    let connect = |project: &Project, token| hosting.connector_of(project, token);
    let tending = means.tending(installation, &connect);
    let now = means.store.now().await?;
    let random = &mut system_randomness;
    let replaced = onboard::replace_credential(&tending, id, &token, random, now).await;
    means.record().await;
    let replaced = replaced?;
    let fields = [
        ("actor", json!(means.by.to_string())),
        ("before", json!(replaced.before)),
        ("fingerprint", json!(replaced.after)),
    ];
    let configuration = &installation.configuration;
    credential_events::tell(
        configuration,
        "credential_replaced",
        replaced.project.id.as_str(),
        fields,
    );
    print(&replaced_text(&replaced, arguments.json))
}

fn replaced_text(replaced: &Replaced, as_json: bool) -> String {
    let Replaced {
        project,
        before,
        after,
        notes,
    } = replaced;
    if as_json {
        return json!({
            "id": project.id,
            "state": project.state,
            "draft_digest": project.draft_digest,
            "before": before,
            "after": after,
            "warnings": notes,
        })
        .to_string();
    }
    let name = shown(&project.full_name);
    let mut lines = vec![match before {
        Some(before) => format!(
            "{} {name} has another token: {after}… in the place of {before}…",
            project.id
        ),
        None => format!(
            "{} {name} has another token: {after}…; the one before could not be opened",
            project.id
        ),
    }];
    lines.extend(notes.iter().map(|note| format!("note: {}", shown(note))));
    if before.is_none() {
        lines.push(format!(
            "nothing shows any more that the project is as it was confirmed: {}",
            to_confirm(project)
        ));
    }
    lines.join("\n")
}

fn to_confirm(project: &Project) -> String {
    format!(
        "look at it with `caretaker project show {id}`, then `caretaker project confirm {id} --digest {digest}`",
        id = project.id,
        digest = project.draft_digest
    )
}

pub(super) async fn rename(
    installation: &Installation,
    arguments: &ProjectArguments,
) -> anyhow::Result<()> {
    let mut means = Means::of(installation).await?;
    let hosting = means.hosting.clone();
    let connect = |project: &Project, token| hosting.connector_of(project, token);
    let tending = means.tending(installation, &connect);
    let now = means.store.now().await?;
    let id = &arguments.project;
    let renamed = onboard::rename(&tending, id, &mut system_randomness, now).await;
    means.record().await;
    let renamed = renamed?;
    let (before, after) = (&renamed.before, &renamed.after);
    if arguments.json {
        let mut document = show::summary(after);
        document["url_before"] = before.url.as_str().into();
        return print(&document.to_string());
    }
    let lines = [
        format!("{id} is a draft again"),
        format!("  before  {}", shown(&before.url)),
        format!("  now     {}", shown(&after.url)),
        format!(
            "its incidents wait until it is confirmed: {}",
            to_confirm(after)
        ),
    ];
    print(&lines.join("\n"))
}

pub(super) async fn remove(
    installation: &Installation,
    arguments: &RemoveArguments,
) -> anyhow::Result<Verdict> {
    let (store, organisation) = installation.open_database().await?;
    let by = installation.current_user()?;
    let project = onboard::find_present(&store, &organisation, &arguments.project).await?;
    let id = &project.id;
    if let Some(digest) = &arguments.digest {
        anyhow::ensure!(
            *digest == project.draft_digest,
            "removing {id}: its draft has digest {}, not {digest}; look at it with `caretaker project show {id}`",
            project.draft_digest
        );
    } else if !arguments.yes {
        let open = open_incidents(&store, &organisation, id).await?;
        print(&asked(&project, open, arguments.json))?;
        return Ok(Verdict::Refused);
    }
    let now = store.now().await?;
    let (removal, forgotten) = onboard::remove(&store, &project, &by, now).await?;
    credential_events::tell(
        &installation.configuration,
        "credential_removed",
        id.as_str(),
        [("actor", json!(by.to_string()))],
    );
    let clone = forget_clone(&installation.configuration.home, id);
    print(&removed(
        &project,
        &removal,
        forgotten,
        clone.as_deref(),
        arguments.json,
    ))?;
    Ok(Verdict::Done)
}

async fn open_incidents(
    store: &Store,
    organisation: &OrganisationId,
    id: &ProjectId,
) -> anyhow::Result<usize> {
    use crate::incident::Stage;
    let incidents = store.within(organisation).incidents().await?;
    let open = |row: &&crate::store::IncidentRow| {
        row.project == *id && !matches!(row.stage, Stage::Resolved | Stage::Closed)
    };
    Ok(incidents.iter().filter(open).count())
}

/// What would be gone; nothing is, yet.
fn asked(project: &Project, open: usize, as_json: bool) -> String {
    let id = &project.id;
    if as_json {
        return json!({
            "id": id,
            "removed": false,
            "draft_digest": project.draft_digest,
            "open_incidents": open,
        })
        .to_string();
    }
    let lines = [
        format!("nothing was removed yet. Removing {id} {}:", shown(&project.full_name)),
        "  its credential is forgotten, and so is the clone of the repository on this machine".to_owned(),
        format!("  it is not watched any more, and {open} open incidents are closed; their pull requests are left to you"),
        "  its history, its ledgers and its evidence stay, and the repository can be registered again".to_owned(),
        format!("to do it: caretaker project remove {id} --digest {}", project.draft_digest),
        format!("       or: caretaker project remove {id} --yes"),
    ];
    lines.join("\n")
}

fn removed(
    project: &Project,
    removal: &Removal,
    forgotten: bool,
    clone: Option<&str>,
    as_json: bool,
) -> String {
    let id = &project.id;
    let mut remarks: Vec<String> = Vec::new();
    for (incident, why) in &removal.left {
        remarks.push(format!("{incident} stays as it is: {why}"));
    }
    for pull in &removal.pulls {
        remarks.push(format!("a pull request may be open still: {}", shown(pull)));
    }
    if !forgotten {
        remarks.push(
            "a sealed copy of the token lies in the database's write-ahead file until the running worker is done reading; `caretaker keys rotate-deployment` makes it worthless"
                .to_owned(),
        );
    }
    remarks.extend(clone.map(str::to_owned));
    remarks.push("revoke the token at the provider, if nothing else uses it".to_owned());
    if as_json {
        return json!({
            "id": id,
            "removed": true,
            "closed": removal.closed,
            "left": removal.left.iter().map(|(incident, why)| json!({"incident": incident, "reason": why})).collect::<Vec<_>>(),
            "pull_requests": removal.pulls,
            "warnings": remarks,
        })
        .to_string();
    }
    let mut lines = vec![format!(
        "{id} {} is removed; {} incidents were closed",
        shown(&project.full_name),
        removal.closed.len()
    )];
    lines.extend(remarks.iter().map(|remark| format!("note: {remark}")));
    lines.join("\n")
}

/// Deletes the clone of a project on this machine; what stands in the way is told, since the project is removed by then.
fn forget_clone(home: &Path, id: &ProjectId) -> Option<String> {
    let folder = repository_folder(home, id);
    let told = |why: String| {
        Some(format!(
            "the clone {} was not deleted: {why}; delete it by hand",
            folder.display()
        ))
    };
    match std::fs::symlink_metadata(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return told(error.to_string()),
        Ok(found) if !found.is_dir() => return told("it is no folder".to_owned()),
        Ok(_) => {}
    }
    // Break it: drop this comparison; `commands::projects::nothing_outside_the_home_is_deleted` then fails.
    match (folder.canonicalize(), home.canonicalize()) {
        (Ok(real), Ok(home)) if real.starts_with(&home) => match std::fs::remove_dir_all(&real) {
            Ok(()) => None,
            Err(error) => told(error.to_string()),
        },
        (Ok(real), Ok(_)) => told(format!("it really lies at {}", real.display())),
        (Err(error), _) | (_, Err(error)) => told(error.to_string()),
    }
}
