//! `--checkpoint FILE`: what an auditor saw of the log before, held against a bundle by every program that can.

use std::path::PathBuf;
use std::process::Output;

use caretaker::attest::SecretKey;
use caretaker::log::{ProofPlan, SignedCheckpoint};
use serde_json::Value;
use tempfile::TempDir;

use super::bundle::{Log, log_key, logged, merged, trust_root};
use crate::offline::{CARETAKER, VERIFIER, judged, run};
use crate::twin::SCRIPT;

/// A bundle of a merged incident, and the log at three moments: one leaf, the bundle's nine, ten.
struct World {
    place: TempDir,
    older: Log,
    log: Log,
    newer: Log,
}

const FIRST: &[u8] = b"another organisation's business";

impl World {
    fn new() -> Self {
        let ledger = merged();
        let (log, places) = logged(&ledger);
        let (mut newer, _) = logged(&ledger);
        newer.append(b"one more");
        let mut older = Log::default();
        older.append(FIRST);
        let world = Self {
            place: tempfile::tempdir().unwrap(),
            older,
            log,
            newer,
        };
        let mut contents = world.log.contents(&ledger, &places);
        world.write("bare", &contents.clone().write().unwrap());
        contents.consistency = [(1, 9, &world.log), (9, 10, &world.newer)]
            .map(|(old, new, log)| {
                let plan = ProofPlan::consistency(old, new).unwrap();
                (old, new, log.prove(&plan))
            })
            .to_vec();
        world.write("proven", &contents.write().unwrap());
        world.write("root", &trust_root().to_bytes().unwrap());
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn run(&self, program: &[&str], bundle: &str, more: &[&str]) -> Output {
        let [bundle, root, seen] =
            [bundle, "root", "seen"].map(|it| self.path(it).to_str().unwrap().to_owned());
        let words = [
            bundle.as_str(),
            "--trust-root",
            &root,
            "--checkpoint",
            &seen,
        ];
        let words = [&program[1..], &words, more].concat();
        run(program[0], None, &words)
    }

    /// Asserts what our two programs and the twin say about a bundle and a checkpoint, as JSON and in words.
    #[track_caller]
    fn assert_told(&self, bundle: &str, seen: &str, code: i32, told: Option<(&str, &str)>) {
        self.write("seen", seen.as_bytes());
        let verdict = match code {
            0 => "valid",
            1 => "invalid",
            _ => "cannot-verify",
        };
        let programs: [(&[&str], bool); 3] = [
            (&[CARETAKER, "verify"], true),
            (&[VERIFIER], true),
            (&["python3", SCRIPT], false),
        ];
        for (program, ours) in programs {
            let report = judged(&self.run(program, bundle, &["--json"]), code, verdict);
            let failures = report["failures"].as_array().unwrap();
            let found: Vec<(&str, &Value)> = failures
                .iter()
                .map(|one| (one["rule"].as_str().unwrap(), &one["seq"]))
                .collect();
            let Some((rule, words)) = told else {
                assert_eq!(found, [], "{program:?}");
                continue;
            };
            let place = if rule == "bundle" { 0 } else { 4 };
            assert_eq!(found, [(rule, &Value::from(place))], "{program:?}");
            let output = self.run(program, bundle, &[]);
            assert_eq!(output.status.code(), Some(code), "{program:?}");
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert!(said.to_lowercase().contains(verdict), "{program:?}: {said}");
            // The twin's words are its own.
            assert!(!ours || said.contains(words), "{program:?}: {said}");
        }
    }
}

/// A log of as many leaves that holds something else.
fn forked(leaves: u64) -> SignedCheckpoint {
    let mut log = Log::default();
    for number in 0..leaves {
        log.append(format!("another history, leaf {number}").as_bytes());
    }
    log.checkpoint()
}

// Break it: return before `one_log` in `Judged::check_seen`, or before `older == newer` in `check_seen` of `tests/verifier.py`.
#[test]
fn the_log_that_was_seen_is_the_bundles_or_every_program_says_so() {
    let world = World::new();
    let [older, same, newer] =
        [&world.older, &world.log, &world.newer].map(|log| log.checkpoint().to_string());
    for bundle in ["bare", "proven"] {
        world.assert_told(bundle, &same, 0, None);
    }
    world.assert_told("proven", &older, 0, None);
    world.assert_told("proven", &newer, 0, None);
    for (seen, missing) in [
        (&older, "no consistency/1-9"),
        (&newer, "no consistency/9-10"),
    ] {
        world.assert_told("bare", seen, 3, Some(("checkpoint", missing)));
    }
    let two = "there are two histories";
    world.assert_told(
        "proven",
        &forked(9).to_string(),
        1,
        Some(("checkpoint", two)),
    );
    for leaves in [1, 10] {
        let seen = forked(leaves).to_string();
        world.assert_told(
            "proven",
            &seen,
            1,
            Some(("checkpoint", "the log that you saw")),
        );
    }
}

#[test]
fn a_checkpoint_that_does_not_count_says_nothing() {
    let world = World::new();
    let stranger = SecretKey::from_seed(&[78; 32]);
    let uncounted = Some(("checkpoint", "a checkpoint of this log to compare with"));
    for seen in [
        world.log.checkpoint_by(&stranger),
        world.log.checkpoint_of("another", &stranger),
        world.log.checkpoint_of("another", &log_key()),
    ] {
        world.assert_told("proven", &seen.to_string(), 3, uncounted);
    }
    let signed = world.log.checkpoint().to_string();
    for seen in ["", "no checkpoint\n", signed.trim_end()] {
        world.assert_told("proven", seen, 3, Some(("bundle", "the checkpoint ")));
    }
}
