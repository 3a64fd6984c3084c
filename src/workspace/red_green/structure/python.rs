//! Tests of Python sources: functions named `test…`, at the top level or in classes.

use super::{TestCase, TestFile};

/// Longest source that is read, in bytes.
const SOURCE_BYTES: usize = 4 << 20;
/// Calls and names by which a test is skipped from inside.
const SKIPS: [&str; 6] = [
    "skipTest(",
    "pytest.skip(",
    "pytest.xfail(",
    "SkipTest",
    "importorskip(",
    "__unittest_skip__",
];
/// What asserts besides the statement.
const ASSERTIONS: [&str; 6] = [
    "self.assert",
    ".assert_",
    "pytest.raises",
    "pytest.warns",
    "self.fail(",
    "pytest.fail(",
];

pub(super) fn read(source: &str) -> Option<TestFile> {
    let lines = logical_lines(source)?;
    let mut reader = Reader::default();
    for line in &lines {
        reader.line(line);
    }
    Some(reader.finish())
}

/// A statement without comments, its blanks reduced.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    indent: usize,
    text: String,
}

#[derive(Debug)]
struct Scope {
    indent: usize,
    name: String,
    is_class: bool,
    conditions: Vec<String>,
    /// Index of the test that this scope is.
    case: Option<usize>,
}

#[derive(Default)]
struct Reader {
    file: TestFile,
    scopes: Vec<Scope>,
    decorators: Vec<String>,
}

impl Reader {
    fn line(&mut self, line: &Line) {
        while self
            .scopes
            .last()
            .is_some_and(|scope| scope.indent >= line.indent)
        {
            self.scopes.pop();
        }
        let text = line.text.as_str();
        if text.starts_with('@') {
            self.decorators.push(text.to_owned());
        } else if let Some(rest) = text.strip_prefix("class ") {
            self.open(line.indent, rest, true);
        } else if let Some(rest) = text
            .strip_prefix("def ")
            .or_else(|| text.strip_prefix("async def "))
        {
            self.open(line.indent, rest, false);
            // A body on the same line.
            if let Some((_, body)) = rest.rsplit_once("):").filter(|(_, body)| !body.is_empty()) {
                self.statement(body);
            }
        } else {
            self.statement(text);
        }
    }

    fn open(&mut self, indent: usize, rest: &str, is_class: bool) {
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default().to_owned();
        let conditions = std::mem::take(&mut self.decorators);
        let in_classes = self.scopes.iter().all(|scope| scope.is_class);
        let case = (!is_class && in_classes && name.starts_with("test"))
            .then(|| self.add_case(&name, &conditions));
        if name == "load_tests" {
            self.file.conditions.push("def load_tests".to_owned());
        }
        self.scopes.push(Scope {
            indent,
            name,
            is_class,
            conditions,
            case,
        });
    }

    fn add_case(&mut self, name: &str, own: &[String]) -> usize {
        let mut path = String::new();
        let mut conditions = Vec::new();
        for scope in &self.scopes {
            path.push_str(&scope.name);
            path.push_str("::");
            conditions.extend(scope.conditions.iter().cloned());
        }
        path.push_str(name);
        conditions.extend(own.iter().cloned());
        if self.file.cases.iter().any(|case| case.path == path) {
            // The second definition takes the place of the first, which then never runs.
            self.file
                .conditions
                .push(format!("skip: a second definition of {path}"));
        }
        self.file.cases.push(TestCase {
            path,
            name: name.to_owned(),
            assertions: Vec::new(),
            conditions,
        });
        self.file.cases.len() - 1
    }

    fn statement(&mut self, text: &str) {
        let skips = SKIPS.iter().any(|skip| text.contains(skip));
        let case = self.scopes.iter().rev().find_map(|scope| scope.case);
        let Some(case) = case.and_then(|index| self.file.cases.get_mut(index)) else {
            if skips || text.starts_with("pytestmark") || text.starts_with("__test__") {
                let mark = if text.contains("skip") { "" } else { "skip: " };
                self.file.conditions.push(format!("{mark}{text}"));
            }
            return;
        };
        let asserts = text.starts_with("assert ")
            || text.starts_with("assert(")
            || text.contains(": assert ")
            || ASSERTIONS.iter().any(|word| text.contains(word));
        if asserts {
            case.assertions.push(text.to_owned());
        }
        if skips {
            case.conditions.push(format!("skip: {text}"));
        } else if text == "return" || text.starts_with("return ") || text.ends_with(": return") {
            case.conditions.push("return".to_owned());
        }
    }

