//! A whole log, verified leaf by leaf from files.

use std::collections::BTreeMap;
use std::sync::Mutex;

use caretaker::attest::chain::{Rule as ChainRule, Verdict};
use caretaker::attest::predicate::Answer;
use caretaker::attest::{List, TrustHistory, TrustRoot};
use caretaker::audit::{LogFiles, LogMemory, LogReport, Rule, verify_log};
use caretaker::clock::Millis;
use caretaker::id::IncidentId;
use caretaker::log::{
    Frontier, HashTile, Leaf, Node, Record, TileId, TileKind, TreeHash, TreeHead, write_entries,
};

use super::super::attest::ledger::{Ledger, NOW, role_keys, root_document, root_key, trust_root};

/// A log in memory, handed out as files.
#[derive(Default)]
pub(super) struct Log {
    leaves: Vec<Vec<u8>>,
    pub(super) tree: Frontier,
    nodes: BTreeMap<Node, TreeHash>,
    /// How often leaves were read.
    read: Mutex<u64>,
}

impl Log {
    pub(super) fn append(&mut self, leaf: &[u8]) {
        let nodes = &mut self.nodes;
        let complete = |node, hash| {
            nodes.insert(node, hash);
        };
        self.tree
            .append_with(TreeHash::of_leaf(leaf), complete)
            .unwrap();
        self.leaves.push(leaf.to_vec());
    }

    fn heartbeat(&mut self, at: Millis) {
        let leaf = Leaf::record(Record::Heartbeat { at }).unwrap();
        self.append(&leaf.to_bytes().unwrap());
    }

    pub(super) fn head(&self) -> TreeHead {
        self.tree.head()
    }
}

impl LogFiles for Log {
    fn file(&self, tile: TileId) -> Result<Vec<u8>, String> {
        if tile.kind() == TileKind::Entries {
            *self.read.lock().unwrap() += u64::from(tile.width());
            let first = usize::try_from(tile.first_leaf()).unwrap();
            let entries = &self.leaves[first..first + usize::from(tile.width())];
            return write_entries(entries).map_err(|error| error.to_string());
        }
        let hashes = HashTile::nodes(tile)
            .map(|node| self.nodes[&node])
            .collect();
        let tile = HashTile::new(tile, hashes).map_err(|error| error.to_string())?;
        Ok(tile.to_bytes())
    }
}

pub(super) fn trust() -> TrustHistory {
    trust_root().into()
}

/// The ledger of the incident with this number.
fn incident(number: u16) -> Ledger {
    let mut ledger = Ledger::new();
    let mut entropy = [0; 10];
    entropy[..2].copy_from_slice(&number.to_be_bytes());
    ledger.incident = IncidentId::new(NOW, entropy);
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    ledger.answer(|_| ());
    ledger.execute(|_| ());
    ledger
}

/// Incidents whose events lie between each other, and a sign of life every hour.
pub(super) fn log_of(incidents: u16) -> Log {
    let mut log = Log::default();
    log.append(&trust_root().to_bytes().unwrap());
    let ledgers: Vec<_> = (0..incidents).map(incident).collect();
    for (turn, neighbours) in ledgers.chunks(3).enumerate() {
        log.heartbeat(NOW.plus_millis(i64::try_from(turn).unwrap() * 3_600_000));
        for event in 0..4 {
            for ledger in neighbours {
                log.append(&ledger.envelopes[event]);
            }
        }
    }
    log
}

pub(super) fn verified(log: &Log, memory: Option<LogMemory>) -> (LogReport, Option<LogMemory>) {
    verify_log(log, &trust(), log.head(), None, memory, 2, &mut |_| {})
}

#[track_caller]
pub(super) fn assert_failed(report: &LogReport, verdict: Verdict, place: u64, rule: Rule) {
    assert_eq!(report.verdict, verdict, "{report:#?}");
    let found = report
        .failures
        .iter()
        .any(|failure| (failure.seq, failure.rule) == (place, rule));
    assert!(found, "no {rule} at {place}: {report:#?}");
}

