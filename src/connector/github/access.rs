//! What the provider says of a credential: its kind, its scopes or permissions, and its end. Only reads are sent, and what they
//! do not show is said to be untold, never guessed.
//!
//! Scopes and end stand in headers of every answer (`x-oauth-scopes`, `github-authentication-token-expiration`). The
//! permissions of a fine-grained token stand nowhere: a read that is refused names the one that it needs
//! (`x-accepted-github-permissions`), and a read that a stranger may do as well shows nothing.

use std::time::Duration;

use http::StatusCode;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use url::Url;

use super::answer::{decoded, refusal};
use super::api::Api;
use super::app::{Permissions, of_app};
use super::credential::Grant;
use super::path::branch_tail;
use super::transport::{Answer, http_client};
use crate::clock::Millis;
use crate::connector::{Access, ConnectorError};
use crate::https;

const ACTION: &str = "reading what the credential may do";
/// Costs no request of the limit.
const FREE: &str = "/rate_limit";
/// The scope that reads and writes private repositories.
const REPO: &str = "repo";
/// The scope that reads and writes public repositories; part of `repo`.
const PUBLIC_REPO: &str = "public_repo";
/// What else `repo` includes: beside it, they add nothing.
const PARTS_OF_REPO: [&str; 5] = [
    PUBLIC_REPO,
    "repo:status",
    "repo_deployment",
    "repo:invite",
    "security_events",
];

/// What caretaker does with each permission of a fine-grained token: its name, the level it needs, and a read that needs it.
const NEEDED: [(&str, &str, &str); 5] = [
    ("contents", "write", "/branches/{branch}"),
    ("pull_requests", "write", "/pulls?per_page=1"),
    ("actions", "write", "/actions/runs?per_page=1"),
    ("checks", "read", "/commits/{branch}/check-runs?per_page=1"),
    ("statuses", "read", "/commits/{branch}/status?per_page=1"),
];

/// The kind of a credential, as its first letters tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CredentialKind {
    Classic,
    FineGrained,
    Installation,
    UserOfApp,
    Unknown,
}

impl CredentialKind {
    /// GitHub's prefixes; tokens from before April 2021 are 40 hexadecimal digits.
    pub(super) fn of(token: &SecretString) -> Self {
        let text = token.expose_secret();
        let begins = |prefix| text.starts_with(prefix);
        let old = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if begins("ghp_") || begins("gho_") || old {
            Self::Classic
        } else if begins("github_pat_") {
            Self::FineGrained
        } else if begins("ghs_") {
            Self::Installation
        } else if begins("ghu_") {
            Self::UserOfApp
        } else {
            Self::Unknown
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Classic => "classic token",
            Self::FineGrained => "fine-grained token",
            Self::Installation => "installation token of an app",
            Self::UserOfApp => "user token of an app",
            Self::Unknown => "token of a kind that is not known",
        }
    }
}

/// The repository as this credential sees it. Every member may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Seen {
    private: Option<bool>,
    default_branch: Option<String>,
    /// What the user behind the credential may do, whatever the credential itself allows.
    permissions: Option<UserPermissions>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UserPermissions {
    push: Option<bool>,
}

pub(super) async fn access(api: &Api, kind: CredentialKind) -> Result<Access, ConnectorError> {
    let said = api.outside(ACTION, FREE).await?;
    if said.status == StatusCode::UNAUTHORIZED || said.status.is_server_error() {
        return Err(refusal(ACTION, &api.address(FREE), &said));
    }
    let scopes = said.header("x-oauth-scopes").map(scopes);
    let kind = match (kind, &scopes) {
        (CredentialKind::Unknown, Some(_)) => CredentialKind::Classic,
        (kind, _) => kind,
    };
    let mut access = Access {
        kind: kind.words().to_owned(),
        expires_at: said
            .header("github-authentication-token-expiration")
            .and_then(moment),
        ..Access::default()
    };
    let seen = match (repository(api).await, &scopes) {
        (Ok(seen), _) => seen,
        // A classic token without the scope is told what strangers are told: there is no such repository.
        (Err(ConnectorError::Absent { .. } | ConnectorError::Forbidden { .. }), Some(scopes))
            if !scopes.iter().any(|scope| scope == REPO) =>
        {
            Seen {
                private: Some(true),
                ..Seen::default()
            }
        }
        (Err(error), _) => return Err(error),
    };
    let granted = api.caller.credential().granted().await?;
    if let Some(grant) = granted {
        of_grant(&mut access, grant);
        // What the repository says of a user's rights says nothing of an installation's.
        return Ok(access);
    }
    match (kind, scopes) {
        (CredentialKind::Classic, Some(scopes)) => of_scopes(&mut access, scopes, seen.private),
        (CredentialKind::FineGrained, _) => of_probes(api, &mut access, &seen).await?,
        _ => access.untold.push(format!(
            "what a {} may do cannot be told; nothing was checked",
            kind.words()
        )),
    }
    if seen.permissions.and_then(|may| may.push) == Some(false) {
        access
            .missing
            .push("the right of the token's user to write to the repository".to_owned());
    }
    Ok(access)
}

