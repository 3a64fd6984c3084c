//! Routes that belong to no repository.

use serde_json::json;

use super::super::Profile;
use super::super::render;
use super::super::state::{Grant, Shared, Standing, TOKEN_OWNER};
use super::headers::{ENTERPRISE_VERSION, standing};
use super::{Answer, Call, Credentials, Refusal, Reply};

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
pub(crate) fn rate_limit(shared: &Shared, call: &Call) -> Answer {
    if shared.profile == Profile::EnterpriseServer {
        return Err(Refusal::new(404, "Rate limiting is not enabled."));
    }
    let Standing { limit, used, reset } = standing(shared, call, 0);
    let remaining = limit.saturating_sub(used);
    let core = json!({"limit": limit, "used": used, "remaining": remaining, "reset": reset, "resource": "core"});
    let search =
        json!({"limit": 30, "used": 0, "remaining": 30, "reset": reset, "resource": "search"});
    let mut body = json!({"resources": {"core": core, "search": search}});
    if call.is_old_version() {
        body["rate"] = core;
    }
    Ok(Reply::ok(body))
}

/// `GET /meta`
pub(crate) fn meta(shared: &Shared) -> Reply {
    let host = shared.url.trim_start_matches("http://");
    let mut body = json!({"verifiable_password_authentication": false, "api": ["127.0.0.1/32"], "git": ["127.0.0.1/32"], "domains": {"website": [host]}});
    if shared.profile == Profile::EnterpriseServer {
        body["installed_version"] = json!(ENTERPRISE_VERSION);
    }
    Reply::ok(body)
}
