//! Timestamps in a bundle: what they are of, what they say, and what becomes of those that do not hold.

use std::collections::BTreeMap;

use caretaker::anchor::timestamp::Roots;
use caretaker::attest::SecretKey;
use caretaker::attest::chain::Verdict;
use caretaker::audit::{BundleContents, BundleReport, Rule, TimestampVerdict, by_authority};
use caretaker::change::Sha256Digest;
use caretaker::clock::Millis;
use caretaker::log::{ProofPlan, SignedCheckpoint};

use super::bundle::{Log, assert_failed, check, logged, merged, packed, pin, unpacked};
use crate::anchor::made::{Authority, Made, SHA256};
use crate::twin::verify_bundle;

/// What an authority answers about a checkpoint.
fn stamp(authority: &Authority, checkpoint: &SignedCheckpoint, at: &str) -> Vec<u8> {
    let data = checkpoint.without_cosignatures();
    let mut made = Made::by(authority);
    at.clone_into(&mut made.at);
    made.imprint = (
        SHA256.to_vec(),
        Sha256Digest::of(data.as_bytes()).as_bytes().to_vec(),
    );
    made.sign_again(authority);
    made.response(authority)
}

/// A bundle of a merged incident, and the checkpoints over the log when so many events were in it, oldest first.
struct World {
    contents: BundleContents,
    log: Log,
    checkpoints: Vec<SignedCheckpoint>,
}

fn world() -> World {
    let ledger = merged();
    let (log, places) = logged(&ledger);
    let contents = log.contents(&ledger, &places);
    let mut grown = Log::default();
    let mut checkpoints = Vec::new();
    for envelope in &ledger.envelopes {
        grown.append(b"another organisation's business");
        grown.append(envelope);
        checkpoints.push(grown.checkpoint());
    }
    World {
        contents,
        log,
        checkpoints,
    }
}

impl World {
    /// Adds a timestamp of the checkpoint over so many events, with the proof that belongs to it.
    fn stamped(&mut self, events: usize, name: &str, authority: &Authority, at: &str) {
        let checkpoint = self.checkpoints[events - 1].clone();
        let (old, new) = (checkpoint.claimed().head().size(), self.log.size());
        let proof = self.log.prove(&ProofPlan::consistency(old, new).unwrap());
        self.contents.consistency.push((old, new, proof));
        let response = stamp(authority, &checkpoint, at);
        self.contents
            .timestamps
            .push((checkpoint, name.to_owned(), response));
    }

    fn bundle(&self) -> Vec<u8> {
        self.contents.clone().write().unwrap()
    }
}

fn checked(bundle: &[u8], roots: &Roots) -> BundleReport {
    let mut report = verify_bundle(bundle, &pin(), None).unwrap();
    report.check_timestamps(roots);
    report
}

/// The bundle with one of its members changed.
fn with(bundle: &[u8], change: impl FnOnce(&mut BTreeMap<String, Vec<u8>>)) -> Vec<u8> {
    let mut members = unpacked(bundle);
    change(&mut members);
    packed(&members)
}

#[test]
fn events_existed_before_a_moment_according_to_an_authority() {
    let authority = Authority::new("Authority A");
    let mut world = world();
    world.stamped(3, "one", &authority, "20270115080000Z");
    world.stamped(4, "one", &authority, "20270115090000Z");
    let bundle = world.bundle();
    // Without roots it is told and not checked.
    let told = check(&bundle);
    assert_eq!(told.report.verdict, Verdict::Valid);
    let named: Vec<_> = told
        .timestamps
        .iter()
        .map(|one| (one.checkpoint, one.name.as_str(), one.events, one.verdict))
        .collect();
    let unseen = TimestampVerdict::NotChecked;
    assert_eq!(
        named,
        [(6, "one", Some(3), unseen), (8, "one", Some(4), unseen)]
    );
    assert!(by_authority(&told.timestamps).is_empty());
    let report = checked(&bundle, &authority.roots());
    assert_eq!(report.report.verdict, Verdict::Valid);
    let moments: Vec<_> = report.timestamps.iter().map(|one| one.before).collect();
    let first = Millis(1_800_000_001_500);
    assert_eq!(moments, [Some(first), Some(first.plus_seconds(3600))]);
    assert_eq!(
        report.timestamps[0].authority.as_deref(),
        Some("Authority A")
    );
}

#[test]
fn two_timestamps_of_one_authority_count_once() {
    let (a, b) = (Authority::new("Authority A"), Authority::new("Authority A"));
    let mut world = world();
    world.stamped(4, "one", &a, "20270115090000Z");
    world.stamped(4, "two", &a, "20270115080000Z");
    let mut report = check(&world.bundle());
    report.check_timestamps(&a.roots());
    assert_eq!(report.report.verdict, Verdict::Valid);
    let counted = by_authority(&report.timestamps);
    // The one that says most: as many events, earlier.
    let named: Vec<_> = counted.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(named, ["two"]);
    // Another key is another authority, whatever it is called.
    let mut other = check(&world_of(&b));
    other.check_timestamps(&b.roots());
    let both = [report.timestamps, other.timestamps].concat();
    assert_eq!(by_authority(&both).len(), 2);
}

fn world_of(authority: &Authority) -> Vec<u8> {
    let mut world = world();
    world.stamped(4, "one", authority, "20270115080000Z");
    world.bundle()
}

