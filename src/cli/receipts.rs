//! `caretaker receipts`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;

use super::token::{OwnKey, read_token, read_trusted_keys};
use super::{Verdict, complain, explain, print};
use crate::receipts::verify::{MAX_LINE, Reader};
use crate::receipts::{ChainReport, Expectation, Fault, Receipt, ReceiptHash, Token, Walk};

/// Lines that are read before they are verified together.
const BATCH: usize = 2_048;
/// At most as many bytes of them, so that memory stays small whatever the lines are like.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// The most threads that verify signatures.
const MOST_THREADS: usize = 8;

#[derive(Debug, Subcommand)]
pub(super) enum ReceiptsCommand {
    /// Verify a file of receipts: signatures, the chain, and that what was allowed is what was approved. Offline. Exit code 0 valid,
    /// 1 invalid, 3 cannot tell.
    Verify(VerifyArguments),
}

/// What to verify, and against what.
#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// The file (JSON Lines); - is standard input.
    file: PathBuf,
    /// A public key (PEM) whose receipts count, else this installation's.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    trusted_key: Vec<PathBuf>,
    /// A token whose intent its receipts must record.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    token: Vec<PathBuf>,
    /// How many receipts were written. With --head, what shows that the end was cut off.
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
    /// The last receipt's name, as sha256:….
    #[arg(long, value_name = "HASH", value_parser = hash)]
    head: Option<ReceiptHash>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

fn hash(text: &str) -> Result<ReceiptHash, String> {
    text.parse().map_err(|_| {
        "a receipt is named by sha256: and 64 lower-case hexadecimal digits".to_owned()
    })
}

pub(super) fn run(command: &ReceiptsCommand) -> anyhow::Result<Verdict> {
    let ReceiptsCommand::Verify(arguments) = command;
    let keys = if arguments.trusted_key.is_empty() {
        read_trusted_keys(&[OwnKey::public_path()?])?
    } else {
        read_trusted_keys(&arguments.trusted_key)?
    };
    let tokens = arguments.token.iter().map(|path| read_token(path));
    let tokens = tokens.collect::<anyhow::Result<Vec<Token>>>()?;
    let reader = Reader::new(&keys, &tokens);
    let expected = Expectation {
        count: arguments.count,
        head: arguments.head,
    };
    match verify(&arguments.file, &reader, &expected) {
        Ok(report) => {
            print(&if arguments.json {
                document(&report)
            } else {
                words(&report)
            })?;
            Ok(if report.valid() {
                Verdict::Done
            } else {
                Verdict::Refused
            })
        }
        Err(error) => {
            let reason = explain(&error);
            if arguments.json {
                let failures = [json!({"line": 0, "reason": reason})];
                print(&json!({"valid": false, "receipts": 0, "failures": failures}).to_string())?;
            }
            complain(&reason);
            Ok(Verdict::CannotTell)
        }
    }
}

fn verify(path: &Path, reader: &Reader, expected: &Expectation) -> anyhow::Result<ChainReport> {
    let reading = || format!("reading the receipts {}", path.display());
    let mut input: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(path).with_context(reading)?))
    };
    let mut walk = Walk::default();
    let mut lines = Vec::new();
    let mut bytes = 0;
    loop {
        let line = next_line(&mut input).with_context(reading)?;
        let ended = line.is_none();
        if let Some(line) = line {
            bytes += line.len();
            lines.push(line);
        }
        if ended || lines.len() >= BATCH || bytes >= BATCH_BYTES {
            for read in judged(reader, &lines) {
                walk.next(read);
            }
            lines.clear();
            bytes = 0;
        }
        if ended || walk.is_hopeless() {
            return Ok(walk.finish(expected));
        }
    }
}

/// A line without its line break, or as much of it as shows that it is too long. `None` at the end.
fn next_line(input: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let buffer = match input.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        if buffer.is_empty() {
            return Ok((!line.is_empty()).then_some(line));
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        // Break it: keep all of it; `receipts::commands::a_line_without_end_takes_no_memory` fails.
        let room = (MAX_LINE + 1).saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

type Judged = Option<Result<Receipt, Fault>>;

/// Reads lines and verifies their signatures, on all processors.
fn judged(reader: &Reader, lines: &[Vec<u8>]) -> Vec<Judged> {
    let one = |line: &Vec<u8>| {
        let empty = line.iter().all(u8::is_ascii_whitespace);
        (!empty).then(|| reader.read(line))
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = lines.len().div_ceil(threads.min(MOST_THREADS)).max(64);
    if lines.len() <= share {
        return lines.iter().map(one).collect();
    }
    std::thread::scope(|scope| {
        let parts = lines.chunks(share);
        let running: Vec<_> = parts
            .map(|part| {
                let handle = scope.spawn(move || part.iter().map(one).collect::<Vec<_>>());
                (handle, part)
            })
            .collect();
        let joined = running.into_iter().flat_map(|(handle, part)| {
            // Whatever went wrong on another thread goes wrong here, where it is heard.
            handle
                .join()
                .unwrap_or_else(|_| part.iter().map(one).collect())
        });
        joined.collect()
    })
}

fn document(report: &ChainReport) -> String {
    let failures = report.failures.iter();
    let failures: Vec<_> = failures
        .map(|failure| json!({"line": failure.line, "reason": failure.reason}))
        .collect();
    let head = report.head.as_ref();
    json!({
        "valid": report.valid(),
        "receipts": report.receipts,
        "failures": failures,
        "failure_count": report.failure_count,
        "head": head.map(|head| json!({"count": head.count, "hash": head.hash.to_string()})),
    })
    .to_string()
}

fn words(report: &ChainReport) -> String {
    if report.valid() {
        let head = report.head.as_ref();
        let head = head.map_or_else(String::new, |head| format!(", the last one {}", head.hash));
        return format!("valid: {} receipts{head}", report.receipts);
    }
    let mut lines = vec![format!(
        "invalid: {} receipts, {} failures",
        report.receipts, report.failure_count
    )];
    let failures = report.failures.iter();
    lines.extend(failures.map(|failure| format!("  line {}: {}", failure.line, failure.reason)));
    lines.join("\n")
}
