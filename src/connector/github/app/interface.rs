//! What the provider says to the App itself: who it is, where it is installed, and a token for one use.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{Method, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::super::answer::{limited_until, words};
use super::super::credential::TokenError;
use super::super::options::{GithubSetupError, is_name};
use super::super::transport::Answer;
use super::http::{Http, Request};
use super::key::AppKey;
use super::tokens::{Form, Mint, MintOrder, Minted, Target};
use super::{Permissions, wire};
use crate::clock::{Clock, Millis};

/// Longest token that is taken, in bytes. The long form has about 520.
const LONGEST_TOKEN: usize = 4096;
/// Clocks that are closer than this are not mentioned, in seconds.
const CLOCKS_AGREE: i64 = 30;

/// What an [`AppInterface`] is made from.
pub struct AppOptions {
    /// Base of the REST interface.
    pub api_url: String,
    /// The App's number.
    pub app: u64,
    /// Its private key.
    pub key: AppKey,
    /// How long one request may take, its whole answer included.
    pub deadline: Duration,
    /// Dates the assertions.
    pub clock: Arc<dyn Clock>,
}

/// The App as the provider knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppView {
    /// Its number.
    pub id: u64,
    /// Its name in addresses.
    pub slug: String,
    /// Its name for people.
    pub name: String,
    /// The account that owns it.
    pub owner: Option<String>,
    /// Its page for people.
    pub page: Option<String>,
    /// What it asks of those who install it.
    pub permissions: Permissions,
    /// What it is told of by webhook.
    pub events: Vec<String>,
}

/// One installation of the App.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallationView {
    /// Its number.
    pub id: u64,
    /// Its settings page for people.
    pub page: Option<String>,
    /// What its owner granted.
    pub permissions: Permissions,
    /// Whether its owner suspended it.
    pub suspended: bool,
}

/// The provider's interface for the App.
pub struct AppInterface {
    http: Http,
    app: u64,
    key: AppKey,
    clock: Arc<dyn Clock>,
}

impl AppInterface {
    /// Checks the address and makes the client; nothing is sent yet.
    ///
    /// # Errors
    /// An address or a deadline that cannot be used, or no HTTPS client.
    pub fn new(options: AppOptions) -> Result<Self, GithubSetupError> {
        Ok(Self {
            http: Http::new(&options.api_url, options.deadline)?,
            app: options.app,
            key: options.key,
            clock: options.clock,
        })
    }

    /// The App itself.
    ///
    /// # Errors
    /// The provider cannot be reached or does not know the App.
    pub async fn app(&self) -> Result<AppView, TokenError> {
        let action = format!("reading GitHub App {}", self.app);
        let answer = self.ask(&action, Method::GET, "/app", None, None).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Err(self.not_believed(&action, &answer));
        }
        let app: wire::App = read(&action, StatusCode::OK, &answer)?;
        app_view(&action, app)
    }

    /// The installation that reaches a repository.
    ///
    /// # Errors
    /// There is none, or the provider cannot be reached.
    pub async fn installation_of(
        &self,
        owner: &str,
        name: &str,
    ) -> Result<InstallationView, TokenError> {
        let action = format!("looking for the installation on {owner}/{name}");
        let path = format!("/repos/{}/{}/installation", segment(owner)?, segment(name)?);
        let what = format!("an installation on {owner}/{name}");
        self.installation_at(action, path, what).await
    }

    async fn installation_at(
        &self,
        action: String,
        path: String,
        what: String,
    ) -> Result<InstallationView, TokenError> {
        let answer = self.ask(&action, Method::GET, &path, None, None).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Err(TokenError::Absent { action, what });
        }
        let found: wire::Installation = read(&action, StatusCode::OK, &answer)?;
        let id = found
            .id
            .ok_or_else(|| nonsense(&action, "the installation has no number"))?;
        if found.app_id.is_some_and(|app| app != self.app) {
            return Err(TokenError::Absent { action, what });
        }
        Ok(InstallationView {
            id,
            page: page(found.html_url),
            permissions: Permissions::from_answer(found.permissions),
            suspended: found.suspended_at.is_some(),
        })
    }

    /// Asks as the App.
    async fn ask(
        &self,
        action: &str,
        method: Method,
        path: &str,
        body: Option<String>,
        header: Option<(&'static str, &'static str)>,
    ) -> Result<Answer, TokenError> {
        let assertion = self.key.assertion(self.app, self.clock.now());
        let assertion = assertion.map_err(|error| TokenError::Refused {
            action: action.to_owned(),
            reason: error.to_string(),
        })?;
        let request = Request {
            method,
            path: path.to_owned(),
            bearer: Some(&assertion),
            body,
            header,
        };
        let answer = self.send(action, request).await?;
        match answer.status {
            StatusCode::UNAUTHORIZED => Err(self.not_believed(action, &answer)),
            _ => Ok(answer),
        }
    }

    async fn send(&self, action: &str, request: Request<'_>) -> Result<Answer, TokenError> {
        let sent = self.http.send(request).await;
        let answer = sent.map_err(|reason| unreachable(action, self.http.base(), reason))?;
        match failure(action, self.http.base(), &answer, self.clock.now()) {
            Some(error) => Err(error),
            None => Ok(answer),
        }
    }

    /// The App's assertion did not convince. Most often the clock is why, so the distance is said where it is large.
    fn not_believed(&self, action: &str, answer: &Answer) -> TokenError {
        let mut reason = format!("{}: {}", answer.status.as_u16(), words(answer));
        let theirs = answer
            .header("date")
            .and_then(|date| jiff::fmt::rfc2822::parse(date).ok())
            .map(|date| date.timestamp().as_second());
        let ahead = theirs.map_or(0, |theirs| self.clock.now().0.div_euclid(1000) - theirs);
        if ahead.abs() > CLOCKS_AGREE {
            let direction = if ahead > 0 { "ahead of" } else { "behind" };
            reason = format!(
                "{reason}; this machine's clock is {} s {direction} the provider's",
                ahead.abs()
            );
        }
        TokenError::App {
            action: action.to_owned(),
            reason,
        }
    }
}

