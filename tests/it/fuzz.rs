//! A short run of the fuzzer (`tests/fuzz/fuzz.rs`): every reader, the same inputs each time.

use super::attest::ledger;

#[path = "../fuzz/change.rs"]
mod change;
#[path = "../fuzz/run.rs"]
mod run;
#[path = "../fuzz/targets/mod.rs"]
mod targets;

/// Inputs that each reader gets.
const ROUNDS: u64 = 400;

#[test]
fn no_changed_document_makes_a_reader_fail() {
    for target in targets::all() {
        let name = target.name;
        assert!(!target.good.is_empty(), "{name}: nothing to begin with");
        let ran = run::run(&target, 20_270_115, |inputs| inputs < ROUNDS);
        if let Some(failure) = ran.failure {
            let input = String::from_utf8_lossy(&failure.input).into_owned();
            panic!("{name}: {}\n{input:.2000}", failure.why);
        }
        assert_eq!(ran.inputs, ROUNDS);
        assert!(
            ran.outcomes > 1,
            "{name}: always the same answer ({} taken, slowest {:?})",
            ran.taken,
            ran.slowest
        );
    }
}