#[test]
fn a_whole_log_verifies_and_is_remembered() {
    let log = log_of(200);
    let mut shown = Vec::new();
    let (report, memory) = verify_log(&log, &trust(), log.head(), None, None, 3, &mut |done| {
        shown.push(done);
    });
    assert_eq!(report.verdict, Verdict::Valid, "{report:#?}");
    assert_eq!((report.events, report.incidents), (800, 200));
    assert_eq!(report.verified, log.tree.size());
    assert_eq!(report.silences, []);
    assert!(shown.is_sorted() && shown.last() == Some(&log.tree.size()));
    let memory = memory.unwrap();
    assert_eq!(
        (memory.size, memory.incidents.len()),
        (log.tree.size(), 200)
    );
}

/// The same, whatever the number of workers.
#[test]
fn the_number_of_workers_changes_nothing() {
    let mut log = log_of(150);
    log.append(b"not a leaf");
    let one = verify_log(&log, &trust(), log.head(), None, None, 1, &mut |_| {});
    for workers in [0, 2, 5, 16] {
        let more = verify_log(&log, &trust(), log.head(), None, None, workers, &mut |_| {});
        assert_eq!(one, more, "{workers}");
    }
}

#[test]
fn only_what_is_new_is_verified_the_second_time() {
    let mut log = log_of(300);
    let (_, memory) = verified(&log, None);
    let before = log.tree.size();
    for envelope in &incident(900).envelopes {
        log.append(envelope);
    }
    *log.read.lock().unwrap() = 0;
    let (report, memory) = verified(&log, memory);
    assert_eq!(report.verdict, Verdict::Valid, "{report:#?}");
    assert_eq!((report.verified, report.events), (4, 4));
    assert_eq!(report.incidents, 301);
    assert!(
        *log.read.lock().unwrap() < before / 2,
        "old leaves were read again"
    );
    assert_eq!(memory.unwrap().size, before + 4);
}

/// An incident that goes on after the auditor has looked is walked again from its earlier events.
#[test]
fn an_incident_that_goes_on_later_is_still_one_chain() {
    let ledger = incident(1);
    let mut log = log_of(5);
    let open = incident(700);
    log.append(&open.envelopes[0]);
    log.append(&open.envelopes[1]);
    let (report, memory) = verified(&log, None);
    assert_eq!(report.verdict, Verdict::Valid, "{report:#?}");
    log.append(&open.envelopes[2]);
    log.append(&open.envelopes[3]);
    let (report, memory) = verified(&log, memory);
    assert_eq!(report.verdict, Verdict::Valid, "{report:#?}");
    // A second ending of a chain that has ended: found, although only the new leaf is looked at.
    log.append(&ledger.envelopes[3]);
    let place = log.tree.size() - 1;
    let (report, _) = verified(&log, memory);
    assert_failed(
        &report,
        Verdict::Invalid,
        place,
        Rule::Chain(ChainRule::Order),
    );
}

#[test]
fn what_was_verified_before_is_not_written_anew() {
    let log = log_of(40);
    let (_, memory) = verified(&log, None);
    // The same incidents in another order: every chain is sound, the history is another one.
    let mut other = Log::default();
    other.append(&trust_root().to_bytes().unwrap());
    for number in (0..60).rev() {
        for envelope in &incident(number).envelopes {
            other.append(envelope);
        }
    }
    assert_eq!(verified(&other, None).0.verdict, Verdict::Valid);
    let (report, nothing) = verified(&other, memory.clone());
    assert_failed(&report, Verdict::Invalid, 0, Rule::Checkpoint);
    assert_eq!(nothing, None);
    // Cut off at the end.
    let (report, _) = verified(&log_of(20), memory);
    assert_failed(&report, Verdict::Invalid, 0, Rule::Checkpoint);
    let seen = Some(log.head());
    let (report, _) = verify_log(&other, &trust(), other.head(), seen, None, 2, &mut |_| {});
    assert_failed(&report, Verdict::Invalid, 0, Rule::Checkpoint);
}

