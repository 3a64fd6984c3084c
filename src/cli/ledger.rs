//! `caretaker ledger`.

mod export;
mod statements;

use std::path::Path;

use anyhow::Context as _;
use clap::Subcommand;

use super::arguments::ShowIncident;
use super::installation::Installation;
use super::runtime::block_on;
use super::{Verdict, print};
use crate::attest::chain::Verdict as Validity;
use crate::audit::{Report, StoredLedger, verify};
use crate::id::IncidentId;
use crate::signer::trust_history;

#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// Show an incident's signed events, and what verification says of them now; the exit codes are those of `verify`.
    Show(ShowIncident),
    /// Verify an incident's ledger as it is stored now. Exit code 0 valid, 1 invalid, 3 cannot tell.
    Verify(ShowIncident),
    /// Write an incident's ledger with everything that a stranger needs to verify it: `caretaker verify FILE` then needs nothing
    /// but the trust root.
    Export(export::ExportArguments),
    /// Write what an incident's ledger says as SLSA verification summaries and gittuf reference authorizations, one file each.
    ExportStatements(statements::ExportStatements),
}

pub(super) fn run(command: &LedgerCommand, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let installation = Installation::load(config)?;
    let arguments = match command {
        LedgerCommand::Export(arguments) => return export::run(arguments, &installation),
        LedgerCommand::ExportStatements(arguments) => {
            return statements::run(&installation, arguments);
        }
        LedgerCommand::Show(arguments) | LedgerCommand::Verify(arguments) => arguments,
    };
    let (ledger, report) = block_on(read(&installation, &arguments.incident))?;
    match command {
        LedgerCommand::Show(_) if arguments.json => print(&shown(&ledger, &report))?,
        _ if arguments.json => print(&serde_json::to_string(&report)?)?,
        _ => print(&table(&ledger, &report))?,
    }
    Ok(outcome(report.verdict))
}

/// The exit code of a verdict.
const fn outcome(verdict: Validity) -> Verdict {
    match verdict {
        Validity::Valid => Verdict::Done,
        Validity::Invalid => Verdict::Refused,
        Validity::CannotVerify => Verdict::CannotTell,
    }
}

/// The ledger as stored, and what verification says of it just now.
pub(super) async fn read(
    installation: &Installation,
    incident: &IncidentId,
) -> anyhow::Result<(StoredLedger, Report)> {
    let configuration = &installation.configuration;
    let trust = trust_history(configuration)?;
    let (store, organisation) = installation.open_database().await?;
    let ledger = store.within(&organisation).ledger(incident).await?;
    let ledger = ledger.with_context(|| {
        format!("there is no incident {incident}; `caretaker incident list` shows those there are")
    })?;
    let report = verify(&trust, &ledger);
    Ok((ledger, report))
}

/// For people: a line an event, then everything that does not hold.
pub(super) fn table(ledger: &StoredLedger, report: &Report) -> String {
    let mut lines = vec![format!(
        "{:<4} {:<16} {:<9} {:<9} {}",
        "seq", "type", "role", "verdict", "digest"
    )];
    for (event, row) in report.events.iter().zip(&ledger.rows) {
        let kind = event.kind.map_or("?", |kind| kind.name());
        let role = event.role.map_or("?", |role| role.name());
        lines.push(format!(
            "{:<4} {kind:<16} {role:<9} {:<9} {}",
            event.seq,
            event.verdict.name(),
            crate::attest::text::shown(&row.pae)
        ));
    }
    for failure in &report.failures {
        lines.push(format!(
            "event {}: {}: expected {}, found {}",
            failure.seq, failure.rule, failure.expected, failure.found
        ));
    }
    for (seq, admission) in report.admissions() {
        lines.push(format!("event {seq}: {admission}"));
    }
    lines.push(format!("ledger: {}", report.verdict.name()));
    lines.join("\n")
}

fn shown(ledger: &StoredLedger, report: &Report) -> String {
    let envelopes: Vec<serde_json::Value> = ledger
        .rows
        .iter()
        .map(|row| {
            serde_json::from_slice(&row.envelope).unwrap_or_else(|_| {
                serde_json::Value::String(String::from_utf8_lossy(&row.envelope).into_owned())
            })
        })
        .collect();
    let document = serde_json::json!({
        "incident": ledger.incident,
        "stage": ledger.stage,
        "verdict": report.verdict,
        "events": report.events,
        "envelopes": envelopes,
    });
    document.to_string()
}
