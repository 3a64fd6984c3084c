//! Scores that were observed, counted exactly and in bounded memory: there are only two million and one of them.

use std::io::{self, BufRead, Read as _};

use super::decision::Decision;
use super::observed::{LONGEST_LINE, Observed, observed};
use super::score::Score;

/// How many scores there are.
const DIFFERENT: usize = 2_000_001;

/// Observed scores: how often each, and what was decided.
#[derive(Debug, Clone)]
pub struct Calibration {
    counts: Vec<u32>,
    scored: u64,
    decisions: [u64; 3],
    unscored: u64,
    unreadable: u64,
    others: u64,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            counts: vec![0; DIFFERENT],
            scored: 0,
            decisions: [0; 3],
            unscored: 0,
            unreadable: 0,
            others: 0,
        }
    }
}

impl Calibration {
    /// Reads an audit stream to its end, line by line. Lines that are none of an audit stream are counted and passed over.
    ///
    /// # Errors
    /// Reading fails.
    pub fn read(&mut self, reader: &mut impl BufRead) -> io::Result<()> {
        let longest = u64::try_from(LONGEST_LINE).unwrap_or(u64::MAX);
        let mut line = Vec::new();
        loop {
            line.clear();
            // Break it: read whole lines; one without end then fills the memory
            // (`intent::calibration::a_line_without_end_is_passed_over_in_bounded_memory`).
            let read = reader
                .by_ref()
                .take(longest + 1)
                .read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            } else if read > LONGEST_LINE {
                self.unreadable += 1;
                skip_line(reader)?;
                continue;
            }
            if !line.trim_ascii().is_empty() {
                self.add(observed(&line));
            }
        }
    }

    /// Counts one line.
    pub fn add(&mut self, line: Observed) {
        let decision = match line {
            Observed::Other => {
                self.others += 1;
                return;
            }
            Observed::Unreadable => {
                self.unreadable += 1;
                return;
            }
            Observed::Unscored(decision) => {
                self.unscored += 1;
                decision
            }
            Observed::Scored(score, decision) => {
                if let Some(count) = self.counts.get_mut(place(score)) {
                    *count = count.saturating_add(1);
                    self.scored += 1;
                }
                decision
            }
        };
        let [allow, warn, deny] = &mut self.decisions;
        *match decision {
            Decision::Allow => allow,
            Decision::Warn => warn,
            Decision::Deny => deny,
        } += 1;
    }

    /// How many scores were seen.
    pub const fn scored(&self) -> u64 {
        self.scored
    }

    /// How many actions were decided on without a score.
    pub const fn unscored(&self) -> u64 {
        self.unscored
    }

    /// How many lines told of something else.
    pub const fn others(&self) -> u64 {
        self.others
    }

    /// How many lines could not be read.
    pub const fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// How often a decision was made, with a score or without.
    pub const fn decided(&self, decision: Decision) -> u64 {
        let [allow, warn, deny] = self.decisions;
        match decision {
            Decision::Allow => allow,
            Decision::Warn => warn,
            Decision::Deny => deny,
        }
    }

    /// The smallest score that at least so many thousandths of all scores do not exceed (the nearest rank); 0 is the smallest of
    /// all. `None` without scores.
    pub fn quantile(&self, thousandths: u16) -> Option<Score> {
        if self.scored == 0 {
            return None;
        }
        let rank = u128::from(self.scored) * u128::from(thousandths.min(1000));
        let rank = rank.div_ceil(1000).max(1);
        let mut seen = 0_u128;
        for (place, count) in self.counts.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank {
                return score(place);
            }
        }
        None
    }

    /// How many scores lie in each of `bins` equal parts of -1 to 1; the last takes 1 itself too. There are 1 to 2,000 parts.
    pub fn histogram(&self, bins: usize) -> Vec<u64> {
        let bins = bins.clamp(1, 2000);
        let mut parts = vec![0_u64; bins];
        for (place, count) in self.counts.iter().enumerate() {
            if *count > 0 {
                let part = (place * bins / (DIFFERENT - 1)).min(bins - 1);
                if let Some(part) = parts.get_mut(part) {
                    *part += u64::from(*count);
                }
            }
        }
        parts
    }
}

/// Reads on to the end of a line without keeping it.
fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let piece = reader.fill_buf()?;
        if piece.is_empty() {
            return Ok(());
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(piece.len(), |end| end + 1);
        reader.consume(length);
        if end.is_some() {
            return Ok(());
        }
    }
}

fn place(score: Score) -> usize {
    usize::try_from(score.micro() - Score::LEAST.micro()).unwrap_or(usize::MAX)
}

fn score(place: usize) -> Option<Score> {
    let above = i32::try_from(place).ok()?;
    Score::from_micro(Score::LEAST.micro().checked_add(above)?)
}
