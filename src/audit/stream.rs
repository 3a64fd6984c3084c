//! Verification of a whole log: every leaf, every signature, every chain, and that they make the tree that was signed.
//!
//! Signatures are verified side by side, a block of leaves at a time; everything that depends on the order of the leaves is
//! done once, in order. What is kept in memory is a few blocks, the chains that went on lately, and of every other one the places
//! of its events, so that it can be walked again if it goes on after all.

mod leaves;
mod memory;
mod policies;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, sync_channel};

use serde::Serialize;

use super::report::{Failure, Rule};
use crate::attest::TrustHistory;
use crate::attest::chain::{GrowingChain, Prepared, Refusal, Step, Verdict};
use crate::attest::text::shown;
use crate::change::Sha256Digest;
use crate::log::{
    Frontier, HashTile, LeafError, Node, ProofPlan, Record, TILE_WIDTH, TileId, TreeHash, TreeHead,
    read_entries, verify_consistency, verify_inclusion,
};
use leaves::{Block, Judged, What, entries_tile, work};
pub use memory::{IncidentKey, LogMemory, Places};
pub use policies::Policies;

/// Blocks of leaves that wait for each worker's turn.
const AHEAD: usize = 2;
/// Chains that are kept while they are open. The one that has rested longest is dropped then; it is walked again if it goes on.
const MOST_OPEN: usize = 4_096;
/// Chains that are kept although they have ended: an escalation may follow soon.
const MOST_ENDED: usize = 512;
/// Failures that a report tells; of the others it gives the number.
const MOST_FAILURES: usize = 1_000;
/// A silence of the log that is told, in milliseconds: two hours, while there is a sign of life every hour.
const SILENCE_MILLIS: i64 = 2 * 3_600_000;

/// Where the files of a log are: C2SP tlog-tiles.
pub trait LogFiles: Sync {
    /// The bytes of one file.
    ///
    /// # Errors
    /// It cannot be had, in words.
    fn file(&self, tile: TileId) -> Result<Vec<u8>, String>;
}

/// What verification says about a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogReport {
    /// The worst of everything.
    pub verdict: Verdict,
    /// Leaves under the checkpoint.
    pub leaves: u64,
    /// Leaves that were verified now.
    pub verified: u64,
    /// Signed events among them.
    pub events: u64,
    /// Incidents that the log knows.
    pub incidents: u64,
    /// What does not hold, at most 1,000 of it; `seq` is the place in the log.
    pub failures: Vec<Failure>,
    /// How much more does not hold.
    pub more_failures: u64,
    /// The last sign of life, in milliseconds since 1970: older than two hours means that the log is not kept any more.
    pub alive_at: Option<i64>,
    /// Silences of more than two hours: the moments between which the log gave no sign of life, in milliseconds since 1970.
    pub silences: Vec<(i64, i64)>,
}

/// Verifies the leaves of a log up to `head`, which has to come from a checkpoint that counts. With `memory`, those that it
/// covers are only shown to be the same.
///
/// `seen` is a head that was seen before: the log has to extend it.
///
/// Returns what there is to say, and what to remember when nothing is wrong. `workers` is how many signatures are verified side
/// by side, `progress` is told how many leaves are done.
pub fn verify_log(
    files: &dyn LogFiles,
    trust: &TrustHistory,
    head: TreeHead,
    seen: Option<TreeHead>,
    memory: Option<LogMemory>,
    workers: usize,
    progress: &mut dyn FnMut(u64),
) -> (LogReport, Option<LogMemory>) {
    let mut audit = Audit::new(files, trust, head);
    if let Some(seen) = seen
        && let Err((verdict, found)) = audit.extends(&seen)
    {
        let expected = "the log that you saw, with more leaves";
        audit.fail(0, verdict, Rule::Checkpoint, expected, &found);
        return (audit.report, None);
    }
    if let Some(memory) = memory
        && let Err((verdict, found)) = audit.go_on_from(memory)
    {
        let expected = "the log that was verified before, with more leaves";
        audit.fail(0, verdict, Rule::Checkpoint, expected, &found);
        return (audit.report, None);
    }
    audit.walk(workers.max(1), progress);
    audit.finish()
}

/// Whether the log under `head` has the leaves under `old`, in that order, and perhaps more.
///
/// # Errors
/// It has others, or the files do not show it: the verdict, and what was found.
pub fn extends(
    files: &dyn LogFiles,
    trust: &TrustHistory,
    head: TreeHead,
    old: &TreeHead,
) -> Result<(), (Verdict, String)> {
    Audit::new(files, trust, head).extends(old)
}

