//! `caretaker forge`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::runtime::{block_on, stop_on_signal};
use super::{Verdict, print};
use crate::config::ListenAddress;
use crate::forge::{Forge, ForgeOptions, Plant, start};

/// Start a local GitHub-compatible server over real git repositories, and serve until interrupted. Prints its addresses and
/// the token that it accepts as one JSON document, and with --plant also the repository and its failed run.
#[derive(Debug, Args)]
pub(super) struct ForgeArguments {
    /// The folder of its repositories; it is made, and must be empty.
    #[arg(long)]
    dir: PathBuf,
    /// The address to listen on, such as 127.0.0.1:4000; port 0 takes a free one.
    #[arg(long)]
    listen: ListenAddress,
    /// Make a repository with a known defect and the failed run that tells of it; may be given more than once.
    #[arg(long, value_parser = PossibleValuesParser::new(Plant::ALL.map(Plant::name)))]
    plant: Vec<String>,
}

pub(super) fn run(arguments: &ForgeArguments) -> anyhow::Result<Verdict> {
    block_on(async {
        // Listened to before anything is printed: whoever has read the document may interrupt at once.
        let stop = stop_on_signal()?;
        let forge = start(ForgeOptions::new(&arguments.dir, arguments.listen.0)).await?;
        let document = planted(&forge, &arguments.plant)?;
        print(&document.to_string())?;
        stop.cancelled().await;
        forge.stop().await;
        Ok(Verdict::Done)
    })
}

/// Plants what is wanted and describes the forge. The first plant also stands at the top, for scripts that ask for one.
fn planted(forge: &Forge, names: &[String]) -> anyhow::Result<serde_json::Value> {
    let mut document = json!({
        "url": forge.url(),
        "logs_url": forge.logs_url(),
        "token": forge.token(),
        "repository": null,
        "run": null,
        "planted": [],
    });
    let mut list = Vec::new();
    for name in names {
        let plant = Plant::from_name(name).with_context(|| format!("no plant {name}"))?;
        let planted = forge.plant(plant)?;
        list.push(json!({
            "plant": name,
            "repository": planted.repository.url(),
            "full_name": planted.repository.full_name(),
            "clone_url": planted.repository.clone_url(),
            "run": planted.run,
        }));
    }
    if let Some(first) = list.first() {
        document["repository"] = first["repository"].clone();
        document["run"] = first["run"].clone();
    }
    document["planted"] = list.into();
    Ok(document)
}
