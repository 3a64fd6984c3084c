//! Arguments that several commands take.

use clap::Args;

use crate::id::IncidentId;

/// How to print.
#[derive(Debug, Args)]
pub(super) struct Format {
    /// Print one JSON document.
    #[arg(long)]
    pub(super) json: bool,
}

/// Which incident.
#[derive(Debug, Args)]
pub(super) struct OfIncident {
    /// The incident, as `caretaker incident list` prints it.
    pub(super) incident: IncidentId,
}

/// Which incident, and how to print.
#[derive(Debug, Args)]
pub(super) struct ShowIncident {
    /// The incident, as `caretaker incident list` prints it.
    pub(super) incident: IncidentId,
    /// Print one JSON document.
    #[arg(long)]
    pub(super) json: bool,
}
