//! Witnesses' words in a bundle, by an auditor's policy; our verifier and its twin say the same.

use caretaker::attest::chain::Verdict;
use caretaker::audit::{BundleReport, Rule};
use caretaker::log::{AuditorPolicy, LogPolicy, SignatureType, SignedCheckpoint, VerifierKey};

use super::bundle::{Log, assert_failed, log_key, logged, merged, pin};
use crate::attest::ledger::Ledger;
use crate::log::scene::{NOW, witness};
use crate::twin::{twins, verify_bundle, verify_bundle_under};

fn vkey(number: u8) -> String {
    witness(number).verifier().to_string()
}

/// The key of the bundles' log.
fn log_vkey() -> VerifierKey {
    let origin = caretaker::audit::log_origin("example").unwrap();
    VerifierKey::new(origin, SignatureType::Log, log_key().public())
}

/// A merged incident in a log.
struct World {
    ledger: Ledger,
    log: Log,
    places: Vec<u64>,
}

impl World {
    fn new() -> Self {
        let ledger = merged();
        let (log, places) = logged(&ledger);
        Self {
            ledger,
            log,
            places,
        }
    }

    /// The checkpoint with these witnesses' words.
    fn cosigned(&self, witnesses: &[u8]) -> SignedCheckpoint {
        let mut checkpoint = self.log.checkpoint();
        let policy = LogPolicy::new(vec![log_vkey()], vec![], 0).unwrap();
        let trusted = policy.verify(&checkpoint).unwrap();
        for number in witnesses {
            checkpoint
                .add(witness(*number).cosign(&trusted, NOW).unwrap())
                .unwrap();
        }
        checkpoint
    }

    fn bundle(&self, witnesses: &[u8]) -> Vec<u8> {
        let checkpoint = self.cosigned(witnesses);
        let contents = self
            .log
            .contents_under(&checkpoint, &self.ledger, &self.places);
        contents.write().unwrap()
    }
}

/// What both verifiers say under a policy.
#[track_caller]
fn check(bundle: &[u8], policy: &str) -> BundleReport {
    verify_bundle_under(bundle, &pin(), None, Some(policy)).unwrap()
}

/// Two of three witnesses, over the bundles' log.
fn two_of_three() -> String {
    format!(
        "log {}\nwitness a {}\nwitness b {}\nwitness c {}\ngroup g 2 a b c\nquorum g\n",
        log_vkey(),
        vkey(1),
        vkey(2),
        vkey(3)
    )
}

#[test]
fn a_bundle_that_enough_witnesses_have_seen_is_valid() {
    let world = World::new();
    let report = check(&world.bundle(&[1, 3, 7]), &two_of_three());
    assert_eq!(report.report.verdict, Verdict::Valid, "{report:#?}");
    let cosigned = report.cosignatures.unwrap();
    let names: Vec<_> = cosigned.iter().map(|one| one.witness.as_str()).collect();
    assert_eq!(names, ["witness.example/w1", "witness.example/w3"]);
    assert_eq!(cosigned[0].seconds, 1_800_000_000);
    // The lines of witnesses that nobody asked for change nothing.
    let report = check(&world.bundle(&[7]), "quorum none\n");
    assert_eq!(report.report.verdict, Verdict::Valid);
    let without = verify_bundle(&world.bundle(&[7]), &pin(), None).unwrap();
    assert_eq!(
        (without.report.verdict, without.cosignatures),
        (Verdict::Valid, None)
    );
}

#[test]
fn a_quorum_that_is_not_met_is_never_valid() {
    let world = World::new();
    for witnesses in [&[][..], &[1], &[7, 8, 9]] {
        let report = check(&world.bundle(witnesses), &two_of_three());
        assert_failed(&report, Verdict::CannotVerify, Rule::Witness);
        assert_eq!(report.cosignatures, Some(vec![]));
    }
    // One witness many times is one.
    let once = world.cosigned(&[1]);
    let line = once.note().signatures()[1].to_string();
    let many = format!("{once}{}", format!("{line}\n").repeat(3));
    let many = SignedCheckpoint::parse(many.as_bytes()).unwrap();
    let contents = world
        .log
        .contents_under(&many, &world.ledger, &world.places);
    let report = check(&contents.write().unwrap(), &two_of_three());
    assert_failed(&report, Verdict::CannotVerify, Rule::Witness);
}

