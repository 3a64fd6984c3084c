//! The headers that all answers share.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::super::Profile;
use super::super::state::{Grant, Shared, Standing};
use super::super::time::rfc3339;
use super::{Body, Call, Credentials, RATE_LIMIT, Reply, limits, permissions};

/// What an Enterprise Server says it is.
pub(crate) const ENTERPRISE_VERSION: &str = "3.19.0";

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
    if reply.status == 304 && shared.meter.counts() {
        shared.meter.refund(&limits::account(call));
    }
    if shared.profile != Profile::EnterpriseServer {
        let standing = standing(shared, call, u64::from(!free));
        reply.headers.extend([
            ("x-ratelimit-limit", standing.limit.to_string()),
            (
                "x-ratelimit-remaining",
                standing.limit.saturating_sub(standing.used).to_string(),
            ),
            ("x-ratelimit-used", standing.used.to_string()),
            ("x-ratelimit-reset", standing.reset.to_string()),
            ("x-ratelimit-resource", "core".to_owned()),
        ]);
    }
    let request = shared.ids.next();
    reply.headers.extend([
        ("x-github-media-type", "github.v3; format=json".to_owned()),
        ("x-github-api-version-selected", call.version.to_owned()),
        ("x-github-request-id", format!("FORGE:{request:X}")),
    ]);
    if shared.profile == Profile::EnterpriseServer {
        let version = ("x-github-enterprise-version", ENTERPRISE_VERSION.to_owned());
        reply.headers.push(version);
    }
    reply.headers.extend(permission_headers(call));
    reply
}

/// Where the credential stands with the primary limit. Without one, all credentials share a counter that never runs dry.
pub(crate) fn standing(shared: &Shared, call: &Call, spent: u64) -> Standing {
    let now = (shared.now)();
    let used = shared.spend(spent);
    shared
        .meter
        .standing(&limits::account(call), now)
        .unwrap_or(Standing {
            limit: RATE_LIMIT,
            used,
            reset: now + 3_600,
        })
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
