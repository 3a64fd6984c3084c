//! `caretaker approval`.

mod answer;
mod show;

use std::path::Path;

use clap::{Args, Subcommand};

use super::arguments::{Format, OfIncident, ShowIncident};
use super::installation::Installation;
use super::runtime::block_on;
use super::{Verdict, incident, print};
use crate::approve::HumanDecision;
use crate::id::IncidentId;
use crate::incident::Stage;

#[derive(Debug, Subcommand)]
pub(super) enum ApprovalCommand {
    /// List the changes that wait for a person's answer.
    List(Format),
    /// Show what exactly is asked about an incident's change, of whom, and until when.
    Show(ShowIncident),
    /// Have a new approval link sent; the older one no longer works.
    Resend(OfIncident),
    /// Approve the change, if you are the local user who was asked. It is computed anew from the repository here first.
    Approve(AnswerArguments),
    /// Reject the change, if you are the local user who was asked.
    Reject(AnswerArguments),
}

/// Which incident, and why.
#[derive(Debug, Args)]
pub(super) struct AnswerArguments {
    /// The incident, as `caretaker approval list` prints it.
    incident: IncidentId,
    /// A remark of at most 500 bytes, which is signed with the answer.
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
}

pub(super) fn run(command: &ApprovalCommand, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let installation = Installation::load(config)?;
    block_on(async {
        match command {
            ApprovalCommand::List(arguments) => list(&installation, arguments.json).await?,
            ApprovalCommand::Show(arguments) => {
                let (store, organisation) = installation.open_database().await?;
                let record = incident::read(&store, &organisation, &arguments.incident).await?;
                let request = show::request(&record)?;
                if arguments.json {
                    print(&show::json(&record, request)?)?;
                } else {
                    print(&show::one(&record, request))?;
                }
            }
            ApprovalCommand::Resend(arguments) => {
                resend(&installation, &arguments.incident).await?;
            }
            ApprovalCommand::Approve(arguments) => {
                let decision = HumanDecision::Approve;
                return answer::answer(&installation, arguments, decision).await;
            }
            ApprovalCommand::Reject(arguments) => {
                let decision = HumanDecision::Reject;
                return answer::answer(&installation, arguments, decision).await;
            }
        }
        Ok(Verdict::Done)
    })
}

async fn list(installation: &Installation, as_json: bool) -> anyhow::Result<()> {
    let (store, organisation) = installation.open_database().await?;
    let rows = store.within(&organisation).incidents().await?;
    let waiting = rows
        .iter()
        .filter(|row| row.stage == Stage::AwaitingApproval);
    let mut records = Vec::new();
    for row in waiting {
        records.push(incident::read(&store, &organisation, &row.id).await?);
    }
    if as_json {
        print(&show::list_json(&records)?)
    } else {
        print(&show::list(&records))
    }
}

async fn resend(installation: &Installation, incident: &IncidentId) -> anyhow::Result<()> {
    let (store, organisation) = installation.open_database().await?;
    let by = installation.current_user()?;
    let record = incident::read(&store, &organisation, incident).await?;
    let request = show::request(&record)?;
    let now = store.now().await?;
    store
        .renew_link(&organisation, incident, by.as_str(), now)
        .await?;
    print(&format!(
        "the older link of {incident} no longer works; a running worker sends a new one to {}",
        request.principal
    ))?;
    if installation.configuration.notify.is_empty() {
        print("note: no notifier is configured, so it will reach nobody; add one under notify")?;
    }
    Ok(())
}
