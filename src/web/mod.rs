//! What people look at: server-rendered pages without a line of script, and the same things as JSON.
//!
//! - [`router`], [`serve`]: everything over HTTP, for one organisation. Only `POST /a/{token}`, through
//!   [`crate::store::Store::consume`], and answers to tool calls below `/approvals`, through [`crate::approvals::Approvals::resolve`],
//!   decide anything; a signed `POST /webhooks/github` makes projects due and does no more.
//! - [`IncidentRecord`], [`incident_document`], [`explanation`]: the same reading for the command line.
//!
//! Ledgers are verified on every request and nothing is cached. Whatever came from outside is held as [`shown::Shown`], so that
//! text that hides or reorders itself is visible; the templates escape it.

mod answer;
mod api;
mod calls;
mod document;
mod evidence;
mod explain;
mod failure;
mod headers;
mod hooks;
mod log;
mod pages;
mod record;
mod server;
mod shown;
mod state;

pub use calls::{ScopedToken, ToolCalls};
pub use document::{
    IncidentDocument, IncidentsDocument, LedgerDocument, incident_document, incidents_document,
    ledger_document,
};
pub use explain::explanation;
pub use hooks::Webhooks;
pub use record::IncidentRecord;
pub use server::{router, serve};
pub use state::{Now, WebState};