/// What is known of an incident.
enum Chain {
    /// As far as it was walked.
    Kept(Box<GrowingChain>, Places),
    /// Only where its events are: it has rested, or was verified before.
    Known(Places),
}

impl Default for Chain {
    fn default() -> Self {
        Self::Kept(Box::default(), Places::default())
    }
}

struct Audit<'a> {
    files: &'a dyn LogFiles,
    trust: &'a TrustHistory,
    head: TreeHead,
    tree: Frontier,
    /// How much of it was verified before.
    before: Option<TreeHead>,
    chains: BTreeMap<IncidentKey, Chain>,
    /// The chains that are kept, by the place of their last event: the open ones, and those that have ended.
    open: BTreeMap<u64, IncidentKey>,
    ended: BTreeMap<u64, IncidentKey>,
    alive_at: Option<i64>,
    policies: Policies,
    report: LogReport,
}

impl<'a> Audit<'a> {
    fn new(files: &'a dyn LogFiles, trust: &'a TrustHistory, head: TreeHead) -> Self {
        Self {
            files,
            trust,
            head,
            tree: Frontier::new(),
            before: None,
            chains: BTreeMap::new(),
            open: BTreeMap::new(),
            ended: BTreeMap::new(),
            alive_at: None,
            policies: Policies::default(),
            report: LogReport {
                verdict: Verdict::Valid,
                leaves: head.size(),
                verified: 0,
                events: 0,
                incidents: 0,
                failures: Vec::new(),
                more_failures: 0,
                alive_at: None,
                silences: Vec::new(),
            },
        }
    }

    fn fail(&mut self, place: u64, verdict: Verdict, rule: Rule, expected: &str, found: &str) {
        self.report.verdict = self.report.verdict.max(verdict).max(Verdict::CannotVerify);
        if self.report.failures.len() >= MOST_FAILURES {
            self.report.more_failures += 1;
            return;
        }
        self.report.failures.push(Failure {
            seq: place,
            rule,
            expected: expected.to_owned(),
            found: shown(found),
        });
    }

    /// Whether this log has the leaves of that one, in that order, and perhaps more.
    fn extends(&self, old: &TreeHead) -> Result<(), (Verdict, String)> {
        let invalid = |error: &dyn std::fmt::Display| (Verdict::Invalid, error.to_string());
        if old.size() > self.head.size() {
            let found = format!("{} leaves, {} were there", self.head.size(), old.size());
            return Err((Verdict::Invalid, found));
        }
        if old.size() == 0 {
            return Ok(());
        }
        let plan = ProofPlan::consistency(old.size(), self.head.size());
        let plan = plan.map_err(|error| invalid(&error))?;
        let proof = self
            .hashes(&plan)
            .map_err(|found| (Verdict::CannotVerify, found))?;
        verify_consistency(old, &self.head, &proof).map_err(|error| invalid(&error))
    }

    /// Starts where an earlier verification ended, if this log extends that one.
    fn go_on_from(&mut self, memory: LogMemory) -> Result<(), (Verdict, String)> {
        let invalid = |found: &dyn std::fmt::Display| (Verdict::Invalid, found.to_string());
        let unknown = |found: String| (Verdict::CannotVerify, found);
        let old =
            TreeHead::new(memory.size, memory.root.into()).map_err(|error| invalid(&error))?;
        // Break it: leave this out; a history that was written anew is then taken for the one that was verified
        // (`audit::stream::what_was_verified_before_is_not_written_anew`).
        self.extends(&old)?;
        if old.size() == 0 {
            return Ok(());
        }
        let peaks = Node::peaks(old.size()).map_err(|error| invalid(&error))?;
        let peaks = peaks.into_iter().map(|node| self.hash(node));
        let peaks = peaks.collect::<Result<Vec<_>, _>>().map_err(unknown)?;
        let tree = Frontier::from_peaks(old.size(), peaks).map_err(|error| invalid(&error))?;
        if tree.head() != old {
            return Err(invalid(&"other leaves than were verified before"));
        }
        self.tree = tree;
        self.before = Some(old);
        self.alive_at = memory.alive_at;
        self.policies = memory.policies;
        let known = memory.incidents.into_iter();
        self.chains = known
            .map(|(key, places)| (key, Chain::Known(places)))
            .collect();
        Ok(())
    }

    /// The stored hash of a node.
    fn hash(&self, node: Node) -> Result<TreeHash, String> {
        let words = |error: crate::log::TileError| error.to_string();
        let id = TileId::holding(node, self.head.size()).map_err(words)?;
        let tile = HashTile::parse(id, &self.files.file(id)?).map_err(words)?;
        tile.node(node)
            .ok_or_else(|| format!("{id} does not hold a hash that it should"))
    }

