//! Which tests failed, read from what test runners print.
//!
//! The exit status decides; this only ties a failure to the test that the fix adds. Output that is not understood says nothing.

use super::super::toolchain::Ecosystem;
use super::AddedTest;

/// Longest output that is looked at, in bytes, from its end.
const OUTPUT_BYTES: usize = 4 << 20;

/// What a run printed about single tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Results {
    /// Whether the output lists every test that failed.
    pub(super) lists_failures: bool,
    /// Names as printed.
    pub(super) failed: Vec<String>,
    /// Whether the output lists every test that passed.
    pub(super) lists_passes: bool,
    /// Names as printed.
    pub(super) passed: Vec<String>,
}

pub(super) fn read(ecosystem: Ecosystem, stdout: &[u8], stderr: &[u8]) -> Results {
    let text = [tail(stdout), tail(stderr)].join("\n");
    match ecosystem {
        Ecosystem::Rust => rust(&text),
        Ecosystem::Python => python(&text),
        Ecosystem::Go => go(&text),
        Ecosystem::Node | Ecosystem::Deno => node(&text),
        _ => Results::default(),
    }
}

fn tail(bytes: &[u8]) -> String {
    let start = bytes.len().saturating_sub(OUTPUT_BYTES);
    let text = String::from_utf8_lossy(bytes.get(start..).unwrap_or_default());
    without_colours(&text)
}

/// Removes terminal colours, which some runners print whatever they print to.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

/// Whether a printed name is that of an added test.
pub(super) fn names(ecosystem: Ecosystem, printed: &str, added: &AddedTest) -> bool {
    if added.name.is_empty() {
        return false;
    }
    let file = added.file.as_text().unwrap_or_default();
    let stem = file
        .rsplit('/')
        .next()
        .and_then(|name| name.split('.').next());
    let words = || printed.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    match ecosystem {
        Ecosystem::Rust | Ecosystem::Go => words().any(|word| word == added.name),
        // A module that cannot be loaded is reported by its own name.
        Ecosystem::Python => words().any(|word| word == added.name || Some(word) == stem),
        _ => printed.contains(&added.name) || (!file.is_empty() && printed.contains(file)),
    }
}

fn rust(text: &str) -> Results {
    let mut results = Results::default();
    let mut finished = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("error: could not compile") {
            return Results::default();
        }
        finished |= line.starts_with("test result:") || line.starts_with("Summary [");
        if let Some((name, outcome)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.rsplit_once(" ... "))
        {
            let name = name.trim_end_matches(" - should panic").to_owned();
            match outcome {
                "FAILED" => results.failed.push(name),
                "ok" => results.passed.push(name),
                _ => {}
            }
        } else if let Some((_, rest)) = line.split_once("] ")
            && let Some(name) = rest.split_whitespace().last()
        {
            if line.starts_with("FAIL [") {
                results.failed.push(name.to_owned());
            } else if line.starts_with("PASS [") {
                results.passed.push(name.to_owned());
            }
        }
    }
    results.lists_failures = finished;
    results.lists_passes = finished;
    results
}

fn python(text: &str) -> Results {
    let mut results = Results::default();
    for line in text.lines().map(str::trim) {
        let counted = line.starts_with("Ran ") && line.contains(" test");
        let summary = line.starts_with("====")
            && (line.contains(" failed") || line.contains(" passed") || line.contains(" error"));
        results.lists_failures |= counted || summary;
        let name = ["FAIL: ", "ERROR: ", "FAILED ", "ERROR "]
            .into_iter()
            .find_map(|start| line.strip_prefix(start));
        if let Some(name) = name {
            let name = name.split(" - ").next().unwrap_or(name);
            results.failed.push(name.to_owned());
        }
    }
    results
}

fn go(text: &str) -> Results {
    let mut results = Results::default();
    for line in text.lines().map(str::trim) {
        if line.ends_with("[build failed]") || line.ends_with("[setup failed]") {
            return Results::default();
        }
        results.lists_failures |= line == "FAIL"
            || line == "PASS"
            || line.starts_with("ok ")
            || line.starts_with("FAIL\t");
        if let Some(name) = line
            .strip_prefix("--- FAIL: ")
            .and_then(|rest| rest.split([' ', '/']).next())
        {
            results.failed.push(name.to_owned());
        }
    }
    results
}

fn node(text: &str) -> Results {
    const FAILED: [&str; 5] = ["not ok ", "✖ ", "✕ ", "× ", "FAIL "];
    const PASSED: [&str; 3] = ["ok ", "✔ ", "✓ "];
    let mut results = Results::default();
    for line in text.lines().map(str::trim) {
        if let Some(name) = FAILED.iter().find_map(|start| line.strip_prefix(start)) {
            results.lists_failures = true;
            results.failed.push(name.to_owned());
        }
        results.lists_failures |= PASSED.iter().any(|start| line.starts_with(start));
    }
    results
}
