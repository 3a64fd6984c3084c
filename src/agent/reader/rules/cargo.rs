//! `cargo build` and `cargo test`: compiler errors, failed tests, panics.

use super::{Details, Found, Resolve, tracked_or_printed};
use crate::agent::ExtractedFact;
use crate::agent::reader::pattern::{Pattern, group, line_number};

static TEST_FAILED: Pattern =
    Pattern::new(r"^test (?<test>[\w:]+)(?: - should panic)? \.\.\. FAILED$");
static DOCUMENTATION_TEST_FAILED: Pattern = Pattern::new(
    r"^test (?<file>[^ ]+\.rs) - (?:(?<test>[\w:]+) )?\(line (?<line>\d+)\)(?: - [a-z ]+)? \.\.\. FAILED$",
);
/// The list of failures at the end, which is whole even where the lines of tests that run side by side are not.
static LISTED: Pattern = Pattern::new(r"^    (?<test>[\w:]+)$");
static SECTION: Pattern = Pattern::new(r"^---- (?<test>[\w:]+) stdout ----$");
static PANICKED: Pattern = Pattern::new(
    r"^thread '(?<test>[^']+)'(?: \(\d+\))? panicked at (?:'.*', )?(?<file>[^:']+):(?<line>\d+):\d+:?$",
);
static DID_NOT_PANIC: Pattern =
    Pattern::new(r"^note: test did not panic as expected(?: at (?<file>[^:]+):(?<line>\d+):\d+)?$");
static COMPILE_ERROR: Pattern = Pattern::new(r"^error(?:\[(?<code>E\d{4})\])?: ");
static COMPILE_PLACE: Pattern = Pattern::new(r"^ *--> (?<file>[^:]+):(?<line>\d+):\d+$");

/// Lines after an error within which its place stands.
const PLACE_WITHIN: u8 = 3;

pub(super) fn facts(text: &str, resolve: &Resolve<'_>) -> Vec<ExtractedFact> {
    let mut log = Log {
        found: Found {
            tool: "cargo-test",
            facts: Vec::new(),
        },
        resolve,
        section: None,
        error: None,
        listing: false,
    };
    for line in text.lines() {
        log.line(line.trim_end());
    }
    log.end_error();
    log.found.facts
}

struct Log<'t, 'r> {
    found: Found,
    resolve: &'r Resolve<'r>,
    /// The test whose output is being printed.
    section: Option<&'t str>,
    /// A compiler error whose place is still to come: its code, and for how many lines it may.
    error: Option<(Option<&'t str>, u8)>,
    /// Whether the lines are those of the list of failures.
    listing: bool,
}

impl<'t> Log<'t, '_> {
    /// Sorts a line by its first characters, so that most lines meet no pattern at all.
    fn line(&mut self, line: &'t str) {
        if self.error.is_some() && self.ends_error(line) {
            return;
        }
        if line.starts_with("error") {
            self.error_line(line);
        } else if line.starts_with("test ") {
            self.test_line(line);
        } else if line.starts_with("thread '") {
            self.panic_line(line);
        } else if line.starts_with("---- ") {
            self.listing = false;
            self.section = SECTION
                .captures(line)
                .and_then(|found| group(&found, "test"));
        } else if line.starts_with("note: test did not panic") {
            self.missing_panic_line(line);
        } else if line == "failures:" {
            self.section = None;
            self.listing = true;
        } else if self.listing && !line.is_empty() {
            self.listed_line(line);
        }
    }

    fn test_line(&mut self, line: &'t str) {
        if let Some(found) = TEST_FAILED.captures(line) {
            self.test_failed(group(&found, "test"));
        } else if let Some(found) = DOCUMENTATION_TEST_FAILED.captures(line) {
            let printed = group(&found, "file").unwrap_or_default();
            let details = Details {
                test_name: group(&found, "test"),
                file: Some(tracked_or_printed(self.resolve, printed)),
                line: line_number(&found),
                ..Details::default()
            };
            self.found.add("documentation-test-failed", details);
        }
    }

    fn test_failed(&mut self, test_name: Option<&str>) {
        let details = Details {
            test_name,
            ..Details::default()
        };
        self.found.add("test-failed", details);
    }

    fn listed_line(&mut self, line: &'t str) {
        match LISTED.captures(line) {
            Some(found) => self.test_failed(group(&found, "test")),
            None => self.listing = false,
        }
    }

    fn panic_line(&mut self, line: &'t str) {
        let Some(found) = PANICKED.captures(line) else {
            return;
        };
        let thread = group(&found, "test").filter(|name| !matches!(*name, "main" | "<unnamed>"));
        self.place(
            "panic",
            thread.or(self.section),
            group(&found, "file"),
            line_number(&found),
        );
    }

    fn missing_panic_line(&mut self, line: &'t str) {
        if let Some(found) = DID_NOT_PANIC.captures(line) {
            let test_name = self.section;
            self.place(
                "missing-panic",
                test_name,
                group(&found, "file"),
                line_number(&found),
            );
        }
    }

    fn place(
        &mut self,
        kind: &str,
        test_name: Option<&'t str>,
        printed: Option<&'t str>,
        line: Option<u32>,
    ) {
        let file = printed.map(|printed| tracked_or_printed(self.resolve, printed));
        let details = Details {
            test_name,
            file,
            line,
            ..Details::default()
        };
        self.found.add(kind, details);
    }

    fn error_line(&mut self, line: &'t str) {
        self.end_error();
        self.listing = false;
        self.error = COMPILE_ERROR
            .captures(line)
            .map(|found| (group(&found, "code"), PLACE_WITHIN));
    }

    /// Looks for the place of the pending error; whether `line` is it.
    fn ends_error(&mut self, line: &'t str) -> bool {
        if let Some(place) = COMPILE_PLACE.captures(line) {
            let code = self.error.take().and_then(|(code, _)| code);
            let printed = group(&place, "file").unwrap_or_default();
            let details = Details {
                file: Some(tracked_or_printed(self.resolve, printed)),
                line: line_number(&place),
                code,
                ..Details::default()
            };
            self.add_compile_error(details);
            return true;
        }
        match &mut self.error {
            Some((_, left)) if *left > 1 && !line.is_empty() => *left -= 1,
            _ => self.end_error(),
        }
        false
    }

    /// An error whose place never came is a fact only if it has a code: cargo's own closing words are errors too.
    fn end_error(&mut self) {
        if let Some((code @ Some(_), _)) = self.error.take() {
            let details = Details {
                code,
                ..Details::default()
            };
            self.add_compile_error(details);
        }
    }

    fn add_compile_error(&mut self, details: Details<'_>) {
        self.found.tool = "cargo-build";
        self.found.add("compile-error", details);
        self.found.tool = "cargo-test";
    }
}
