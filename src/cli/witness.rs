//! `caretaker witness`.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::runtime::{block_on, stop_on_signal};
use super::{Verdict, print};
use crate::clock::SystemClock;
use crate::config::ListenAddress;
use crate::log::{KeyName, VerifierKey};
use crate::signer::system_randomness;
use crate::witness::{self, Limits, Witness};

#[derive(Debug, Subcommand)]
pub(super) enum WitnessCommand {
    /// Make the key and the empty memory of a witness, and print the key that logs and verifiers are given.
    Init(InitArguments),
    /// Cosign checkpoints of these logs until interrupted (C2SP tlog-witness). Needs no configuration, no database.
    Run(RunArguments),
}

/// Whose, and where.
#[derive(Debug, Args)]
pub(super) struct InitArguments {
    /// The witness's name: an address without scheme, as example.com/witness. It need not lead anywhere.
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: KeyName,
    /// The folder of key and memory; it is made.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// For whom, and where.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The folder that `witness init` made.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Where to listen, in clear text: put a proxy with TLS in front of it if it is to be reached from elsewhere.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7380")]
    listen: ListenAddress,
    /// The keys of the logs that are cosigned for, as `caretaker log keys` prints them.
    #[arg(long, value_name = "VKEY", required = true, num_args = 1.., value_parser = vkey)]
    log: Vec<VerifierKey>,
}

fn name(text: &str) -> Result<KeyName, String> {
    KeyName::new(text).map_err(|error| error.to_string())
}

fn vkey(text: &str) -> Result<VerifierKey, String> {
    text.parse()
        .map_err(|error: crate::log::LogKeyError| error.to_string())
}

pub(super) fn run(command: &WitnessCommand) -> anyhow::Result<Verdict> {
    match command {
        WitnessCommand::Init(arguments) => {
            let folder = &arguments.dir;
            print(&witness::init(folder, &arguments.name, &mut system_randomness)?.to_string())?;
        }
        WitnessCommand::Run(arguments) => block_on(serve(arguments))?,
    }
    Ok(Verdict::Done)
}

async fn serve(arguments: &RunArguments) -> anyhow::Result<()> {
    let stop = stop_on_signal()?;
    let witness = Arc::new(Witness::open(&arguments.dir, arguments.log.clone())?);
    let address = arguments.listen.0;
    let listening = || format!("listening on {address}: is it in use? name another --listen");
    let listener = tokio::net::TcpListener::bind(address).await;
    let listener = listener.with_context(listening)?;
    let address = listener.local_addr().with_context(listening)?;
    // Who waits for this line may ask for cosignatures.
    print(&format!(
        "caretaker: witness {} at http://{address}",
        witness.key()
    ))?;
    let router = witness::router(witness, Arc::new(SystemClock));
    let serving = witness::serve(listener, router, Limits::default(), stop.cancelled_owned());
    serving.await.context("serving")
}
