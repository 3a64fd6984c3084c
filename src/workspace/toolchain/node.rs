//! Projects with a `package.json`.

use serde_json::Value;

use super::markers::{Found, words};
use super::tree::{ProjectTree, is_inside};
use crate::workspace::WorkspaceError;

/// Lockfiles and the package manager that writes each.
const LOCKFILES: [(&str, &str); 6] = [
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
    ("npm-shrinkwrap.json", "npm"),
];
const MANAGERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];

/// Runners that need no script, when they are a dependency.
const RUNNERS: [(&str, &[&str]); 4] = [
    ("vitest", &["npx", "--no-install", "vitest", "run"]),
    ("jest", &["npx", "--no-install", "jest"]),
    ("mocha", &["npx", "--no-install", "mocha"]),
    ("ava", &["npx", "--no-install", "ava"]),
];

pub(super) fn find(
    tree: &ProjectTree<'_>,
    directory: &str,
) -> Result<Option<Found>, WorkspaceError> {
    if !tree.has(directory, "package.json") {
        return Ok(None);
    }
    let bytes = tree.bytes(directory, "package.json")?;
    // A manifest that is no JSON names no command; the package manager itself would refuse it too.
    let manifest: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let mut evidence = vec![tree.evidence(directory, "package.json", "a Node package")?];
    let mut locks: Vec<(&str, &str)> = Vec::new();
    for (file, manager) in LOCKFILES {
        if tree.has(directory, file) {
            locks.push((file, manager));
            evidence.push(tree.evidence(directory, file, &format!("{manager}'s lockfile"))?);
        }
    }
    let declared = declared_manager(&manifest);
    let manager = declared
        .or_else(|| locks.first().map(|(_, manager)| *manager))
        .unwrap_or("npm");
    let others = locks.iter().any(|(_, other)| *other != manager);
    let tied = if declared.is_none() && others {
        let name = |(file, _): &(&str, &str)| (*file).to_owned();
        locks.iter().map(name).collect()
    } else {
        Vec::new()
    };
    let Some(test) = command(tree, directory, &manifest, manager) else {
        return Ok(None);
    };
    let workspaces =
        manifest.get("workspaces").is_some() || tree.has(directory, "pnpm-workspace.yaml");
    let confidence = match (declared, locks.len()) {
        (Some(_), _) => 950,
        (None, 1..) => 900,
        (None, 0) => 700,
    };
    Ok(Some(Found {
        manager: manager.to_owned(),
        test,
        evidence,
        confidence,
        tied,
        spans_below: workspaces,
    }))
}

/// The manager that the manifest names, which beats lockfiles.
fn declared_manager(manifest: &Value) -> Option<&'static str> {
    let field = manifest.get("packageManager").and_then(Value::as_str);
    let engines = manifest
        .pointer("/devEngines/packageManager/name")
        .and_then(Value::as_str);
    let name = field.or(engines)?.split('@').next()?;
    MANAGERS.into_iter().find(|known| *known == name)
}

fn command(
    tree: &ProjectTree<'_>,
    directory: &str,
    manifest: &Value,
    manager: &str,
) -> Option<Vec<String>> {
    let script = manifest.pointer("/scripts/test").and_then(Value::as_str);
    // What `npm init` writes; running it would only ever fail.
    let placeholder = script.is_some_and(|script| script.contains("no test specified"));
    if script.is_some() && !placeholder {
        return Some(match manager {
            "bun" => words(&["bun", "run", "test"]),
            other => words(&[other, "test"]),
        });
    }
    let depends = |name: &str| {
        ["devDependencies", "dependencies"]
            .into_iter()
            .any(|kind| manifest.get(kind).and_then(|map| map.get(name)).is_some())
    };
    if let Some((_, argv)) = RUNNERS.iter().find(|(name, _)| depends(name)) {
        return Some(words(argv));
    }
    let is_test = |name: &str| {
        let stem = |ending| name.strip_suffix(ending);
        [".js", ".mjs", ".cjs", ".ts"]
            .into_iter()
            .filter_map(stem)
            .any(|stem| {
                stem == "test"
                    || stem.starts_with("test-")
                    || [".test", "-test", "_test"]
                        .iter()
                        .any(|end| stem.ends_with(end))
            })
    };
    if manager == "bun" {
        return Some(words(&["bun", "test"]));
    }
    tree.folders_with(is_test)
        .any(|folder| is_inside(folder, directory))
        .then(|| words(&["node", "--test"]))
}
