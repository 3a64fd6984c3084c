//! Which bytes of a log are looked at, so that its size costs neither memory nor time.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

/// The beginning of the log is always read: it names the tools.
const HEAD: usize = 256 << 10;
/// So is the end: it says what failed.
const TAIL: usize = 2 << 20;
/// From what lies between, the surroundings of lines that look like errors, this many bytes together.
const WINDOWS: usize = 1 << 20;
/// Bytes before a line that looks like an error.
const BEFORE: usize = 2 << 10;
/// Bytes from its beginning on.
const AFTER: usize = 6 << 10;

/// Words at which the tools of [`super::rules`] and GitHub Actions report failure. The bare word `error` is not one: it stands in
/// names of packages.
static FAILURE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?m-u)##\[error\]|FAILED|panicked at|error(?:\[E\d|: )|^(?:E  |FAIL: |ERROR)").ok()
});

/// The parts of a log that are read, in order, and how much is not.
pub(super) struct Selection<'l> {
    pub(super) pieces: Vec<&'l [u8]>,
    pub(super) unread: u64,
}

/// Takes the whole log when it is short enough, else head, windows around errors and tail, each on line boundaries.
pub(super) fn select(log: &[u8]) -> Selection<'_> {
    if log.len() <= HEAD + TAIL + WINDOWS {
        return Selection {
            pieces: vec![log],
            unread: 0,
        };
    }
    let head = back_to_line(log, 0, HEAD);
    let tail = on_to_line(log, log.len() - TAIL, log.len());
    let ranges: Vec<Range<usize>> = std::iter::once(0..head)
        .chain(windows(log, head, tail))
        .chain(std::iter::once(tail..log.len()))
        .collect();
    let read: usize = ranges.iter().map(ExactSizeIterator::len).sum();
    Selection {
        pieces: ranges.into_iter().map(|range| &log[range]).collect(),
        unread: (log.len() - read) as u64,
    }
}

/// The windows in `from..to`: disjoint, in order, at most [`WINDOWS`] bytes. The first ones win; the true end of the run is in
/// the tail anyway.
fn windows(log: &[u8], from: usize, to: usize) -> Vec<Range<usize>> {
    let Some(failure) = FAILURE.as_ref() else {
        return Vec::new();
    };
    let (mut found, mut spent, mut position) = (Vec::new(), 0, from);
    while let Some(marker) = failure.find_at(&log[..to], position) {
        let start = on_to_line(
            log,
            marker.start().saturating_sub(BEFORE).max(position),
            marker.start(),
        );
        let end = back_to_line(log, marker.end(), (marker.start() + AFTER).min(to));
        spent += end - start;
        if spent > WINDOWS {
            break;
        }
        found.push(start..end);
        position = end;
    }
    found
}

/// The first beginning of a line in `from..to`, or `from` when there is none.
fn on_to_line(log: &[u8], from: usize, to: usize) -> usize {
    if from == 0 || log[from - 1] == b'\n' {
        return from;
    }
    let newline = log[from..to].iter().position(|byte| *byte == b'\n');
    newline.map_or(from, |offset| from + offset + 1)
}

/// The last end of a line in `from..to`, or `to` when there is none.
fn back_to_line(log: &[u8], from: usize, to: usize) -> usize {
    let newline = log[from..to].iter().rposition(|byte| *byte == b'\n');
    newline.map_or(to, |offset| from + offset + 1)
}
