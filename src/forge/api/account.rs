//! Routes that belong to no repository.

use serde_json::json;

use super::super::render;
use super::super::state::{Grant, Shared, TOKEN_OWNER};
use super::{Answer, Call, Credentials, RATE_LIMIT, Refusal, Reply};

/// `GET /user`
pub(crate) fn user(shared: &Shared, call: &Call) -> Answer {
    match &call.credentials {
        Credentials::Token(token) if !matches!(token.grant, Grant::Installation { .. }) => {
            Ok(Reply::ok(render::private_user(&shared.url, TOKEN_OWNER)))
        }
        Credentials::Token(_) | Credentials::App(_) => {
            Err(Refusal::new(403, "Resource not accessible by integration"))
        }
        _ => Err(Refusal::new(401, "Requires authentication")),
    }
}

/// `GET /rate_limit`: costs nothing.
pub(crate) fn rate_limit(shared: &Shared) -> Reply {
    let used = shared.spend(0);
    let reset = (shared.now)() + 3_600;
    let core = json!({"limit": RATE_LIMIT, "used": used, "remaining": RATE_LIMIT - used, "reset": reset, "resource": "core"});
    let search =
        json!({"limit": 30, "used": 0, "remaining": 30, "reset": reset, "resource": "search"});
    Reply::ok(json!({"resources": {"core": core, "search": search}, "rate": core}))
}

/// `GET /meta`
pub(crate) fn meta(shared: &Shared) -> Reply {
    let host = shared.url.trim_start_matches("http://");
    Reply::ok(
        json!({"verifiable_password_authentication": false, "api": ["127.0.0.1/32"], "git": ["127.0.0.1/32"], "domains": {"website": [host]}}),
    )
}