#[test]
fn a_timestamp_that_does_not_hold_is_invalid() {
    let (a, b) = (Authority::new("Authority A"), Authority::new("Authority B"));
    let bundle = world_of(&a);
    let report = checked(&bundle, &b.roots());
    assert_failed(&report, Verdict::Invalid, Rule::Timestamp);
    assert_eq!(report.timestamps[0].verdict, TimestampVerdict::Invalid);
    assert_eq!(report.timestamps[0].before, None);
    let garbage = with(&bundle, |members| {
        members.insert("timestamps/8/one.tsr".to_owned(), b"words".to_vec());
    });
    assert_failed(
        &checked(&garbage, &a.roots()),
        Verdict::Invalid,
        Rule::Timestamp,
    );
    // Whoever does not look does not say that it holds.
    assert_eq!(
        check(&garbage).timestamps[0].verdict,
        TimestampVerdict::NotChecked
    );
    // The timestamp of another checkpoint of this log.
    let mut world = world();
    world.stamped(3, "one", &a, "20270115080000Z");
    world.stamped(4, "one", &a, "20270115090000Z");
    let swapped = with(&world.bundle(), |members| {
        let earlier = members["timestamps/6/one.tsr"].clone();
        members.insert("timestamps/8/one.tsr".to_owned(), earlier);
    });
    assert_failed(
        &checked(&swapped, &a.roots()),
        Verdict::Invalid,
        Rule::Timestamp,
    );
}

#[test]
fn a_checkpoint_of_another_history_is_refused() {
    let authority = Authority::new("Authority A");
    let mut world = world();
    // As many leaves, others: signed by the log's key, and timestamped.
    let mut other = Log::default();
    for leaf in 0..8_u8 {
        other.append(&[leaf]);
    }
    world.checkpoints[3] = other.checkpoint();
    world.stamped(4, "one", &authority, "20270115080000Z");
    let report = checked(&world.bundle(), &authority.roots());
    assert_failed(&report, Verdict::Invalid, Rule::Timestamp);
    assert!(report.timestamps.is_empty());
}

type Members = BTreeMap<String, Vec<u8>>;
const CHECKPOINT: &str = "timestamps/8/checkpoint";

/// A change of a bundle's members, and what then fails.
struct Edit(Box<dyn Fn(&mut Members)>, Verdict, Rule);

fn edit(change: impl Fn(&mut Members) + 'static) -> Edit {
    Edit(Box::new(change), Verdict::Invalid, Rule::Timestamp)
}

fn edits() -> Vec<Edit> {
    let put = |name: &'static str, bytes: Vec<u8>| {
        edit(move |members| {
            members.insert(name.to_owned(), bytes.clone());
        })
    };
    let remove = |name: &'static str| {
        edit(move |members| {
            members.remove(name).unwrap();
        })
    };
    let mut other = Log::default();
    for leaf in 0..8_u8 {
        other.append(&[leaf]);
    }
    let stranger = other.checkpoint_by(&SecretKey::from_seed(&[78; 32]));
    let mut edits = vec![
        remove(CHECKPOINT),
        remove("timestamps/8/one.tsr"),
        put(CHECKPOINT, b"words".to_vec()),
        put(CHECKPOINT, stranger.to_string().into_bytes()),
        put(CHECKPOINT, other.checkpoint().to_string().into_bytes()),
        put("consistency/8-9", Vec::new()),
        // A line that was put in: the log's own stay what was stamped.
        edit(|members| {
            let note = members.get_mut(CHECKPOINT).unwrap();
            note.extend("\u{2014} somebody AAAAAAAA\n".as_bytes());
        }),
        // Under another number.
        edit(|members| {
            for file in ["checkpoint", "one.tsr"] {
                let bytes = members.remove(&format!("timestamps/8/{file}")).unwrap();
                members.insert(format!("timestamps/7/{file}"), bytes);
            }
        }),
    ];
    let mut unproven = remove("consistency/8-9");
    unproven.1 = Verdict::CannotVerify;
    edits.push(unproven);
    for name in [
        "timestamps/8/one.txt",
        "timestamps/08/one.tsr",
        "timestamps/8/a.b.tsr",
        "timestamps/8/.tsr",
        "timestamps/one.tsr",
        "timestamps/8/deep/one.tsr",
    ] {
        let mut other = put(name, b"x".to_vec());
        other.2 = Rule::Bundle;
        edits.push(other);
    }
    edits
}

#[test]
fn a_stamped_checkpoint_is_the_logs_and_proven() {
    let bundle = world_of(&Authority::new("Authority A"));
    for Edit(change, verdict, rule) in edits() {
        assert_failed(&check(&with(&bundle, change)), verdict, rule);
    }
}

#[test]
fn no_more_are_looked_at_than_cost_little() {
    let authority = Authority::new("Authority A");
    let bundle = world_of(&authority);
    let many = |count: u32| {
        with(&bundle, |members| {
            let one = members["timestamps/8/one.tsr"].clone();
            for number in 1..count {
                members.insert(format!("timestamps/8/n{number}.tsr"), one.clone());
            }
        })
    };
    assert_eq!(check(&many(64)).report.verdict, Verdict::Valid);
    let report = check(&many(65));
    assert_failed(&report, Verdict::Invalid, Rule::Timestamp);
    assert_eq!(report.timestamps.len(), 64);
}
