//! The layer table, as a test: who may import whom.

use std::path::{Path, PathBuf};

/// Modules by layer, lowest first; `connector` and `agent` are ports (layer 3), their subfolders adapters (layer 4).
const LAYERS: &[&[&str]] = &[
    &["id", "clock", "change"],
    &[
        "gate",
        "approve",
        "attest",
        "execute",
        "reconcile",
        "log",
        "provenance",
        "intent",
        "receipts",
        "tool_gate",
    ],
    &["incident", "audit"],
    &["connector", "agent", "https", "embedder", "events"],
    &[
        "workspace",
        "sandbox",
        "store",
        "notify",
        "hook",
        "identity",
        "anchor",
        "config",
        "probe",
        "audit_stream",
    ],
    &[
        "watch",
        "onboard",
        "worker",
        "hook_gate",
        "alignment",
        "approvals",
        "signer",
        "witness",
    ],
    &["web", "tui", "cli", "forge", "telemetry"],
];

/// Edges inside layer 1 (from, to).
const KERNEL_EDGES: &[(&str, &str)] = &[
    ("approve", "gate"),
    ("approve", "attest"),
    ("execute", "approve"),
    ("execute", "reconcile"),
    ("execute", "attest"),
    ("log", "attest"),
    ("reconcile", "approve"),
    ("receipts", "attest"),
    ("receipts", "intent"),
    ("tool_gate", "receipts"),
    ("tool_gate", "intent"),
    // Stages are named as signed outcomes name them; paths are folded as rules fold them.
    ("tool_gate", "attest"),
    ("tool_gate", "gate"),
];

/// What layers 0 to 2 must not name: they are pure and synchronous.
const IMPURE: &[&str] = &[
    "tokio",
    "sqlx",
    "reqwest",
    "octocrab",
    "git2",
    "axum",
    "std::fs",
    "std::net",
    "std::process",
];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Modules named after `crate::` in one source text.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| {
            rest.split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap_or("")
        })
}

/// Why one import breaks the table, if it does.
fn refusal(from: &str, from_layer: usize, to: &str) -> Option<String> {
    let to_layer = layer(to)?;
    let same = from_layer == to_layer && from != to;
    let allowed = match from_layer {
        1 if same => KERNEL_EDGES.contains(&(from, to)),
        // What is verified and told is an incident's.
        2 if same => (from, to) == ("audit", "incident"),
        // Adapters do not import each other, except that a coder runs in a sandbox on a workspace.
        4 if same => from == "agent" && matches!(to, "workspace" | "sandbox"),
        // The applications stand beside each other, on the loop and on the keys.
        5 if same => matches!(
            (from, to),
            ("watch", "worker")
                | ("onboard" | "worker", "signer")
                | ("worker", "hook_gate" | "alignment" | "approvals")
                | ("hook_gate", "alignment" | "approvals")
        ),
        6 => !(from == "web" && matches!(to, "worker")) && from != "forge",
        0 | 2 | 3 => !same || from_layer == 0,
        _ => true,
    };
    let upward = to_layer > from_layer && from != to;
    (upward || !allowed).then(|| format!("{from} (layer {from_layer}) must not import {to} (layer {to_layer}): see ARCHITECTURE.md, layers"))
}

#[test]
fn every_import_follows_the_layer_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 50, "the sources were not found");
    let mut broken = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&root).unwrap();
        let parts: Vec<&str> = relative.iter().filter_map(|part| part.to_str()).collect();
        let from = parts[0].trim_end_matches(".rs");
        let Some(mut from_layer) = layer(from) else {
            continue;
        };
        // Below its mod.rs and its plain types, a port's folder holds adapters.
        if matches!(from, "connector" | "agent")
            && !matches!(parts.last(), Some(&"mod.rs" | &"extraction.rs"))
            || parts.len() > 2 && from_layer == 3
        {
            from_layer = 4;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        broken.extend(
            imports(&text)
                .filter_map(|to| refusal(from, from_layer, to))
                .map(|why| format!("{}: {why}", relative.display())),
        );
        if from_layer <= 2 {
            let impure = IMPURE.iter().filter(|word| {
                text.lines()
                    .any(|line| line.starts_with("use ") && line.contains(*word))
            });
            broken.extend(
                impure
                    .map(|word| format!("{}: the kernel must not use {word}", relative.display())),
            );
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
