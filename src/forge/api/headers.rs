//! The headers that all answers share.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::super::state::{Grant, Shared};
use super::super::time::rfc3339;
use super::{API_VERSION, Body, Call, Credentials, RATE_LIMIT, Reply, permissions};

/// Rate limit, permissions, media type, request id and `ETag`; and 304 where the client has this very answer.
pub(crate) fn complete(shared: &Shared, call: &Call, reply: Reply) -> Reply {
    let mut reply = reply.written();
    let hash = match &reply.body {
        Body::Text(_, hash) => Some(*hash),
        Body::Raw(bytes) => {
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            Some(hasher.finish())
        }
        Body::Nothing | Body::Json(_) => None,
    };
    if let Some(hash) = hash
        && reply.status == 200
        && call.method == "GET"
    {
        let tag = entity_tag(call, hash);
        if call.if_none_match.as_deref() == Some(tag.as_str()) {
            reply.status = 304;
            reply.body = Body::Nothing;
        }
        reply.headers.push(("etag", tag));
    }
    let free = reply.status == 304
        || call
            .segments
            .first()
            .is_some_and(|first| first == "rate_limit");
    let used = shared.spend(u64::from(!free));
    let request = shared.ids.next();
    reply.headers.extend([
        ("x-ratelimit-limit", RATE_LIMIT.to_string()),
        ("x-ratelimit-remaining", (RATE_LIMIT - used).to_string()),
        ("x-ratelimit-used", used.to_string()),
        ("x-ratelimit-reset", ((shared.now)() + 3_600).to_string()),
        ("x-ratelimit-resource", "core".to_owned()),
        ("x-github-media-type", "github.v3; format=json".to_owned()),
        ("x-github-api-version-selected", API_VERSION.to_owned()),
        ("x-github-request-id", format!("FORGE:{request:X}")),
    ]);
    reply.headers.extend(permission_headers(call));
    reply
}

/// GitHub's `ETag`s differ from token to token: whoever changes the token fetches everything again.
fn entity_tag(call: &Call, hash: u64) -> String {
    let mut hasher = DefaultHasher::new();
    (hash, &call.accept).hash(&mut hasher);
    match &call.credentials {
        Credentials::Token(token) => token.text.hash(&mut hasher),
        Credentials::App(app) => app.id.hash(&mut hasher),
        Credentials::None | Credentials::Refused(_) => {}
    }
    format!("W/\"{:016x}\"", hasher.finish())
}

/// What the token may do, what would be needed, and when the token ends.
fn permission_headers(call: &Call) -> Vec<(&'static str, String)> {
    let Credentials::Token(token) = &call.credentials else {
        return Vec::new();
    };
    let needs = call
        .behind_repository()
        .and_then(|rest| permissions::needs(&call.method, &rest))
        .unwrap_or_default();
    let mut headers = match &token.grant {
        Grant::Classic { scopes } => vec![
            ("x-oauth-scopes", scopes.join(", ")),
            (
                "x-accepted-oauth-scopes",
                permissions::scopes(needs).to_owned(),
            ),
        ],
        Grant::FineGrained { .. } | Grant::Installation { .. } if needs.is_empty() => Vec::new(),
        Grant::FineGrained { .. } | Grant::Installation { .. } => {
            vec![("x-accepted-github-permissions", permissions::words(needs))]
        }
    };
    if let (Some(end), false) = (
        token.expires_at,
        matches!(token.grant, Grant::Installation { .. }),
    ) {
        let text = rfc3339(end).replace('T', " ").replace('Z', " UTC");
        headers.push(("github-authentication-token-expiration", text));
    }
    headers
}
