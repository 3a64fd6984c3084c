//! The rules of each tool: from its lines to facts. They only choose among what stands in the text; the validator judges.

mod cargo;
mod pytest;
mod unittest;

use super::tool::Tool;
use crate::agent::ExtractedFact;

/// Most facts that the rules hand on; the validator keeps fewer, and duplicates among these are cheap.
const FOUND_LIMIT: usize = 20_000;

/// Resolves a printed path to the tracked one.
type Resolve<'r> = dyn Fn(&str) -> Option<&str> + 'r;

/// What a tool's rules found so far.
struct Found {
    tool: &'static str,
    facts: Vec<ExtractedFact>,
}

impl Found {
    /// Adds a fact of one kind.
    fn add(&mut self, kind: &str, details: Details<'_>) {
        if self.facts.len() == FOUND_LIMIT {
            return;
        }
        self.facts.push(ExtractedFact {
            tool: self.tool.to_owned(),
            kind: kind.to_owned(),
            test_name: details.test_name.map(str::to_owned),
            file: details.file.map(str::to_owned),
            line: details.line,
            code: details.code.map(str::to_owned),
            exception: details.exception.map(str::to_owned),
        });
    }
}

/// The members of a fact beside its kind.
#[derive(Debug, Clone, Copy, Default)]
struct Details<'t> {
    test_name: Option<&'t str>,
    file: Option<&'t str>,
    line: Option<u32>,
    code: Option<&'t str>,
    exception: Option<&'t str>,
}

/// The facts that the rules of `tool` find in a cleaned log, in the order of the log.
pub(super) fn facts_of(tool: Tool, text: &str, resolve: &Resolve<'_>) -> Vec<ExtractedFact> {
    match tool {
        Tool::Cargo => cargo::facts(text, resolve),
        Tool::Pytest => pytest::facts(text, resolve),
        Tool::Unittest => unittest::facts(text, resolve),
    }
}

/// The tracked form of a printed path, or the path as printed: the validator then drops and counts the fact.
fn tracked_or_printed<'t>(resolve: &Resolve<'_>, printed: &'t str) -> &'t str {
    resolve(printed).unwrap_or(printed)
}
