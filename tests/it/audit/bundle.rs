//! What a stranger is given, and every way to give them something else.

use std::collections::BTreeMap;

use caretaker::attest::chain::{Rule as ChainRule, Verdict};
use caretaker::attest::trust_root::{Revocation, SideKey};
use caretaker::attest::{List, SecretKey, Text, TrustRoot, TrustRootDocument};
use caretaker::audit::{BundleContents, BundleError, BundleReport, Ending, Pin, Rule, log_origin};
use caretaker::change::Sha256Digest;
use caretaker::clock::Millis;
use caretaker::log::{
    Checkpoint, Frontier, LogProof, LogSigner, Node, ProofPlan, SignedCheckpoint, TreeHash,
};
use proptest::prelude::*;

use super::super::attest::ledger::{
    Ledger, forge, key, label, payload_of, role_keys, root_document, root_key, seed,
};
use crate::twin::verify_bundle;
use caretaker::attest::Role;
use caretaker::attest::dsse::IN_TOTO;

pub(super) fn log_key() -> SecretKey {
    SecretKey::from_seed(&[77; 32])
}

/// The organisation's first trust root, with a key of the log.
fn document() -> TrustRootDocument {
    let mut document = root_document();
    let key = SideKey::from_public(label("log"), log_key().public());
    document.side_keys = Some(List::first_of([key]));
    document
}

pub(super) fn trust_root() -> TrustRoot {
    TrustRoot::sign(&document(), &[&root_key(0)]).unwrap()
}

pub(super) fn pin() -> Pin {
    Pin::Root(Box::new(trust_root()))
}

/// A ledger under that trust root.
pub(super) fn ledger(write: impl FnOnce(&mut Ledger)) -> Ledger {
    let mut ledger = Ledger::new();
    ledger.trust = trust_root().into();
    write(&mut ledger);
    ledger
}

pub(super) fn merged() -> Ledger {
    ledger(|ledger| {
        ledger.propose(|_| ());
        ledger.decide(|_| ());
        ledger.answer(|_| ());
        ledger.execute(|_| ());
    })
}

/// A log in memory.
#[derive(Default)]
pub(super) struct Log {
    tree: Frontier,
    nodes: BTreeMap<Node, TreeHash>,
}

impl Log {
    pub(super) fn append(&mut self, leaf: &[u8]) -> u64 {
        let index = self.tree.size();
        let nodes = &mut self.nodes;
        let complete = |node, hash| {
            nodes.insert(node, hash);
        };
        self.tree
            .append_with(TreeHash::of_leaf(leaf), complete)
            .unwrap();
        index
    }

    pub(super) fn size(&self) -> u64 {
        self.tree.size()
    }

    pub(super) fn checkpoint(&self) -> SignedCheckpoint {
        self.checkpoint_by(&log_key())
    }

    pub(super) fn checkpoint_by(&self, key: &SecretKey) -> SignedCheckpoint {
        self.checkpoint_of("example", key)
    }

    /// As if it were another organisation's log.
    pub(super) fn checkpoint_of(&self, organisation: &str, key: &SecretKey) -> SignedCheckpoint {
        let origin = log_origin(organisation).unwrap();
        let signer = LogSigner::new(origin.clone(), key);
        signer
            .sign(Checkpoint::new(origin, self.tree.head()))
            .unwrap()
    }

    pub(super) fn prove(&self, plan: &ProofPlan) -> Vec<TreeHash> {
        plan.build(|node| Ok::<_, ()>(self.nodes[&node])).unwrap()
    }

    /// What an exporter would write.
    pub(super) fn contents(&self, ledger: &Ledger, places: &[u64]) -> BundleContents {
        self.contents_under(&self.checkpoint(), ledger, places)
    }

    /// The same under a checkpoint that others have signed, too.
    pub(super) fn contents_under(
        &self,
        checkpoint: &SignedCheckpoint,
        ledger: &Ledger,
        places: &[u64],
    ) -> BundleContents {
        let proof = |place: &u64| {
            let hashes = self.prove(&ProofPlan::inclusion(*place, self.tree.size()).unwrap());
            let proof = LogProof::new(*place, hashes, checkpoint.clone()).unwrap();
            proof.to_string().into_bytes()
        };
        let roots = ledger.trust.versions();
        BundleContents {
            trust_roots: roots
                .map(|root| (root.document().version, root.to_bytes().unwrap()))
                .collect(),
            events: ledger
                .envelopes
                .iter()
                .cloned()
                .zip(places.iter().map(proof))
                .collect(),
            ..BundleContents::default()
        }
    }
}

