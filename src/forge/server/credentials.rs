//! Who asks: a token in one of the three forms that GitHub takes.

use axum::http::HeaderMap;

use super::super::api::Credentials;
use super::super::encoding::from_base64;

/// Reads the `Authorization` header: `Bearer TOKEN`, `token TOKEN`, or Basic with the token as password.
pub(super) fn of(headers: &HeaderMap, token: &str) -> Credentials {
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
    if given.as_deref() == Some(token) {
        Credentials::Right
    } else {
        Credentials::Wrong
    }
}
