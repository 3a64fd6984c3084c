//! Which permission every route needs, and whether a token has it.

use std::collections::BTreeMap;

use super::super::state::Grant;

/// How much may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Read,
    Write,
    Admin,
}

/// A permission with its level.
pub(crate) type Need = (&'static str, Level);

/// The permissions of which one is enough for a request to a repository; `None` where there is no such route. `rest` is the
/// path behind the repository.
pub(crate) fn needs(method: &str, rest: &[&str]) -> Option<&'static [Need]> {
    match method {
        "GET" => reading(rest),
        "POST" | "PATCH" | "PUT" | "DELETE" => writing(method, rest),
        _ => None,
    }
}

fn reading(rest: &[&str]) -> Option<&'static [Need]> {
    Some(match rest {
        [] | ["rules", "branches", ..] | ["rulesets", ..] => &[("metadata", Level::Read)],
        ["branches", _, .., "protection"] => &[("administration", Level::Read)],
        ["commits", _, .., "check-runs" | "check-suites"] | ["check-runs" | "check-suites", ..] => {
            &[("checks", Level::Read)]
        }
        ["commits", _, .., "status"] => &[("statuses", Level::Read)],
        [
            "branches" | "git" | "commits" | "compare" | "contents",
            _,
            ..,
        ] => &[("contents", Level::Read)],
        ["pulls", ..] => &[("pull_requests", Level::Read)],
        ["issues", _, "comments"] => &[("issues", Level::Read), ("pull_requests", Level::Read)],
        ["actions", ..] => &[("actions", Level::Read)],
        ["hooks", ..] => &[("repository_hooks", Level::Read)],
        _ => return None,
    })
}

fn writing(method: &str, rest: &[&str]) -> Option<&'static [Need]> {
    Some(match (method, rest) {
        (_, ["git", "refs", ..]) | ("PUT", ["pulls", _, "merge"]) => &[("contents", Level::Write)],
        (_, ["pulls", ..]) => &[("pull_requests", Level::Write)],
        ("POST", ["issues", _, "comments"]) => {
            &[("issues", Level::Write), ("pull_requests", Level::Write)]
        }
        ("POST", ["actions", ..]) => &[("actions", Level::Write)],
        ("POST", ["statuses", _]) => &[("statuses", Level::Write)],
        ("POST", ["hooks", ..]) => &[("repository_hooks", Level::Write)],
        _ => return None,
    })
}

/// How much a list of permissions allows of one; everybody may read metadata.
fn level(permissions: &BTreeMap<String, String>, name: &str) -> Option<Level> {
    match permissions.get(name).map(String::as_str) {
        Some("read") => Some(Level::Read),
        Some("write") => Some(Level::Write),
        Some("admin") => Some(Level::Admin),
        _ if name == "metadata" => Some(Level::Read),
        _ => None,
    }
}

/// Whether one list of permissions asks for nothing that the other does not allow.
pub(crate) fn within(
    wanted: &BTreeMap<String, String>,
    allowed: &BTreeMap<String, String>,
) -> bool {
    wanted
        .keys()
        .all(|name| level(wanted, name).is_some() && level(wanted, name) <= level(allowed, name))
}

/// Whether a token may do what one of the needs allows.
pub(crate) fn allows(grant: &Grant, needs: &[Need]) -> bool {
    match grant {
        Grant::Classic { scopes } => {
            let has = |wanted: &str| scopes.iter().any(|scope| scope == wanted);
            has("repo")
                || needs.iter().any(|(name, _)| match *name {
                    "statuses" => has("repo:status"),
                    "repository_hooks" => has("admin:repo_hook"),
                    _ => false,
                })
        }
        Grant::FineGrained { permissions } | Grant::Installation { permissions, .. } => needs
            .iter()
            .any(|(name, needed)| level(permissions, name) >= Some(*needed)),
    }
}

/// The header that names the permissions, such as `contents=read`, alternatives divided by semicolons.
pub(crate) fn words(needs: &[Need]) -> String {
    let word = |(name, level): &Need| {
        let level = match level {
            Level::Read => "read",
            Level::Write => "write",
            Level::Admin => "admin",
        };
        format!("{name}={level}")
    };
    needs.iter().map(word).collect::<Vec<_>>().join("; ")
}

/// The header that names the scopes of which a classic token needs one.
pub(crate) fn scopes(needs: &[Need]) -> &'static str {
    match needs {
        [("statuses", _)] => "repo, repo:status",
        [] => "",
        [("repository_hooks", _)] => "admin:repo_hook, repo",
        _ => "repo",
    }
}
