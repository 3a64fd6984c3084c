//! Tests of Go sources.

use super::super::lexer::Syntax;
use super::super::tokens::Tokens;
use super::{TestCase, TestFile};

const KINDS: [&str; 4] = ["Test", "Benchmark", "Fuzz", "Example"];
const FAILURES: [&str; 6] = ["Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"];
const SKIPS: [&str; 3] = ["Skip", "Skipf", "SkipNow"];

pub(super) fn read(source: &str) -> Option<TestFile> {
    let tokens = Tokens::read(Syntax::Go, source).ok()?;
    let mut file = TestFile::default();
    let constraints = source
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("//go:build") || line.starts_with("// +build"));
    file.conditions.extend(constraints.map(str::to_owned));
    let mut at = 0;
    while at < tokens.len() {
        let name = tokens.word(at + 1).filter(|_| tokens.is(at, "func"));
        match name {
            Some(name) if is_test(name) => {
                let open = (at..tokens.len()).find(|index| tokens.is(*index, "{"))?;
                let end = tokens.closing(open);
                file.cases.push(case(&tokens, name, open..end));
                at = end + 1;
            }
            // `TestMain` decides whether the others run at all.
            Some("TestMain") => {
                let open = (at..tokens.len()).find(|index| tokens.is(*index, "{"))?;
                let end = tokens.closing(open);
                file.conditions.push(tokens.text(at..end + 1));
                at = end + 1;
            }
            _ => at += 1,
        }
    }
    Some(file)
}

fn is_test(name: &str) -> bool {
    name != "TestMain"
        && KINDS.iter().any(|kind| {
            name.strip_prefix(kind)
                .is_some_and(|rest| !rest.starts_with(char::is_lowercase))
        })
}

fn case(tokens: &Tokens<'_>, name: &str, body: std::ops::Range<usize>) -> TestCase {
    let mut case = TestCase {
        path: name.to_owned(),
        name: name.to_owned(),
        assertions: Vec::new(),
        conditions: Vec::new(),
    };
    for at in body.clone() {
        let Some(word) = tokens.word(at) else {
            continue;
        };
        if word == "if" {
            // What fails a Go test is the condition before the call.
            let open = (at..body.end).find(|index| tokens.is(*index, "{"));
            if let Some(open) = open {
                let fails = (open..tokens.closing(open)).any(|inside| is_failure(tokens, inside));
                if fails {
                    case.assertions.push(tokens.text(at..open));
                }
            }
        } else if is_failure(tokens, at) {
            case.assertions.push(call(tokens, at));
        } else if (word == "assert" || word == "require") && tokens.is(at + 1, ".") {
            case.assertions.push(call(tokens, at + 2));
        } else if SKIPS.contains(&word) && at > 0 && tokens.is(at - 1, ".") {
            case.conditions.push("skip".to_owned());
        } else if word == "return" {
            case.conditions.push("return".to_owned());
        }
    }
    case
}

fn is_failure(tokens: &Tokens<'_>, at: usize) -> bool {
    tokens.word(at).is_some_and(|word| FAILURES.contains(&word))
        && at > 0
        && tokens.is(at - 1, ".")
        && tokens.is(at + 1, "(")
}

fn call(tokens: &Tokens<'_>, at: usize) -> String {
    tokens.text(at..tokens.closing(at + 1) + 1)
}