    fn hashes(&self, plan: &ProofPlan) -> Result<Vec<TreeHash>, String> {
        plan.build(|node| self.hash(node))
    }

    /// Every leaf in order.
    fn walk(&mut self, workers: usize, progress: &mut dyn FnMut(u64)) {
        let (from, to) = (self.tree.size(), self.head.size());
        let width = u64::from(TILE_WIDTH);
        let blocks = from / width..to.div_ceil(width);
        let (files, trust) = (self.files, self.trust);
        std::thread::scope(|scope| {
            let mut channels: Vec<Receiver<Block>> = Vec::new();
            for worker in 0..workers {
                let (sender, receiver) = sync_channel(AHEAD);
                channels.push(receiver);
                let own = blocks.clone().skip(worker).step_by(workers);
                scope.spawn(move || work(files, trust, to, own, &sender));
            }
            for (turn, block) in blocks.clone().enumerate() {
                let received = channels.get(turn % workers).map(Receiver::recv);
                let judged = match received {
                    Some(Ok(judged)) => judged,
                    _ => Err("a part of the verifier ended early".to_owned()),
                };
                let start = block * width;
                match judged {
                    Ok(judged) => {
                        let skipped = usize::try_from(from.saturating_sub(start)).unwrap_or(0);
                        for leaf in judged.into_iter().skip(skipped) {
                            self.take(leaf);
                        }
                    }
                    Err(found) => {
                        let expected = "the leaves under the checkpoint";
                        self.fail(start, Verdict::CannotVerify, Rule::Log, expected, &found);
                        // Without them no later leaf has its place.
                        return;
                    }
                }
                progress(self.tree.size());
            }
        });
    }

    fn take(&mut self, leaf: Judged) {
        let place = self.tree.size();
        if let Err(error) = self.tree.append(leaf.hash) {
            let found = error.to_string();
            self.fail(place, Verdict::Invalid, Rule::Log, "a tree", &found);
        }
        self.report.verified += 1;
        match leaf.what {
            What::Event(step) => {
                self.report.events += 1;
                self.check_rules(place, &step);
                self.event(place, *step);
            }
            What::Policy(version) => {
                self.report.events += 1;
                if let Err((expected, found)) = self.policies.enter(&version) {
                    self.fail(place, Verdict::Invalid, Rule::Policy, &expected, &found);
                }
            }
            What::Statement => self.report.events += 1,
            What::Refused(refusal) => {
                self.report.events += 1;
                self.refused(place, &refusal);
            }
            What::TrustRoot(digest) => self.trust_root(place, digest),
            What::Record(Record::Heartbeat { at }) => self.heartbeat(at.0),
            What::Record(Record::Evidence { .. } | Record::Rules { .. }) => {}
            What::Unreadable(error) => {
                // A later version may know what this one does not.
                let verdict = match error {
                    LeafError::UnknownKind { .. } => Verdict::CannotVerify,
                    _ => Verdict::Invalid,
                };
                let found = error.to_string();
                self.fail(place, verdict, Rule::Log, "a leaf of a known kind", &found);
            }
        }
    }

    /// Not authentic: nothing that it says is looked at.
    fn refused(&mut self, place: u64, refusal: &Refusal) {
        let Refusal {
            verdict,
            rule,
            expected,
            found,
        } = refusal;
        self.fail(place, *verdict, Rule::Chain(*rule), expected, found);
    }

    /// What was decided was decided by the rules in force.
    fn check_rules(&mut self, place: u64, step: &Step) {
        let Some((project, rules)) = step.rules() else {
            return;
        };
        // Break it: leave this out; rules of yesterday then decide today
        // (`audit::policies::a_decision_by_rules_that_were_rolled_back_is_named`).
        if let Err((expected, found)) = self.policies.check(project, rules) {
            self.fail(place, Verdict::Invalid, Rule::Policy, &expected, &found);
        }
    }

