//! The scripts for the repositories that the demo plants.

use super::{Edit, Script, ScriptedCoder, When};
use crate::agent::{Diagnosis, FixSummary};
use crate::change::{PathError, RepoPath};

/// What a demo script says and does: one replacement in a source file, and one new test that fails without it.
struct Lines {
    failing_test: &'static str,
    source: &'static str,
    wrong: &'static str,
    right: &'static str,
    test: &'static str,
    test_content: &'static str,
    cause: &'static str,
    summary: &'static str,
    title: &'static str,
    fix: &'static str,
}

/// `acme/percent`: a fix that may be made.
const PERCENT: Lines = Lines {
    failing_test: "percent::tests::lower_case_digits_decode",
    source: "src/percent.rs",
    wrong: "b'a'..=b'e' =>",
    right: "b'a'..=b'f' =>",
    test: "tests/hex_digits.rs",
    test_content: include_str!("hex_digits.rs.txt"),
    cause: "hex_value takes the lower-case digits a to e only, so an escape with the digit f is refused.",
    summary: "The range of lower-case hexadecimal digits ends one too early in src/percent.rs. Extending it to f makes both cases mean the same, as the documentation of decode says.",
    title: "Accept the lower-case digit f in escapes",
    fix: "The range of lower-case hexadecimal digits ended at e, so escapes such as %2f were refused. It now ends at f. A new test decodes every printable character in both cases.",
};

/// `acme/session`: the right fix, in a place where no program may make it.
const SESSION: Lines = Lines {
    failing_test: "auth::token::tests::a_token_ends_with_its_life_time",
    source: "src/auth/token.rs",
    wrong: "now - self.issued_at <= self.lifetime",
    right: "now - self.issued_at < self.lifetime",
    test: "tests/expiry.rs",
    test_content: include_str!("expiry.rs.txt"),
    cause: "Token::is_valid compares with <=, so a token is still valid in the second in which its life time is over.",
    summary: "The comparison in src/auth/token.rs includes the end of the life time. A token of 60 seconds must not be valid in second 60, so the comparison has to exclude it.",
    title: "End tokens when their life time is over",
    fix: "A token was valid one second too long, because the end of its life time was included. It is now excluded. A new test checks the seconds around the end.",
};

impl ScriptedCoder {
    /// The demo's coder: it knows the defects of the planted repositories, and nothing else.
    ///
    /// # Errors
    /// None in a build whose tests pass: the paths are written here.
    pub fn for_demo() -> Result<Self, PathError> {
        let scripts = [PERCENT, SESSION].iter().map(script);
        Ok(Self::new(scripts.collect::<Result<_, _>>()?))
    }
}

fn script(lines: &Lines) -> Result<Script, PathError> {
    let source: RepoPath = lines.source.parse()?;
    let test: RepoPath = lines.test.parse()?;
    Ok(Script {
        when: When {
            test_name: Some(lines.failing_test.to_owned()),
            file: Some(lines.source.to_owned()),
        },
        diagnosis: Diagnosis {
            cause: lines.cause.to_owned(),
            files: vec![source.clone(), test.clone()],
            confidence: 950,
            summary: lines.summary.to_owned(),
        },
        edits: vec![
            Edit::Replace {
                path: source,
                find: lines.wrong.to_owned(),
                replace: lines.right.to_owned(),
            },
            Edit::Write {
                path: test,
                content: lines.test_content.to_owned(),
            },
        ],
        fix: FixSummary {
            title: lines.title.to_owned(),
            summary: lines.fix.to_owned(),
        },
    })
}
