//! Telling the test items of a Rust source from the rest of it.

use super::lexer::{Kind, LexError, Syntax, Tokens};

/// Attributes whose function is a test.
pub(super) const TEST_ATTRIBUTES: [&str; 6] = [
    "test",
    "rstest",
    "test_case",
    "bench",
    "wasm_bindgen_test",
    "quickcheck",
];

/// A Rust source in two parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Separated {
    /// The source without its test items.
    pub(super) production: String,
    /// The test items at the top level, as written: those under `#[cfg(test)]` and functions marked as tests.
    pub(super) tests: Vec<String>,
    /// Names of modules under `#[cfg(test)]` that are files of their own.
    pub(super) test_modules: Vec<String>,
    /// Conditions on `test` that stand in the production part, without blanks.
    pub(super) conditions: Vec<String>,
    /// Tests inside modules that are not test items: they cannot be told apart and must not differ.
    pub(super) nested: Vec<String>,
}

/// Splits a source.
pub(super) fn separate(source: &str) -> Result<Separated, LexError> {
    let tokens = Tokens::read(Syntax::Rust, source)?;
    let mut separated = Separated {
        production: String::new(),
        tests: Vec::new(),
        test_modules: Vec::new(),
        conditions: Vec::new(),
        nested: Vec::new(),
    };
    let mut kept_from = 0;
    for item in items(&tokens, 0..tokens.len()) {
        if !item.attributes.iter().any(|at| marks_test(&tokens, *at)) {
            note_conditions(&tokens, &item, &mut separated);
            continue;
        }
        let start = tokens.get(item.start).map_or(0, |token| token.start);
        let end = tokens
            .get(item.end)
            .map_or(source.len(), |token| token.end());
        separated
            .production
            .push_str(source.get(kept_from..start).unwrap_or_default());
        kept_from = end;
        separated
            .tests
            .push(source.get(start..end).unwrap_or_default().to_owned());
        if let Some(name) = module_file(&tokens, &item) {
            separated.test_modules.push(name);
        }
    }
    separated
        .production
        .push_str(source.get(kept_from..).unwrap_or_default());
    Ok(separated)
}

/// One source from the production part of one file and the test items of another.
pub(super) fn join(production: &str, tests: &[String]) -> String {
    let mut joined = production.trim_end().to_owned();
    for item in tests {
        joined.push_str("\n\n");
        joined.push_str(item);
    }
    joined.push('\n');
    joined
}

/// An item: indices of its first and last token, of the `[` of its outer attributes, and of what follows these.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) start: usize,
    pub(super) attributes: Vec<usize>,
    pub(super) body: usize,
    pub(super) end: usize,
}

/// The items of a range, which must not cut through brackets.
pub(super) fn items(tokens: &Tokens<'_>, range: std::ops::Range<usize>) -> Vec<Item> {
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        if tokens.is(at, "#") && tokens.is(at + 1, "!") && tokens.is(at + 2, "[") {
            at = tokens.closing(at + 2) + 1;
            continue;
        }
        let start = at;
        let mut attributes = Vec::new();
        loop {
            if tokens.get(at).is_some_and(|token| token.kind == Kind::Doc) {
                at += 1;
            } else if tokens.is(at, "#") && tokens.is(at + 1, "[") {
                attributes.push(at + 1);
                at = tokens.closing(at + 1) + 1;
            } else {
                break;
            }
        }
        if at >= range.end {
            break;
        }
        let end = item_end(tokens, at, range.end);
        found.push(Item {
            start,
            attributes,
            body: at,
            end,
        });
        at = end + 1;
    }
    found
}

