//! Tests of JavaScript and TypeScript sources: `test(…)`, `it(…)` and `describe(…)` of every common runner.

use super::super::lexer::{Kind, Syntax};
use super::super::tokens::Tokens;
use super::{TestCase, TestFile};

/// Suites within each other that are followed.
const DEPTH: usize = 32;
const TESTS: [&str; 6] = ["it", "test", "specify", "xit", "xtest", "fit"];
const SUITES: [&str; 5] = ["describe", "suite", "context", "xdescribe", "fdescribe"];

pub(super) fn read(source: &str) -> Option<TestFile> {
    let tokens = Tokens::read(Syntax::JavaScript, source).ok()?;
    let mut reader = Reader {
        tokens: &tokens,
        file: TestFile::default(),
    };
    reader.range(0..tokens.len(), "", &[], 0)?;
    Some(reader.file)
}

struct Reader<'a> {
    tokens: &'a Tokens<'a>,
    file: TestFile,
}

/// A call such as `describe.each(…)("name", …)`.
struct Call {
    name: String,
    conditions: Vec<String>,
    arguments: std::ops::Range<usize>,
    is_suite: bool,
}

impl Reader<'_> {
    fn range(
        &mut self,
        range: std::ops::Range<usize>,
        path: &str,
        around: &[String],
        depth: usize,
    ) -> Option<()> {
        if depth > DEPTH {
            return None;
        }
        let mut at = range.start;
        while at < range.end {
            let Some(call) = self.call(at) else {
                at += 1;
                continue;
            };
            let mut conditions = around.to_vec();
            conditions.extend(call.conditions);
            let path = format!("{path}{}", call.name);
            at = call.arguments.end + 1;
            if call.is_suite {
                let path = format!("{path} > ");
                self.range(call.arguments, &path, &conditions, depth + 1)?;
            } else {
                let case = self.case(&call.arguments, path, call.name, conditions);
                self.file.cases.push(case);
            }
        }
        Some(())
    }

    fn call(&mut self, at: usize) -> Option<Call> {
        let word = self.tokens.word(at)?;
        let is_suite = SUITES.contains(&word);
        let method = at > 0 && self.tokens.is(at - 1, ".");
        if method || !(is_suite || TESTS.contains(&word)) {
            return None;
        }
        let mut conditions = Vec::new();
        if word.starts_with('x') {
            conditions.push("skip".to_owned());
        }
        let mut exclusive = word.starts_with('f');
        let mut open = at + 1;
        while self.tokens.is(open, ".") {
            let modifier = self.tokens.word(open + 1)?;
            exclusive |= modifier == "only";
            conditions.push(modifier.to_owned());
            open += 2;
            if modifier == "each" && self.tokens.is(open, "(") {
                let end = self.tokens.closing(open);
                conditions.push(self.tokens.text(open..end + 1));
                open = end + 1;
            }
        }
        if exclusive {
            // It keeps every other test of the file from running.
            self.file.conditions.push("only".to_owned());
        }
        let name = self.tokens.get(open + 1)?;
        if !self.tokens.is(open, "(") || name.kind != Kind::Literal {
            return None;
        }
        Some(Call {
            name: name.text.trim_matches(['"', '\'', '`']).to_owned(),
            conditions,
            arguments: open + 1..self.tokens.closing(open),
            is_suite,
        })
    }

    fn case(
        &self,
        arguments: &std::ops::Range<usize>,
        path: String,
        name: String,
        mut conditions: Vec<String>,
    ) -> TestCase {
        let mut assertions = Vec::new();
        let mut at = arguments.start;
        while at < arguments.end {
            let method = at > 0 && self.tokens.is(at - 1, ".");
            match self.tokens.word(at) {
                Some(word)
                    if !method
                        && (word == "expect" || word.starts_with("assert") || word == "t") =>
                {
                    let end = self.chain_end(at, arguments.end);
                    let text = self.tokens.text(at..end);
                    // Node's own `t` both asserts and skips.
                    if word != "t" || text.contains("assert") {
                        assertions.push(text);
                        at = end.max(at + 1);
                        continue;
                    }
                }
                Some(word @ ("skip" | "todo" | "only")) => conditions.push(word.to_owned()),
                _ => {}
            }
            at += 1;
        }
        TestCase {
            path,
            name,
            assertions,
            conditions,
        }
    }

    /// The end of a chain of member accesses and calls.
    fn chain_end(&self, start: usize, limit: usize) -> usize {
        let mut at = start + 1;
        while at < limit {
            if self.tokens.is(at, "(") || self.tokens.is(at, "[") {
                at = self.tokens.closing(at) + 1;
            } else if self.tokens.is(at, ".") && self.tokens.word(at + 1).is_some() {
                at += 2;
            } else {
                break;
            }
        }
        at
    }
}
