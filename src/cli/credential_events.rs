//! What a command did to stored credentials, told to the audit stream.

use serde_json::{Map, Value};

use super::assembly;
use crate::config::Configuration;
use crate::events::Event;

/// Tells that something was done to the credentials of a project, or of all (`task` is empty then). It is done and in the history already, so
/// that a stream that cannot be written is only warned of.
pub(super) fn tell(
    configuration: &Configuration,
    event: &'static str,
    task: &str,
    fields: impl IntoIterator<Item = (&'static str, Value)>,
) {
    let fields: Map<String, Value> = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let told = assembly::events(configuration)
        .map_err(|error| format!("{error:#}"))
        .and_then(|stream| {
            let event = Event::new(event, task, fields);
            stream.record(&event).map_err(|error| error.to_string())
        });
    if let Err(error) = told {
        tracing::warn!("{event} is not in the audit stream: {error}");
    }
}
