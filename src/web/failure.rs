//! Answers that are not what was asked for: what is wrong, and the mend. Nothing of the inside.

use askama::Template as _;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};

use super::pages::ProblemPage;
use crate::store::StoreError;

/// Why a request is not answered as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Nothing is at this address.
    NoSuchPage,
    /// The organisation has no such incident.
    NoSuchIncident,
    /// There was never such a link.
    NoSuchLink,
    /// The link was used, revoked or has expired.
    Gone(&'static str),
    /// What was sent is not what the form sends.
    Malformed(String),
    /// A form of another site.
    Foreign,
    /// More was sent than the form can hold.
    TooLarge,
    /// The address is right, the method is not.
    Method,
    /// The ledger does not verify, so that nothing of it is handed out.
    NotValid,
    /// The log has no checkpoint over this yet.
    NotLogged,
    /// What is stored cannot be read.
    Unreadable,
    /// The database does not answer.
    Unavailable,
    /// The request took too long.
    Slow,
}

impl Refusal {
    const fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPage | Self::NoSuchIncident | Self::NoSuchLink => StatusCode::NOT_FOUND,
            Self::Gone(_) => StatusCode::GONE,
            Self::Malformed(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Foreign => StatusCode::FORBIDDEN,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotValid => StatusCode::CONFLICT,
            Self::Unreadable => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NotLogged | Self::Unavailable | Self::Slow => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn problem(&self) -> &str {
        match self {
            Self::NoSuchPage => "There is nothing at this address.",
            Self::NoSuchIncident => "There is no such incident.",
            Self::NoSuchLink => "This approval link is not known.",
            Self::Gone(why) => why,
            Self::Malformed(what) => what,
            Self::Foreign => "This form was sent from another site; nothing was done.",
            Self::TooLarge => "More was sent than this form can hold; nothing was done.",
            Self::Method => "This address does not take that method.",
            Self::NotValid => "This ledger does not verify, so there is no bundle of it.",
            Self::NotLogged => "The log has no checkpoint over this yet.",
            Self::Unreadable => "What is stored about this cannot be read.",
            Self::Unavailable => "The database does not answer.",
            Self::Slow => "The request took too long and was given up.",
        }
    }

    const fn mend(&self) -> &'static str {
        match self {
            Self::NoSuchPage => "Start from the list of incidents.",
            Self::NoSuchIncident => {
                "Copy its id from the list of incidents or from `caretaker incident list`."
            }
            Self::NoSuchLink => {
                "Open the link exactly as it was sent. A new one is sent with `caretaker approval resend`."
            }
            Self::Gone(_) => {
                "The incident's page says what became of it. A new link is sent with `caretaker approval resend`."
            }
            Self::Malformed(_) => {
                "Nothing was done. Open the approval link again and answer with its own buttons."
            }
            Self::Foreign => "Open the approval link itself and answer there.",
            Self::TooLarge => "Keep the remark below 500 bytes.",
            Self::Method => {
                "Pages are read with GET; an approval link is answered with its own form."
            }
            Self::NotValid => "The ledger's page says what does not hold.",
            Self::NotLogged => {
                "A worker makes one within a second; `caretaker doctor` says whether the log has a key."
            }
            Self::Unreadable => {
                "Something other than caretaker changed the database, or it is damaged. The server's log has the details; `caretaker doctor` looks for the cause."
            }
            Self::Unavailable | Self::Slow => {
                "Try again. If it persists, look at the server's log and run `caretaker doctor`."
            }
        }
    }

    /// The answer for a person.
    pub(super) fn page(&self) -> Response {
        let page = ProblemPage {
            title: self.status().canonical_reason().unwrap_or("Error"),
            problem: self.problem(),
            mend: self.mend(),
        };
        let body = page
            .render()
            .unwrap_or_else(|_| "The page could not be made.".to_owned());
        (self.status(), Html(body)).into_response()
    }

    /// The answer for a program.
    pub(super) fn json(&self) -> Response {
        let body = serde_json::json!({ "error": self.problem(), "mend": self.mend() });
        (self.status(), Json(body)).into_response()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        self.page()
    }
}

/// The details go to the log, where only the operator reads them.
impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unreadable { .. } | StoreError::Damaged { .. } => {
                tracing::error!(%error, "a page could not be made: stored data cannot be read");
                Self::Unreadable
            }
            _ => {
                tracing::error!(%error, "a page could not be made: the database failed");
                Self::Unavailable
            }
        }
    }
}
