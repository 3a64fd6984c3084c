//! Keeps what matters of a log that is too long to keep: head, tail, and the surroundings of lines that look like errors.

use std::collections::VecDeque;
use std::sync::LazyLock;

use regex::bytes::Regex;

/// Words at which tools and GitHub Actions report failure.
static FAILURE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?-u)##\[error\]|FAILED|panicked at|error(?:\[E\d|: )|Error: |^(?:E  |FAIL: |ERROR)",
    )
    .ok()
});

/// Lines kept before one that looks like an error.
const LINES_BEFORE: usize = 20;
/// Lines kept after it.
const LINES_AFTER: u32 = 40;
/// Of a line between head and tail, at most this many bytes are held.
const LINE_LIMIT: usize = 16 << 10;
/// Below this cap nothing but head and tail is kept: there is no room for more.
const SMALLEST_WITH_MARKS: usize = 4 << 10;
/// No mark is longer.
const MARK_LIMIT: usize = 64;

/// The line that stands where bytes were left out. It keeps what stands before and after it from being read as one text.
fn mark(omitted: u64) -> String {
    format!("[caretaker left out {omitted} bytes here]\n")
}

/// What was kept of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    /// At most the cap, marks included.
    pub(super) bytes: Vec<u8>,
    /// How many bytes were left out.
    pub(super) omitted: u64,
}

/// Collects a text of any length in one pass and bounded memory. Every seam falls between lines.
#[derive(Debug)]
pub(super) struct Excerpt {
    head: Vec<u8>,
    head_limit: usize,
    head_is_full: bool,
    middle: Middle,
    tail: VecDeque<u8>,
    tail_limit: usize,
    marks: bool,
}

impl Excerpt {
    /// At most `cap` bytes: a quarter from the head, a quarter around errors, the rest from the tail, where failures are
    /// reported.
    pub(super) fn new(cap: usize) -> Self {
        let marks = cap >= SMALLEST_WITH_MARKS;
        let head_limit = cap / 4;
        let middle_limit = if marks { cap / 4 } else { 0 };
        // The mark before the tail.
        let last_mark = if marks { MARK_LIMIT } else { 0 };
        Self {
            head: Vec::new(),
            head_limit,
            head_is_full: false,
            middle: Middle::new(middle_limit),
            tail: VecDeque::new(),
            tail_limit: cap - head_limit - middle_limit - last_mark,
            marks,
        }
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.head_is_full {
            self.push_behind_head(bytes);
            return;
        }
        let room = self.head_limit - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        if rest.is_empty() {
            return;
        }
        // The head ends with a line; what it holds of the next one goes on to the rest.
        self.head_is_full = true;
        let end = self.head.iter().rposition(|byte| *byte == b'\n');
        let begun = self.head.split_off(end.map_or(0, |end| end + 1));
        // Room that the head does not use is the tail's, so that a text below the cap stays whole.
        self.tail_limit += self.head_limit - self.head.len();
        self.push_behind_head(&begun);
        self.push_behind_head(rest);
    }

    fn push_behind_head(&mut self, bytes: &[u8]) {
        let overflow = (self.tail.len() + bytes.len()).saturating_sub(self.tail_limit);
        let old = overflow.min(self.tail.len());
        if old > 0 {
            let (front, back) = self.tail.as_slices();
            let (from_front, from_back) = (old.min(front.len()), old.saturating_sub(front.len()));
            self.middle
                .push(front.get(..from_front).unwrap_or_default());
            self.middle.push(back.get(..from_back).unwrap_or_default());
            self.tail.drain(..old);
        }
        let (passed, kept) = bytes.split_at(overflow - old);
        self.middle.push(passed);
        self.tail.extend(kept);
    }

    /// What is kept.
    pub(super) fn finish(self) -> Kept {
        let Self {
            head: mut bytes,
            mut middle,
            tail,
            marks,
            ..
        } = self;
        let mut tail = Vec::from(tail);
        // A line of which the beginning is gone already goes altogether, unless nothing would be left.
        if middle.is_inside_line()
            && let Some(end) = tail.iter().position(|byte| *byte == b'\n')
        {
            middle.skip(end + 1);
            tail.drain(..=end);
        }
        let omitted = middle.finish(&mut bytes, marks);
        bytes.append(&mut tail);
        Kept { bytes, omitted }
    }
}

/// What lies between head and tail.
#[derive(Debug)]
struct Middle {
    /// Bytes that may still be kept.
    room: usize,
    kept: Vec<(u64, Vec<u8>)>,
    /// Bytes left out since the last that were kept.
    gap: u64,
    omitted: u64,
    /// The last lines, of which none is kept yet.
    before: VecDeque<Vec<u8>>,
    /// Lines still to be kept.
    after: u32,
    /// The line that has not ended yet, as far as it is held.
    line: Vec<u8>,
    /// Bytes of it that are not held.
    unheld: u64,
}

impl Middle {
    fn new(room: usize) -> Self {
        Self {
            room,
            kept: Vec::new(),
            gap: 0,
            omitted: 0,
            before: VecDeque::new(),
            after: 0,
            line: Vec::new(),
            unheld: 0,
        }
    }