#[test]
fn leaves_that_are_not_those_that_were_signed_for_are_refused() {
    let log = log_of(30);
    let head = log.head();
    let mut changed = log_of(30);
    let last = changed.leaves.len() - 1;
    changed.leaves.swap(last, last - 1);
    let (report, _) = verify_log(&changed, &trust(), head, None, None, 2, &mut |_| {});
    assert_failed(&report, Verdict::Invalid, head.size(), Rule::Log);
}

#[test]
fn every_fault_of_an_event_is_found_at_its_place() {
    let cases: [(&str, ChainRule, fn(&mut Ledger)); 3] = [
        ("left out", ChainRule::Seq, |ledger| {
            drop(ledger.envelopes.remove(1));
        }),
        ("twice", ChainRule::EventId, |ledger| {
            let again = ledger.envelopes[1].clone();
            ledger.envelopes.insert(2, again);
        }),
        ("another signature", ChainRule::Signature, |ledger| {
            let other = String::from_utf8(ledger.envelopes[0].clone()).unwrap();
            let signature = other.split("\"sig\":\"").nth(1).unwrap().to_owned();
            let own = String::from_utf8(ledger.envelopes[2].clone()).unwrap();
            let (head, _) = own.split_once("\"sig\":\"").unwrap();
            ledger.envelopes[2] = format!("{head}\"sig\":\"{signature}").into_bytes();
        }),
    ];
    for (what, rule, edit) in cases {
        let mut log = log_of(10);
        let mut ledger = incident(800);
        edit(&mut ledger);
        for envelope in &ledger.envelopes {
            log.append(envelope);
        }
        let (report, memory) = verified(&log, None);
        assert_eq!(report.verdict, Verdict::Invalid, "{what}");
        let found = report
            .failures
            .iter()
            .any(|failure| failure.rule == Rule::Chain(rule));
        assert!(found, "{what}: no {rule}: {report:#?}");
        assert_eq!(
            memory, None,
            "{what}: nothing is remembered of what does not hold"
        );
    }
}

/// A holder of all role keys who approves afterwards what was merged without: the place in the log says when it was written.
#[test]
fn an_approval_that_comes_after_the_merge_is_no_approval() {
    let mut log = log_of(3);
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    ledger.answer(|approval| approval.answer = Answer::Approve);
    ledger.execute(|_| ());
    for event in [0, 1, 3, 2] {
        log.append(&ledger.envelopes[event]);
    }
    let (report, _) = verified(&log, None);
    assert_eq!(report.verdict, Verdict::Invalid, "{report:#?}");
}

#[test]
fn silence_shows() {
    let mut log = log_of(2);
    log.heartbeat(NOW.plus_millis(5 * 3_600_000));
    let (report, _) = verified(&log, None);
    assert_eq!(report.verdict, Verdict::Valid);
    assert_eq!(report.silences, [(NOW.0, NOW.0 + 5 * 3_600_000)]);
    assert_eq!(report.alive_at, Some(NOW.0 + 5 * 3_600_000));
}

