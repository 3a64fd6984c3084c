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

/// Whether a printed name is that of an added test. Whole names are compared: with a mere part, a fix could give its test a
/// name that is part of every failure.
pub(super) fn names(ecosystem: Ecosystem, printed: &str, added: &AddedTest) -> bool {
    if added.name.is_empty() {
        return false;
    }
    let file = added.file.as_text().unwrap_or_default();
    let name = added.name.as_str();
    match ecosystem {
        Ecosystem::Rust => {
            let mut parts = printed.rsplit("::");
            let last = parts.next().unwrap_or_default();
            // Parametrised tests print one line for each case, below the function's name.
            last == name || (last.starts_with("case") && parts.next() == Some(name))
        }
        Ecosystem::Go => printed == name,
        Ecosystem::Python => python_names(printed, file, name),
        _ => javascript_names(printed, file, name),
    }
}

/// `test_a (module.Class.test_a)` or `file.py::Class::test_a[parameters]`; a module that cannot be loaded is reported by its
/// own name.
fn python_names(printed: &str, file: &str, name: &str) -> bool {
    let before = |text, end: char| str::split(text, end).next().unwrap_or_default();
    if let Some((_, last)) = printed.rsplit_once("::") {
        return before(last, '[') == name;
    }
    let own = before(printed, ' ');
    if printed.contains("._FailedTest") {
        let stem = file
            .rsplit('/')
            .next()
            .and_then(|name| name.strip_suffix(".py"));
        return own.rsplit('.').next() == stem;
    }
    own == name || own == file
}

/// `3 - name`, `name (1.5ms)`, `file > suite > name 3ms`; a file that cannot be loaded is reported by its path.
fn javascript_names(printed: &str, file: &str, name: &str) -> bool {
    let numbered = printed.split_once(" - ").filter(|(number, _)| {
        let number = number.trim();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let text = numbered.map_or(printed, |(_, rest)| rest).trim();
    let timed = text
        .rsplit_once(' ')
        .filter(|(_, last)| last.ends_with("ms") || last.ends_with("ms)"));
    let text = timed.map_or(text, |(rest, _)| {
        rest.trim_end_matches([' ', '(']).trim_end()
    });
    // `(3 ms)` has a blank inside.
    let text = text
        .rsplit_once(" (")
        .filter(|(_, rest)| {
            rest.bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
        })
        .map_or(text, |(rest, _)| rest);
    let last = text.rsplit(['›', '>']).next().unwrap_or(text).trim();
    last == name
        || text == name
        || (!file.is_empty() && (text == file || text.ends_with(&format!("/{file}"))))
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
        if let Some(name) = name.filter(|name| !name.starts_with('(')) {
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
        // Mocha numbers its failures: `1) name`.
        let numbered = line
            .split_once(") ")
            .filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
            .map(|(_, name)| name);
        let marked = FAILED.iter().find_map(|start| line.strip_prefix(start));
        if let Some(name) = marked.or(numbered) {
            results.lists_failures = true;
            results.failed.push(name.to_owned());
        }
        results.lists_failures |= PASSED.iter().any(|start| line.starts_with(start));
    }
    results
}