/// A log in which the ledger's events stand among others, and where.
pub(super) fn logged(ledger: &Ledger) -> (Log, Vec<u64>) {
    let mut log = Log::default();
    let mut places = Vec::new();
    for envelope in &ledger.envelopes {
        log.append(b"another organisation's business");
        places.push(log.append(envelope));
    }
    log.append(b"what came after");
    (log, places)
}

pub(super) fn contents(ledger: &Ledger) -> BundleContents {
    let (log, places) = logged(ledger);
    log.contents(ledger, &places)
}

pub(super) fn check(bundle: &[u8]) -> BundleReport {
    verify_bundle(bundle, &pin(), None).unwrap()
}

#[track_caller]
pub(super) fn assert_failed(report: &BundleReport, verdict: Verdict, rule: Rule) {
    assert_eq!(report.report.verdict, verdict, "{report:#?}");
    let found = report
        .report
        .failures
        .iter()
        .any(|failure| failure.rule == rule);
    assert!(found, "no {rule}: {report:#?}");
}

#[test]
fn an_incident_verifies_with_nothing_but_its_bundle_and_a_pinned_trust_root() {
    let ledger = merged();
    let bundle = contents(&ledger).write().unwrap();
    let report = check(&bundle);
    assert_eq!(report.report.verdict, Verdict::Valid, "{report:#?}");
    assert_eq!(report.report.events.len(), 4);
    assert_eq!(report.ending, Ending::Finished);
    assert_eq!(report.incident, Some(ledger.incident.to_string()));
    let checkpoint = report.report.checkpoint.unwrap();
    assert_eq!(
        (checkpoint.size, checkpoint.origin.as_str()),
        (9, "caretaker/example")
    );
    // The digest alone is enough of a pin: the bundle brings the rest.
    let by_digest = verify_bundle(&bundle, &Pin::Digest(trust_root().digest()), None).unwrap();
    assert_eq!(by_digest.report.verdict, Verdict::Valid);
}

#[test]
fn nothing_to_verify_is_never_valid() {
    let empty = contents(&ledger(|_| ())).write().unwrap();
    let report = check(&empty);
    assert_failed(
        &report,
        Verdict::CannotVerify,
        Rule::Chain(ChainRule::Empty),
    );
    for bytes in [
        &b""[..],
        b"PK\x05\x06",
        &[0; 22],
        b"not a zip file at all, only words",
    ] {
        assert!(matches!(
            verify_bundle(bytes, &pin(), None),
            Err(BundleError::Archive(_))
        ));
    }
}

#[test]
fn an_open_incident_is_said_to_be_open() {
    let open = ledger(|ledger| {
        ledger.propose(|_| ());
        ledger.decide(|_| ());
    });
    let report = check(&contents(&open).write().unwrap());
    assert_eq!(report.report.verdict, Verdict::Valid);
    assert_eq!(report.ending, Ending::Open);
}

#[test]
fn a_bundle_with_a_trust_root_of_its_own_is_refused() {
    // Everything is signed anew by somebody with keys and a trust root of their own.
    let mut own = document();
    own.root_keys = List::first_of([caretaker::attest::trust_root::RootKey::from_public(
        root_key(9).public(),
    )]);
    let own = TrustRoot::sign(&own, &[&root_key(9)]).unwrap();
    let mut ledger = Ledger::new();
    ledger.trust = own.clone().into();
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    let bundle = contents(&ledger).write().unwrap();
    assert_eq!(
        verify_bundle(&bundle, &Pin::Root(Box::new(own)), None)
            .unwrap()
            .report
            .verdict,
        Verdict::Valid
    );
    let refused = verify_bundle(&bundle, &pin(), None);
    assert!(
        matches!(refused, Err(BundleError::Swapped { .. })),
        "{refused:?}"
    );
    // Nor without it.
    let mut bare = contents(&ledger);
    bare.trust_roots.clear();
    let report = check(&bare.write().unwrap());
    assert_failed(&report, Verdict::Invalid, Rule::Chain(ChainRule::TrustRoot));
    let missing = verify_bundle(&bundle, &Pin::Digest(trust_root().digest()), None);
    assert!(matches!(missing, Err(BundleError::NotThere { .. })));
}

