//! Every way to run tests that the tracked files speak of.

use super::table::{Ecosystem, MARKERS};
use super::tree::{ProjectTree, is_inside, join};
use super::{DetectedToolchain, Evidence, node, python};
use crate::workspace::WorkspaceError;

/// A way that was found, or a tie between package managers at one place.
pub(super) struct Candidate {
    pub(super) toolchain: DetectedToolchain,
    /// Lockfiles or declarations that contradict each other.
    pub(super) tied: Vec<String>,
    /// Whether projects of the same ecosystem below it are part of it.
    spans_below: bool,
}

/// What a rule found in one directory.
pub(super) struct Found {
    pub(super) manager: String,
    pub(super) test: Vec<String>,
    pub(super) evidence: Vec<Evidence>,
    pub(super) confidence: u16,
    pub(super) tied: Vec<String>,
    pub(super) spans_below: bool,
}

pub(super) fn candidates(tree: &ProjectTree<'_>) -> Result<Vec<Candidate>, WorkspaceError> {
    let mut all: Vec<Candidate> = Vec::new();
    let directories: Vec<&str> = tree.directories().collect();
    for directory in directories {
        let mut here = Vec::new();
        for (ecosystem, found) in languages(tree, directory)? {
            let inside = all.iter().any(|outer| {
                outer.spans_below
                    && outer.toolchain.ecosystem == ecosystem
                    && is_inside(directory, &outer.toolchain.root)
            });
            if !inside {
                here.push(candidate(ecosystem, directory, found));
            }
        }
        let language = here
            .iter()
            .any(|found| !found.toolchain.ecosystem.is_task_runner());
        here.retain(|found| !language || !found.toolchain.ecosystem.is_task_runner());
        all.append(&mut here);
    }
    Ok(all)
}

fn languages(
    tree: &ProjectTree<'_>,
    directory: &str,
) -> Result<Vec<(Ecosystem, Found)>, WorkspaceError> {
    let mut found = Vec::new();
    let special = [
        (Ecosystem::Rust, rust(tree, directory)?),
        (Ecosystem::Node, node::find(tree, directory)?),
        (Ecosystem::Python, python::find(tree, directory)?),
        (Ecosystem::Ruby, ruby(tree, directory)?),
        (Ecosystem::Make, make(tree, directory)?),
        (Ecosystem::Tasks, tasks(tree, directory)?),
    ];
    for (ecosystem, outcome) in special {
        found.extend(outcome.map(|outcome| (ecosystem, outcome)));
    }
    for marker in MARKERS {
        let taken = found.iter().any(|(other, _)| *other == marker.ecosystem);
        let Some(name) = tree.find(directory, marker.file).filter(|_| !taken) else {
            continue;
        };
        let outcome = Found {
            manager: marker.manager.to_owned(),
            test: words(marker.test),
            evidence: vec![tree.evidence(directory, name, marker.why)?],
            confidence: marker.confidence,
            tied: Vec::new(),
            spans_below: marker.ecosystem != Ecosystem::Go || tree.has(directory, "go.work"),
        };
        found.push((marker.ecosystem, outcome));
    }
    Ok(found)
}

fn candidate(ecosystem: Ecosystem, root: &str, found: Found) -> Candidate {
    Candidate {
        toolchain: DetectedToolchain {
            ecosystem,
            root: root.to_owned(),
            manager: found.manager,
            evidence: found.evidence,
            test: found.test,
            test_globs: globs(ecosystem, root),
            confidence: found.confidence,
        },
        tied: found.tied,
        spans_below: found.spans_below,
    }
}

/// An ecosystem's test globs below a root.
pub(super) fn globs(ecosystem: Ecosystem, root: &str) -> Vec<String> {
    // The root is a name that may contain what a glob would take for a pattern.
    let root = globset::escape(root);
    let globs = ecosystem.test_globs().iter();
    globs.map(|glob| join(&root, glob)).collect()
}

pub(super) fn words(argv: &[&str]) -> Vec<String> {
    argv.iter().map(|word| (*word).to_owned()).collect()
}

