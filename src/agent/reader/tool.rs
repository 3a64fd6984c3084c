//! Whose output a log is.

use super::pattern::Pattern;

/// A tool whose output the reader knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// `cargo build`, `cargo test` and what they call.
    Cargo,
    /// pytest.
    Pytest,
    /// Python's own `unittest`.
    Unittest,
}

impl Tool {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Pytest => "pytest",
            Self::Unittest => "unittest",
        }
    }
}

/// Lines with which a tool says that it failed.
static FAILED: [(Tool, Pattern); 3] = [
    (
        Tool::Cargo,
        Pattern::new(
            r"^(?:test result: FAILED\.|error: (?:test failed, to rerun|could not compile |\d+ targets? failed))",
        ),
    ),
    (
        Tool::Pytest,
        Pattern::new(r"^(?:=+ )?(?:\d+ \w+, )*\d+ (?:failed|errors?)\b.* in \d+\.\d+s"),
    ),
    (
        Tool::Unittest,
        Pattern::new(r"^FAILED \((?:failures|errors|unexpected successes)="),
    ),
];

/// Lines with which a tool says that it is running; they count when the log ends before the tool did.
static RUNNING: [(Tool, Pattern); 3] = [
    (
        Tool::Cargo,
        Pattern::new(r"^(?:running \d+ tests?$| +(?:Compiling|Running) )"),
    ),
    (
        Tool::Pytest,
        Pattern::new(r"^=+ (?:test session starts|FAILURES|ERRORS|short test summary info) =+$"),
    ),
    (
        Tool::Unittest,
        Pattern::new(r"^(?:Ran \d+ tests? in |(?:FAIL|ERROR): \w+ \([\w.]+\))"),
    ),
];

/// The tool that failed last, since a job stops at its first failing step; else the one that was seen running last.
pub(super) fn detect(text: &str) -> Option<Tool> {
    last_of(&FAILED, text).or_else(|| last_of(&RUNNING, text))
}

fn last_of(signs: &[(Tool, Pattern)], text: &str) -> Option<Tool> {
    text.lines().rev().find_map(|line| {
        let said = |(_, sign): &&(Tool, Pattern)| sign.matches(line);
        signs.iter().find(said).map(|(tool, _)| *tool)
    })
}
