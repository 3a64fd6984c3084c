//! `caretaker verify`.

use std::path::PathBuf;

use clap::Args;

use super::{Verdict, print};
use crate::verifier::{Request, answer};

/// What to verify, and against what.
#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// The file that `caretaker ledger export` wrote, or the folder of `caretaker log export`.
    bundle: PathBuf,
    /// The trust root that you were given: a file, or its SHA-256 in hexadecimal.
    #[arg(long, value_name = "FILE|SHA256")]
    trust_root: String,
    /// The last checkpoint of the log that you have seen; a log that does not extend it is refused.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Of a whole log: where to keep what was verified, so that the next time only what is new is.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: VerifyArguments) -> anyhow::Result<Verdict> {
    let VerifyArguments {
        bundle,
        trust_root,
        checkpoint,
        state,
        json,
    } = arguments;
    let request = Request {
        bundle,
        trust_root,
        checkpoint,
        state,
    };
    let (text, code) = answer(&request, json);
    print(&text)?;
    Ok(match code {
        0 => Verdict::Done,
        1 => Verdict::Refused,
        _ => Verdict::CannotTell,
    })
}
