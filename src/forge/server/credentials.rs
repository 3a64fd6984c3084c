//! Who asks: a token in one of the three forms that GitHub takes, or an App's assertion.

use axum::http::HeaderMap;

use super::super::api::{Credentials, Refusal, is_assertion, signer};
use super::super::encoding::from_base64;
use super::super::state::{Grant, Shared};

/// Reads the `Authorization` header: `Bearer TOKEN`, `token TOKEN`, or Basic with the token as password.
pub(super) fn of(headers: &HeaderMap, shared: &Shared) -> Credentials {
    let Some(header) = headers.get("authorization") else {
        return Credentials::None;
    };
    let given = header.to_str().ok().and_then(|text| {
        let (scheme, value) = text.split_once(' ')?;
        match scheme.to_ascii_lowercase().as_str() {
            "bearer" | "token" => Some(value.trim().to_owned()),
            "basic" => {
                let decoded = String::from_utf8(from_base64(value.trim())?).ok()?;
                decoded
                    .split_once(':')
                    .filter(|(user, _)| !user.is_empty())
                    .map(|(_, password)| password.to_owned())
            }
            _ => None,
        }
    });
    given.map_or_else(bad, |text| known(shared, &text))
}

fn bad() -> Credentials {
    Credentials::Refused(Refusal::new(401, "Bad credentials"))
}

fn known(shared: &Shared, text: &str) -> Credentials {
    let Some(token) = shared.tokens.find(text) else {
        return if is_assertion(text) {
            signer(shared, text).map_or_else(Credentials::Refused, Credentials::App)
        } else {
            bad()
        };
    };
    // The clock is looked at only where it matters: every look may move it. Break it: never look, and
    // `forge::tokens::a_token_ends` fails.
    if token.expires_at.is_some_and(|end| (shared.now)() >= end) {
        return bad();
    }
    if let Grant::Installation { id, .. } = token.grant
        && shared
            .apps
            .installation(id)
            .is_some_and(|installation| installation.suspended_at.is_some())
    {
        return Credentials::Refused(Refusal::new(403, "This installation has been suspended"));
    }
    Credentials::Token(token)
}
