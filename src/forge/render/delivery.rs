//! Deliveries of webhooks.

use serde_json::{Value, json};

use super::super::state::Record;
use super::super::time::rfc3339;

/// What stands for a status where nobody answered.
const UNREACHABLE: u16 = 502;

/// A delivery as lists show it.
pub(crate) fn delivery(record: &Record) -> Value {
    let status = record.outcome.as_ref().and_then(|outcome| outcome.status);
    let words = match status {
        Some(200..=299) => "OK".to_owned(),
        Some(code) => format!("Invalid HTTP Response: {code}"),
        None => "failed to connect to host".to_owned(),
    };
    json!({
        "id": record.id,
        "guid": record.guid,
        "delivered_at": rfc3339(record.outcome.as_ref().map_or(0, |outcome| outcome.at)),
        "redelivery": record.redelivery,
        "duration": 0.01,
        "status": words,
        "status_code": status.unwrap_or(UNREACHABLE),
        "event": record.event,
        "action": record.action,
        "installation_id": record.installation,
        "repository_id": record.repository,
        "throttled_at": null,
    })
}

/// A delivery with request and response.
pub(crate) fn whole_delivery(record: &Record) -> Value {
    let mut value = delivery(record);
    let payload: Value = serde_json::from_str(&record.body).unwrap_or_default();
    value["url"] = json!(record.hook.to.url);
    value["request"] = json!({
        "headers": {
            "X-GitHub-Delivery": record.guid,
            "X-GitHub-Event": record.event,
            "X-GitHub-Hook-ID": record.hook.id.to_string(),
        },
        "payload": payload,
    });
    let answer = record
        .outcome
        .as_ref()
        .map(|outcome| outcome.answer.clone());
    value["response"] = json!({"headers": {}, "payload": answer});
    value
}
