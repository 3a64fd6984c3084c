//! `caretaker change`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Verdict, print};
use crate::change::{ChangeDocument, ChangeSet};
use crate::workspace::open_read_only;

#[derive(Debug, Subcommand)]
pub(super) enum ChangeCommand {
    /// Print what HEAD changes since it left BASE, entry by entry, and the digest over it.
    Digest(DigestArguments),
}

/// Which change.
#[derive(Debug, Args)]
pub(super) struct DigestArguments {
    /// The repository: its top directory or its .git directory.
    #[arg(long, default_value = ".")]
    repo: PathBuf,
    /// A branch, a tag or a complete object id (commit or tree).
    base: String,
    /// The same, of the changed side.
    head: String,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &ChangeCommand) -> anyhow::Result<Verdict> {
    let ChangeCommand::Digest(arguments) = command;
    let set = read(&arguments.repo, &arguments.base, &arguments.head)?;
    let document = ChangeDocument::from(&set);
    if arguments.json {
        print(&serde_json::to_string(&document)?)?;
        return Ok(Verdict::Done);
    }
    for entry in set.entries() {
        print(&format!(
            "{} -> {}  {} -> {}  {}",
            entry.old.mode.as_str(),
            entry.new.mode.as_str(),
            entry.old.oid,
            entry.new.oid,
            entry.path
        ))?;
    }
    print(&format!(
        "{} entries, digest {}",
        document.count, document.digest
    ))?;
    Ok(Verdict::Done)
}

/// What HEAD changes since the merge base of both; two trees have no history and are compared as they are.
pub(super) fn read(
    repository: &std::path::Path,
    base: &str,
    head: &str,
) -> anyhow::Result<ChangeSet> {
    Ok(open_read_only(repository)?.change_between(base, head)?)
}
