//! What every answer carries, whatever it is.

use axum::http::HeaderValue;
use axum::http::header::{self, HeaderName};
use axum::response::Response;

/// Nothing but our own style sheet and our own forms: no script, no picture, no frame, no other host.
const POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const ALWAYS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // An approval link must not leave with a click on a link of its page.
    (header::REFERRER_POLICY, "no-referrer"),
    // A verdict that was kept is not a verdict of this read.
    (header::CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (HeaderName::from_static("x-robots-tag"), "noindex, nofollow"),
];

/// Adds the headers to an answer.
pub(super) async fn secured(mut response: Response) -> Response {
    for (name, value) in ALWAYS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}