    fn finish(self) -> TestFile {
        self.file
    }
}

/// Splits a source into statements, joining lines inside brackets and strings.
fn logical_lines(source: &str) -> Option<Vec<Line>> {
    if source.len() > SOURCE_BYTES {
        return None;
    }
    let mut splitter = Splitter {
        characters: source.chars().peekable(),
        lines: Vec::new(),
        text: String::new(),
        indent: 0,
        at_start: true,
        brackets: 0,
    };
    while let Some(character) = splitter.characters.next() {
        splitter.step(character)?;
    }
    splitter.end_line();
    (splitter.brackets == 0).then_some(splitter.lines)
}

struct Splitter<'a> {
    characters: std::iter::Peekable<std::str::Chars<'a>>,
    lines: Vec<Line>,
    text: String,
    indent: usize,
    at_start: bool,
    brackets: usize,
}

impl Splitter<'_> {
    fn step(&mut self, character: char) -> Option<()> {
        match character {
            '\n' if self.brackets == 0 => self.end_line(),
            ' ' | '\t' | '\r' | '\u{c}' | '\n' => self.blank(character),
            '#' => {
                while self.characters.peek().is_some_and(|next| *next != '\n') {
                    self.characters.next();
                }
            }
            '\\' => {
                // A continued line; anywhere else a backslash is no Python.
                if self.characters.next()? == '\r' {
                    self.characters.next_if_eq(&'\n');
                }
                self.blank(' ');
            }
            '"' | '\'' => self.string(character)?,
            ';' if self.brackets == 0 => {
                let indent = self.indent;
                self.end_line();
                self.indent = indent;
                self.at_start = false;
            }
            _ => {
                match character {
                    '(' | '[' | '{' => self.brackets += 1,
                    ')' | ']' | '}' => self.brackets = self.brackets.checked_sub(1)?,
                    _ => {}
                }
                self.at_start = false;
                self.text.push(character);
            }
        }
        Some(())
    }

    fn blank(&mut self, character: char) {
        if self.at_start {
            match character {
                ' ' => self.indent += 1,
                '\t' => self.indent = (self.indent / 8 + 1) * 8,
                _ => {}
            }
        } else if !self.text.is_empty() && !self.text.ends_with(' ') {
            self.text.push(' ');
        }
    }

    fn end_line(&mut self) {
        let text = tidy(&std::mem::take(&mut self.text));
        if !text.is_empty() {
            self.lines.push(Line {
                indent: self.indent,
                text,
            });
        }
        self.indent = 0;
        self.at_start = true;
    }

    /// A string, whatever its prefix; interpolations of formatted strings are part of its text.
    fn string(&mut self, quote: char) -> Option<()> {
        let raw = self
            .text
            .chars()
            .rev()
            .take_while(char::is_ascii_alphabetic)
            .any(|c| matches!(c, 'r' | 'R'));
        self.at_start = false;
        self.text.push(quote);
        let mut long = false;
        if self.characters.next_if_eq(&quote).is_some() {
            self.text.push(quote);
            if self.characters.next_if_eq(&quote).is_none() {
                return Some(());
            }
            self.text.push(quote);
            long = true;
        }
        let mut run = 0;
        loop {
            let character = self.characters.next()?;
            if character == '\n' && !long {
                return None;
            }
            self.text.push(character);
            if character == '\\' {
                // Even in a raw string a quote after a backslash does not end it.
                let escaped = self.characters.next()?;
                if escaped == '\n' && !long && raw {
                    return None;
                }
                self.text.push(escaped);
                run = 0;
            } else if character == quote {
                run += 1;
                if !long || run == 3 {
                    return Some(());
                }
            } else {
                run = 0;
            }
        }
    }
}

/// Removes what formatters change: blanks inside brackets and trailing commas.
fn tidy(text: &str) -> String {
    let mut text = text.trim().to_owned();
    for (from, to) in [
        ("( ", "("),
        ("[ ", "["),
        ("{ ", "{"),
        (" )", ")"),
        (" ]", "]"),
        (" }", "}"),
        (",)", ")"),
        (",]", "]"),
        (",}", "}"),
    ] {
        text = text.replace(from, to);
    }
    text
}
