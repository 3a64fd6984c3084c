//! Python projects.

use super::markers::{Found, has_table, words};
use super::tree::{ProjectTree, is_inside, join};
use crate::workspace::WorkspaceError;

/// Lockfiles, the manager that writes each, the table by which `pyproject.toml` declares it, and how it runs a program.
const MANAGERS: [(&str, &str, &str, &[&str]); 4] = [
    (
        "uv.lock",
        "uv",
        "tool.uv",
        &["uv", "run", "--offline", "--frozen"],
    ),
    ("poetry.lock", "poetry", "tool.poetry", &["poetry", "run"]),
    ("pdm.lock", "pdm", "tool.pdm", &["pdm", "run"]),
    ("Pipfile.lock", "pipenv", "", &["pipenv", "run"]),
];
const MANIFESTS: [&str; 6] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "Pipfile",
    "tox.ini",
];

pub(super) fn find(
    tree: &ProjectTree<'_>,
    directory: &str,
) -> Result<Option<Found>, WorkspaceError> {
    let is_module = |name: &str| {
        name.strip_suffix(".py")
            .is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
    };
    let manifests: Vec<&str> = MANIFESTS
        .into_iter()
        .filter(|file| tree.has(directory, file))
        .collect();
    // A repository without any manifest counts at its top only, when it has test modules that belong to no project below it.
    let owned = |folder: &str| {
        tree.directories().any(|other| {
            !other.is_empty()
                && is_inside(folder, other)
                && MANIFESTS.iter().any(|file| tree.has(other, file))
        })
    };
    let bare = directory.is_empty() && tree.folders_with(is_module).any(|folder| !owned(folder));
    if manifests.is_empty() && !bare {
        return Ok(None);
    }
    let mut evidence = Vec::new();
    for file in &manifests {
        evidence.push(tree.evidence(directory, file, "a Python project")?);
    }
    let pyproject = tree.text(directory, "pyproject.toml")?;
    let locked: Vec<_> = MANAGERS
        .iter()
        .filter(|(file, ..)| tree.has(directory, file))
        .collect();
    for (file, manager, ..) in &locked {
        evidence.push(tree.evidence(directory, file, &format!("{manager}'s lockfile"))?);
    }
    let declared = MANAGERS
        .iter()
        .find(|(_, _, table, _)| !table.is_empty() && has_table(&pyproject, table));
    let chosen = match (declared, locked.as_slice()) {
        (Some(declared), [_, _, ..]) => Some(declared),
        (_, [first, ..]) => Some(*first),
        (declared, []) => declared,
    };
    let tied = if locked.len() > 1 && declared.is_none() {
        locked.iter().map(|row| row.0.to_owned()).collect()
    } else {
        Vec::new()
    };
    let runner = runner(tree, directory, &pyproject)?;
    if let Some(file) = runner.file {
        evidence.push(tree.evidence(directory, file, "says which test runner is used")?);
    }
    let prefix = chosen.map_or(&[][..], |(.., prefix)| prefix);
    let mut test = words(prefix);
    test.extend(runner.argv);
    Ok(Some(Found {
        manager: chosen.map_or("pip", |row| row.1).to_owned(),
        test,
        evidence,
        confidence: if chosen.is_some() { 900 } else { 700 },
        tied,
        spans_below: false,
    }))
}

struct Runner {
    argv: Vec<String>,
    file: Option<&'static str>,
}

fn runner(
    tree: &ProjectTree<'_>,
    directory: &str,
    pyproject: &str,
) -> Result<Runner, WorkspaceError> {
    let pytest = || words(&["python3", "-m", "pytest"]);
    let known = |argv, file| Ok(Runner { argv, file });
    if tree.has(directory, "tox.ini") && has_table(&tree.text(directory, "tox.ini")?, "tox") {
        return known(words(&["tox"]), Some("tox.ini"));
    }
    if tree.has(directory, "noxfile.py") {
        return known(words(&["nox"]), Some("noxfile.py"));
    }
    for file in ["pytest.ini", "conftest.py"] {
        if tree.has(directory, file) {
            return known(pytest(), Some(file));
        }
    }
    if has_table(pyproject, "tool.pytest") {
        return known(pytest(), Some("pyproject.toml"));
    }
    let tests = ["tests", "test"]
        .into_iter()
        .map(|name| (name, join(directory, name)))
        .find(|(_, path)| tree.directories().any(|other| other == path));
    let Some((name, path)) = tests else {
        return known(words(&["python3", "-m", "unittest", "discover"]), None);
    };
    if tree.has(&path, "conftest.py") {
        return known(pytest(), None);
    }
    // Without `__init__.py`, discovery from the top does not look into the directory.
    if tree.has(&path, "__init__.py") {
        known(words(&["python3", "-m", "unittest", "discover"]), None)
    } else {
        known(
            words(&["python3", "-m", "unittest", "discover", "-s", name]),
            None,
        )
    }
}
