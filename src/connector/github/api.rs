//! Calls within one repository: reads with their paging and their one permitted redirect, and changes.

use std::any::{Any, TypeId};
use std::sync::Arc;

use http::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answer::{decoded, item, nonsense, refusal, unanswered};
use super::call::{Caller, Opened, Read, Unanswered};
use super::client::GithubClient;
use super::credential::Use;
use super::etags::Kept;
use super::options::{GithubOptions, GithubSetupError, Setting};
use super::transport::Answer;
use super::wire;
use crate::connector::ConnectorError;
use crate::https::is_loopback;

/// Rows asked for per page, the most that the interface gives.
const PER_PAGE: usize = 100;

/// One repository's interface. A clone is the same one.
#[derive(Clone)]
pub(super) struct Api {
    pub(super) caller: Arc<Caller>,
    pub(super) setting: Arc<Setting>,
    pub(super) owner: Arc<str>,
    pub(super) name: Arc<str>,
    expected: Option<Arc<str>>,
    task: Use,
}

/// Longest tag of an answer that is sent back, in bytes. Servers refuse headers that are longer than some thousands.
const TAG_LIMIT: usize = 1_024;

/// One page of a list, and whether another may follow.
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    pub(super) more: bool,
}

impl Api {
    pub(super) fn new(
        client: &GithubClient,
        options: GithubOptions,
    ) -> Result<Self, GithubSetupError> {
        let setting = Setting::check(&options)?;
        let http = client.http(is_loopback(&setting.api))?;
        let base = &setting.api_text;
        let caller = Caller::new(client, http, base, options.credential, options.deadline);
        Ok(Self {
            caller: Arc::new(caller),
            setting: Arc::new(setting),
            owner: options.owner.into(),
            name: options.name.into(),
            expected: options.expected_repository_id.map(Arc::from),
            task: Use::Read,
        })
    }

    /// The same interface for calls of another use: changes are made with its token, and reads go before those of lesser ones when
    /// the budget is short.
    pub(super) fn on(&self, task: Use) -> Self {
        Self {
            task,
            ..self.clone()
        }
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
        self.refused_at(action, &self.path(tail), answer)
    }

    /// [`Self::refused`] by the whole path.
    pub(super) fn refused_at(&self, action: &str, path: &str, answer: &Answer) -> ConnectorError {
        refusal(action, &self.address(path), answer)
    }

    /// Reads and gives any answer, after at most one redirect to the same repository under its number.
    pub(super) async fn answer(&self, action: &str, tail: &str) -> Result<Answer, ConnectorError> {
        let read = self.fetch(action, &self.path(tail), None).await?;
        Ok(read.answer)
    }

    async fn fetch(
        &self,
        action: &str,
        path: &str,
        kind: Option<TypeId>,
    ) -> Result<Read, ConnectorError> {
        let read = self.read_at(action, path, kind).await?;
        match self.moved_to(&read.answer) {
            Some(path) => self.read_at(action, &path, kind).await,
            None => Ok(read),
        }
    }

    async fn read_at(
        &self,
        action: &str,
        path: &str,
        kind: Option<TypeId>,
    ) -> Result<Read, ConnectorError> {
        let read = self.caller.read(self.task, path, kind).await;
        read.map_err(|error| unanswered(action, &self.address(path), error))
    }

    /// Reads a value that may have been read before and be unchanged. `understand` gives the value of a complete answer with
    /// status 200 and about how many bytes it takes. Any other answer is given back as it is.
    pub(super) async fn watched<T: Any + Send + Sync>(
        &self,
        action: &str,
        path: &str,
        understand: impl FnOnce(&Answer) -> Result<(T, usize), ConnectorError>,
    ) -> Result<Result<Arc<T>, Answer>, ConnectorError> {
        let Read { answer, key, known } = self.fetch(action, path, Some(TypeId::of::<T>())).await?;
        if let Some(known) = known.filter(|_| answer.status == StatusCode::NOT_MODIFIED)
            && let Ok(value) = known.value.downcast::<T>()
        {
            return Ok(Ok(value));
        }
        // Break it: keep answers of any status; `connector::unchanged::only_a_complete_200_is_ever_replayed` then fails.
        if answer.status != StatusCode::OK {
            return Ok(Err(answer));
        }
        let (value, weight) = understand(&answer)?;
        let value = Arc::new(value);
        // Break it: keep it whatever its length (`connector::unchanged::a_tag_that_is_longer_than_headers_may_be_is_not_kept`).
        let etag = answer.header("etag").filter(|tag| tag.len() <= TAG_LIMIT);
        if let (Some(key), Some(etag)) = (key, etag) {
            let kept = Kept {
                etag: etag.to_owned(),
                value: Arc::<T>::clone(&value),
            };
            self.caller.client().etags().put(key, kept, weight);
        }
        Ok(Ok(value))
    }

    /// [`Self::watched`] within the repository, where any status other than 200 is an error.
    pub(super) async fn watched_here<T: Any + Send + Sync>(
        &self,
        action: &str,
        tail: &str,
        understand: impl FnOnce(&Answer) -> Result<(T, usize), ConnectorError>,
    ) -> Result<Arc<T>, ConnectorError> {
        let read = self.watched(action, &self.path(tail), understand).await?;
        read.map_err(|answer| self.refused(action, tail, &answer))
    }

