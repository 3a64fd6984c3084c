//! `caretaker gate`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::{Verdict, change, print};
use crate::attest::text::shown;
use crate::change::{ChangeDocument, ChangeSet};
use crate::config::read_rules;
use crate::gate::{self, Measured};

/// Largest document that `--changes` reads, in bytes.
const CHANGES_BYTES: u64 = 64 << 20;

#[derive(Debug, Subcommand)]
pub(super) enum GateCommand {
    /// Say what the rules decide about a change. Calls no model and reads no file contents: what a rule needs beyond paths,
    /// modes and ids counts as not measured and asks for approval. Exit code 1 when the change is denied.
    Check(CheckArguments),
}

/// Which rules and which change.
#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    /// The rules file.
    #[arg(long)]
    rules: PathBuf,
    /// A document that `change digest --json` printed; - reads standard input.
    #[arg(long, conflicts_with_all = ["repo", "base", "head"], required_unless_present = "base")]
    changes: Option<PathBuf>,
    /// The repository: its top directory or its .git directory.
    #[arg(long, default_value = ".")]
    repo: PathBuf,
    /// A branch, a tag or a complete object id.
    #[arg(requires = "head")]
    base: Option<String>,
    /// The same, of the changed side.
    head: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &GateCommand) -> anyhow::Result<Verdict> {
    let GateCommand::Check(arguments) = command;
    let rules = read_rules(&arguments.rules)?;
    let set = match (&arguments.changes, &arguments.base, &arguments.head) {
        (Some(file), _, _) => read_document(file)?,
        (None, Some(base), Some(head)) => change::read(&arguments.repo, base, head)?,
        _ => anyhow::bail!("checking a change: name BASE and HEAD, or a document with --changes"),
    };
    let decision = gate::evaluate(&rules, &Measured::nothing_but(&set));
    let document = decision.document();
    if arguments.json {
        print(&serde_json::to_string(&document)?)?;
    } else {
        print(&format!("{} ({})", document.verdict, document.class))?;
        let reasons = decision.signed_reasons();
        for reason in &reasons.items {
            print(&format!("  {}", shown(reason)))?;
        }
        if reasons.rest > 0 {
            print(&format!("  and {} more (--json lists all)", reasons.rest))?;
        }
    }
    Ok(if document.verdict == gate::Verdict::Deny {
        Verdict::Refused
    } else {
        Verdict::Done
    })
}

fn read_document(file: &Path) -> anyhow::Result<ChangeSet> {
    let mut bytes = Vec::new();
    let shown = file.display();
    if file.as_os_str() == "-" {
        std::io::stdin()
            .lock()
            .take(CHANGES_BYTES + 1)
            .read_to_end(&mut bytes)?;
    } else {
        let opened = std::fs::File::open(file)
            .with_context(|| format!("reading the change document {shown}"))?;
        opened
            .take(CHANGES_BYTES + 1)
            .read_to_end(&mut bytes)
            .with_context(|| format!("reading the change document {shown}"))?;
    }
    anyhow::ensure!(
        bytes.len() as u64 <= CHANGES_BYTES,
        "reading the change document {shown}: it is longer than {CHANGES_BYTES} bytes; a change of that size cannot be proposed"
    );
    let document: ChangeDocument = serde_json::from_slice(&bytes).with_context(|| {
        format!(
            "reading the change document {shown} (the output of `caretaker change digest --json`)"
        )
    })?;
    Ok(ChangeSet::try_from(&document)?)
}