/// Limits and failures of the provider, which every call may meet.
pub(super) fn failure(
    action: &str,
    address: &str,
    answer: &Answer,
    now: Millis,
) -> Option<TokenError> {
    if let Some(until) = limited_until(answer, now) {
        let action = action.to_owned();
        return Some(TokenError::Limited { action, until });
    }
    answer.status.is_server_error().then(|| {
        let reason = format!("{}: {}", answer.status.as_u16(), words(answer));
        unreachable(action, address, reason)
    })
}

pub(super) fn unreachable(action: &str, address: &str, reason: String) -> TokenError {
    TokenError::Unreachable {
        action: action.to_owned(),
        address: address.to_owned(),
        reason,
    }
}

/// The answer as a value, if it has the status that it should have. What does not parse is not repeated: it may be a token.
pub(super) fn read<T: DeserializeOwned>(
    action: &str,
    expected: StatusCode,
    answer: &Answer,
) -> Result<T, TokenError> {
    if answer.status != expected {
        return Err(TokenError::Refused {
            action: action.to_owned(),
            reason: format!("{}: {}", answer.status.as_u16(), words(answer)),
        });
    }
    // Break it: add the parser's own words; `app::wire::an_answer_that_does_not_parse_is_not_repeated` then fails.
    serde_json::from_slice(&answer.body).map_err(|_| nonsense(action, "not the JSON expected"))
}

pub(super) fn nonsense(action: &str, reason: &str) -> TokenError {
    TokenError::Refused {
        action: action.to_owned(),
        reason: format!("the answer makes no sense: {reason}"),
    }
}

/// An App as described in an answer.
pub(super) fn app_view(action: &str, app: wire::App) -> Result<AppView, TokenError> {
    let missing = |member| nonsense(action, &format!("{member} is missing"));
    let owner = app.owner.unwrap_or_default();
    let slug = app.slug.ok_or_else(|| missing("slug"))?;
    Ok(AppView {
        id: app.id.ok_or_else(|| missing("id"))?,
        name: app.name.unwrap_or_else(|| slug.clone()),
        slug,
        owner: owner.login.or(owner.slug),
        page: page(app.html_url),
        permissions: Permissions::from_answer(app.permissions),
        events: app
            .events
            .unwrap_or_default()
            .iter()
            .filter_map(|event| event.as_str().map(str::to_owned))
            .collect(),
    })
}

/// An address for people, when it is one.
fn page(address: Option<String>) -> Option<String> {
    address.filter(|text| text.starts_with("https://") || text.starts_with("http://"))
}

/// A name as one part of a path.
fn segment(name: &str) -> Result<&str, TokenError> {
    is_name(name)
        .then_some(name)
        .ok_or_else(|| TokenError::Refused {
            action: "looking for the installation".to_owned(),
            reason: "owner and name have letters, digits, `-`, `_` and `.` only".to_owned(),
        })
}

#[async_trait]
impl Mint for AppInterface {
    async fn installation(&self, installation: u64) -> Result<InstallationView, TokenError> {
        let action = format!("reading installation {installation}");
        let path = format!("/app/installations/{installation}");
        let what = format!("installation {installation}");
        self.installation_at(action, path, what).await
    }

