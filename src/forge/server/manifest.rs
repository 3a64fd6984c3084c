//! The page on which a person makes an App out of a manifest: here the click is taken for given.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::Value;

use super::super::encoding::percent_encoded_path;
use super::super::state::Shared;
use super::{pairs, plain};

/// Answers a manifest that a form sends to `/settings/apps/new`, or to the same page of an organisation; `None` for every
/// other request.
pub(super) fn submitted(
    shared: &Shared,
    method: &str,
    segments: &[String],
    query: &str,
    body: &[u8],
) -> Option<Response> {
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (["settings", "apps", "new"] | ["organizations", _, "settings", "apps", "new"]) =
        parts.as_slice()
    else {
        return None;
    };
    if method != "POST" || !shared.open_pages {
        return None;
    }
    let form = pairs(&String::from_utf8_lossy(body));
    let value = |pairs: &[(String, String)], wanted: &str| {
        pairs
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| value.clone())
    };
    let refused = |words: &str| {
        Some(plain(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("The manifest cannot be used: {words}.\n"),
        ))
    };
    let manifest = value(&form, "manifest")
        .and_then(|text| serde_json::from_str::<Value>(&text).ok())
        .unwrap_or_default();
    let (Some(_), Some(target)) = (manifest["url"].as_str(), manifest["redirect_url"].as_str())
    else {
        return refused("it must be a JSON object with url and redirect_url");
    };
    let mut target = target.to_owned();
    let Some(code) = shared.apps.submit(manifest) else {
        return refused("nobody planned what becomes of it");
    };
    target.push(if target.contains('?') { '&' } else { '?' });
    target.push_str("code=");
    target.push_str(&encoded(&code));
    if let Some(state) = value(&pairs(query), "state") {
        target.push_str("&state=");
        target.push_str(&encoded(&state));
    }
    let mut response = plain(StatusCode::FOUND, String::new());
    let Ok(location) = HeaderValue::from_str(&target) else {
        return refused("its redirect_url is no address");
    };
    response.headers_mut().insert(header::LOCATION, location);
    Some(response)
}

fn encoded(text: &str) -> String {
    percent_encoded_path(text).replace('/', "%2F")
}
