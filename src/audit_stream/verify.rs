//! Verification of the stream: every line's signature, the chain over all of them, and its ends.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::line::{self, MAX_LINE};
use super::writer::recorded_end;
use super::{Head, StreamError, open_plain};
use crate::attest::chain::Verdict;
use crate::log::VerifierKey;

/// Failures that are told; of the others a report gives the number.
const MOST_FAILURES: usize = 100;

/// One thing that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamFailure {
    /// The file.
    pub file: String,
    /// The line, from 1; 0 is the file as a whole.
    pub line: u64,
    /// What does not hold.
    pub reason: String,
}

/// What verification says about a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    /// Valid: every line is signed and follows the one before it, and the ends are those that were asked for.
    pub verdict: Verdict,
    /// Lines that were verified.
    pub events: u64,
    /// Number of the first event: what was before it is not part of what was verified.
    pub first: Option<u64>,
    /// Where the stream ends, `EVENTS:HASH`: whoever keeps this can tell later that nothing was cut off.
    pub head: Option<String>,
    /// What does not hold, at most 100 of it.
    pub failures: Vec<StreamFailure>,
    /// How much more does not hold.
    pub more_failures: u64,
}

/// The stream's files in a folder, in order.
///
/// # Errors
/// The folder cannot be read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, StreamError> {
    let failed = StreamError::file("looking for the audit stream's files in", folder);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(&failed)? {
        let path = entry.map_err(&failed)?.path();
        if path.extension().is_some_and(|ending| ending == "ndjson") {
            files.push(path);
        }
    }
    // Their names are numbers of one length.
    files.sort();
    Ok(files)
}

struct Check<'a> {
    key: &'a VerifierKey,
    end: Option<Head>,
    report: StreamReport,
}

/// Verifies files of a stream, given in their order, in memory that does not grow with them. `seen` is an end that was seen
/// before: the stream has to reach it. `progress` is told how many bytes are done.
pub fn verify(
    files: &[PathBuf],
    key: &VerifierKey,
    seen: Option<Head>,
    progress: &mut dyn FnMut(u64),
) -> StreamReport {
    let seen: Vec<Head> = seen.into_iter().collect();
    verify_ends(files, key, &seen, progress)
}

/// Verifies a folder as a whole: its events begin with the first one, and reach the end that its writers recorded.
///
/// # Errors
/// The folder, or what it says of its end, cannot be read.
pub fn verify_folder(
    folder: &Path,
    key: &VerifierKey,
    seen: Option<Head>,
    progress: &mut dyn FnMut(u64),
) -> Result<StreamReport, StreamError> {
    // Before the files: events that are written meanwhile come behind it.
    let recorded = recorded_end(folder)?;
    let files = files(folder)?;
    let ends: Vec<Head> = seen.into_iter().chain(recorded).collect();
    // Break it: leave the recorded end out; `audit_stream::verify::a_folder_is_held_against_its_own_end` fails.
    let mut report = verify_ends(&files, key, &ends, progress);
    let name = folder.display().to_string();
    let first = report.first.filter(|first| *first > 0);
    let mut cannot = |reason: String| {
        report.verdict = report.verdict.max(Verdict::CannotVerify);
        report.failures.push(StreamFailure {
            file: name.clone(),
            line: 0,
            reason,
        });
    };
    if recorded.is_none() {
        cannot("nothing says where the stream ends: its `head` is gone".to_owned());
    }
    if let Some(first) = first {
        cannot(format!(
            "the first {first} events are not there; when they are kept elsewhere, name all files in their order"
        ));
    }
    Ok(report)
}

