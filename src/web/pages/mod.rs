//! The pages: each a view made of what was read, and its template.

mod approval;
mod calls;
mod change;
mod gate;
mod incident;
mod incidents;
mod investigation;
mod ledger;
mod log;
mod patch;
mod proof;
mod stages;

use askama::Template;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};

pub(super) use approval::approval;
pub(super) use calls::calls;
pub(super) use incident::incident;
pub(super) use incidents::incidents;
pub(super) use ledger::ledger;
pub(super) use log::log;

use super::failure::Refusal;

/// The one style sheet.
const STYLE: &str = include_str!("../templates/caretaker.css");

/// `GET /assets/caretaker.css`.
pub(super) async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)
}

/// An answer that is not what was asked for.
#[derive(Template)]
#[template(path = "problem.html")]
pub(super) struct ProblemPage<'a> {
    pub(super) title: &'a str,
    pub(super) problem: &'a str,
    pub(super) mend: &'a str,
}

/// Writes a page down.
fn page(template: &impl Template) -> Result<Response, Refusal> {
    match template.render() {
        Ok(body) => Ok(Html(body).into_response()),
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            Err(Refusal::Unreadable)
        }
    }
}

/// Tones in which words are set; the style sheet knows them.
mod tone {
    pub(super) const GOOD: &str = "good";
    pub(super) const BAD: &str = "bad";
    pub(super) const ACTIVE: &str = "active";
    pub(super) const QUIET: &str = "quiet";
    pub(super) const WARN: &str = "warn";
}

/// A word set as a badge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Badge {
    word: &'static str,
    tone: &'static str,
}

/// The badge of an incident's stage.
const fn stage_badge(stage: crate::incident::Stage) -> Badge {
    use crate::incident::Stage;
    let tone = match stage {
        Stage::Resolved => tone::GOOD,
        Stage::Blocked | Stage::Escalated => tone::BAD,
        Stage::AwaitingApproval => tone::WARN,
        Stage::Closed => tone::QUIET,
        _ => tone::ACTIVE,
    };
    Badge {
        word: stage.as_str(),
        tone,
    }
}

/// The badge of a verification.
const fn verdict_badge(verdict: crate::attest::chain::Verdict) -> Badge {
    use crate::attest::chain::Verdict;
    let tone = match verdict {
        Verdict::Valid => tone::GOOD,
        Verdict::CannotVerify => tone::WARN,
        Verdict::Invalid => tone::BAD,
    };
    Badge {
        word: verdict.name(),
        tone,
    }
}
