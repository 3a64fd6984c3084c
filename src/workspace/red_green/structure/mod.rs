//! What tests a file holds, and whether a fix takes anything away from them.
//!
//! Structure is compared, not meaning: every test of the base must still be there, under no new condition, with every one of its
//! assertions as it was. Running the base's own tests on the fix, which is the other half, shows what these still say.

mod go;
mod javascript;
mod lines;
mod python;
mod rust;

use super::UnprovenReason;

/// Words by which a condition on a test is a way to skip it.
const SKIP_WORDS: [&str; 9] = [
    "skip", "ignore", "xfail", "todo", "only", "cfg", "disabled", "build", "__test__",
];

/// A test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestCase {
    /// Its name with the modules, classes or suites around it.
    pub(super) path: String,
    /// Its own name, as a test runner prints it.
    pub(super) name: String,
    /// Its assertions, without blanks.
    pub(super) assertions: Vec<String>,
    /// What decides whether and how it runs: attributes, decorators, markers and early ends, also of what is around it.
    pub(super) conditions: Vec<String>,
}

impl TestCase {
    /// Stands for a file of whose tests nothing more is known.
    pub(super) const fn whole_file() -> Self {
        Self {
            path: String::new(),
            name: String::new(),
            assertions: Vec::new(),
            conditions: Vec::new(),
        }
    }

    /// Whether a marker keeps it from running.
    pub(super) fn is_skipped(&self) -> bool {
        const MARKERS: [&str; 4] = ["ignore", "skip", "todo", "xfail"];
        let marks = |text: &String| MARKERS.iter().any(|word| text.contains(word));
        self.conditions.iter().any(marks)
    }
}

/// The tests of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TestFile {
    pub(super) cases: Vec<TestCase>,
    /// What decides for the whole file.
    pub(super) conditions: Vec<String>,
}

/// A language whose tests can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    Python,
    JavaScript,
    Go,
}

impl Language {
    pub(super) fn of_path(path: &[u8]) -> Option<Self> {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let ending = name.rsplit(|byte| *byte == b'.').next()?;
        match ending {
            b"rs" => Some(Self::Rust),
            b"py" => Some(Self::Python),
            b"js" | b"mjs" | b"cjs" | b"jsx" | b"ts" | b"mts" | b"cts" | b"tsx" => {
                Some(Self::JavaScript)
            }
            b"go" => Some(Self::Go),
            _ => None,
        }
    }

    /// Reads the tests of a source; `None` when it cannot be followed.
    pub(super) fn read(self, source: &str) -> Option<TestFile> {
        match self {
            Self::Rust => rust::read(source),
            Self::Python => python::read(source),
            Self::JavaScript => javascript::read(source),
            Self::Go => go::read(source),
        }
    }
}

/// A way in which the fix takes from the tests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) reason: UnprovenReason,
    pub(super) detail: String,
}

/// Compares the tests of one file before and after. Gives the tests that were added.
pub(super) fn compare(
    language: Option<Language>,
    base: &str,
    fix: &str,
) -> Result<Vec<TestCase>, Loss> {
    let read = language.and_then(|language| Some((language.read(base)?, language.read(fix)?)));
    match read {
        Some((base, fix)) => compare_files(&base, &fix),
        // Nothing is known of this language, or the file cannot be followed: then lines may only be added.
        None => lines::compare(base, fix),
    }
}

fn compare_files(base: &TestFile, fix: &TestFile) -> Result<Vec<TestCase>, Loss> {
    let mut added: Vec<Option<&TestCase>> = fix.cases.iter().map(Some).collect();
    for before in &base.cases {
        let same =
            |case: &&mut Option<&TestCase>| case.is_some_and(|case| case.path == before.path);
        let Some(after) = added.iter_mut().find(same).and_then(Option::take) else {
            return Err(Loss {
                reason: UnprovenReason::TestDeleted,
                detail: format!("the test {} is gone", before.path),
            });
        };
        compare_cases(before, after)?;
    }
    compare_conditions("the file", &base.conditions, &fix.conditions)?;
    Ok(added.into_iter().flatten().cloned().collect())
}

fn compare_cases(before: &TestCase, after: &TestCase) -> Result<(), Loss> {
    let what = format!("the test {}", before.path);
    compare_conditions(&what, &before.conditions, &after.conditions)?;
    match missing(&before.assertions, &after.assertions).first() {
        None => Ok(()),
        Some(lost) => Err(Loss {
            reason: UnprovenReason::TestWeakened,
            detail: format!("{what} no longer says `{}`", shortened(lost)),
        }),
    }
}

fn compare_conditions(what: &str, before: &[String], after: &[String]) -> Result<(), Loss> {
    let skips = |text: &str| SKIP_WORDS.iter().any(|word| text.contains(word));
    if let Some(new) = missing(after, before).first() {
        let reason = if skips(new) {
            UnprovenReason::TestSkipped
        } else {
            UnprovenReason::TestWeakened
        };
        return Err(Loss {
            reason,
            detail: format!("{what} now has `{}`", shortened(new)),
        });
    }
    // A test that is no longer skipped is a gain.
    let lost = missing(before, after);
    match lost.into_iter().find(|text| !skips(text)) {
        None => Ok(()),
        Some(lost) => Err(Loss {
            reason: UnprovenReason::TestWeakened,
            detail: format!("{what} no longer has `{}`", shortened(lost)),
        }),
    }
}

/// What is in the first list more often than in the second.
pub(super) fn missing<'a>(wanted: &'a [String], there: &[String]) -> Vec<&'a str> {
    let mut left: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for text in there {
        *left.entry(text).or_default() += 1;
    }
    let mut lost = Vec::new();
    for text in wanted {
        match left.get_mut(text.as_str()) {
            Some(count) if *count > 0 => *count -= 1,
            _ => lost.push(text.as_str()),
        }
    }
    lost
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().filter(|c| !c.is_control()).take(120).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
