//! Choosing between several ways to run tests, or saying that nothing decides.

use std::collections::BTreeSet;

use crate::change::RepoPath;

use super::markers::{Candidate, globs};
use super::table::Ecosystem;
use super::tree::{ProjectTree, is_inside, join};
use super::{DetectedToolchain, Detection, Tools};

/// The command of the project's rules. What is a test file still follows from the markers.
pub(super) fn configured(argv: &[String], candidates: &[Candidate]) -> DetectedToolchain {
    let program = argv.first().map_or("", String::as_str);
    let named = Ecosystem::of_program(program);
    let only = match candidates {
        [one] => Some(one.toolchain.ecosystem),
        _ => None,
    };
    let ecosystem = named.or(only).unwrap_or(Ecosystem::Configured);
    let mut test_globs: BTreeSet<String> = globs(ecosystem, "").into_iter().collect();
    for candidate in candidates {
        test_globs.extend(candidate.toolchain.test_globs.iter().cloned());
    }
    DetectedToolchain {
        ecosystem,
        root: String::new(),
        manager: program.to_owned(),
        evidence: Vec::new(),
        test: argv.to_vec(),
        test_globs: test_globs.into_iter().collect(),
        confidence: 1000,
    }
}

/// The one candidate that the hints or the layout point to.
pub(super) fn among(
    candidates: &[Candidate],
    hints: &[RepoPath],
) -> Result<DetectedToolchain, Box<Detection>> {
    let chosen: Vec<&Candidate> = match candidates {
        [] => return Err(Box::new(Detection::NoneFound)),
        [one] => vec![one],
        several => {
            let hinted = by_hints(several, hints);
            if hinted.is_empty() {
                let top = |candidate: &&Candidate| candidate.toolchain.root.is_empty();
                several.iter().filter(top).collect()
            } else {
                hinted
            }
        }
    };
    match chosen.as_slice() {
        [one] if one.tied.is_empty() => {
            let mut found = one.toolchain.clone();
            if candidates.len() > 1 && hints.is_empty() {
                found.confidence = found.confidence.saturating_sub(200);
            }
            Ok(found)
        }
        [one] => Err(Box::new(Detection::Ambiguous {
            candidates: one.tied.iter().map(|file| place(file, one)).collect(),
        })),
        [] => Err(ambiguous(candidates.iter())),
        several => Err(ambiguous(several.iter().copied())),
    }
}

fn ambiguous<'a>(candidates: impl Iterator<Item = &'a Candidate>) -> Box<Detection> {
    let phrase = |candidate: &Candidate| place(&candidate.toolchain.test.join(" "), candidate);
    Box::new(Detection::Ambiguous {
        candidates: candidates.take(20).map(phrase).collect(),
    })
}

fn place(what: &str, candidate: &Candidate) -> String {
    match candidate.toolchain.root.as_str() {
        "" => what.to_owned(),
        root => format!("{what} in {root}"),
    }
}

/// The candidates of the longest root that holds each hint, all hints together.
fn by_hints<'a>(candidates: &'a [Candidate], hints: &[RepoPath]) -> Vec<&'a Candidate> {
    let mut roots: BTreeSet<&str> = BTreeSet::new();
    for hint in hints.iter().filter_map(RepoPath::as_text) {
        let directory = hint.rsplit_once('/').map_or("", |(directory, _)| directory);
        let longest = candidates
            .iter()
            .map(|candidate| candidate.toolchain.root.as_str())
            .filter(|root| is_inside(directory, root))
            .max_by_key(|root| root.len());
        roots.extend(longest);
    }
    let chosen = |candidate: &&Candidate| roots.contains(candidate.toolchain.root.as_str());
    candidates.iter().filter(chosen).collect()
}

/// Whether this machine can run what was chosen. A program with a slash in it is a tracked file of the project.
pub(super) fn check_tool(
    toolchain: DetectedToolchain,
    tree: &ProjectTree<'_>,
    tools: &dyn Tools,
) -> Detection {
    let program = toolchain.test.first().map_or("", String::as_str);
    let mut needed = vec![program.to_owned()];
    if let [cargo, subcommand, ..] = toolchain.test.as_slice()
        && cargo == "cargo"
        && subcommand == "nextest"
    {
        needed.push("cargo-nextest".to_owned());
    }
    let missing = needed.into_iter().find(|tool| {
        let tracked = tool.strip_prefix("./").unwrap_or(tool);
        let in_project = tool.contains('/')
            && !tool.starts_with('/')
            && tree.is_executable(&join(&toolchain.root, tracked));
        !in_project && !tools.has(tool)
    });
    match missing {
        Some(tool) => Detection::ToolMissing { tool, toolchain },
        None => Detection::Found(toolchain),
    }
}
