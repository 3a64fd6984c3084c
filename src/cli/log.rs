//! `caretaker log`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;

use super::arguments::Format;
use super::files::replace;
use super::installation::Installation;
use super::runtime::block_on;
use super::{Verdict, print, write_out};
use crate::attest::text::shown;
use crate::id::{IncidentId, OrganisationId};
use crate::log::{LogProof, MAX_NOTE, ProofPlan, SignedCheckpoint, TileId};
use crate::signer::trust_history;
use crate::store::{Scoped, Store};

#[derive(Debug, Subcommand)]
pub(super) enum LogCommand {
    /// Print the newest checkpoint: what auditors and witnesses hold against later ones.
    Checkpoint(Format),
    /// Write the proof that an event is in the log (C2SP tlog-proof).
    Prove(ProveArguments),
    /// Print the proof that the log of today extends an earlier one, a hash a line.
    Consistency(ConsistencyArguments),
    /// Write the whole log as files (C2SP tlog-tiles) for `caretaker verify FOLDER`; run again, it writes what is new.
    Export(ExportArguments),
}

/// Of which event.
#[derive(Debug, Args)]
pub(super) struct ProveArguments {
    /// The incident, as `caretaker incident list` prints it.
    incident: IncidentId,
    /// The event's position in its ledger, from 0.
    seq: u64,
    /// The file to write; - is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

/// Between what.
#[derive(Debug, Args)]
pub(super) struct ConsistencyArguments {
    /// How many leaves the earlier log has.
    old: u64,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Where to.
#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// The folder to write to.
    folder: PathBuf,
}

pub(super) fn run(command: &LogCommand, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let installation = Installation::load(config)?;
    block_on(async {
        let (store, organisation) = installation.open_database().await?;
        let log = Log {
            store,
            organisation,
        };
        match command {
            LogCommand::Checkpoint(format) => log.checkpoint(format).await,
            LogCommand::Prove(arguments) => log.prove(arguments).await,
            LogCommand::Consistency(arguments) => log.consistency(arguments).await,
            LogCommand::Export(arguments) => log.export(arguments, &installation).await,
        }
    })?;
    Ok(Verdict::Done)
}

struct Log {
    store: Store,
    organisation: OrganisationId,
}

impl Log {
    fn scoped(&self) -> Scoped<'_> {
        self.store.within(&self.organisation)
    }

    async fn newest(&self) -> anyhow::Result<SignedCheckpoint> {
        let newest = self.scoped().newest_checkpoint().await?;
        let newest = newest.context(
            "the log has no checkpoint yet; a worker makes one within a second (`caretaker doctor` says whether the log has a key)",
        )?;
        Ok(SignedCheckpoint::parse(newest.note.as_bytes())?)
    }

    async fn checkpoint(&self, format: &Format) -> anyhow::Result<()> {
        let newest = self.newest().await?;
        if !format.json {
            return write_out(newest.to_string().as_bytes());
        }
        let head = newest.claimed().head();
        let document = json!({
            "origin": newest.claimed().origin().as_str(),
            "size": head.size(),
            "root": head.root().to_digest(),
            "note": newest.to_string(),
        });
        print(&document.to_string())
    }

    async fn prove(&self, arguments: &ProveArguments) -> anyhow::Result<()> {
        let newest = self.newest().await?;
        let size = newest.claimed().head().size();
        let scoped = self.scoped();
        let places = scoped.log_places(&arguments.incident).await?;
        let place = places.iter().find(|(seq, _)| *seq == arguments.seq);
        let (_, index) = place.with_context(|| {
            format!(
                "event {} of {} is not in the log; `caretaker ledger show {1}` lists the events there are",
                arguments.seq, arguments.incident
            )
        })?;
        anyhow::ensure!(
            *index < size,
            "the newest checkpoint is over {size} leaves and does not cover leaf {index} yet; a worker makes one within a second"
        );
        let hashes = scoped
            .log_proof(&ProofPlan::inclusion(*index, size)?)
            .await?;
        let proof = LogProof::new(*index, hashes, newest)?.to_string();
        if arguments.output.as_os_str() == "-" {
            return write_out(proof.as_bytes());
        }
        replace("the proof", &arguments.output, proof.as_bytes())?;
        print(&format!(
            "wrote {}",
            shown(&arguments.output.display().to_string())
        ))
    }

    async fn consistency(&self, arguments: &ConsistencyArguments) -> anyhow::Result<()> {
        let size = self.newest().await?.claimed().head().size();
        let plan = ProofPlan::consistency(arguments.old, size)?;
        let hashes = self.scoped().log_proof(&plan).await?;
        let hashes: Vec<String> = hashes.iter().map(ToString::to_string).collect();
        if arguments.json {
            let document = json!({"old": arguments.old, "new": size, "hashes": hashes});
            return print(&document.to_string());
        }
        print(&hashes.join("\n"))
    }

    async fn export(
        &self,
        arguments: &ExportArguments,
        installation: &Installation,
    ) -> anyhow::Result<()> {
        let folder = &arguments.folder;
        let newest = self.newest().await?;
        let size = newest.claimed().head().size();
        let place = folder.join("checkpoint");
        let before = if place.exists() {
            let bytes = crate::verifier::read(&place, "the checkpoint", MAX_NOTE as u64)?;
            let before = SignedCheckpoint::parse(&bytes)
                .with_context(|| format!("reading {}", place.display()))?;
            anyhow::ensure!(
                before.claimed().origin() == newest.claimed().origin(),
                "{} holds the log {}, this one is {}; name another folder",
                folder.display(),
                shown(before.claimed().origin().as_str()),
                newest.claimed().origin()
            );
            before.claimed().head().size()
        } else {
            0
        };
        let roots = folder.join("root");
        make(&roots)?;
        for root in trust_history(&installation.configuration)?.versions() {
            let path = roots.join(format!("{}.json", root.document().version));
            replace("a trust root", &path, &root.to_bytes()?)?;
        }
        let scoped = self.scoped();
        let mut written = 0_u64;
        for tile in TileId::grown(before, size) {
            let path = folder.join(tile.to_string());
            make(path.parent().unwrap_or(folder))?;
            replace("a part of the log", &path, &scoped.log_file(tile).await?)?;
            written += 1;
        }
        // Last: whoever sees the checkpoint sees everything that it covers.
        replace("the checkpoint", &place, newest.to_string().as_bytes())?;
        print(&format!(
            "wrote {written} files to {} ({size} leaves); verify them with `caretaker verify {0} --trust-root FILE`",
            shown(&folder.display().to_string())
        ))
    }
}

fn make(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("making the folder {}", folder.display()))
}
