//! `caretaker incident`.

mod show;

use std::path::Path;

use anyhow::Context as _;
use clap::Subcommand;

use super::arguments::{Format, OfIncident, ShowIncident};
use super::installation::Installation;
use super::runtime::block_on;
use super::{Verdict, print, words};
use crate::audit::verify;
use crate::id::{IncidentId, OrganisationId};
use crate::signer::trust_history;
use crate::store::{Store, Woken};
use crate::web::{IncidentRecord, explanation, incident_document, incidents_document};

pub(super) use show::{entries, paths};

#[derive(Debug, Subcommand)]
pub(super) enum IncidentCommand {
    /// List every incident, newest first.
    List(Format),
    /// Show everything known about an incident.
    Show(ShowIncident),
    /// Say why an incident waits, or how it ended.
    Explain(OfIncident),
    /// Wake an incident that rests after failed attempts: it is tried again now.
    Retry(OfIncident),
}

pub(super) fn run(command: &IncidentCommand, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let installation = Installation::load(config)?;
    block_on(async {
        let (store, organisation) = installation.open_database().await?;
        match command {
            IncidentCommand::List(arguments) => {
                let scope = store.within(&organisation);
                let rows = scope.incidents().await?;
                if arguments.json {
                    return print(&serde_json::to_string(&incidents_document(&rows))?);
                }
                print(&show::list(&rows, &scope.projects().await?))
            }
            IncidentCommand::Show(arguments) => {
                let record = read(&store, &organisation, &arguments.incident).await?;
                if arguments.json {
                    return print(&serde_json::to_string(&incident_document(&record))?);
                }
                print(&show::one(&record))?;
                print(&ledger_line(&installation, &record))
            }
            IncidentCommand::Explain(arguments) => {
                let record = read(&store, &organisation, &arguments.incident).await?;
                print(&words::wrapped(&explanation(&record)).join("\n"))
            }
            IncidentCommand::Retry(arguments) => {
                let by = installation.current_user()?;
                let record = read(&store, &organisation, &arguments.incident).await?;
                retry(&store, &organisation, &record, by.as_str()).await
            }
        }
    })?;
    Ok(Verdict::Done)
}

/// Everything that the store holds about an incident.
pub(super) async fn read(
    store: &Store,
    organisation: &OrganisationId,
    incident: &IncidentId,
) -> anyhow::Result<IncidentRecord> {
    let now = store.now().await?;
    let record = IncidentRecord::read(store.within(organisation), incident, now).await?;
    record.with_context(|| {
        format!("there is no incident {incident}; `caretaker incident list` shows those there are")
    })
}

async fn retry(
    store: &Store,
    organisation: &OrganisationId,
    record: &IncidentRecord,
    by: &str,
) -> anyhow::Result<()> {
    let incident = &record.row.id;
    let now = store.now().await?;
    match store.wake(organisation, incident, by, now).await? {
        Woken::Due => print(&format!(
            "{incident} is due now; a running worker takes it up at once"
        )),
        Woken::AtWork => print(&format!(
            "{incident} is due now, and a worker is at it already; when that attempt fails, it rests again"
        )),
        Woken::Over => anyhow::bail!(
            "waking {incident}: nothing is left to do about it. {}",
            words::wrapped(&explanation(record)).join(" ")
        ),
    }
}

/// What the ledger looks like at this very moment: a changed row must show wherever its incident is looked at.
fn ledger_line(installation: &Installation, record: &IncidentRecord) -> String {
    if record.ledger.rows.is_empty() && record.ledger.chain.next_seq == 0 {
        return "ledger       nothing is signed yet".to_owned();
    }
    match trust_history(&installation.configuration) {
        Ok(trust) => {
            let report = verify(&trust, &record.ledger);
            let failures = report.failures.len();
            match failures {
                0 => format!(
                    "ledger       {} events, {}",
                    record.ledger.rows.len(),
                    report.verdict
                ),
                _ => format!(
                    "ledger       {}: {failures} failures; `caretaker ledger verify {}` names them",
                    report.verdict, record.row.id
                ),
            }
        }
        Err(error) => format!("ledger       not verified: {error}"),
    }
}