#[test]
fn a_trust_root_that_does_not_follow_from_the_pinned_one_is_refused() {
    let ledger = merged();
    let mut next = document();
    next.version = 2;
    next.prev = Some(trust_root().digest().into());
    next.root_keys = List::first_of([caretaker::attest::trust_root::RootKey::from_public(
        root_key(9).public(),
    )]);
    // Signed by the new root key only.
    let usurper = TrustRoot::sign(&next, &[&root_key(9)]).unwrap();
    let mut contents = contents(&ledger);
    contents.trust_roots.push((2, usurper.to_bytes().unwrap()));
    let refused = verify_bundle(&contents.write().unwrap(), &pin(), None);
    assert!(
        matches!(refused, Err(BundleError::TrustRoot { member, .. }) if member == "root/2.json")
    );
}

/// A version that was good once, from before a key was revoked: the pinned one decides.
#[test]
fn an_older_trust_root_than_the_pinned_one_changes_nothing() {
    let bundle = contents(&merged()).write().unwrap();
    let mut next = document();
    next.version = 2;
    next.prev = Some(trust_root().digest().into());
    let mut executor = next.roles.executor[0].clone();
    executor.revoked = Some(Revocation {
        at: Millis(1),
        at_index: None,
        compromised_since: None,
        reason: Text::new("stolen").unwrap(),
    });
    next.roles.executor = List::first_of([executor]);
    let newest = TrustRoot::sign(&next, &[&root_key(0)]).unwrap();
    // By its digest it has to be there, and it is not.
    let missing = verify_bundle(&bundle, &Pin::Digest(newest.digest()), None);
    assert!(
        matches!(missing, Err(BundleError::NotThere { .. })),
        "{missing:?}"
    );
    let report = verify_bundle(&bundle, &Pin::Root(Box::new(newest)), None).unwrap();
    assert_failed(
        &report,
        Verdict::Invalid,
        Rule::Chain(ChainRule::KeyRevoked),
    );
    assert_eq!(check(&bundle).report.verdict, Verdict::Valid);
}

#[test]
fn another_trust_root_of_the_pinned_number_is_refused() {
    let mut bundle = contents(&merged());
    let mut other = document();
    other.expires_at = Millis(other.expires_at.0 + 1);
    let other = TrustRoot::sign(&other, &[&root_key(0)]).unwrap();
    bundle.trust_roots = vec![(1, other.to_bytes().unwrap())];
    let refused = verify_bundle(&bundle.clone().write().unwrap(), &pin(), None);
    assert!(
        matches!(refused, Err(BundleError::Swapped { .. })),
        "{refused:?}"
    );
    bundle.trust_roots = vec![(2, trust_root().to_bytes().unwrap())];
    let refused = verify_bundle(&bundle.write().unwrap(), &pin(), None);
    assert!(
        matches!(refused, Err(BundleError::Misnamed { version: 1, .. })),
        "{refused:?}"
    );
}

#[test]
fn a_checkpoint_by_a_revoked_key_of_the_log_proves_nothing() {
    let mut document = document();
    let key = SideKey::from_public(label("log"), log_key().public());
    let revoked = Revocation {
        at: Millis(1),
        at_index: None,
        compromised_since: None,
        reason: Text::new("stolen").unwrap(),
    };
    let revoked = SideKey {
        revoked: Some(revoked),
        ..key
    };
    document.side_keys = Some(List::first_of([revoked]));
    let root = TrustRoot::sign(&document, &[&root_key(0)]).unwrap();
    let mut ledger = Ledger::new();
    ledger.trust = root.clone().into();
    ledger.propose(|_| ());
    let bundle = contents(&ledger).write().unwrap();
    let report = verify_bundle(&bundle, &Pin::Root(Box::new(root)), None).unwrap();
    assert_failed(&report, Verdict::CannotVerify, Rule::Log);
}