fn rust(tree: &ProjectTree<'_>, directory: &str) -> Result<Option<Found>, WorkspaceError> {
    if !tree.has(directory, "Cargo.toml") {
        return Ok(None);
    }
    let workspace = has_table(&tree.text(directory, "Cargo.toml")?, "workspace");
    let why = if workspace {
        "a Cargo workspace"
    } else {
        "a Cargo package"
    };
    let mut evidence = vec![tree.evidence(directory, "Cargo.toml", why)?];
    let nextest = tree.has(&join(directory, ".config"), "nextest.toml");
    let mut test = if nextest {
        words(&["cargo", "nextest", "run", "--offline"])
    } else {
        words(&["cargo", "test", "--offline"])
    };
    if tree.has(directory, "Cargo.lock") {
        evidence.push(tree.evidence(directory, "Cargo.lock", "pins the dependencies")?);
        test.push("--locked".to_owned());
    }
    if workspace {
        test.push("--workspace".to_owned());
    }
    Ok(Some(Found {
        manager: "cargo".to_owned(),
        test,
        evidence,
        confidence: 900,
        tied: Vec::new(),
        spans_below: workspace,
    }))
}

/// Whether a TOML text has a table of this name or below it. Reading headers line by line is enough: a header inside a
/// multi-line string would at worst lead to another command, which is shown as evidence.
pub(super) fn has_table(toml: &str, name: &str) -> bool {
    toml.lines().any(|line| {
        let header = line.trim().trim_start_matches('[');
        line.trim_start().starts_with('[')
            && header
                .trim_start()
                .strip_prefix(name)
                .is_some_and(|rest| rest.trim_start().starts_with([']', '.']))
    })
}

fn ruby(tree: &ProjectTree<'_>, directory: &str) -> Result<Option<Found>, WorkspaceError> {
    if !tree.has(directory, "Gemfile") {
        return Ok(None);
    }
    let mut evidence = vec![tree.evidence(directory, "Gemfile", "a Bundler project")?];
    let test = if tree.has(directory, ".rspec") {
        evidence.push(tree.evidence(directory, ".rspec", "configures RSpec")?);
        words(&["bundle", "exec", "rspec"])
    } else if tree.has(directory, "Rakefile") {
        evidence.push(tree.evidence(directory, "Rakefile", "has the tasks")?);
        words(&["bundle", "exec", "rake", "test"])
    } else {
        return Ok(None);
    };
    Ok(Some(simple("bundler", test, evidence, 700)))
}

fn make(tree: &ProjectTree<'_>, directory: &str) -> Result<Option<Found>, WorkspaceError> {
    for file in ["GNUmakefile", "makefile", "Makefile"] {
        if !tree.has(directory, file) {
            continue;
        }
        let text = tree.text(directory, file)?;
        let target = ["test", "check", "ci"].into_iter().find(|target| {
            text.lines().any(|line| {
                // A rule, not an assignment: `test:` or `test: build`, possibly among several targets.
                line.split_once(':').is_some_and(|(targets, rest)| {
                    !rest.starts_with('=')
                        && !line.starts_with(['\t', '#', '.'])
                        && targets.split_whitespace().any(|word| word == *target)
                })
            })
        });
        return match target {
            None => Ok(None),
            Some(target) => {
                let why = format!("has the target {target}");
                let evidence = vec![tree.evidence(directory, file, &why)?];
                Ok(Some(simple(
                    "make",
                    words(&["make", target]),
                    evidence,
                    600,
                )))
            }
        };
    }
    Ok(None)
}

fn tasks(tree: &ProjectTree<'_>, directory: &str) -> Result<Option<Found>, WorkspaceError> {
    const RUNNERS: [(&str, &str, &str); 4] = [
        ("justfile", "just", "test:"),
        ("Justfile", "just", "test:"),
        ("Taskfile.yml", "task", "test:"),
        ("Taskfile.yaml", "task", "test:"),
    ];
    for (file, program, target) in RUNNERS {
        if !tree.has(directory, file) {
            continue;
        }
        let text = tree.text(directory, file)?;
        if text.lines().any(|line| line.trim().starts_with(target)) {
            let evidence = vec![tree.evidence(directory, file, "has the task test")?];
            let test = words(&[program, "test"]);
            return Ok(Some(simple(program, test, evidence, 500)));
        }
    }
    Ok(None)
}

fn simple(manager: &str, test: Vec<String>, evidence: Vec<Evidence>, confidence: u16) -> Found {
    Found {
        manager: manager.to_owned(),
        test,
        evidence,
        confidence,
        tied: Vec::new(),
        spans_below: true,
    }
}
