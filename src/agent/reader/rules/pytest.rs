//! pytest: the short summary, and the places at which exceptions were raised.

use super::{Details, Found, Resolve, tracked_or_printed};
use crate::agent::ExtractedFact;
use crate::agent::reader::pattern::{Pattern, group, line_number};

/// A line of the short summary. A parameter id with a space in it is left out of the name: it is the one part of a name that may
/// hold prose.
static SUMMARY: Pattern = Pattern::new(
    r"^(?<how>FAILED|ERROR) (?<file>[^ :]+\.py)(?:::(?<test>[\w:]+(?:\[[\w:./\-$<>#,]+\])?).*?)?(?: - (?<exception>[A-Za-z_][A-Za-z0-9_.]*)(?::.*)?| - .*)?$",
);
static SECTION: Pattern = Pattern::new(r"^_{3,} (?<test>[\w.]+(?:\[[\w:./\-$<>#,]+\])?).* _{3,}$");
static RAISED: Pattern = Pattern::new(
    r"^(?<file>[^ :]+\.py):(?<line>\d+): (?:in |(?<exception>[A-Za-z_][A-Za-z0-9_.]*)$)",
);
/// The line that names the exception, in the short style after its place, in the long style before it.
static EXCEPTION: Pattern = Pattern::new(r"^E +(?<exception>[A-Za-z_][A-Za-z0-9_.]*)(?::|$)");

pub(super) fn facts(text: &str, resolve: &Resolve<'_>) -> Vec<ExtractedFact> {
    let mut log = Log {
        found: Found {
            tool: "pytest",
            facts: Vec::new(),
        },
        resolve,
        section: None,
        frame: None,
    };
    for line in text.lines() {
        log.line(line.trim_end());
    }
    log.found.facts
}

struct Log<'t, 'r> {
    found: Found,
    resolve: &'r Resolve<'r>,
    /// The test whose failure is being printed.
    section: Option<&'t str>,
    /// The last frame of a short traceback.
    frame: Option<(&'t str, Option<u32>)>,
}

impl<'t> Log<'t, '_> {
    fn line(&mut self, line: &'t str) {
        if line.starts_with("FAILED ") || line.starts_with("ERROR ") {
            self.summary_line(line);
        } else if line.starts_with("___") {
            self.frame = None;
            self.section = SECTION
                .captures(line)
                .and_then(|found| group(&found, "test"));
        } else if line.starts_with("===") {
            (self.frame, self.section) = (None, None);
        } else if line.starts_with("E ") {
            self.exception_line(line);
        } else if line.contains(".py:") {
            self.place_line(line);
        }
    }

    fn summary_line(&mut self, line: &'t str) {
        let Some(found) = SUMMARY.captures(line) else {
            return;
        };
        let failed = group(&found, "how") == Some("FAILED");
        let printed = group(&found, "file").unwrap_or_default();
        let details = Details {
            test_name: group(&found, "test"),
            file: Some(tracked_or_printed(self.resolve, printed)),
            exception: group(&found, "exception"),
            ..Details::default()
        };
        self.found
            .add(if failed { "test-failed" } else { "test-error" }, details);
    }

    fn place_line(&mut self, line: &'t str) {
        let Some(found) = RAISED.captures(line) else {
            return;
        };
        let printed = group(&found, "file").unwrap_or_default();
        let place = (
            tracked_or_printed(self.resolve, printed),
            line_number(&found),
        );
        match group(&found, "exception") {
            Some(exception) => self.raised(place, exception),
            None => self.frame = Some(place),
        }
    }

    fn exception_line(&mut self, line: &'t str) {
        if let (Some(place), Some(found)) = (self.frame, EXCEPTION.captures(line)) {
            self.frame = None;
            self.raised(place, group(&found, "exception").unwrap_or_default());
        }
    }

    fn raised(&mut self, (file, line): (&'t str, Option<u32>), exception: &'t str) {
        let details = Details {
            test_name: self.section,
            file: Some(file),
            line,
            exception: Some(exception),
            ..Details::default()
        };
        self.found.add("raised", details);
    }
}
