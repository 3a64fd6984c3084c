//! `caretaker embedder`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::arguments::Format;
use super::installation::Installation;
use super::runtime::block_on;
use super::{Verdict, print};
use crate::alignment;
use crate::config::EmbedderPlace;
use crate::embedder::embedded::EmbeddedEmbedder;
use crate::embedder::embedded::weights::{FILES, WeightFile};
use crate::embedder::{Embedder, Provider};
use crate::intent::{Embedding, Outage};

/// What is embedded to see whether that works.
const SAMPLE: &str = "Read a file from the worktree.\n\nargs: {\"path\":\"src/lib.rs\"}";

#[derive(Debug, Subcommand)]
pub(super) enum EmbedderCommand {
    /// Check the configured embedder: the hashes of its weights, where they are on this machine, and one embedding. Exit code 1 when
    /// it cannot be used, 3 when it does not answer.
    Verify(VerifyArguments),
}

/// Which embedder.
#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// Check the embedded model's files in this folder, whatever is configured.
    #[arg(long, value_name = "DIR")]
    weights_dir: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// How a file came out; its reason when it is not the known one.
struct Checked(WeightFile, Option<String>);

/// How the embedding came out: numbers and milliseconds, or why there is none.
type Embedded = Result<(usize, u128), (Option<Outage>, String)>;

pub(super) fn run(command: &EmbedderCommand, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let EmbedderCommand::Verify(arguments) = command;
    let installation;
    let configured = if arguments.weights_dir.is_some() {
        None
    } else {
        installation = Installation::load(config)?;
        let alignment = installation.configuration.intent_alignment.as_ref();
        let alignment = alignment.context(
            "verifying the embedder: security.intent_alignment is off; configure it, or name a folder with --weights-dir",
        )?;
        Some((&alignment.embedder, &installation.environment))
    };
    let folder = match (&arguments.weights_dir, configured) {
        (Some(folder), _) => Some(folder),
        (None, Some((choice, _))) => match &choice.place {
            EmbedderPlace::Folder(folder) => Some(folder),
            EmbedderPlace::Http { .. } => None,
        },
        (None, None) => None,
    };
    let files = folder.map_or_else(Vec::new, |folder| checked(folder));
    let good = files.iter().all(|Checked(_, reason)| reason.is_none());
    let made: anyhow::Result<Option<Arc<dyn Embedder>>> = match (folder, configured) {
        _ if !good => Ok(None),
        (Some(folder), _) => EmbeddedEmbedder::load(folder)
            .map(|embedder| Some(Arc::new(embedder) as Arc<dyn Embedder>))
            .map_err(anyhow::Error::from),
        (None, Some((choice, environment))) => Ok(Some(alignment::embedder(choice, environment)?)),
        (None, None) => Ok(None),
    };
    let embedder = made?;
    let embedded = embedder.as_ref().map(tried).transpose()?;
    let usual = configured.map_or_else(
        || Provider::Embedded.usual_dimension(""),
        |(choice, _)| choice.provider.usual_dimension(&choice.model),
    );
    let id = embedder.map(|embedder| embedder.id().to_string());
    print(&if arguments.format.json {
        as_json(id.as_deref(), &files, embedded.as_ref(), usual).to_string()
    } else {
        as_lines(id.as_deref(), &files, embedded.as_ref(), usual).join("\n")
    })?;
    Ok(match embedded {
        Some(Ok(_)) if good => Verdict::Done,
        Some(Err((
            Some(Outage::Unreachable | Outage::Deadline | Outage::RateLimited | Outage::Failing),
            _,
        ))) => Verdict::CannotTell,
        _ => Verdict::Refused,
    })
}

fn checked(folder: &Path) -> Vec<Checked> {
    let check = |file: WeightFile| {
        let reason = file.read(folder).err().map(|error| error.to_string());
        Checked(file, reason)
    };
    FILES.into_iter().map(check).collect()
}

/// One embedding, timed; it has to be one that a score can be made of.
fn tried(embedder: &Arc<dyn Embedder>) -> anyhow::Result<Embedded> {
    let begin = Instant::now();
    let answered = block_on(async { Ok(embedder.embed(&[SAMPLE]).await) })?;
    let took = begin.elapsed().as_millis();
    Ok(match answered {
        Err(error) => Err((Some(error.outage), error.to_string())),
        Ok(mut vectors) => match Embedding::new(vectors.pop().unwrap_or_default()) {
            Ok(vector) => Ok((vector.dimension(), took)),
            Err(fault) => Err((None, fault.to_string())),
        },
    })
}

fn as_json(
    id: Option<&str>,
    files: &[Checked],
    embedded: Option<&Embedded>,
    usual: Option<usize>,
) -> Value {
    let files = files.iter().map(|Checked(file, reason)| {
        json!({"name": file.name, "sha256": file.sha256, "valid": reason.is_none(), "reason": reason})
    });
    let good = embedded.and_then(|embedded| embedded.as_ref().ok());
    let reason = embedded.and_then(|embedded| embedded.as_ref().err());
    json!({
        "valid": good.is_some(),
        "embedder": id,
        "files": files.collect::<Vec<_>>(),
        "dimension": good.map(|(dimension, _)| dimension),
        "usual_dimension": usual,
        "elapsed_ms": good.and_then(|(_, took)| u64::try_from(*took).ok()),
        "reason": reason.map(|(_, words)| words),
    })
}

fn as_lines(
    id: Option<&str>,
    files: &[Checked],
    embedded: Option<&Embedded>,
    usual: Option<usize>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for Checked(file, reason) in files {
        lines.push(match reason {
            None => format!("ok      {}  sha256 {}", file.name, file.sha256),
            Some(reason) => format!("wrong   {}  {reason}", file.name),
        });
    }
    match embedded {
        None => lines.push("nothing was embedded".to_owned()),
        Some(Err((_, reason))) => lines.push(format!("failed  {reason}")),
        Some(Ok((dimension, took))) => {
            let name = id.unwrap_or_default();
            lines.push(format!("ok      {name}: {dimension} numbers in {took} ms"));
            if let Some(usual) = usual.filter(|usual| usual != dimension) {
                lines.push(format!(
                    "note    this model usually has {usual}: is it another model under its name?"
                ));
            }
        }
    }
    lines
}