    /// A whole list that may have been read before, page by page. One that has not ended after `pages` pages is an error.
    pub(super) async fn watched_pages<T: Any + Clone + Send + Sync>(
        &self,
        action: &str,
        tail: &str,
        pages: u32,
        understand: impl Fn(&Answer) -> Result<(Page<T>, usize), ConnectorError>,
    ) -> Result<Vec<T>, ConnectorError> {
        let mut all = Vec::new();
        for number in 1..=pages {
            let tail = page_tail(tail, number);
            let page = self.watched_here(action, &tail, &understand).await?;
            all.extend_from_slice(&page.items);
            if !page.more {
                return Ok(all);
            }
        }
        Err(endless(action, pages))
    }

    /// [`Self::watched_here`], or nothing when the provider says 404 and the repository itself can be seen.
    pub(super) async fn watched_if_present<T: Any + Send + Sync>(
        &self,
        action: &str,
        tail: &str,
        understand: impl FnOnce(&Answer) -> Result<(T, usize), ConnectorError>,
    ) -> Result<Option<Arc<T>>, ConnectorError> {
        match self.watched(action, &self.path(tail), understand).await? {
            Ok(value) => Ok(Some(value)),
            Err(answer) if answer.status == StatusCode::NOT_FOUND => {
                self.confirm_repository(action).await?;
                Ok(None)
            }
            Err(answer) => Err(self.refused(action, tail, &answer)),
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
        let tail = page_tail(tail, page);
        let answer = self.answer(action, &tail).await?;
        if answer.status != StatusCode::OK {
            return Err(self.refused(action, &tail, &answer));
        }
        listed(action, list, &answer)
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
        Err(endless(action, pages))
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

    /// Asks for a change, with a token for this use. A redirect is an answer like any other.
    pub(super) async fn change(
        &self,
        method: Method,
        tail: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Unanswered> {
        let body = body.map(Value::to_string);
        let path = self.path(tail);
        self.caller
            .change(self.task, &method, &path, body.as_deref())
            .await
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
        answer.map_err(|error| unanswered(action, &self.address(&self.path(tail)), error))
    }

    /// Asks for something large.
    pub(super) async fn open(&self, action: &str, tail: &str) -> Result<Opened, ConnectorError> {
        let path = self.path(tail);
        let opened = self.caller.open(self.task, &path).await;
        opened.map_err(|error| unanswered(action, &self.address(&path), error))
    }

    /// The path of the repository by its registered number, or by its name when it is not registered yet.
    pub(super) fn registered_path(&self) -> String {
        match &self.expected {
            Some(number) => format!("/repositories/{number}"),
            None => self.path(""),
        }
    }

    /// The registered number.
    pub(super) fn registered_number(&self) -> Option<u64> {
        self.expected.as_deref()?.parse().ok()
    }

    /// The repository that has the name now: whatever is changed is changed there.
    pub(super) async fn repository(&self) -> Result<wire::Repository, ConnectorError> {
        self.read(&format!("reading repository {}", self.full_name()), "")
            .await
    }

    /// Reads at a path that is not below the repository's name, and gives any answer.
    pub(super) async fn outside(&self, action: &str, path: &str) -> Result<Answer, ConnectorError> {
        let read = self.read_at(action, path, None).await?;
        Ok(read.answer)
    }

    /// Fails unless the repository can be seen and still is the registered one. Names can be given away; numbers cannot.
    pub(super) async fn confirm_repository(&self, action: &str) -> Result<(), ConnectorError> {
        let found = self.repository().await?.id.map(|id| id.to_string());
        match &self.expected {
            Some(expected) if found.as_deref() != Some(expected) => Err(ConnectorError::Refused {
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

    /// The path that a 301 names, when it stays on the interface's own origin and names the registered repository by number.
    fn moved_to(&self, answer: &Answer) -> Option<String> {
        if answer.status != StatusCode::MOVED_PERMANENTLY {
            return None;
        }
        let expected = self.expected.as_deref()?;
        let target = self.setting.api.join(answer.location()?).ok()?;
        // Break it: drop this condition; `connector::answers::a_redirect_to_another_host_is_not_followed` then fails.
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

/// The tail of a page's path. Pages are numbered under the configured base: links to next pages are never followed, since
/// servers behind another address write their own into them.
pub(super) fn page_tail(tail: &str, page: u32) -> String {
    let separator = if tail.contains('?') { '&' } else { '?' };
    format!("{tail}{separator}per_page={PER_PAGE}&page={page}")
}

/// The items of a page and whether another page may follow.
pub(super) fn listed(
    action: &str,
    list: Option<&str>,
    answer: &Answer,
) -> Result<(Vec<Value>, bool), ConnectorError> {
    let mut value: Value = decoded(action, &answer.body)?;
    let items = match list {
        Some(member) => value.get_mut(member).map(Value::take),
        None => Some(value),
    };
    let Some(Value::Array(items)) = items else {
        return Err(nonsense(action, "there is no list in it"));
    };
    let more = more_may_follow(answer, items.len());
    Ok((items, more))
}

/// Whether a page of so many items may have a successor.
pub(super) fn more_may_follow(answer: &Answer, items: usize) -> bool {
    let linked = answer
        .header("link")
        .is_some_and(|link| link.contains("rel=\"next\""));
    items > 0 && (linked || items >= PER_PAGE)
}

/// The error that a list without an end is.
fn endless(action: &str, pages: u32) -> ConnectorError {
    ConnectorError::Refused {
        action: action.to_owned(),
        reason: format!("the list has not ended after {pages} pages of {PER_PAGE}"),
    }
}