#[test]
fn what_this_version_does_not_know_is_not_called_wrong_and_not_valid_either() {
    let mut log = log_of(2);
    let place = log.tree.size();
    log.append(br#"{"caretaker-log":"handshake/v7","x":1}"#);
    let (report, _) = verified(&log, None);
    assert_failed(&report, Verdict::CannotVerify, place, Rule::Log);
    let mut log = log_of(2);
    let place = log.tree.size();
    log.append(b"garbage");
    assert_failed(&verified(&log, None).0, Verdict::Invalid, place, Rule::Log);
    // A version of the trust root that the auditor does not hold.
    let mut log = log_of(2);
    let place = log.tree.size();
    let mut next = root_document();
    next.version = 2;
    next.prev = Some(trust_root().digest().into());
    let next = TrustRoot::sign(&next, &[&root_key(0)]).unwrap();
    log.append(&next.to_bytes().unwrap());
    assert_failed(
        &verified(&log, None).0,
        Verdict::CannotVerify,
        place,
        Rule::Log,
    );
}

struct Missing;

impl LogFiles for Missing {
    fn file(&self, tile: TileId) -> Result<Vec<u8>, String> {
        Err(format!("{tile} is not there"))
    }
}

#[test]
fn nothing_logged_and_missing_files_are_never_valid() {
    let (report, _) = verified(&Log::default(), None);
    assert_failed(&report, Verdict::CannotVerify, 0, Rule::Log);
    let head = log_of(4).head();
    let (report, _) = verify_log(&Missing, &trust(), head, None, None, 2, &mut |_| {});
    assert_failed(&report, Verdict::CannotVerify, 0, Rule::Log);
}

struct Failing;

impl LogFiles for Failing {
    fn file(&self, _tile: TileId) -> Result<Vec<u8>, String> {
        panic!("injected")
    }
}

#[test]
fn a_part_of_the_verifier_that_fails_makes_nothing_valid() {
    let head = log_of(4).head();
    let (report, memory) = verify_log(&Failing, &trust(), head, None, None, 2, &mut |_| {});
    assert_failed(&report, Verdict::CannotVerify, 0, Rule::Log);
    assert_eq!(memory, None);
}

/// More incidents are open at once than are kept: what becomes of each of them is found all the same.
#[test]
fn many_incidents_that_never_end_are_still_chains() {
    let mut log = Log::default();
    log.append(&trust_root().to_bytes().unwrap());
    let nothing_yet = Ledger::new();
    let mut ledgers = Vec::new();
    for number in 0..4_200_u16 {
        let mut ledger = nothing_yet.clone();
        let mut entropy = [0; 10];
        entropy[..2].copy_from_slice(&number.to_be_bytes());
        ledger.incident = IncidentId::new(NOW, entropy);
        ledger.propose(|_| ());
        log.append(&ledger.envelopes[0]);
        ledgers.push(ledger);
    }
    // The first rested longest and goes on as it should; the second says again what it has said.
    let first = &mut ledgers[0];
    first.decide(|_| ());
    first.answer(|_| ());
    first.execute(|_| ());
    first.envelopes[1..]
        .iter()
        .for_each(|envelope| log.append(envelope));
    let (report, _) = verified(&log, None);
    assert_eq!(report.verdict, Verdict::Valid, "{report:#?}");
    assert_eq!(report.incidents, 4_200);
    log.append(&ledgers[1].envelopes[0]);
    let place = log.tree.size() - 1;
    let (report, _) = verified(&log, None);
    // Break it: forget the places of the chain that is dropped in `Audit::drop_the_longest_rested`.
    assert_failed(
        &report,
        Verdict::Invalid,
        place,
        Rule::Chain(ChainRule::Seq),
    );
}

#[test]
fn a_key_counts_in_its_part_of_the_log() {
    let mut document = root_document();
    let mut keys = role_keys();
    let mut executor = keys.executor[0].clone();
    executor.until_index = Some(3);
    keys.executor = List::first_of([executor]);
    document.roles = keys;
    let root = TrustRoot::sign(&document, &[&root_key(0)]).unwrap();
    let mut ledger = Ledger::new();
    ledger.trust = root.clone().into();
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    ledger.answer(|_| ());
    ledger.execute(|_| ());
    let mut log = Log::default();
    ledger
        .envelopes
        .iter()
        .for_each(|envelope| log.append(envelope));
    let (report, _) = verify_log(&log, &root.into(), log.head(), None, None, 2, &mut |_| {});
    let found = report.failures.first().map(|failure| failure.seq);
    assert_eq!(
        (report.verdict, found),
        (Verdict::Invalid, Some(3)),
        "{report:#?}"
    );
}
