//! What holds between receipts: each names the one before it, or, in the files of other programs, receipts that are there; nothing
//! loses a mark it inherited; and the end is where it was said to be.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Fault, Receipt};
use crate::receipts::chain::Head;
use crate::receipts::receipt::ReceiptHash;

/// How many failures are kept; further ones are counted.
pub const MAX_FAILURES: usize = 100;
/// How many failures are looked for: a file with more is no chain, and is not read to its end.
pub const MAX_SOUGHT: u64 = 10_000;
/// How much is kept of a file without order until its end, in bytes: enough for a million receipts with a parent each.
pub const MAX_UNORDERED: usize = 512 * 1024 * 1024;

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The line, from 1; 0 for the file as a whole.
    pub line: u64,
    /// What.
    pub reason: String,
}

/// How a file of receipts came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainReport {
    /// Lines that hold a receipt whose signature held.
    pub receipts: u64,
    /// The first failures.
    pub failures: Vec<Failure>,
    /// How many there are.
    pub failure_count: u64,
    /// The last receipt, of a linear chain.
    pub head: Option<Head>,
}

impl ChainReport {
    /// Whether everything holds.
    pub const fn valid(&self) -> bool {
        self.failure_count == 0
    }
}

/// What somebody kept of a chain elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expectation {
    /// How many receipts there were.
    pub count: Option<u64>,
    /// The last one.
    pub head: Option<ReceiptHash>,
}

impl From<Head> for Expectation {
    fn from(head: Head) -> Self {
        Self {
            count: Some(head.count),
            head: Some(head.hash),
        }
    }
}

type Taint = Arc<[String]>;

/// Receipts whose order is not that of a chain, until all are there.
#[derive(Debug, Default)]
struct Unordered {
    taint: HashMap<ReceiptHash, Taint>,
    /// Sets that occurred, so that equal ones are kept once.
    sets: HashMap<Vec<String>, Taint>,
    /// Receipts with parents, by line.
    open: Vec<(u64, Receipt)>,
    /// About as many bytes as all this takes.
    bytes: usize,
}

/// Goes through a file, line by line.
#[derive(Debug, Default)]
pub struct Walk {
    line: u64,
    receipts: u64,
    failures: Vec<Failure>,
    failure_count: u64,
    last: Option<(Receipt, u64)>,
    unordered: Option<Unordered>,
}

impl Walk {
    /// The next line, as it was read; `None` for an empty one.
    pub fn next(&mut self, read: Option<Result<Receipt, Fault>>) {
        self.line += 1;
        match read {
            None => {}
            Some(Err(fault)) => self.fail(self.line, fault.to_string()),
            Some(Ok(receipt)) => {
                self.receipts += 1;
                self.place(receipt);
            }
        }
    }

    /// Whether there is so much that does not hold that nobody should read on.
    pub const fn is_hopeless(&self) -> bool {
        self.failure_count >= MAX_SOUGHT
    }

    /// The end of the file: what holds altogether, and against what was kept elsewhere.
    pub fn finish(mut self, expected: &Expectation) -> ChainReport {
        if let Some(unordered) = self.unordered.take() {
            self.settle(unordered);
        }
        let line = self.line;
        if self.is_hopeless() {
            self.failures.truncate(MAX_FAILURES - 1);
            self.failures.push(Failure {
                line,
                reason: format!(
                    "{MAX_SOUGHT} failures and more were found; what follows was not read"
                ),
            });
        }
        if self.receipts == 0 && self.failure_count == 0 {
            self.fail(0, "there is no receipt".to_owned());
        }
        // Break it: leave this out; `receipts::tampering::a_dropped_tail_is_found_against_the_head` fails.
        if let Some(count) = expected.count
            && count != self.receipts
        {
            let reason = format!("{} receipts, but {count} were written", self.receipts);
            self.fail(line, reason);
        }
        let head = self.last.as_ref().map(|(receipt, seq)| Head {
            count: seq.saturating_add(1),
            hash: receipt.hash,
        });
        if let Some(hash) = expected.head
            && head.map(|head| head.hash) != Some(hash)
        {
            self.fail(line, format!("the last receipt is not {hash}"));
        }
        ChainReport {
            receipts: self.receipts,
            failures: self.failures,
            failure_count: self.failure_count,
            head,
        }
    }

    fn fail(&mut self, line: u64, reason: String) {
        self.failure_count += 1;
        if self.failures.len() < MAX_FAILURES {
            self.failures.push(Failure { line, reason });
        }
    }