    fn is_inside_line(&self) -> bool {
        !self.line.is_empty()
    }

    fn skip(&mut self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.gap = self.gap.saturating_add(bytes);
        self.omitted = self.omitted.saturating_add(bytes);
    }

    fn push(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let held = part.len().min(LINE_LIMIT.saturating_sub(self.line.len()));
            self.line
                .extend_from_slice(part.get(..held).unwrap_or_default());
            self.unheld += (part.len() - held) as u64;
            if part.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        // The buffer of a line that is left out serves for the next one.
        let spare = if self.before.len() >= LINES_BEFORE {
            self.before.pop_front()
        } else {
            None
        };
        let spare = spare.map(|mut line| {
            self.skip(line.len());
            line.clear();
            line
        });
        let line = std::mem::replace(&mut self.line, spare.unwrap_or_default());
        let unheld = std::mem::take(&mut self.unheld);
        let is_whole = unheld == 0;
        if self.room > 0
            && FAILURE
                .as_ref()
                .is_some_and(|failure| failure.is_match(&line))
        {
            self.after = LINES_AFTER + 1;
            for before in std::mem::take(&mut self.before) {
                self.keep(before);
            }
        }
        if self.after > 0 && is_whole {
            self.after -= 1;
            self.keep(line);
        } else if is_whole {
            self.before.push_back(line);
        } else {
            // Too long to be a line of text: lines on both sides of it are not neighbours.
            for before in std::mem::take(&mut self.before) {
                self.skip(before.len());
            }
            self.skip(line.len());
            self.gap = self.gap.saturating_add(unheld);
            self.omitted = self.omitted.saturating_add(unheld);
        }
    }

    fn keep(&mut self, line: Vec<u8>) {
        let mark = if self.gap > 0 { MARK_LIMIT } else { 0 };
        if self.room < line.len() + mark {
            self.room = 0;
            self.skip(line.len());
            return;
        }
        self.room -= line.len() + mark;
        match self.kept.last_mut() {
            Some((_, bytes)) if self.gap == 0 => bytes.extend_from_slice(&line),
            _ => self.kept.push((std::mem::take(&mut self.gap), line)),
        }
    }

    /// Appends what was kept, and gives the number of bytes that were not.
    fn finish(mut self, bytes: &mut Vec<u8>, marks: bool) -> u64 {
        for line in std::mem::take(&mut self.before) {
            self.skip(line.len());
        }
        self.skip(self.line.len());
        let unheld = std::mem::take(&mut self.unheld);
        self.gap = self.gap.saturating_add(unheld);
        self.omitted = self.omitted.saturating_add(unheld);
        let mut append = |gap: u64, kept: &[u8]| {
            if gap > 0 && marks {
                bytes.extend_from_slice(mark(gap).as_bytes());
            }
            bytes.extend_from_slice(kept);
        };
        for (gap, kept) in &self.kept {
            append(*gap, kept);
        }
        append(self.gap, b"");
        self.omitted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(text: &[u8], cap: usize, pieces: usize) -> Kept {
        let mut excerpt = Excerpt::new(cap);
        for piece in text.chunks(pieces.max(1)) {
            excerpt.push(piece);
        }
        excerpt.finish()
    }

    fn is_mark(line: &str) -> bool {
        line.starts_with("[caretaker left out ")
    }

    #[test]
    fn a_text_of_one_endless_line_keeps_its_end() {
        let text = "x".repeat(100_000) + "END";
        let Kept { bytes, omitted } = kept(text.as_bytes(), 8_192, 1_000);
        let said = String::from_utf8(bytes).unwrap();
        let (mark, rest) = said.split_once('\n').unwrap();
        assert!(is_mark(mark) && rest.ends_with("xEND"));
        assert_eq!(rest.len() as u64 + omitted, 100_003);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Whatever the text, the cap and the pieces it comes in: nothing is lost uncounted, every line is one of the text, in
        /// its order, and what was left out is marked where it was.
        #[test]
        fn kept_marked_and_omitted_add_up(
            lines in proptest::collection::vec("[a-z]{0,80}|FAILED [a-z]{0,9}|[a-z]{300,600}", 0..900),
            cap in 4_096_usize..20_000,
            pieces in 1_usize..5_000,
        ) {
            let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
            let Kept { bytes, omitted } = kept(text.as_bytes(), cap, pieces);
            prop_assert!(bytes.len() <= cap);
            let said = String::from_utf8(bytes).unwrap();
            let marks = said.lines().filter(|line| is_mark(line));
            let marked: u64 = marks.map(|mark| mark.split(' ').nth(3).unwrap().parse::<u64>().unwrap()).sum();
            prop_assert_eq!(marked, omitted);
            let payload: usize = said.lines().filter(|line| !is_mark(line)).map(|line| line.len() + 1).sum();
            prop_assert_eq!(payload as u64 + omitted, text.len() as u64);
            let mut rest = lines.iter();
            for line in said.lines().filter(|line| !is_mark(line)) {
                prop_assert!(rest.any(|whole| whole == line), "{line}");
            }
            prop_assert_eq!(kept(text.as_bytes(), cap, 1).omitted, omitted, "pieces do not matter");
        }
    }
}