#[test]
fn there_is_one_way_to_write_the_events() {
    let bundle = contents(&merged()).write().unwrap();
    for edit in [&b""[..], b"\n\n"] {
        let mut members = unpacked(&bundle);
        let events = members.get_mut("events.jsonl").unwrap();
        events.pop();
        events.extend(edit);
        let report = check(&packed(&members));
        assert_eq!(report.report.verdict, Verdict::Invalid, "{report:#?}");
    }
    // A line without anything in it is a line; only no bytes are no events.
    let envelope = Rule::Chain(ChainRule::Envelope);
    for (events, verdict, rule) in [
        (
            &b""[..],
            Verdict::CannotVerify,
            Rule::Chain(ChainRule::Empty),
        ),
        // Break it: take the line break away before `is_empty` is asked in `audit::bundle::events`.
        (b"\n", Verdict::Invalid, envelope),
        (b"\n\n", Verdict::Invalid, envelope),
    ] {
        let mut members = unpacked(&bundle);
        members.retain(|name, _| !name.starts_with("proofs/"));
        members.insert("events.jsonl".to_owned(), events.to_vec());
        assert_failed(&check(&packed(&members)), verdict, rule);
    }
    let mut members = unpacked(&bundle);
    let hash = format!("{}\n", TreeHash::of_nothing());
    for proof in [
        "no hash\n".to_owned(),
        "x".to_owned(),
        hash.repeat(64),
        hash.trim().to_owned(),
    ] {
        members.insert("consistency/1-2".to_owned(), proof.into_bytes());
        assert_failed(&check(&packed(&members)), Verdict::Invalid, Rule::Bundle);
    }
    // As many lines as are read, and something behind them.
    let mut members = unpacked(&bundle);
    let mut events = members["events.jsonl"].clone();
    events.extend(b"\n".repeat(4_096));
    events.extend(b"unread\n");
    members.insert("events.jsonl".to_owned(), events);
    assert_failed(&check(&packed(&members)), Verdict::Invalid, Rule::Bundle);
}

#[test]
fn a_gap_after_the_merge_leaves_the_incident_finished() {
    let mut ledger = merged();
    ledger.admit_gap();
    let report = check(&contents(&ledger).write().unwrap());
    assert_eq!(report.report.verdict, Verdict::Valid, "{report:#?}");
    assert_eq!(report.ending, Ending::Finished);
}

#[test]
fn every_edit_of_the_events_is_found() {
    let ledger = merged();
    let edits: [(&str, fn(&mut Vec<(Vec<u8>, Vec<u8>)>)); 5] = [
        ("the first cut off", |events| drop(events.remove(0))),
        ("one cut out", |events| drop(events.remove(2))),
        ("two exchanged", |events| events.swap(1, 2)),
        ("one twice", |events| events.insert(1, events[0].clone())),
        ("proofs exchanged", |events| {
            let proof = events[0].1.clone();
            events[0].1 = std::mem::replace(&mut events[1].1, proof);
        }),
    ];
    for (what, edit) in edits {
        let mut contents = contents(&ledger);
        edit(&mut contents.events);
        let report = check(&contents.write().unwrap());
        assert_eq!(
            report.report.verdict,
            Verdict::Invalid,
            "{what}: {report:#?}"
        );
    }
}

/// A holder of all role keys can sign another history, but not put it into the log that is anchored.
#[test]
fn an_event_that_was_signed_anew_is_not_in_the_log() {
    let ledger = merged();
    let (log, places) = logged(&ledger);
    let mut contents = log.contents(&ledger, &places);
    let another = merged_with_another_answer();
    contents.events[2].0.clone_from(&another.envelopes[2]);
    contents.events[3].0.clone_from(&another.envelopes[3]);
    let report = check(&contents.write().unwrap());
    assert_failed(&report, Verdict::Invalid, Rule::Log);
    let chain = report
        .report
        .failures
        .iter()
        .all(|failure| failure.rule == Rule::Log);
    assert!(chain, "only the log shows it: {report:#?}");
}

fn merged_with_another_answer() -> Ledger {
    ledger(|ledger| {
        ledger.propose(|_| ());
        ledger.decide(|_| ());
        ledger.answer(|approval| {
            approval.event.occurred_at = Millis(approval.event.occurred_at.0 + 1);
        });
        ledger.execute(|_| ());
    })
}

