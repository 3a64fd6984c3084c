//! Which of several runs is the newer one.

use crate::clock::Millis;
use crate::connector::RunView;

/// How much later than one with a larger number a run may have been made, in milliseconds, by clocks that differ.
const OUT_OF_ORDER: i64 = 10 * 60 * 1000;

/// The runs, newest first, as their numbers say. One that was made long before another with a smaller number has a number that is
/// out of line: it comes last, so that it speaks for none of those that are newer than it.
pub(super) fn by_age(mut runs: Vec<(RunView, bool)>, now: Millis) -> Vec<(RunView, bool)> {
    // From the oldest number on: when the last of those so far was made. A moment that is still to come says nothing.
    let mut last = Millis(i64::MIN);
    let mut out_of_line = Vec::new();
    for (run, _) in runs.iter().rev() {
        let made = run
            .made_at
            .filter(|at| *at <= now.plus_millis(OUT_OF_ORDER));
        let Some(made) = made else { continue };
        if made.plus_millis(OUT_OF_ORDER) < last {
            out_of_line.push(run.id);
        }
        last = last.max(made);
    }
    // Break it: leave the order as it is; a run whose number is out of line then makes every later one stale
    // (`watch::odd_runs::a_run_whose_number_is_out_of_line_makes_no_newer_one_stale`).
    runs.sort_by_key(|(run, _)| out_of_line.contains(&run.id));
    runs
}
