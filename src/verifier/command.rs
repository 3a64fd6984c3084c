//! The command line of `caretaker-verify`, which has no room for more than this.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt as _};
use thiserror::Error;

use super::Request;

/// What `--help` prints.
pub const HELP: &str = "\
Verify a caretaker bundle, or a whole log, offline: no database, no network.

Usage: caretaker-verify BUNDLE --trust-root FILE|SHA256 [--checkpoint FILE] [--state FILE] [--json]

  BUNDLE                 the file that `caretaker ledger export` wrote, or the folder of `caretaker log export`
  --trust-root           the trust root that you were given, as a file, or its SHA-256 in hexadecimal
  --checkpoint FILE      the last checkpoint of the log that you have seen: one that the log does not extend is refused
  --state FILE           of a whole log: where to keep what was verified, so that the next time only what is new is
  --json                 print one JSON document

Exit code 0 valid, 1 invalid, 2 wrong usage, 3 cannot tell.
";

/// Why the words on the command line are no request.
#[derive(Debug, Error)]
pub enum ArgumentsError {
    /// Not understood.
    #[error("{0}; --help says what is")]
    Words(#[from] lexopt::Error),
    /// Something is missing.
    #[error("{0} is missing; --help says more")]
    Missing(&'static str),
    /// Something is there twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
}

/// The words on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arguments {
    /// Say how it is used.
    Help,
    /// Verify.
    Verify {
        /// What.
        request: Request,
        /// Print one JSON document.
        json: bool,
    },
}

impl Arguments {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    /// They are not understood, or something is missing or there twice.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Self, ArgumentsError> {
        let mut parser = Parser::from_args(words);
        let (mut bundle, mut trust_root, mut checkpoint, mut state) = (None, None, None, None);
        let mut json = false;
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Short('h') | Arg::Long("help") => return Ok(Self::Help),
                Arg::Long("json") => json = true,
                Arg::Long("trust-root") => {
                    once(&mut trust_root, parser.value()?.string()?, "--trust-root")?;
                }
                Arg::Long("checkpoint") => {
                    let file = PathBuf::from(parser.value()?);
                    once(&mut checkpoint, file, "--checkpoint")?;
                }
                Arg::Long("state") => {
                    once(&mut state, PathBuf::from(parser.value()?), "--state")?;
                }
                Arg::Value(value) => once(&mut bundle, PathBuf::from(value), "BUNDLE")?,
                _ => return Err(argument.unexpected().into()),
            }
        }
        Ok(Self::Verify {
            request: Request {
                bundle: bundle.ok_or(ArgumentsError::Missing("BUNDLE"))?,
                trust_root: trust_root.ok_or(ArgumentsError::Missing("--trust-root"))?,
                checkpoint,
                state,
            },
            json,
        })
    }
}

fn once<T>(place: &mut Option<T>, value: T, name: &'static str) -> Result<(), ArgumentsError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(ArgumentsError::Twice(name)),
    }
}
