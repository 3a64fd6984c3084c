//! Paths and queries of the REST interface. Everything that is not plain is percent-encoded (RFC 3986, section 2.1).

use std::fmt::Write as _;

use crate::connector::ConnectorError;

/// One path segment or query value, percent-encoded; only unreserved characters stay as they are.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String has no failure.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// A branch name as the tail of a path: its slashes stay, each component between them is encoded.
pub(super) fn branch_tail(name: &str) -> String {
    name.split('/').map(encoded).collect::<Vec<_>>().join("/")
}

/// Refuses what git would not take as a branch name (git-check-ref-format), so that no name can reach another path.
pub(super) fn check_branch(action: &str, name: &str) -> Result<(), ConnectorError> {
    let forbidden = |character: char| {
        character.is_control()
            || matches!(character, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\')
    };
    let component_is_wrong = |component: &str| {
        component.is_empty()
            || component.starts_with('.')
            || std::path::Path::new(component)
                .extension()
                .is_some_and(|extension| extension == "lock")
    };
    let wrong = name.is_empty()
        || name.len() > 255
        || name == "@"
        || name.ends_with('.')
        || name.contains("..")
        || name.contains("@{")
        || name.contains(forbidden)
        || name.split('/').any(component_is_wrong);
    if !wrong {
        return Ok(());
    }
    Err(ConnectorError::Refused {
        action: action.to_owned(),
        reason: format!(
            "{:?} cannot be the name of a branch; see git-check-ref-format",
            name.chars().take(120).collect::<String>()
        ),
    })
}