    fn event(&mut self, place: u64, step: Step) {
        let key = IncidentKey::of(step.incident());
        if let Some(Chain::Known(places)) = self.chains.get(&key) {
            let places = places.clone();
            let chain = self.walked(&places).unwrap_or_else(|found| {
                let expected = "the earlier events of the incident";
                self.fail(place, Verdict::CannotVerify, Rule::Log, expected, &found);
                GrowingChain::new()
            });
            self.chains
                .insert(key, Chain::Kept(Box::new(chain), places));
        }
        // One look-up: of a quarter of a million chains each is a walk through memory that no cache holds.
        let chain = self.chains.entry(key).or_default();
        let Chain::Kept(chain, places) = chain else {
            return;
        };
        if let Some(last) = places.last() {
            let kept = if chain.is_closed() {
                &mut self.ended
            } else {
                &mut self.open
            };
            kept.remove(&last);
        }
        let refusals = chain.step(step);
        places.push(place);
        let kept = if chain.is_closed() {
            &mut self.ended
        } else {
            &mut self.open
        };
        kept.insert(place, key);
        let worst = refusals.iter().map(|refusal| refusal.verdict).max();
        for mut refusal in refusals {
            refusal.verdict = worst.unwrap_or(refusal.verdict);
            self.refused(place, &refusal);
        }
        self.drop_the_longest_rested();
    }

    /// Keeps memory bounded however many incidents there are, and however many of them never end.
    fn drop_the_longest_rested(&mut self) {
        for (kept, most) in [(&mut self.open, MOST_OPEN), (&mut self.ended, MOST_ENDED)] {
            if kept.len() <= most {
                continue;
            }
            let rested = kept.pop_first().map(|(_, key)| key);
            let chain = rested.and_then(|key| self.chains.get_mut(&key));
            if let Some(chain) = chain
                && let Chain::Kept(_, places) = chain
            {
                *chain = Chain::Known(std::mem::take(places));
            }
        }
    }

    /// A chain from the places of its events, each shown to be what was verified before.
    fn walked(&self, places: &Places) -> Result<GrowingChain, String> {
        let mut chain = GrowingChain::new();
        for place in places.iter() {
            let entry = self.entry(place)?;
            let hash = TreeHash::of_leaf(&entry);
            let head = self.head;
            let plan =
                ProofPlan::inclusion(place, head.size()).map_err(|error| error.to_string())?;
            let proof = self.hashes(&plan)?;
            verify_inclusion(hash, place, &proof, &head).map_err(|error| error.to_string())?;
            chain.take(Prepared::logged(self.trust, &entry, Some(place)));
        }
        Ok(chain)
    }

    fn entry(&self, place: u64) -> Result<Vec<u8>, String> {
        let width = u64::from(TILE_WIDTH);
        let id = entries_tile(place / width, self.head.size())?;
        let bytes = self.files.file(id)?;
        let entries = read_entries(&bytes, id.width()).map_err(|error| error.to_string())?;
        let within = usize::try_from(place % width).unwrap_or(usize::MAX);
        entries
            .get(within)
            .map(|entry| entry.to_vec())
            .ok_or_else(|| format!("{id} has no entry {within}"))
    }

    /// The versions that are logged are those that are held.
    fn trust_root(&mut self, place: u64, digest: Sha256Digest) {
        if self.trust.versions().any(|root| root.digest() == digest) {
            return;
        }
        let expected = "a version of the trust root that you hold, or that follows from it";
        let found = digest.to_string();
        self.fail(place, Verdict::CannotVerify, Rule::Log, expected, &found);
    }

    fn heartbeat(&mut self, at: i64) {
        if let Some(before) = self.alive_at
            && at.saturating_sub(before) > SILENCE_MILLIS
            && self.report.silences.len() < MOST_FAILURES
        {
            self.report.silences.push((before, at));
        }
        self.alive_at = Some(at.max(self.alive_at.unwrap_or(at)));
    }

    fn finish(mut self) -> (LogReport, Option<LogMemory>) {
        self.report.incidents = self.chains.len() as u64;
        self.report.alive_at = self.alive_at;
        if self.head.size() == 0 {
            let expected = "at least one leaf";
            self.fail(0, Verdict::CannotVerify, Rule::Log, expected, "none");
        }
        // Break it: drop this comparison; the leaves are then not those that were signed for
        // (`audit::stream::leaves_that_are_not_those_that_were_signed_for_are_refused`).
        if self.tree.size() == self.head.size() && self.tree.root() != self.head.root() {
            let expected = format!("the root {}", self.head.root());
            let found = self.tree.root().to_string();
            let place = self.head.size();
            self.fail(place, Verdict::Invalid, Rule::Log, &expected, &found);
        }
        if self.report.verdict != Verdict::Valid {
            return (self.report, None);
        }
        let incidents = self.chains.into_iter().map(|(key, chain)| {
            let (Chain::Kept(_, places) | Chain::Known(places)) = chain;
            (key, places)
        });
        let memory = LogMemory {
            size: self.head.size(),
            root: self.head.root().to_digest(),
            incidents: incidents.collect(),
            alive_at: self.alive_at,
            policies: self.policies,
        };
        (self.report, Some(memory))
    }
}
