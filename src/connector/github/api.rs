//! Calls within one repository: reads with their paging and their one permitted redirect, and changes, sent exactly once.

use http::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use url::Url;

use super::answer::{broken, decoded, item, nonsense, refusal};
use super::options::{GithubOptions, GithubSetupError, Setting};
use super::path::encoded;
use super::transport::{Answer, Broken, LogAnswer, Transport};
use super::wire;
use crate::clock::{Clock, Millis};
use crate::connector::ConnectorError;

/// Rows asked for per page, the most that the interface gives.
const PER_PAGE: usize = 100;

/// One repository's interface.
pub(super) struct Api {
    transport: Transport,
    pub(super) setting: Setting,
    pub(super) owner: String,
    pub(super) name: String,
    expected: Option<String>,
    clock: Arc<dyn Clock>,
}

impl Api {
    pub(super) fn new(options: GithubOptions) -> Result<Self, GithubSetupError> {
        let setting = Setting::check(&options)?;
        let transport = Transport::new(&options, &setting)?;
        Ok(Self {
            transport,
            setting,
            owner: options.owner,
            name: options.name,
            expected: options.expected_repository_id,
            clock: options.clock,
        })
    }

    pub(super) fn now(&self) -> Millis {
        self.clock.now()
    }

    /// `owner/name`, for messages.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    fn path(&self, tail: &str) -> String {
        format!("/repos/{}/{}{tail}", self.owner, self.name)
    }

    pub(super) fn address(&self, path: &str) -> String {
        let path = path.split('?').next().unwrap_or_default();
        format!("{}{path}", self.setting.api_text)
    }

    /// The error that an answer with another status than hoped for is.
    pub(super) fn refused(&self, action: &str, tail: &str, answer: &Answer) -> ConnectorError {
        let address = self.address(&self.path(tail));
        refusal(action, &address, answer, self.now())
    }

    /// Reads once and gives any answer, after at most one redirect to the same repository under its number.
    pub(super) async fn answer(&self, action: &str, tail: &str) -> Result<Answer, ConnectorError> {
        let path = self.path(tail);
        let answer = self.send(action, Method::GET, &path, None).await?;
        match self.moved_to(&answer) {
            Some(path) => self.send(action, Method::GET, &path, None).await,
            None => Ok(answer),
        }
    }

    /// Reads a value; any status other than 200 is an error.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        action: &str,
        tail: &str,
    ) -> Result<T, ConnectorError> {
        let answer = self.answer(action, tail).await?;
        if answer.status != StatusCode::OK {
            return Err(self.refused(action, tail, &answer));
        }
        decoded(action, &answer.body)
    }

    /// Reads a value, or nothing when the provider says 404 and the repository itself can be seen: a 404 alone may as well
    /// mean that the credential may not look.
    pub(super) async fn read_if_present<T: DeserializeOwned>(
        &self,
        action: &str,
        tail: &str,
    ) -> Result<Option<T>, ConnectorError> {
        let answer = self.answer(action, tail).await?;
        match answer.status {
            StatusCode::OK => decoded(action, &answer.body).map(Some),
            StatusCode::NOT_FOUND => {
                self.confirm_repository(action).await?;
                Ok(None)
            }
            _ => Err(self.refused(action, tail, &answer)),
        }
    }

    /// Reads one page (from 1) of a list, item by item. `list` names the member that holds it; none means that the answer
    /// is the list. The flag says whether another page may follow.
    pub(super) async fn page(
        &self,
        action: &str,
        tail: &str,
        list: Option<&str>,
        page: u32,
    ) -> Result<(Vec<Value>, bool), ConnectorError> {
        let separator = if tail.contains('?') { '&' } else { '?' };
        let tail = format!("{tail}{separator}per_page={PER_PAGE}&page={page}");
        let answer = self.answer(action, &tail).await?;
        if answer.status != StatusCode::OK {
            return Err(self.refused(action, &tail, &answer));
        }
        let mut value: Value = decoded(action, &answer.body)?;
        let items = match list {
            Some(member) => value.get_mut(member).map(Value::take),
            None => Some(value),
        };
        let Some(Value::Array(items)) = items else {
            return Err(nonsense(action, "there is no list in it"));
        };
        let linked = answer
            .header("link")
            .is_some_and(|link| link.contains("rel=\"next\""));
        let more = !items.is_empty() && (linked || items.len() >= PER_PAGE);
        Ok((items, more))
    }

    /// Reads a whole list. A list that has not ended after `pages` pages is an error.
    pub(super) async fn pages(
        &self,
        action: &str,
        tail: &str,
        list: Option<&str>,
        pages: u32,
    ) -> Result<Vec<Value>, ConnectorError> {
        let mut all = Vec::new();
        for page in 1..=pages {
            let (items, more) = self.page(action, tail, list, page).await?;
            all.extend(items);
            if !more {
                return Ok(all);
            }
        }
        Err(ConnectorError::Refused {
            action: action.to_owned(),
            reason: format!("the list has not ended after {pages} pages of {PER_PAGE}"),
        })
    }

    /// Reads a whole list in which every item must be understood.
    pub(super) async fn every<T: DeserializeOwned>(
        &self,
        action: &str,
        tail: &str,
        list: Option<&str>,
        pages: u32,
    ) -> Result<Vec<T>, ConnectorError> {
        let items = self.pages(action, tail, list, pages).await?;
        items.into_iter().map(|value| item(action, value)).collect()
    }

    /// Asks for a change, exactly once. A redirect is an answer like any other.
    pub(super) async fn change(
        &self,
        method: Method,
        tail: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Broken> {
        let body = body.map(Value::to_string);
        self.transport.send(method, &self.path(tail), body).await
    }

    /// [`Self::change`] for a change whose lost answer needs no word of its own.
    pub(super) async fn change_or_unreachable(
        &self,
        action: &str,
        method: Method,
        tail: &str,
        body: Option<&Value>,
    ) -> Result<Answer, ConnectorError> {
        let answer = self.change(method, tail, body).await;
        answer.map_err(|error| ConnectorError::Unreachable {
            action: action.to_owned(),
            address: self.address(&self.path(tail)),
            reason: error.to_string(),
        })
    }

    /// Asks for a log, of which at most `cap` bytes are kept when it comes at once.
    pub(super) async fn log(
        &self,
        action: &str,
        tail: &str,
        cap: usize,
    ) -> Result<LogAnswer, ConnectorError> {
        let path = self.path(tail);
        let sent = self.transport.send_for_log(&path, cap).await;
        sent.map_err(|error| broken(action, &self.address(&path), &error))
    }

    /// Fetches a link without the credential.
    pub(super) async fn link(
        &self,
        action: &str,
        link: Url,
        cap: usize,
    ) -> Result<LogAnswer, ConnectorError> {
        let host = link.host_str().unwrap_or_default().to_owned();
        let fetched = self.transport.fetch_link(link, cap).await;
        fetched.map_err(|error| broken(action, &host, &error))
    }

    /// The repository as it is.
    pub(super) async fn repository(&self) -> Result<wire::Repository, ConnectorError> {
        self.read(&format!("reading repository {}", self.full_name()), "")
            .await
    }

    /// The registered repository as it is, whatever it is called today: by its name, and by its number where the name leads
    /// nowhere or to another repository, which may have been given it.
    pub(super) async fn registered_repository(&self) -> Result<wire::Repository, ConnectorError> {
        let named = self.repository().await;
        let Some(number) = &self.expected else {
            return named;
        };
        match named {
            Ok(found) if found.id.map(|id| id.to_string()).as_ref() == Some(number) => Ok(found),
            Ok(_) | Err(ConnectorError::Absent { .. }) => self.by_number(number).await,
            Err(error) => Err(error),
        }
    }

    async fn by_number(&self, number: &str) -> Result<wire::Repository, ConnectorError> {
        let action = format!("reading repository {} by its number", self.full_name());
        let path = format!("/repositories/{}", encoded(number));
        let answer = self.outside(&action, &path).await?;
        if answer.status != StatusCode::OK {
            return Err(refusal(&action, &self.address(&path), &answer, self.now()));
        }
        decoded(&action, &answer.body)
    }

    /// Reads once at a path that is not below the repository's name, and gives any answer.
    pub(super) async fn outside(&self, action: &str, path: &str) -> Result<Answer, ConnectorError> {
        self.send(action, Method::GET, path, None).await
    }

    /// The registered number of the repository.
    pub(super) fn number(&self) -> Option<&str> {
        self.expected.as_deref()
    }

    /// Fails unless the repository can be seen and still is the registered one. Names can be given away; numbers cannot.
    pub(super) async fn confirm_repository(&self, action: &str) -> Result<(), ConnectorError> {
        let found = self.repository().await?.id.map(|id| id.to_string());
        match &self.expected {
            Some(expected) if found.as_ref() != Some(expected) => Err(ConnectorError::Refused {
                action: action.to_owned(),
                reason: format!(
                    "{} is now repository number {}, but {expected} was registered; register it again",
                    self.full_name(),
                    found.as_deref().unwrap_or("unknown")
                ),
            }),
            _ => Ok(()),
        }
    }

    async fn send(
        &self,
        action: &str,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<Answer, ConnectorError> {
        let sent = self.transport.send(method, path, body).await;
        sent.map_err(|error| broken(action, &self.address(path), &error))
    }

    /// The path that a 301 names, when it stays on the interface's own origin and names the registered repository by number.
    fn moved_to(&self, answer: &Answer) -> Option<String> {
        if answer.status != StatusCode::MOVED_PERMANENTLY {
            return None;
        }
        let expected = self.expected.as_deref()?;
        let target = self.setting.api.join(answer.location()?).ok()?;
        // Break it: drop this condition; `a_redirect_to_another_host_is_not_followed` then fails.
        if target.origin() != self.setting.api.origin() {
            return None;
        }
        let base = self.setting.api.path().trim_end_matches('/');
        let path = target.path().strip_prefix(base)?;
        let rest = path
            .strip_prefix("/repositories/")?
            .strip_prefix(expected)?;
        if !(rest.is_empty() || rest.starts_with('/')) {
            return None;
        }
        Some(match target.query() {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        })
    }
}
