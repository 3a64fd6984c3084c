//! `caretaker evidence`: what a gated session's hooks decided, and what its producers came to.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::{Verdict, print};
use crate::attest::text::shown;
use crate::change::Sha256Digest;
use crate::config::Environment;
use crate::hook_gate::{
    EvidenceVerdict, Home, RunPlace, SessionId, gates, read_evidence, verify_session,
};

#[derive(Debug, Subcommand)]
pub(super) enum EvidenceCommand {
    /// Show a session's receipts and its producers' evidence.
    Show(OfSession),
    /// Verify them: signatures, numbers, links, and that evidence is what was sealed. Exit code 0 valid, 1 invalid, 3 cannot tell.
    Verify(OfSession),
}

/// Which session, and how to print.
#[derive(Debug, Args)]
pub(super) struct OfSession {
    /// The session, as it was registered.
    session: String,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &EvidenceCommand) -> anyhow::Result<Verdict> {
    let home = Home::new(&Environment::of_process()?.home()?);
    match command {
        EvidenceCommand::Show(of) => show(&home, of),
        EvidenceCommand::Verify(of) => verify(&home, of),
    }
}

fn folder(home: &Home, of: &OfSession) -> anyhow::Result<PathBuf> {
    Ok(home.session(&SessionId::parse(&of.session)?))
}

fn show(home: &Home, of: &OfSession) -> anyhow::Result<Verdict> {
    let folder = folder(home, of)?;
    let gates = gates(&folder)?;
    anyhow::ensure!(
        !gates.is_empty(),
        "showing the session {}: it has no receipts; name one as it was registered",
        of.session
    );
    let evidence = sealed(&folder);
    if of.json {
        let evidence: Vec<_> = evidence
            .into_iter()
            .filter_map(|digest| read_evidence(&folder, digest).ok())
            .collect();
        let document =
            serde_json::json!({"session": of.session, "receipts": gates, "evidence": evidence});
        print(&document.to_string())?;
        return Ok(Verdict::Done);
    }
    for gate in gates.iter().skip(1) {
        let word = |name: &str| shown(gate[name].as_str().unwrap_or_default());
        print(&format!(
            "{:>5}  {:<5}  {:<17}  {:<20}  {}",
            gate["seq"].as_u64().unwrap_or_default(),
            word("decision"),
            word("stage"),
            word("tool"),
            word("reason")
        ))?;
    }
    for digest in evidence {
        let found = read_evidence(&folder, digest)?;
        let place = match found.place {
            RunPlace::Inside => "inside the session",
            RunPlace::Outside => "outside, authoritative",
        };
        print(&format!(
            "evidence sha256:{digest} ({place}, {}): {}",
            found.sandbox,
            if found.passed { "passed" } else { "not passed" }
        ))?;
        for item in &found.items {
            print(&format!(
                "       {:<20}  {} in {} ms{}",
                shown(&item.name),
                item.status,
                item.elapsed_ms,
                if item.required { "" } else { ", not required" }
            ))?;
        }
    }
    Ok(Verdict::Done)
}

/// The evidence that lies in a session's folder, by what it is named.
fn sealed(folder: &Path) -> Vec<Sha256Digest> {
    let entries = std::fs::read_dir(folder.join("evidence"))
        .into_iter()
        .flatten();
    let mut found: Vec<Sha256Digest> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_suffix(".json")?.parse().ok()
        })
        .collect();
    found.sort_by_key(ToString::to_string);
    found
}

fn verify(home: &Home, of: &OfSession) -> anyhow::Result<Verdict> {
    let folder = folder(home, of)?;
    let report = verify_session(home, &folder)?;
    let (word, verdict) = match report.verdict {
        EvidenceVerdict::Valid => ("valid", Verdict::Done),
        EvidenceVerdict::Invalid => ("invalid", Verdict::Refused),
        EvidenceVerdict::CannotVerify => ("cannot-verify", Verdict::CannotTell),
    };
    if of.json {
        let mut document = serde_json::to_value(&report)?;
        document["session"] = of.session.as_str().into();
        print(&document.to_string())?;
    } else {
        print(&format!(
            "{word}: {} receipts, {} pieces of evidence",
            report.receipts, report.evidence
        ))?;
        for failure in &report.failures {
            print(&format!("  {}", shown(failure)))?;
        }
    }
    Ok(verdict)
}
