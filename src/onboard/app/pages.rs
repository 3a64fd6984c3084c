//! The page with the one button, and what is shown at the end.

use askama::Template;

use super::manifest::Plan;
use crate::connector::github::app::{Level, Permissions};

/// The look of all pages.
pub(super) const STYLE: &str = include_str!("../../web/templates/caretaker.css");

/// The page with the button.
#[derive(Template)]
#[template(path = "page.html")]
pub(super) struct StartPage<'a> {
    pub(super) host: &'a str,
    pub(super) organisation: Option<&'a str>,
    pub(super) permissions: Vec<Row>,
    pub(super) webhook: Option<&'a str>,
    pub(super) action: &'a str,
    pub(super) manifest: &'a str,
    pub(super) key_file: &'a str,
}

/// One permission.
pub(super) struct Row {
    name: String,
    access: &'static str,
    purpose: &'static str,
}

/// What came of it.
#[derive(Template)]
#[template(path = "outcome.html")]
pub(super) struct OutcomePage<'a> {
    pub(super) title: &'a str,
    pub(super) text: &'a str,
    pub(super) done: bool,
    pub(super) install_url: Option<&'a str>,
}

/// The permissions of a plan with what each is for.
pub(super) fn rows(plan: &Plan) -> Vec<Row> {
    let permissions: Permissions = plan.permissions();
    let rows = permissions.iter().map(|(name, access)| Row {
        name: name.to_owned(),
        access: access.word(),
        purpose: purpose(name, access),
    });
    rows.collect()
}

fn purpose(name: &str, access: Level) -> &'static str {
    match (name, access) {
        ("actions", Level::Write) => {
            "reading runs, jobs and logs; running a failed job once more, to tell a flaky one"
        }
        ("actions", _) => "reading runs, jobs and logs",
        ("checks", _) => "checks of the head before a merge",
        ("contents", _) => "fetching; the branch of a fix; merging what was approved",
        ("metadata", _) => "comes with every App",
        ("pull_requests", _) => "opening and closing the pull request of a fix",
        ("statuses", _) => "commit statuses of the head before a merge",
        _ => "",
    }
}
