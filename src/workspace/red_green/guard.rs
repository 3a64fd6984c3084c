//! Changes by which a fix would decide itself what its tests say: configuration of test runners, programs in their place, and
//! sources that behave otherwise when they are tested.

use crate::change::{FileChange, Mode, Side};
use crate::workspace::{RepositoryReader, WorkspaceError};

use super::super::toolchain::DetectedToolchain;
use super::{Unproven, UnprovenReason};

/// Longest configuration file that is compared, in bytes.
const FILE_BYTES: u64 = 4 << 20;

/// File names that configure how tests run, or that stand in for a test runner.
const FILES: &[&str] = &[
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "noxfile.py",
    "sitecustomize.py",
    "usercustomize.py",
    "pytest.py",
    "unittest.py",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    "pnpm-workspace.yaml",
    "bunfig.toml",
    "deno.json",
    "deno.jsonc",
    "nextest.toml",
    "build.rs",
    "rust-toolchain",
    "rust-toolchain.toml",
    "go.work",
    ".rspec",
    "Rakefile",
    "mvnw",
    "gradlew",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "mix.exs",
    "Package.swift",
    "CMakeLists.txt",
    "meson.build",
    "BUILD",
    "BUILD.bazel",
    "WORKSPACE",
    "MODULE.bazel",
    ".bazelrc",
    "dune",
    "dune-project",
    "gleam.toml",
    "Directory.Build.props",
];
/// Beginnings of such names.
const BEGINNINGS: &[&str] = &[
    ".mocharc",
    "jest.config.",
    "vitest.config.",
    "vitest.workspace.",
    "vite.config.",
    "karma.conf.",
    "ava.config.",
    "babel.config.",
    "phpunit.xml",
];
/// Endings of such names.
const ENDINGS: &[&str] = &[".cabal", ".csproj", ".fsproj", ".sln"];
/// Directories whose content does.
const DIRECTORIES: &[&str] = &[".cargo", "unittest", "pytest", "_pytest"];
/// Files that do when the command calls them.
const RUNNER_FILES: &[(&str, &[&str])] = &[
    ("make", &["Makefile", "makefile", "GNUmakefile"]),
    ("just", &["justfile", "Justfile"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
];
/// Manifests, and the tables of each that say nothing about tests.
const MANIFESTS: &[(&str, &[&str])] = &[
    (
        "Cargo.toml",
        &[
            "dependencies",
            "dev-dependencies",
            "build-dependencies",
            "workspace.dependencies",
            "target",
            "patch",
        ],
    ),
    (
        "pyproject.toml",
        &[
            "project",
            "project.optional-dependencies",
            "dependency-groups",
            "build-system",
            "tool.poetry.dependencies",
            "tool.poetry.group",
        ],
    ),
    (
        "setup.cfg",
        &["metadata", "options", "options.extras_require"],
    ),
];
/// Members of `package.json` that say nothing about tests.
const PACKAGE_MEMBERS: &[&str] = &[
    "dependencies",
    "devDependencies",
    "peerDependencies",
    "optionalDependencies",
    "overrides",
    "resolutions",
];
/// Words by which a source finds out that it is being tested.
const TEST_WORDS: &[&str] = &[
    "PYTEST_CURRENT_TEST",
    "pytest",
    "unittest",
    "JEST_WORKER_ID",
    "VITEST",
    "NODE_TEST_CONTEXT",
    "testing.Testing",
    "NEXTEST",
    "RUST_TEST",
];

/// The objection to a change of files that are not tests, if there is one.
pub(super) fn objection(
    repository: &RepositoryReader,
    toolchain: &DetectedToolchain,
    sources: &[FileChange],
) -> Result<Option<Unproven>, WorkspaceError> {
    for entry in sources {
        if decides_about_tests(repository, toolchain, entry)? {
            return Ok(Some(Unproven::new(
                UnprovenReason::TestConfigurationChanged,
                &format!(
                    "the fix changes {}, which decides how the tests run",
                    entry.path
                ),
            )));
        }
        if let Some(word) = learned_word(repository, entry)? {
            return Ok(Some(Unproven::new(
                UnprovenReason::SourceKnowsTests,
                &format!(
                    "{} now mentions {word}, so it may behave otherwise in tests",
                    entry.path
                ),
            )));
        }
    }
    Ok(None)
}

fn decides_about_tests(
    repository: &RepositoryReader,
    toolchain: &DetectedToolchain,
    entry: &FileChange,
) -> Result<bool, WorkspaceError> {
    // A name that is not text is none of those that tools look for.
    let Some(path) = entry.path.as_text() else {
        return Ok(false);
    };
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let program = toolchain.test.first().map_or("", String::as_str);
    let runs = RUNNER_FILES
        .iter()
        .any(|(runner, files)| *runner == program && files.contains(&name));
    let in_command = toolchain.test.iter().any(|word| {
        let word = word.strip_prefix("./").unwrap_or(word);
        let root = toolchain.root.as_str();
        path == word
            || path
                .strip_prefix(root)
                .and_then(|rest| rest.strip_prefix('/'))
                == Some(word)
    });
    let named = FILES.contains(&name)
        || BEGINNINGS.iter().any(|start| name.starts_with(start))
        || ENDINGS.iter().any(|end| name.ends_with(end))
        || directory.split('/').any(|part| DIRECTORIES.contains(&part));
    if runs || in_command || named {
        return Ok(true);
    }
    if name == "package.json" {
        return Ok(package_rest(repository, entry.old)? != package_rest(repository, entry.new)?);
    }
    match MANIFESTS.iter().find(|(file, _)| *file == name) {
        None => Ok(false),
        Some((_, tables)) => {
            let rest = |side| Ok::<_, WorkspaceError>(outside(&text(repository, side)?, tables));
            Ok(rest(entry.old)? != rest(entry.new)?)
        }
    }
}

/// What a `package.json` says beside its dependencies; a file that is no JSON counts as it is.
fn package_rest(
    repository: &RepositoryReader,
    side: Side,
) -> Result<serde_json::Value, WorkspaceError> {
    let text = text(repository, side)?;
    Ok(match serde_json::from_str(&text) {
        Ok(serde_json::Value::Object(mut members)) => {
            members.retain(|name, _| !PACKAGE_MEMBERS.contains(&name.as_str()));
            serde_json::Value::Object(members)
        }
        _ => serde_json::Value::String(text),
    })
}

/// The lines of a TOML or INI text outside some tables and the tables below them.
fn outside(text: &str, tables: &[&str]) -> Vec<String> {
    let mut inside = false;
    let mut kept = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            let name = line.trim_matches(['[', ']', ' ']);
            inside = tables.iter().any(|table| {
                name == *table
                    || (*table != "project"
                        && name
                            .strip_prefix(table)
                            .is_some_and(|rest| rest.starts_with('.')))
            });
        }
        if !inside && !line.is_empty() && !line.starts_with('#') {
            kept.push(line.to_owned());
        }
    }
    kept
}

/// A word of [`TEST_WORDS`] that the new side has more often than the old one.
fn learned_word(
    repository: &RepositoryReader,
    entry: &FileChange,
) -> Result<Option<&'static str>, WorkspaceError> {
    let documentation = entry.path.as_text().is_some_and(|path| {
        [
            ".md", ".rst", ".txt", ".adoc", ".lock", ".toml", ".json", ".yml", ".yaml",
        ]
        .iter()
        .any(|ending| path.ends_with(ending))
    });
    if documentation || entry.new.mode == Mode::Absent {
        return Ok(None);
    }
    let (old, new) = (text(repository, entry.old)?, text(repository, entry.new)?);
    let more = |word: &&&str| new.matches(**word).count() > old.matches(**word).count();
    Ok(TEST_WORDS.iter().find(more).copied())
}

/// The text of one side; empty for what has none or is too long to be a source.
fn text(repository: &RepositoryReader, side: Side) -> Result<String, WorkspaceError> {
    if !matches!(side.mode, Mode::Regular | Mode::Executable)
        || repository.blob_size(side.oid)? > FILE_BYTES
    {
        return Ok(String::new());
    }
    let bytes = repository.read_blob(side.oid, FILE_BYTES)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