fn verify_ends(
    files: &[PathBuf],
    key: &VerifierKey,
    seen: &[Head],
    progress: &mut dyn FnMut(u64),
) -> StreamReport {
    let mut check = Check {
        key,
        end: None,
        report: StreamReport {
            verdict: Verdict::Valid,
            events: 0,
            first: None,
            head: None,
            failures: Vec::new(),
            more_failures: 0,
        },
    };
    let mut missing: Vec<Head> = seen
        .iter()
        .copied()
        .filter(|seen| *seen != Head::START)
        .collect();
    for path in files {
        let name = path.display().to_string();
        match open_plain(path) {
            Ok(file) => check.file(&name, file, &mut |bytes, end| {
                missing.retain(|seen| *seen != end);
                progress(bytes);
            }),
            Err(error) => check.fail(Verdict::CannotVerify, &name, 0, error.to_string()),
        }
    }
    check.finish(&missing)
}

impl Check<'_> {
    fn fail(&mut self, verdict: Verdict, file: &str, line: u64, reason: String) {
        let report = &mut self.report;
        report.verdict = report.verdict.max(verdict).max(Verdict::CannotVerify);
        if report.failures.len() >= MOST_FAILURES {
            report.more_failures += 1;
            return;
        }
        report.failures.push(StreamFailure {
            file: file.to_owned(),
            line,
            reason,
        });
    }

    fn file(&mut self, name: &str, file: File, told: &mut dyn FnMut(u64, Head)) {
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let mut bytes = Vec::new();
        let mut number = 0;
        loop {
            bytes.clear();
            let limit = MAX_LINE as u64 + 2;
            let read = match reader.by_ref().take(limit).read_until(b'\n', &mut bytes) {
                Ok(0) => return,
                Ok(read) => read,
                Err(error) => {
                    return self.fail(Verdict::CannotVerify, name, number, error.to_string());
                }
            };
            number += 1;
            if bytes.pop() != Some(b'\n') {
                let reason = if read as u64 == limit {
                    format!("it is longer than {MAX_LINE} bytes; what follows was not read")
                } else {
                    "it has no end: a line that was not written whole, or from which something was cut"
                        .to_owned()
                };
                return self.fail(Verdict::Invalid, name, number, reason);
            }
            self.line(name, number, &bytes);
            if let Some(end) = self.end {
                told(read as u64, end);
            }
        }
    }

    fn line(&mut self, name: &str, number: u64, bytes: &[u8]) {
        let place = match line::read(bytes, self.key) {
            Ok(place) => place,
            Err(reason) => {
                self.fail(Verdict::Invalid, name, number, reason);
                // What follows cannot be held against this line.
                self.end = self.end.map(|end| Head {
                    events: end.events + 1,
                    hash: crate::change::Sha256Digest::of(bytes),
                });
                return;
            }
        };
        self.report.events += 1;
        match self.end {
            None => {
                self.report.first = Some(place.seq);
                if place.seq == 0 && place.before != Head::START.hash {
                    let reason = "it is the first event, but names one before it".to_owned();
                    self.fail(Verdict::Invalid, name, number, reason);
                }
            }
            // Break it: leave both out; lines can then be taken away, doubled or put in another order
            // (`audit_stream::verify::lines_cannot_be_dropped_doubled_or_moved`).
            Some(end) if place.seq != end.events => {
                let reason = format!(
                    "it is event {}, and event {} comes here",
                    place.seq, end.events
                );
                self.fail(Verdict::Invalid, name, number, reason);
            }
            Some(end) if place.before != end.hash => {
                let reason = "it was written after another line than the one before it".to_owned();
                self.fail(Verdict::Invalid, name, number, reason);
            }
            Some(_) => {}
        }
        self.end = Some(Head {
            events: place.seq.saturating_add(1),
            hash: place.hash,
        });
    }

    fn finish(mut self, missing: &[Head]) -> StreamReport {
        if self.report.events == 0 && self.report.failures.is_empty() {
            self.fail(Verdict::CannotVerify, "", 0, "there is no event".to_owned());
        }
        // Break it: leave this out; lines can then be cut off the end
        // (`audit_stream::verify::an_end_that_was_seen_has_to_be_there`).
        for seen in missing {
            let reason = format!("the stream does not reach {seen}, which was seen before");
            self.fail(Verdict::Invalid, "", 0, reason);
        }
        self.report.head = self.end.map(|end| end.to_string());
        self.report
    }
}
