//! Keeps the head and the tail of a text that is too long to keep.

use std::collections::VecDeque;

/// Collects a text of any length in bounded memory. The seam falls between lines, so that no line is made up of two halves.
#[derive(Debug)]
pub(super) struct HeadAndTail {
    head: Vec<u8>,
    head_limit: usize,
    tail: VecDeque<u8>,
    tail_limit: usize,
    omitted: u64,
}

impl HeadAndTail {
    /// At most `cap` bytes: a quarter from the head, the rest from the tail, where failures are reported.
    pub(super) fn new(cap: usize) -> Self {
        let head_limit = cap / 4;
        Self {
            head: Vec::new(),
            head_limit,
            tail: VecDeque::new(),
            tail_limit: cap - head_limit,
            omitted: 0,
        }
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = self.head_limit - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        let skipped = rest.len().saturating_sub(self.tail_limit);
        let overflow = (self.tail.len() + rest.len())
            .saturating_sub(self.tail_limit)
            .saturating_sub(skipped);
        self.tail.drain(..overflow.min(self.tail.len()));
        self.tail.extend(rest.iter().skip(skipped));
        self.omitted = self
            .omitted
            .saturating_add(u64::try_from(skipped + overflow).unwrap_or(u64::MAX));
    }

    /// The bytes kept and how many were left out between head and tail.
    pub(super) fn finish(self) -> (Vec<u8>, u64) {
        let Self {
            mut head,
            tail,
            mut omitted,
            ..
        } = self;
        let mut tail = Vec::from(tail);
        if omitted > 0 {
            let before = head.len() + tail.len();
            if let Some(end) = head.iter().rposition(|byte| *byte == b'\n') {
                head.truncate(end + 1);
            } else {
                head.clear();
            }
            if let Some(start) = tail.iter().position(|byte| *byte == b'\n') {
                tail.drain(..=start);
            }
            let after = head.len() + tail.len();
            omitted = omitted.saturating_add(u64::try_from(before - after).unwrap_or(u64::MAX));
        }
        head.append(&mut tail);
        (head, omitted)
    }
}
