//! What comes back to the client beside the model's own words: few headers, and refusals of ours.

use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Headers of an answer that come back.
const RETURNED: [&str; 4] = [
    "content-type",
    "retry-after",
    "retry-after-ms",
    "request-id",
];

/// What of an answer's headers goes back to the client.
pub(super) fn returned(headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in RETURNED {
        if let Some(value) = headers.get(name) {
            kept.insert(HeaderName::from_static(name), value.clone());
        }
    }
    kept
}

/// Why a request does not go on.
pub(super) struct Refused {
    status: StatusCode,
    reason: String,
}

/// A refusal with its reason.
pub(super) fn refusal(status: StatusCode, reason: &str) -> Refused {
    Refused {
        status,
        reason: reason.to_owned(),
    }
}

/// The refusal at the end of a task's time.
pub(super) fn late() -> Refused {
    refusal(
        StatusCode::GATEWAY_TIMEOUT,
        "the time of this task is used up",
    )
}

impl IntoResponse for Refused {
    /// An answer of our own, in the one form that every client reads.
    fn into_response(self) -> Response {
        let message = format!("caretaker: {}", self.reason);
        let body = json!({"type": "error", "error": {"type": "caretaker", "code": self.status.as_u16(), "status": "CARETAKER", "message": message}});
        (self.status, axum::Json(body)).into_response()
    }
}
