//! `caretaker ledger export-statements`: what an incident's ledger says, in other programs' formats.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;

use super::super::arguments::Format;
use super::super::installation::Installation;
use super::super::runtime::block_on;
use super::super::{Verdict, complain, print};
use super::{outcome, read};
use crate::attest::chain::Verdict as Validity;
use crate::attest::{Export, exports};
use crate::clock::{Clock as _, SystemClock};
use crate::id::IncidentId;
use crate::signer::{open_signer, trust_history};

#[derive(Debug, Args)]
pub(in super::super) struct ExportStatements {
    /// The incident, as `caretaker incident list` prints it.
    incident: IncidentId,
    /// The folder to write into; made when it is not there. No file in it is overwritten.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Write bare statements instead of signed envelopes; no key is opened.
    #[arg(long)]
    unsigned: bool,
    #[command(flatten)]
    format: Format,
}

/// Verifies, then writes one file an export. Nothing is written from a ledger that does not verify as it is stored now.
pub(super) fn run(
    installation: &Installation,
    arguments: &ExportStatements,
) -> anyhow::Result<Verdict> {
    let (ledger, report) = block_on(read(installation, &arguments.incident))?;
    if report.verdict != Validity::Valid {
        complain(&format!(
            "the ledger of {} is {}, so nothing is exported; `caretaker ledger verify {0}` says why",
            arguments.incident,
            report.verdict.name()
        ));
        return Ok(outcome(report.verdict));
    }
    let trust = trust_history(&installation.configuration)?;
    let exports = exports(&trust, &ledger.expectation(), ledger.envelopes())?;
    let documents = exports
        .iter()
        .map(|export| document(installation, export, arguments.unsigned))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut written = Vec::new();
    DirBuilder::new()
        .recursive(true)
        .create(&arguments.output)
        .with_context(|| format!("making the folder {}", arguments.output.display()))?;
    for (export, bytes) in exports.iter().zip(&documents) {
        let kind = if arguments.unsigned {
            "json"
        } else {
            "dsse.json"
        };
        let name = format!("{}-{}.{kind}", export.seq(), export.kind().name());
        write_new(&arguments.output.join(&name), bytes)?;
        written.push((name, export.kind().uri()));
    }
    print(&told(&written, arguments.format.json))?;
    Ok(Verdict::Done)
}

/// The bytes of a file.
fn document(
    installation: &Installation,
    export: &Export,
    unsigned: bool,
) -> anyhow::Result<Vec<u8>> {
    if unsigned {
        return Ok(export.statement().to_vec());
    }
    let history = Arc::new(trust_history(&installation.configuration)?);
    let signer = open_signer(
        export.role(),
        &installation.configuration,
        &installation.environment,
        &history,
        SystemClock.now(),
    )
    .context(
        "signing an export needs the role's key; with --unsigned, bare statements are written",
    )?;
    Ok(signer.sign_export(export)?.to_bytes()?)
}

fn write_new(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .with_context(|| format!("writing {}; give another folder", path.display()))?;
    file.write_all(bytes)
        .with_context(|| format!("writing {}", path.display()))
}

fn told(written: &[(String, &'static str)], json: bool) -> String {
    if json {
        let files: Vec<_> = written
            .iter()
            .map(|(name, kind)| serde_json::json!({"file": name, "predicate_type": kind}))
            .collect();
        return serde_json::json!({"files": files}).to_string();
    }
    if written.is_empty() {
        return "nothing to export: there is neither a decision nor an execution".to_owned();
    }
    let lines: Vec<String> = written
        .iter()
        .map(|(name, kind)| format!("{name}  {kind}"))
        .collect();
    lines.join("\n")
}
