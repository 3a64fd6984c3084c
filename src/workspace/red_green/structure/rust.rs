//! Tests of Rust sources.

use super::super::lexer::Syntax;
use super::super::rust_items::{Item, is_test_attribute, item_at, items};
use super::super::tokens::Tokens;
use super::{TestCase, TestFile};

/// Modules within each other that are followed.
const DEPTH: usize = 32;

pub(super) fn read(source: &str) -> Option<TestFile> {
    let tokens = Tokens::read(Syntax::Rust, source).ok()?;
    let mut file = TestFile::default();
    let mut at = 0;
    while tokens.is(at, "#") && tokens.is(at + 1, "!") && tokens.is(at + 2, "[") {
        let end = tokens.closing(at + 2);
        file.conditions.push(tokens.text(at..end + 1));
        at = end + 1;
    }
    let reader = Reader { tokens: &tokens };
    reader.module(0..tokens.len(), "", &[], 0, &mut file.cases)?;
    Some(file)
}

struct Reader<'a> {
    tokens: &'a Tokens<'a>,
}

impl Reader<'_> {
    fn module(
        &self,
        range: std::ops::Range<usize>,
        path: &str,
        around: &[String],
        depth: usize,
        cases: &mut Vec<TestCase>,
    ) -> Option<()> {
        if depth > DEPTH {
            return None;
        }
        for item in items(self.tokens, range) {
            if let Some(case) = self.case(&item, path, around) {
                cases.push(case);
                continue;
            }
            let mut conditions = around.to_vec();
            conditions.extend(self.attributes(&item));
            let Some(name) = self.module_name(&item) else {
                self.functions(item.body..item.end + 1, path, &conditions, cases);
                continue;
            };
            if let Some(block) = self.block(&item) {
                let path = format!("{path}{name}::");
                // An inner attribute of the module holds for every test in it.
                let inside = block + 1..self.tokens.closing(block);
                conditions.extend(self.inner_attributes(&inside));
                self.module(inside, &path, &conditions, depth + 1, cases)?;
            }
        }
        Some(())
    }

    /// The attributes of an item, except for those that make it a test.
    fn attributes(&self, item: &Item) -> Vec<String> {
        let text = |at: &usize| self.tokens.text(*at..self.tokens.closing(*at) + 1);
        item.attributes
            .iter()
            .map(text)
            .filter(|text| text != "[ cfg ( test ) ]" && text != "[ test ]")
            .collect()
    }

    fn inner_attributes(&self, range: &std::ops::Range<usize>) -> Vec<String> {
        let mut found = Vec::new();
        let mut at = range.start;
        while self.tokens.is(at, "#") && self.tokens.is(at + 1, "!") && at < range.end {
            let end = self.tokens.closing(at + 2);
            found.push(self.tokens.text(at..end + 1));
            at = end + 1;
        }
        found
    }

    fn module_name(&self, item: &Item) -> Option<&str> {
        let mut at = item.body;
        if self.tokens.is(at, "pub") {
            at += 1;
            if self.tokens.is(at, "(") {
                at = self.tokens.closing(at) + 1;
            }
        }
        if self.tokens.is(at, "mod") {
            self.tokens.word(at + 1)
        } else {
            None
        }
    }

    fn block(&self, item: &Item) -> Option<usize> {
        (item.body..=item.end).find(|at| self.tokens.is(*at, "{"))
    }

    /// The test that an item is, if it is one.
    fn case(&self, item: &Item, path: &str, around: &[String]) -> Option<TestCase> {
        let is_test = |at: &usize| is_test_attribute(self.tokens, at + 1, self.tokens.closing(*at));
        if !item.attributes.iter().any(is_test) {
            return None;
        }
        let function = (item.body..item.end).find(|at| self.tokens.is(*at, "fn"))?;
        let name = self.tokens.word(function + 1)?;
        let (assertions, early) = self.body(function..item.end);
        let mut conditions = around.to_vec();
        conditions.extend(self.attributes(item));
        conditions.extend(early);
        Some(TestCase {
            path: format!("{path}{name}"),
            name: name.to_owned(),
            assertions,
            conditions,
        })
    }

    /// Test functions anywhere in a range, as in macro calls such as `proptest!`.
    fn functions(
        &self,
        range: std::ops::Range<usize>,
        path: &str,
        around: &[String],
        cases: &mut Vec<TestCase>,
    ) {
        let mut at = range.start;
        while at < range.end {
            let attributed = self.tokens.is(at, "#") && self.tokens.is(at + 1, "[");
            let item = item_at(self.tokens, at, range.end).filter(|_| attributed);
            let Some(item) = item else {
                at += 1;
                continue;
            };
            if let Some(case) = self.case(&item, path, around) {
                cases.push(case);
                at = item.end + 1;
            } else {
                at = item.body;
            }
        }
    }

    /// The assertions of a function, and the places where it may end early.
    fn body(&self, range: std::ops::Range<usize>) -> (Vec<String>, Vec<String>) {
        let (mut assertions, mut early) = (Vec::new(), Vec::new());
        for at in range {
            let Some(word) = self.tokens.word(at) else {
                continue;
            };
            let called = self.tokens.is(at + 1, "!");
            if called && (word.contains("assert") || word == "panic" || word == "unreachable") {
                let end = self.tokens.closing(at + 2);
                assertions.push(self.tokens.text(at..end + 1));
            } else if word == "return" {
                early.push("return".to_owned());
            }
        }
        (assertions, early)
    }
}