#[test]
fn a_checkpoint_by_another_key_proves_nothing() {
    let ledger = merged();
    let (log, places) = logged(&ledger);
    let mut contents = log.contents(&ledger, &places);
    let forged = log.checkpoint_by(&SecretKey::from_seed(&[78; 32]));
    for (place, event) in places.iter().zip(&mut contents.events) {
        let hashes = log.prove(&ProofPlan::inclusion(*place, log.tree.size()).unwrap());
        let proof = LogProof::new(*place, hashes, forged.clone()).unwrap();
        event.1 = proof.to_string().into_bytes();
    }
    assert_failed(
        &check(&contents.write().unwrap()),
        Verdict::Invalid,
        Rule::Log,
    );
}

#[test]
fn without_proofs_or_without_a_key_of_the_log_nothing_is_valid() {
    let ledger = merged();
    let mut members = unpacked(&contents(&ledger).write().unwrap());
    members.remove("proofs/1.tlog-proof");
    let report = check(&packed(&members));
    assert_failed(&report, Verdict::CannotVerify, Rule::Log);
    // A trust root from before there was a log.
    let old = Ledger::merged();
    let (log, places) = logged(&old);
    let bundle = log.contents(&old, &places).write().unwrap();
    let pin = Pin::Root(Box::new(old.trust.newest().clone()));
    let report = verify_bundle(&bundle, &pin, None).unwrap();
    assert_failed(&report, Verdict::CannotVerify, Rule::Log);
}

#[test]
fn a_log_that_was_written_anew_does_not_extend_the_one_that_was_seen() {
    let ledger = merged();
    let (log, places) = logged(&ledger);
    let bundle = log.contents(&ledger, &places);
    let seen = |log: &Log| {
        verify_bundle(
            &bundle.clone().write().unwrap(),
            &pin(),
            Some(&log.checkpoint()),
        )
        .unwrap()
    };
    assert_eq!(seen(&log).report.verdict, Verdict::Valid);
    let mut other = Log::default();
    for number in 0..log.tree.size() {
        other.append(format!("another history, leaf {number}").as_bytes());
    }
    assert_failed(&seen(&other), Verdict::Invalid, Rule::Checkpoint);
    // One of another size needs a proof, and not any proof.
    let mut older = Log::default();
    older.append(b"another organisation's business");
    assert_failed(&seen(&older), Verdict::CannotVerify, Rule::Checkpoint);
    let mut with_proof = bundle.clone();
    let plan = ProofPlan::consistency(1, log.tree.size()).unwrap();
    with_proof.consistency = vec![(1, log.tree.size(), log.prove(&plan))];
    let proven = with_proof.clone().write().unwrap();
    let report = verify_bundle(&proven, &pin(), Some(&older.checkpoint())).unwrap();
    assert_eq!(report.report.verdict, Verdict::Valid, "{report:#?}");
    let mut rewritten = Log::default();
    rewritten.append(b"what was really there");
    let report = verify_bundle(&proven, &pin(), Some(&rewritten.checkpoint())).unwrap();
    assert_failed(&report, Verdict::Invalid, Rule::Checkpoint);
}

#[test]
fn a_key_counts_in_its_part_of_the_log() {
    let mut document = document();
    let mut keys = role_keys();
    let mut approver = keys.approver[0].clone();
    approver.until_index = Some(4);
    keys.approver = List::first_of([approver]);
    document.roles = keys;
    let root = TrustRoot::sign(&document, &[&root_key(0)]).unwrap();
    let mut ledger = Ledger::new();
    ledger.trust = root.clone().into();
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    ledger.answer(|_| ());
    // Its place in the log is 5.
    let bundle = contents(&ledger).write().unwrap();
    let report = verify_bundle(&bundle, &Pin::Root(Box::new(root)), None).unwrap();
    assert_failed(&report, Verdict::Invalid, Rule::Chain(ChainRule::KeyWindow));
}

