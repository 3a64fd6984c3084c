//! `caretaker intent`.

mod calibrate;
mod plot;
mod score;

use std::path::Path;

use clap::Subcommand;

use super::Verdict;

#[derive(Debug, Subcommand)]
pub(super) enum IntentCommand {
    /// Say how alike an intent and an action are, and what is decided on that. Exit code 0 when the action is allowed, with or without
    /// a warning, 1 when it is denied.
    Score(score::ScoreArguments),
    /// Read scores from audit streams, and say what they suggest as thresholds. Whether the streams are genuine is what
    /// `caretaker audit verify` tells. Exit code 3 when there are no scores.
    Calibrate(calibrate::CalibrateArguments),
}

pub(super) fn run(command: &IntentCommand, config: Option<&Path>) -> anyhow::Result<Verdict> {
    match command {
        IntentCommand::Score(arguments) => score::run(arguments, config),
        IntentCommand::Calibrate(arguments) => calibrate::run(arguments),
    }
}
