//! git, and the two programs that apply patches.

use super::Findings;
use super::programs::read_word;
use super::simple::Simple;
use super::word::Word;
use crate::tool_gate::patch::{diff_files, envelope_files};

/// Subcommands that read, whatever they are given but [`WRITING_OPTIONS`].
#[rustfmt::skip]
const READING: [&str; 24] = [
    "blame", "cat-file", "check-attr", "check-ignore", "count-objects", "describe", "diff", "diff-index", "diff-tree",
    "for-each-ref", "grep", "log", "ls-files", "ls-tree", "merge-base", "name-rev", "rev-list", "rev-parse", "shortlog", "show",
    "show-ref", "status", "version", "whatchanged",
];

/// Options that let even a reading subcommand write a file or run a program. They may be shortened.
const WRITING_OPTIONS: [&str; 6] = [
    "--output",
    "--ext-diff",
    "--textconv",
    "--filters",
    "--open-files-in-pager",
    "--upload-pack",
];

/// Subcommands that write the repository's own state, which is never writable.
#[rustfmt::skip]
const STORING: [&str; 36] = [
    "add", "am", "bisect", "branch", "checkout", "cherry-pick", "clean", "clone", "commit", "config", "fetch", "gc", "hook",
    "init", "maintenance", "merge", "mv", "notes", "prune", "pull", "push", "rebase", "reflog", "remote", "repack", "reset",
    "restore", "revert", "rm", "sparse-checkout", "stash", "submodule", "switch", "tag", "update-index", "update-ref",
];

/// Looks at git, patch and `apply_patch`; false when it is another program.
pub(super) fn look(
    findings: &mut Findings<'_>,
    command: &Simple,
    name: &str,
    arguments: &[Word],
) -> bool {
    match name {
        "git" => git(findings, command, arguments),
        "patch" => patch(findings, command, arguments),
        "apply_patch" | "applypatch" => apply_patch(findings, command, arguments),
        _ => return false,
    }
    true
}

fn git(findings: &mut Findings<'_>, command: &Simple, arguments: &[Word]) {
    let Some(texts) = arguments
        .iter()
        .map(Word::text)
        .collect::<Option<Vec<&str>>>()
    else {
        findings.refuse("an argument of git is computed");
        return;
    };
    let mut rest = texts.as_slice();
    let mut folder = String::new();
    loop {
        rest = match rest {
            ["--no-pager" | "-P" | "--no-optional-locks", rest @ ..] => rest,
            ["-C", into, rest @ ..] => {
                folder = super::joined(&folder, into);
                rest
            }
            _ => break,
        };
    }
    findings.runs_at_top(&folder);
    let Some((subcommand, rest)) = rest.split_first() else {
        return;
    };
    match *subcommand {
        "apply" => git_apply(findings, command, rest),
        found if READING.contains(&found) || lists(found, rest) => {
            let outside = rest.iter().any(|text| text.starts_with("--no-i"));
            for word in arguments {
                read_word(findings, word, outside);
            }
            let writes = |text: &&str| {
                let long = text.split('=').next().unwrap_or_default();
                let is_long = long.len() > 2
                    && long.starts_with("--")
                    && WRITING_OPTIONS
                        .iter()
                        .any(|option| option.starts_with(long) || long.starts_with(option));
                is_long
                    || (found == "grep"
                        && text.starts_with('-')
                        && !text.starts_with("--")
                        && text.contains('O'))
            };
            if let Some(option) = rest.iter().find(|text| writes(text)) {
                findings.refuse(format!(
                    "git {found} has {option}, which may write or run something"
                ));
            }
        }
        found if STORING.contains(&found) => findings.writes(".git"),
        found => findings.refuse(format!("what git {found} writes cannot be told")),
    }
}

/// Forms of storing subcommands that only list.
fn lists(subcommand: &str, rest: &[&str]) -> bool {
    match subcommand {
        "branch" => rest.iter().all(|text| {
            matches!(
                *text,
                "-a" | "-r" | "-v" | "-vv" | "--list" | "--show-current" | "--all"
            )
        }),
        "remote" => matches!(rest, [] | ["-v" | "show"]),
        "tag" => matches!(rest, [] | ["-l" | "--list"]),
        "stash" => matches!(rest, ["list"]),
        "config" => matches!(rest, ["--get", _] | ["-l" | "--list"]),
        "reflog" => matches!(rest, [] | ["show"]),
        _ => false,
    }
}

fn git_apply(findings: &mut Findings<'_>, command: &Simple, options: &[&str]) {
    let mut strip = 1;
    let mut only_looks = false;
    for option in options {
        match *option {
            "-" | "-v" | "--verbose" | "--recount" => {}
            "--check" | "--stat" | "--numstat" | "--summary" => only_looks = true,
            "--index" | "--cached" | "--3way" | "-3" => findings.writes(".git"),
            other => {
                let Some(number) = strip_count(other) else {
                    findings
                        .refuse("it applies a patch from a file, or in a way that is not known");
                    return;
                };
                strip = number;
            }
        }
    }
    let Some(text) = command.here_text() else {
        findings.refuse("it applies a patch that does not stand in the command");
        return;
    };
    if !only_looks {
        diff(findings, text, strip, true);
    }
}

/// `-p1`.
fn strip_count(option: &str) -> Option<usize> {
    option.strip_prefix("-p")?.parse().ok()
}

fn patch(findings: &mut Findings<'_>, command: &Simple, arguments: &[Word]) {
    let mut strip = None;
    for word in arguments {
        match word.text() {
            Some("-u" | "-N" | "--forward" | "-s") => {}
            Some(text) => {
                strip = strip_count(text);
                if strip.is_none() {
                    findings.refuse("it applies a patch to files that it does not name, or in a way that is not known");
                    return;
                }
            }
            None => findings.refuse("an argument of patch is computed"),
        }
    }
    match (command.here_text(), strip) {
        (Some(text), Some(strip)) => diff(findings, text, strip, false),
        (Some(_), None) => findings.refuse("patch guesses which file is meant unless -p says it"),
        (None, _) => findings.refuse("it applies a patch that does not stand in the command"),
    }
}

fn diff(findings: &mut Findings<'_>, text: &str, strip: usize, from_top: bool) {
    match diff_files(text, strip) {
        Ok(files) => {
            for file in files {
                if from_top {
                    findings.writes_from_top(&file);
                } else {
                    findings.writes(&file);
                    // What patch leaves beside a file when a hunk does not fit.
                    findings.writes(&format!("{file}.orig"));
                    findings.writes(&format!("{file}.rej"));
                }
            }
        }
        Err(error) => findings.refuse(error.to_string()),
    }
}

/// The program that Codex puts into its shell: the patch is its argument or its standard input.
fn apply_patch(findings: &mut Findings<'_>, command: &Simple, arguments: &[Word]) {
    let text = match arguments {
        [] => command.here_text(),
        [only] => only.text(),
        _ => None,
    };
    let Some(text) = text else {
        findings.refuse("it applies a patch that does not stand in the command");
        return;
    };
    match envelope_files(text) {
        Ok(files) => {
            for file in files {
                findings.writes(&file);
            }
        }
        Err(error) => findings.refuse(error.to_string()),
    }
}