/// A comma-separated header.
fn scopes(header: &str) -> Vec<String> {
    let words = header.split(',').map(str::trim);
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// What a classic token lacks and what it may do beyond: a private repository needs `repo`, a public one `public_repo`.
fn of_scopes(access: &mut Access, scopes: Vec<String>, private: Option<bool>) {
    let has = |wanted: &str| scopes.iter().any(|scope| scope == wanted);
    let needed = if private == Some(false) {
        PUBLIC_REPO
    } else {
        REPO
    };
    if !has(needed) && !has(REPO) {
        access.missing.push(needed.to_owned());
    }
    let part = |scope: &str| needed == REPO && PARTS_OF_REPO.contains(&scope);
    // Break it: leave the look at `part` out; `connector::access::a_classic_token_has_what_it_needs_and_nothing_else` then
    // fails.
    let beyond = |scope: &&String| scope.as_str() != needed && !part(scope);
    access.unneeded = scopes.iter().filter(beyond).cloned().collect();
    access.granted = Some(scopes);
}

/// What an installation lacks and what it may do beyond: told by the provider, and for each token taken from it again.
fn of_grant(access: &mut Access, grant: Grant) {
    let listed = |permissions: &Permissions| {
        let each = permissions.iter();
        each.map(|(name, level)| format!("{name}:{}", level.word()))
            .collect()
    };
    let may = &grant.permissions;
    access.granted = Some(listed(may));
    access.missing = listed(&of_app(false).beyond(may));
    access.unneeded = listed(&may.beyond(&of_app(true)));
    // The token that asked ends within the hour; what it comes from does not.
    access.expires_at = None;
    let page = grant.page;
    access.changed_at = Some(page.unwrap_or_else(|| "the installation's page".to_owned()));
}

/// What a fine-grained token lacks, as far as reads show it.
async fn of_probes(api: &Api, access: &mut Access, seen: &Seen) -> Result<(), ConnectorError> {
    const MORE: &str = "what it may do beyond that cannot be told for this kind of token";
    if seen.private != Some(true) {
        access.untold = vec![
            "what it may read cannot be told for this kind of token: anyone may read a public repository".to_owned(),
            "whether it may write cannot be told before something is written".to_owned(),
            MORE.to_owned(),
        ];
        return Ok(());
    }
    let branch = seen.default_branch.as_deref().map(branch_tail);
    for (name, level, tail) in NEEDED {
        let Some(tail) = at_branch(tail, branch.as_deref()) else {
            continue;
        };
        let answer = api.answer(ACTION, &tail).await?;
        if answer.status.is_server_error() {
            return Err(api.refused(ACTION, &tail, &answer));
        }
        if answer.status == StatusCode::FORBIDDEN {
            access.missing.push(lacking(&answer, name, level));
        }
    }
    let writes: Vec<String> = NEEDED
        .into_iter()
        .filter(|(name, level, _)| {
            let lacks = |missing: &String| missing.split(':').next() == Some(name);
            *level == "write" && !access.missing.iter().any(lacks)
        })
        .map(|(name, level, _)| format!("{name}:{level}"))
        .collect();
    if !writes.is_empty() {
        access.untold.push(format!(
            "it may read, and whether it may write ({}) cannot be told before something is written",
            writes.join(", ")
        ));
    }
    access.untold.push(MORE.to_owned());
    Ok(())
}

/// The path of a read, once the branch is known that it needs.
fn at_branch(tail: &str, branch: Option<&str>) -> Option<String> {
    if tail.contains("{branch}") {
        branch.map(|branch| tail.replace("{branch}", branch))
    } else {
        Some(tail.to_owned())
    }
}

/// The permission that a refused read needs: the provider's name for it, at the level that caretaker needs of it.
fn lacking(answer: &Answer, name: &str, level: &str) -> String {
    let said = answer
        .header("x-accepted-github-permissions")
        .and_then(|header| header.split([';', ',']).next())
        .and_then(|first| first.trim().split_once('='));
    match said {
        Some((said, said_level)) if said != name && !said.is_empty() => {
            format!("{said}:{said_level}")
        }
        _ => format!("{name}:{level}"),
    }
}

async fn repository(api: &Api) -> Result<Seen, ConnectorError> {
    let path = api.registered_path();
    let answer = api.outside(ACTION, &path).await?;
    if answer.status != StatusCode::OK {
        return Err(api.refused_at(ACTION, &path, &answer));
    }
    decoded(ACTION, &answer.body)
}

/// `2026-12-01 10:00:00 UTC`, or with an offset such as `+0100`.
fn moment(header: &str) -> Option<Millis> {
    let text = header.trim();
    let text = match text.strip_suffix("UTC") {
        Some(rest) => format!("{rest}+0000"),
        None => text.to_owned(),
    };
    let found = jiff::Timestamp::strptime("%Y-%m-%d %H:%M:%S %z", text).ok()?;
    Some(Millis(found.as_millisecond()))
}

/// Asks the provider for something that needs no credential and costs nothing: whether it answers, and what time it says it
/// is (to the second), when it does.
///
/// # Errors
/// In words: the address cannot be used, or nothing answers there in time.
pub async fn reach(api_url: &str, deadline: Duration) -> Result<Option<Millis>, String> {
    let base = Url::parse(api_url).map_err(|_| "it is no address".to_owned())?;
    let client = http_client(https::is_loopback(&base))?;
    let address = format!("{}{FREE}", api_url.trim_end_matches('/'));
    let sent = client.get(address).timeout(deadline).send().await;
    let answer = sent.map_err(https::words)?;
    let date = answer.headers().get(http::header::DATE);
    let date = date.and_then(|date| date.to_str().ok());
    Ok(date.and_then(http_date))
}

/// A `Date` header: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
fn http_date(text: &str) -> Option<Millis> {
    let parser = jiff::fmt::rfc2822::DateTimeParser::new();
    let found = parser.parse_timestamp(text.trim()).ok()?;
    Some(Millis(found.as_millisecond()))
}