    /// The first receipt says which kind of file this is.
    fn place(&mut self, receipt: Receipt) {
        match &receipt.place {
            Some((_, seq)) if self.unordered.is_none() => {
                let seq = *seq;
                if let Err(reason) = self.follows(&receipt, seq) {
                    self.fail(self.line, reason);
                }
                self.last = Some((receipt, seq));
            }
            Some(_) => self.fail(
                self.line,
                "a receipt of a session's chain among receipts without order".to_owned(),
            ),
            None if self.last.is_some() => self.fail(
                self.line,
                "a receipt without seq in a session's chain".to_owned(),
            ),
            None => self.gather(receipt),
        }
    }

    /// A link of a linear chain, against the one before.
    fn follows(&self, receipt: &Receipt, seq: u64) -> Result<(), String> {
        let Some((last, before)) = &self.last else {
            // Break it: begin anywhere; `receipts::tampering::a_dropped_head_is_found` fails.
            return match seq {
                0 => Ok(()),
                _ => Err(format!(
                    "the chain begins with seq {seq}, not with its root"
                )),
            };
        };
        // Break it: leave the parent out; `receipts::tampering::a_dropped_or_moved_line_is_found` fails.
        if receipt.parents != [last.hash] {
            return Err("the receipt does not follow the one before it".to_owned());
        }
        if seq != before.saturating_add(1) {
            return Err(format!("seq {seq} follows seq {before}"));
        }
        let session = |receipt: &Receipt| receipt.place.as_ref().map(|(name, _)| name.clone());
        if session(receipt) != session(last) {
            return Err("the receipt is of another session".to_owned());
        }
        monotone(receipt, last.taint.iter())
    }

    fn gather(&mut self, receipt: Receipt) {
        let unordered = self.unordered.get_or_insert_default();
        let tags: usize = receipt.taint.iter().map(|tag| tag.len() + 32).sum();
        unordered.bytes += 300 + receipt.parents.len() * 32 + 2 * tags;
        // Break it: leave the limit out; `receipts::hostile::a_file_without_order_is_not_kept_without_end` fails.
        if unordered.bytes > MAX_UNORDERED {
            let reason = "receipts without order take more memory than is spent on them";
            return self.fail(self.line, reason.to_owned());
        }
        let set = unordered.sets.entry(receipt.taint.clone());
        let set = set.or_insert_with(|| receipt.taint.clone().into()).clone();
        let again = unordered.taint.insert(receipt.hash, set).is_some();
        if !receipt.parents.is_empty() {
            unordered.open.push((self.line, receipt));
        }
        if again {
            self.fail(self.line, "the receipt was there before".to_owned());
        }
    }

    /// Every parent is there, and its marks were inherited.
    fn settle(&mut self, unordered: Unordered) {
        for (line, receipt) in unordered.open {
            let parents: Vec<_> = receipt
                .parents
                .iter()
                .map(|parent| (parent, unordered.taint.get(parent)))
                .collect();
            let missing = parents.iter().find(|(_, taint)| taint.is_none());
            if let Some((parent, _)) = missing {
                self.fail(line, format!("the parent {parent} is not in the file"));
            }
            let inherited = parents.iter().filter_map(|(_, taint)| *taint);
            let inherited = inherited.flat_map(|taint| taint.iter());
            if let Err(reason) = monotone(&receipt, inherited) {
                self.fail(line, reason);
            }
        }
    }
}

/// No mark is lost but those that a sanitising step says it took away, and such a step adds none.
fn monotone<'a>(
    receipt: &Receipt,
    inherited: impl Iterator<Item = &'a String>,
) -> Result<(), String> {
    let removed = receipt.removed.as_deref();
    let mut kept = 0;
    let mut seen = std::collections::BTreeSet::new();
    for tag in inherited.filter(|tag| seen.insert(*tag)) {
        let gone = removed.is_some_and(|removed| removed.contains(tag));
        // Break it: leave this out; `receipts::forging::a_mark_is_not_lost` fails.
        if !gone && !receipt.taint.contains(tag) {
            let tag = crate::attest::text::shown(tag);
            return Err(format!(
                "the taint {tag} was lost without a sanitising step"
            ));
        }
        kept += usize::from(!gone);
    }
    if removed.is_some() && receipt.taint.len() != kept {
        return Err("a sanitising step has another taint than it inherited and removed".to_owned());
    }
    Ok(())
}