#[test]
fn a_changed_line_of_a_known_witness_is_invalid() {
    let world = World::new();
    let elsewhere = World::new();
    let mut other = elsewhere.log;
    other.append(b"one more");
    let elsewhere = World {
        log: other,
        ..elsewhere
    };
    let moved = elsewhere.cosigned(&[2]).note().signatures()[1].clone();
    let mut changed = world.cosigned(&[1, 3]);
    changed.add(moved).unwrap();
    let contents = world
        .log
        .contents_under(&changed, &world.ledger, &world.places);
    let bundle = contents.write().unwrap();
    let report = check(&bundle, &two_of_three());
    assert_failed(&report, Verdict::Invalid, Rule::Witness);
    // Nobody knows witness 2: the line is a stranger's.
    let strangers = format!("witness a {}\nquorum a\n", vkey(1));
    assert_eq!(check(&bundle, &strangers).report.verdict, Verdict::Valid);
    // In one proof alone, the last.
    let mut contents =
        world
            .log
            .contents_under(&world.cosigned(&[1, 3]), &world.ledger, &world.places);
    let last = world
        .log
        .contents_under(&changed, &world.ledger, &world.places);
    contents.events[3].1.clone_from(&last.events[3].1);
    let report = check(&contents.write().unwrap(), &two_of_three());
    assert_failed(&report, Verdict::Invalid, Rule::Witness);
    assert_eq!(report.report.failures.len(), 1);
    assert_eq!(report.report.failures[0].seq, 3);
    // Lines that are cut, or of a time that cannot be.
    let good = world.cosigned(&[1]).note().signatures()[1].to_string();
    let encoded = good.rsplit(' ').next().unwrap();
    for bytes in [&b"\0\0\0\x01"[..], &[0xff; 72], &[0; 71]] {
        use base64::Engine as _;
        let engine = base64::engine::general_purpose::STANDARD;
        let mut line = engine.decode(encoded).unwrap();
        line.truncate(4);
        line.extend_from_slice(bytes);
        let bad = good.replace(encoded, &engine.encode(line));
        let text = format!("{}{bad}\n", world.cosigned(&[]));
        let checkpoint = SignedCheckpoint::parse(text.as_bytes()).unwrap();
        let contents = world
            .log
            .contents_under(&checkpoint, &world.ledger, &world.places);
        let report = check(&contents.write().unwrap(), &two_of_three());
        assert_failed(&report, Verdict::Invalid, Rule::Witness);
    }
}

#[test]
fn a_log_that_the_policy_does_not_list_is_not_vouched_for() {
    let world = World::new();
    let bundle = world.bundle(&[1, 2, 3]);
    let other = two_of_three().replace(
        &log_vkey().to_string(),
        &crate::log::scene::log().verifier().to_string(),
    );
    assert_failed(
        &check(&bundle, &other),
        Verdict::CannotVerify,
        Rule::Witness,
    );
    // The log's name with another key.
    let public = caretaker::attest::SecretKey::from_seed(&[5; 32]).public();
    let key = VerifierKey::new(log_vkey().name().clone(), SignatureType::Log, public);
    let other = two_of_three().replace(&log_vkey().to_string(), &key.to_string());
    assert_failed(
        &check(&bundle, &other),
        Verdict::CannotVerify,
        Rule::Witness,
    );
    // Without a log the trust root's alone counts, as it always does.
    let none = two_of_three().split_once('\n').unwrap().1.to_owned();
    assert_eq!(check(&bundle, &none).report.verdict, Verdict::Valid);
}

#[test]
fn a_policy_makes_no_verdict_better() {
    let world = World::new();
    let checkpoint = world.cosigned(&[1, 2, 3]);
    let mut contents = world
        .log
        .contents_under(&checkpoint, &world.ledger, &world.places);
    contents.events.swap(1, 2);
    let report = check(&contents.write().unwrap(), &two_of_three());
    assert_eq!(report.report.verdict, Verdict::Invalid);
    // A line of the trust root's log key that does not verify, under a policy that does not list it.
    let other = World {
        log: Log::default(),
        ..World::new()
    };
    let line = other.log.checkpoint().note().signatures()[0].to_string();
    let bad = format!("{checkpoint}{line}\n");
    let bad = SignedCheckpoint::parse(bad.as_bytes()).unwrap();
    let contents = world.log.contents_under(&bad, &world.ledger, &world.places);
    let none = format!("witness a {}\nquorum a\n", vkey(1));
    let report = check(&contents.write().unwrap(), &none);
    assert_failed(&report, Verdict::Invalid, Rule::Log);
}

#[test]
fn both_verifiers_read_the_same_policies() {
    let bundle = World::new().bundle(&[1, 2, 3]);
    let key = vkey(1);
    let known = format!("witness a {key}\n");
    for text in [
        String::new(),
        known.clone(),
        "quorum none".to_owned(),
        "quorum none\nquorum none\n".to_owned(),
        "quorum b\n".to_owned(),
        format!("quorum a\n{known}"),
        format!("witness none {key}\nquorum none\n"),
        format!("{known}witness b {key}\nquorum a\n"),
        format!("{known}group a any a\nquorum a\n"),
        format!("{known}group g any\nquorum none\n"),
        format!("{known}group g 0 a\nquorum g\n"),
        format!("{known}group g 2 a\nquorum g\n"),
        format!("{known}group g 01 a\nquorum g\n"),
        format!("{known}group g any a a\nquorum g\n"),
        format!("{known}group g any a\ngroup h any a\nquorum g\n"),
        format!("witness a {key} b c\nquorum a\n"),
        format!("log {key}\nquorum none\n"),
        format!("witness a {}\nquorum none\n", log_vkey()),
        format!("witness a {key}\r\nquorum a\n"),
        format!("#\u{7f}\n{known}quorum a\n"),
        format!("witness a x{key}\nquorum a\n"),
        "word\n".to_owned(),
    ] {
        AuditorPolicy::parse(text.as_bytes()).unwrap_err();
        let said = twins(&bundle, &pin(), None, Some(&text));
        assert_eq!(said["verdict"], "cannot-verify", "{text}: {said}");
        assert_eq!(said["failures"][0]["rule"], "bundle", "{text}: {said}");
    }
    for text in [
        format!(" \t# x\n\n\t{known}quorum\ta \n"),
        format!("witness \u{e9} {key} https://x/\nquorum \u{e9}\n"),
        format!(
            "{known}group all all a\nquorum all\nwitness b {}\n",
            vkey(2)
        ),
    ] {
        assert_eq!(check(&bundle, &text).report.verdict, Verdict::Valid);
    }
}
