//! Python's `unittest`: failed tests, and the deepest tracked place of each traceback.

use super::{Details, Found, Resolve};
use crate::agent::ExtractedFact;
use crate::agent::reader::pattern::{Pattern, group, line_number};

static HEADER: Pattern =
    Pattern::new(r"^(?<how>FAIL|ERROR): (?<method>[\w.]+) \((?<path>[\w.]+)\)");
static FRAME: Pattern = Pattern::new(r#"^ +File "(?<file>[^"]+)", line (?<line>\d+)(?:, in .+)?$"#);
static EXCEPTION: Pattern = Pattern::new(r"^(?<exception>[A-Za-z_][A-Za-z0-9_.]*)(?::.*)?$");

pub(super) fn facts(text: &str, resolve: &Resolve<'_>) -> Vec<ExtractedFact> {
    let mut log = Log {
        found: Found {
            tool: "unittest",
            facts: Vec::new(),
        },
        resolve,
        test: None,
        traceback: Traceback::Outside,
    };
    for line in text.lines() {
        log.line(line.trim_end());
    }
    log.found.facts
}

/// Where in a traceback the reading stands.
#[derive(Clone, Copy)]
enum Traceback<'t> {
    Outside,
    /// Its first line was read, and the deepest frame in a tracked file.
    Inside(Option<(&'t str, Option<u32>)>),
}

struct Log<'t, 'r> {
    found: Found,
    resolve: &'r Resolve<'r>,
    /// The test whose failure is being printed.
    test: Option<&'t str>,
    traceback: Traceback<'t>,
}

impl<'t> Log<'t, '_> {
    fn line(&mut self, line: &'t str) {
        if line.starts_with("FAIL: ") || line.starts_with("ERROR: ") {
            self.header_line(line);
        } else if line.starts_with("====") {
            self.test = None;
            self.traceback = Traceback::Outside;
        } else if line == "Traceback (most recent call last):" {
            self.traceback = Traceback::Inside(None);
        } else if let Traceback::Inside(deepest) = self.traceback {
            self.traceback_line(line, deepest);
        }
    }

    fn header_line(&mut self, line: &'t str) {
        let Some(found) = HEADER.captures(line) else {
            return;
        };
        let failed = group(&found, "how") == Some("FAIL");
        self.test = test_name(group(&found, "method"), group(&found, "path"));
        let details = Details {
            test_name: self.test,
            ..Details::default()
        };
        self.found
            .add(if failed { "test-failed" } else { "test-error" }, details);
    }

    /// A frame, its source lines, or the line without indentation that names the exception and ends the traceback.
    fn traceback_line(&mut self, line: &'t str, deepest: Option<(&'t str, Option<u32>)>) {
        if line.starts_with(' ') {
            if let Some(found) = FRAME.captures(line)
                && let Some(file) = group(&found, "file").and_then(self.resolve)
            {
                self.traceback = Traceback::Inside(Some((file, line_number(&found))));
            }
            return;
        }
        self.traceback = Traceback::Outside;
        let exception = EXCEPTION
            .captures(line)
            .and_then(|found| group(&found, "exception"));
        if let (Some((file, line)), Some(exception)) = (deepest, exception) {
            let details = Details {
                test_name: self.test,
                file: Some(file),
                line,
                exception: Some(exception),
                ..Details::default()
            };
            self.found.add("raised", details);
        }
    }
}

/// The name by which `python -m unittest` runs the test again: the whole dotted path where Python 3.11 and later print it, else
/// the method's or the module's name alone.
fn test_name<'t>(method: Option<&'t str>, path: Option<&'t str>) -> Option<&'t str> {
    let (method, path) = (method?, path?);
    let whole = path
        .strip_suffix(method)
        .is_some_and(|class| class.ends_with('.'));
    Some(if whole && !path.starts_with("unittest.") {
        path
    } else {
        method
    })
}
