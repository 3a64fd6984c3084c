//! What past scores say about where the floors belong.

use std::io::Read;

use caretaker::intent::{Calibration, Decision, Observed, Score, Suggestion, observed};
use proptest::prelude::*;

fn read(stream: &str) -> Calibration {
    let mut calibration = Calibration::default();
    calibration.read(&mut stream.as_bytes()).unwrap();
    calibration
}

fn line(score: &str, decision: &str) -> String {
    format!(
        r#"{{"event":"intent_alignment","ts":"2027-01-15T08:00:00Z","task_id":"t","fields":{{"tool":"shell","score":{score},"decision":"{decision}","reason":"r"}}}}"#
    )
}

#[test]
fn scores_are_counted_and_other_lines_are_passed_over() {
    let stream = [
        &line("0.847", "allow"),
        &line("0.1", "deny"),
        &line("\"NaN\"", "deny"),
        r#"{"event":"gate_decision","fields":{"score":0.9}}"#,
        "not json",
        "",
        &line("1.5", "allow"),
        &line("0.5", "perhaps"),
        &line("-1", "warn"),
    ]
    .join("\n");
    let calibration = read(&stream);
    assert_eq!(
        (
            calibration.scored(),
            calibration.unscored(),
            calibration.others(),
            calibration.unreadable()
        ),
        (3, 1, 1, 3)
    );
    let decided = [Decision::Allow, Decision::Warn, Decision::Deny]
        .map(|decision| calibration.decided(decision));
    assert_eq!(decided, [1, 1, 2]);
    let quantile = |thousandths| calibration.quantile(thousandths).map(Score::micro);
    assert_eq!(quantile(0), Some(-1_000_000));
    assert_eq!(quantile(500), Some(100_000));
    assert_eq!(quantile(1000), Some(847_000));
    assert_eq!(Suggestion::from(&calibration), None, "three say nothing");
}

#[test]
fn nothing_is_made_of_nothing() {
    let calibration = read("");
    assert_eq!(calibration.quantile(500), None);
    assert_eq!(calibration.histogram(4), [0; 4]);
}

#[test]
fn floors_are_suggested_at_the_median_and_below_the_first_percentile() {
    let lines: Vec<String> = (0..100)
        .map(|number| line(&format!("{:.2}", 0.3 + f64::from(number) * 0.006), "allow"))
        .collect();
    let calibration = read(&lines.join("\n"));
    let suggestion = Suggestion::from(&calibration).unwrap();
    let floors = [
        suggestion.threshold,
        suggestion.hard_threshold,
        suggestion.drift_threshold,
    ];
    assert_eq!(
        floors.map(|floor| floor.to_string()),
        ["0.590", "0.280", "0.350"]
    );
}

/// A reader that gives one letter for ever, up to a number of bytes.
struct Endless(u64);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = buffer.len().min(usize::try_from(self.0).unwrap());
        buffer[..length].fill(b'x');
        self.0 -= length as u64;
        Ok(length)
    }
}

/// The most memory that this process ever had, in kB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

#[test]
fn a_line_without_end_is_passed_over_in_bounded_memory() {
    let before = peak();
    let endless = Endless(300 << 20);
    let stream = endless.chain(b"\n".as_slice());
    let end = line("0.5", "allow");
    let stream = stream.chain(end.as_bytes());
    let mut calibration = Calibration::default();
    calibration
        .read(&mut std::io::BufReader::new(stream))
        .unwrap();
    assert_eq!((calibration.unreadable(), calibration.scored()), (1, 1));
    assert!(
        peak() - before < 100_000,
        "{before} kB before, {} after",
        peak()
    );
}

proptest! {
    // Each case counts two million places twice.
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn quantiles_are_those_of_the_sorted_scores(
        micros in prop::collection::vec(-1_000_000..=1_000_000_i32, 1..200),
        thousandths in 0_u16..=1000,
    ) {
        let mut calibration = Calibration::default();
        for micro in &micros {
            let score = Score::from_micro(*micro).unwrap();
            calibration.add(Observed::Scored(score, Decision::Allow));
        }
        let mut sorted = micros.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * usize::from(thousandths)).div_ceil(1000).max(1);
        prop_assert_eq!(calibration.quantile(thousandths).unwrap().micro(), sorted[rank - 1]);
        let histogram = calibration.histogram(40);
        prop_assert_eq!(histogram.iter().sum::<u64>(), micros.len() as u64);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_to_something(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        observed(&bytes);
    }

    #[test]
    fn a_score_in_an_event_comes_back_as_it_was(micro in -1_000_000..=1_000_000_i32) {
        let score = Score::from_micro(micro).unwrap();
        let text = line(&serde_json::json!(score.cosine()).to_string(), "warn");
        prop_assert_eq!(observed(text.as_bytes()), Observed::Scored(score, Decision::Warn));
    }
}