/// The last token of the item whose first token after its attributes is at `body`.
fn item_end(tokens: &Tokens<'_>, body: usize, limit: usize) -> usize {
    let mut at = body;
    if tokens.is(at, "pub") {
        at += 1;
        if tokens.is(at, "(") {
            at = tokens.closing(at) + 1;
        }
    }
    let semicolon_only = match tokens.word(at) {
        Some("use" | "static" | "type" | "let") => true,
        Some("extern") => tokens.is(at + 1, "crate"),
        Some("const") => !matches!(
            tokens.word(at + 1),
            Some("fn" | "unsafe" | "async" | "extern")
        ),
        _ => false,
    };
    while at < limit {
        if tokens.is(at, ";") {
            return at;
        }
        let closing = tokens.closing(at);
        if tokens.is(at, "{") && !semicolon_only {
            return closing;
        }
        at = closing + 1;
    }
    limit.saturating_sub(1)
}

/// Whether the attribute whose `[` is at `at` makes its item a test item.
pub(super) fn marks_test(tokens: &Tokens<'_>, at: usize) -> bool {
    let end = tokens.closing(at);
    if tokens.is(at + 1, "cfg") && tokens.is(at + 2, "(") {
        return implies_test(tokens, at + 3..tokens.closing(at + 2));
    }
    is_test_attribute(tokens, at + 1, end)
}

/// Whether an attribute's path ends in the name of a test attribute, as in `tokio::test`.
pub(super) fn is_test_attribute(tokens: &Tokens<'_>, start: usize, end: usize) -> bool {
    let mut last = None;
    let mut at = start;
    while at < end {
        match tokens.word(at) {
            Some(word) => last = Some(word),
            None if tokens.is(at, ":") => {}
            None => break,
        }
        at += 1;
    }
    last.is_some_and(|word| TEST_ATTRIBUTES.contains(&word))
}

/// Whether a configuration predicate can hold in tests only: `test`, or `all(…)` with such a part.
fn implies_test(tokens: &Tokens<'_>, predicate: std::ops::Range<usize>) -> bool {
    if predicate.len() == 1 {
        return tokens.is(predicate.start, "test");
    }
    if !tokens.is(predicate.start, "all") || !tokens.is(predicate.start + 1, "(") {
        return false;
    }
    let end = tokens.closing(predicate.start + 1);
    let mut part = predicate.start + 2;
    let mut at = part;
    while at <= end {
        if at == end || tokens.is(at, ",") {
            if part < at && implies_test(tokens, part..at) {
                return true;
            }
            part = at + 1;
        }
        at = if at == end {
            at + 1
        } else {
            tokens.closing(at) + 1
        };
    }
    false
}

/// The name of a module that is a file of its own: `mod name;`, without a `#[path]`.
fn module_file(tokens: &Tokens<'_>, item: &Item) -> Option<String> {
    let mut at = item.body;
    while at < item.end && !tokens.is(at, "mod") {
        at += 1;
    }
    let is_file = tokens.is(at, "mod") && tokens.is(at + 2, ";");
    let moved = item
        .attributes
        .iter()
        .any(|at| tokens.is(at + 1, "path"));
    let name = tokens.word(at + 1).filter(|_| is_file && !moved)?;
    Some(name.to_owned())
}

fn note_conditions(tokens: &Tokens<'_>, item: &Item, separated: &mut Separated) {
    let mut at = item.start;
    while at <= item.end {
        let configures = matches!(tokens.word(at), Some("cfg" | "cfg_attr" | "cfg_select" | "cfg_if"));
        let group = if tokens.is(at + 1, "!") { at + 2 } else { at + 1 };
        if configures && (tokens.is(group, "(") || tokens.is(group, "{")) {
            let end = tokens.closing(group);
            if (group..end).any(|inside| tokens.is(inside, "test")) {
                separated.conditions.push(tokens.text(at..end + 1));
            }
        }
        if tokens.is(at, "#") && tokens.is(at + 1, "[") && marks_test(tokens, at + 1) {
            let marked = items(tokens, at..item.end + 1);
            if let Some(first) = marked.first() {
                separated.nested.push(tokens.text(first.start..first.end + 1));
                at = first.end;
            }
        }
        at += 1;
    }
}
