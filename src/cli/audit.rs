//! `caretaker audit`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;

use super::installation::Installation;
use super::{Verdict, complain, explain, print};
use crate::attest::chain;
use crate::audit_stream::{FOLDER, Head, PUBLIC_FILE, StreamReport, files, verify, verify_folder};
use crate::log::VerifierKey;

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Verify the audit stream: every line is signed and follows the one before it. Exit code 0 valid, 1 invalid, 3 cannot tell.
    Verify(VerifyArguments),
}

/// What, and against what.
#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// Files of the stream in their order, or its folder; without any, this installation's stream.
    files: Vec<PathBuf>,
    /// The stream's public key: the text, or a file that holds it. Without it, `stream.pub` beside the files, which proves only
    /// that the stream agrees with itself.
    #[arg(long, value_name = "FILE|KEY")]
    key: Option<String>,
    /// An end that an earlier verification printed; a stream that does not reach it was cut.
    #[arg(long, value_name = "EVENTS:HASH")]
    head: Option<Head>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &AuditCommand, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let AuditCommand::Verify(arguments) = command;
    // What cannot be read is neither valid nor invalid.
    verdict(arguments, config).or_else(|error| {
        complain(&explain(&error));
        Ok(Verdict::CannotTell)
    })
}

fn verdict(arguments: &VerifyArguments, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let paths = match arguments.files.as_slice() {
        [] => vec![Installation::load(config)?.configuration.home.join(FOLDER)],
        given => given.to_vec(),
    };
    let mut found = Vec::new();
    for path in &paths {
        anyhow::ensure!(
            path.exists(),
            "there is no audit stream at {}: nothing was decided here yet, or it is kept elsewhere",
            path.display()
        );
        if path.is_dir() {
            found.extend(files(path)?);
        } else {
            found.push(path.clone());
        }
    }
    let (key, pinned) = match &arguments.key {
        Some(key) => (key_of(key)?, true),
        None => (key_beside(paths.first())?, false),
    };
    let report = match paths.as_slice() {
        [folder] if folder.is_dir() => verify_folder(folder, &key, arguments.head, &mut |_| {})?,
        _ => verify(&found, &key, arguments.head, &mut |_| {}),
    };
    let text = if arguments.json {
        let mut document = serde_json::to_value(&report)?;
        document["key"] = json!(key.to_string());
        document["pinned"] = json!(pinned);
        document.to_string()
    } else {
        words(&report, &key, pinned)
    };
    print(&text)?;
    Ok(match report.verdict {
        chain::Verdict::Valid => Verdict::Done,
        chain::Verdict::Invalid => Verdict::Refused,
        chain::Verdict::CannotVerify => Verdict::CannotTell,
    })
}

fn key_of(text: &str) -> anyhow::Result<VerifierKey> {
    if let Ok(key) = text.parse() {
        return Ok(key);
    }
    let read = std::fs::read_to_string(text).with_context(|| {
        format!("reading the stream's key: {text:?} is neither a key nor a file that can be read")
    })?;
    let key = read.trim_end().parse();
    key.with_context(|| format!("reading the stream's key from {text}"))
}

fn key_beside(path: Option<&PathBuf>) -> anyhow::Result<VerifierKey> {
    let path = path.context("there is nothing to verify")?;
    let folder = if path.is_dir() {
        Some(path.as_path())
    } else {
        path.parent()
    };
    let file = folder.unwrap_or(Path::new(".")).join(PUBLIC_FILE);
    let read = std::fs::read_to_string(&file).with_context(|| {
        format!(
            "looking for the stream's key in {}; give it with --key",
            file.display()
        )
    })?;
    let key = read.trim_end().parse();
    key.with_context(|| format!("reading the stream's key from {}", file.display()))
}

fn words(report: &StreamReport, key: &VerifierKey, pinned: bool) -> String {
    let mut lines = vec![format!("{}: {} events", report.verdict, report.events)];
    for failure in &report.failures {
        let at = match (failure.file.as_str(), failure.line) {
            ("", _) => String::new(),
            (file, 0) => format!("{file}: "),
            (file, line) => format!("{file} line {line}: "),
        };
        lines.push(format!("  {at}{}", failure.reason));
    }
    if report.more_failures > 0 {
        lines.push(format!("  and {} more", report.more_failures));
    }
    if let Some(first) = report.first.filter(|first| *first > 0) {
        lines.push(format!(
            "begins at event {first}: what was before it was not given"
        ));
    }
    if let Some(head) = &report.head {
        lines.push(format!("ends at {head}"));
    }
    lines.push(if pinned {
        format!("key {key}")
    } else {
        format!("key {key}, taken from beside the stream: give one that you were told with --key")
    });
    lines.join("\n")
}