#[test]
fn evidence_is_what_its_name_says_and_nothing_else_is_carried_along() {
    let ledger = merged();
    let mut with_evidence = contents(&ledger);
    with_evidence.evidence = vec![(Sha256Digest::of(b"a log"), b"a log".to_vec())];
    let bundle = with_evidence.write().unwrap();
    assert_eq!(check(&bundle).report.verdict, Verdict::Valid);
    let mut swapped = unpacked(&bundle);
    let name = format!("evidence/{}", Sha256Digest::of(b"a log"));
    swapped.insert(name, b"another log".to_vec());
    assert_failed(&check(&packed(&swapped)), Verdict::Invalid, Rule::Evidence);
    for stray in [
        "readme.txt",
        "proofs/4.tlog-proof",
        "evidence/x",
        "events.jsonl/a",
        "consistency/1",
    ] {
        let mut members = unpacked(&bundle);
        members.insert(stray.to_owned(), trust_root().to_bytes().unwrap());
        assert_failed(&check(&packed(&members)), Verdict::Invalid, Rule::Bundle);
    }
}

#[test]
fn a_later_format_is_not_guessed_at() {
    let mut members = unpacked(&contents(&merged()).write().unwrap());
    members.insert("format".to_owned(), b"caretaker-bundle/v2\n".to_vec());
    let refused = verify_bundle(&packed(&members), &pin(), None);
    assert!(
        matches!(refused, Err(BundleError::Format { found }) if found == "caretaker-bundle/v2")
    );
}

/// Bounded, whatever is in it: a line of a million signatures, ten million empty lines, deep JSON.
#[test]
fn hostile_members_end_in_bounded_time() {
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let signature = r#"{"keyid":"x","sig":"eA=="}"#;
    let many = format!(
        r#"{{"payload":"e30=","payloadType":"{IN_TOTO}","signatures":[{}]}}"#,
        vec![signature; 200_000].join(",")
    );
    let lines = b"\n".repeat(10_000_000);
    let long = vec![b'x'; 50 << 20];
    for events in [deep, many.into_bytes(), lines, long] {
        let mut members = unpacked(&contents(&merged()).write().unwrap());
        members.insert("events.jsonl".to_owned(), events);
        let begun = std::time::Instant::now();
        let report = check(&packed(&members));
        assert_ne!(report.report.verdict, Verdict::Valid);
        assert!(begun.elapsed().as_secs() < 30, "unbounded");
    }
}

/// The same statement under the key of another role, or with another type, is none.
#[test]
fn roles_and_types_are_not_interchangeable() {
    for (payload_type, role) in [
        (IN_TOTO, Role::Executor),
        ("application/json", Role::Approver),
        ("application/vnd.caretaker.trust-root+json", Role::Approver),
    ] {
        let mut ledger = merged();
        let payload = payload_of(&ledger.envelopes[2]);
        ledger.envelopes[2] = forge(payload_type, &payload, &seed(role));
        let report = check(&contents(&ledger).write().unwrap());
        assert_eq!(
            report.report.verdict,
            Verdict::Invalid,
            "{payload_type} by the {role}"
        );
    }
    assert_ne!(key(Role::Executor).public(), key(Role::Approver).public());
}

pub(super) fn unpacked(bundle: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let archive = caretaker::audit::Archive::parse(bundle).unwrap();
    let owned = archive.members();
    owned
        .map(|(name, content)| (name.to_owned(), content.to_vec()))
        .collect()
}

pub(super) fn packed(members: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    caretaker::audit::write_archive(members).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever bit of a bundle is changed, it is not valid any more: no byte of it is outside of what is checked.
    #[test]
    fn no_changed_bit_goes_unnoticed(place in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bundle = contents(&merged()).write().unwrap();
        let place = place.index(bundle.len());
        bundle[place] ^= 1 << bit;
        // By neither verifier.
        let judged = verify_bundle(&bundle, &pin(), None);
        prop_assert!(judged.is_err() || judged.unwrap().report.verdict != Verdict::Valid);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _judged = verify_bundle(&bytes, &pin(), None);
    }

    /// Cut anywhere, with anything in the place of the rest.
    #[test]
    fn no_part_of_a_bundle_is_one(cut in any::<prop::sample::Index>(), rest in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut bundle = contents(&merged()).write().unwrap();
        let length = bundle.len();
        bundle.truncate(cut.index(length));
        bundle.extend(rest);
        prop_assume!(bundle.len() != length);
        prop_assert!(verify_bundle(&bundle, &pin(), None).is_err());
    }
}
