//! The truth table as a page, from the table that the code uses.

use std::fmt::Write as _;

use super::classify::{TABLE, UNKNOWN};

/// The table of `docs/watching.md`, in Markdown: what follows from how a run ended.
pub fn truth_table() -> String {
    let mut page =
        String::from("| a completed run, or a job of it, ended as | what follows |\n|---|---|\n");
    // Writing to a String has no failure.
    for row in TABLE {
        let word = match row.conclusion {
            "none" => "nothing at all (null)".to_owned(),
            word => format!("`{word}`"),
        };
        let _ = writeln!(page, "| {word} | {} |", row.consequence);
    }
    let _ = writeln!(page, "| any other word | {UNKNOWN} |");
    let beyond = [
        (
            "a workflow that is disabled while it is watched, or for inactivity",
            "an incident of kind `silent-workflow`: reported, not fixed; ends when it is active again",
        ),
        (
            "no scheduled run an hour after the workflow's file says that there should be one",
            "an incident of kind `silent-workflow`: reported, not fixed; ends with the next scheduled run",
        ),
        (
            "a run of a fork, of another branch, or not of `push` or `schedule`",
            "nothing, whatever its result",
        ),
        (
            "an older run that ends after a newer one of the same workflow and scope",
            "nothing: it is stale",
        ),
        (
            "another attempt of the same run",
            "a new observation: a failure attaches to the open incident, a success of the same commit says that it is flaky",
        ),
    ];
    for (case, consequence) in beyond {
        let _ = writeln!(page, "| {case} | {consequence} |");
    }
    page
}