    async fn mint(&self, order: &MintOrder) -> Result<Minted, TokenError> {
        let action = order.action();
        let path = format!("/app/installations/{}/access_tokens", order.installation);
        let mut body = json!({"permissions": order.permissions});
        match &order.repository {
            Target::Number(number) => body["repository_ids"] = json!([number]),
            Target::Name(name) => body["repositories"] = json!([name]),
        }
        let header = match order.form {
            Form::Usual => None,
            Form::Compatible => Some(("x-github-stateless-s2s-token", "disabled")),
        };
        let answer = self
            .ask(&action, Method::POST, &path, Some(body.to_string()), header)
            .await?;
        let said = words(&answer);
        match answer.status {
            StatusCode::NOT_FOUND => {
                return Err(TokenError::Absent {
                    what: format!("installation {}", order.installation),
                    action,
                });
            }
            StatusCode::FORBIDDEN if said.to_ascii_lowercase().contains("suspended") => {
                return Err(TokenError::Suspended {
                    action,
                    installation: order.installation,
                });
            }
            StatusCode::UNPROCESSABLE_ENTITY => {
                return Err(self.not_granted(order, said).await);
            }
            _ => {}
        }
        let token: wire::Issued = read(&action, StatusCode::CREATED, &answer)?;
        minted(&action, order, token)
    }

    async fn revoke(&self, token: &SecretString) -> Result<(), TokenError> {
        let action = "revoking a token whose task is done";
        let request = Request {
            method: Method::DELETE,
            path: "/installation/token".to_owned(),
            bearer: Some(token),
            body: None,
            header: None,
        };
        let answer = self.send(action, request).await?;
        match answer.status {
            // It has ended already.
            StatusCode::NO_CONTENT | StatusCode::UNAUTHORIZED => Ok(()),
            status => Err(TokenError::Refused {
                action: action.to_owned(),
                reason: format!("{}: {}", status.as_u16(), words(&answer)),
            }),
        }
    }
}

impl AppInterface {
    /// Why a token was refused with 422: a permission that was not granted, or a repository that is not included.
    async fn not_granted(&self, order: &MintOrder, reason: String) -> TokenError {
        let (action, installation) = (order.action(), order.installation);
        match self.installation(installation).await {
            Ok(view) if view.suspended => TokenError::Suspended {
                action,
                installation,
            },
            Ok(view) => {
                let missing = order.permissions.beyond(&view.permissions);
                if missing.is_empty() {
                    TokenError::OutOfReach {
                        action,
                        installation,
                        repository: order.repository.to_string(),
                        reason,
                    }
                } else {
                    TokenError::Ungranted {
                        action,
                        installation,
                        missing,
                        reason,
                    }
                }
            }
            Err(_) => TokenError::Refused {
                action,
                reason: format!("422: {reason}"),
            },
        }
    }
}

/// The token of an answer, if it is what was ordered and no more.
fn minted(action: &str, order: &MintOrder, answer: wire::Issued) -> Result<Minted, TokenError> {
    let nonsense = |reason| nonsense(action, reason);
    let secret = answer.token.ok_or_else(|| nonsense("there is no token"))?;
    let text = secret.expose_secret();
    let sendable = text.bytes().all(|byte| byte.is_ascii_graphic());
    if text.is_empty() || text.len() > LONGEST_TOKEN || !sendable {
        return Err(nonsense("its token is none that a header can carry"));
    }
    let expires_at = answer
        .expires_at
        .and_then(|text| text.parse::<jiff::Timestamp>().ok())
        .ok_or_else(|| nonsense("it does not say until when the token lasts"))?;
    let permissions = match answer.permissions {
        Some(granted) => Permissions::from_answer(Some(granted)),
        None => order.permissions.clone(),
    };
    // Break it: skip either of these two conditions; `app::wire::a_token_that_may_more_than_was_asked_is_not_used` then fails.
    let more = permissions.beyond(&order.permissions);
    if !more.is_empty() {
        return Err(nonsense(&format!(
            "the token may do more than was asked for ({more})"
        )));
    }
    let opened = answer.repositories.unwrap_or_default();
    let ordered = |repository: &wire::Repository| match &order.repository {
        Target::Number(number) => repository.id == Some(*number),
        Target::Name(name) => {
            let found = repository.name.as_deref();
            found.is_some_and(|found| found.eq_ignore_ascii_case(name))
        }
    };
    if opened.len() > 1 || !opened.iter().all(ordered) {
        return Err(nonsense("the token opens other repositories too"));
    }
    Ok(Minted {
        secret,
        expires_at: Millis(expires_at.as_millisecond()),
        permissions,
        repository: opened.first().and_then(|repository| repository.id),
    })
}
