//! Calls with a credential: within its budget, with the token that the call needs, before a deadline.
//!
//! A read that came to nothing is repeated at most twice. A change never is: nobody knows what became of it. The one exception
//! is 401, with which the provider says that it did not look at the request: then once more with another token, where there is
//! one. A merge is not even then sent again, since the comparison before it belongs to it.

use std::any::TypeId;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, StatusCode};
use tokio::sync::SemaphorePermit;

use super::answer::heard;
use super::budget::{Cost, Standing, Wait};
use super::client::{Allowance, Booking, GithubClient};
use super::credential::{IssuedToken, TokenError, TokenSource, Use};
use super::etags::{Kept, Key};
use super::transport::{API_VERSION, Answer, Broken, MEDIA_TYPE, Outgoing, begun, complete};
use crate::connector::{ConnectorError, Usage};

/// How long ending a token may hold up whoever waits for the answer of its task.
const RELEASE: Duration = Duration::from_secs(5);
/// How often a read that came to nothing is sent again.
const REPEATS: u32 = 2;
/// The longest pause before it is, in milliseconds; a quarter of it before the first time.
const LONGEST_PAUSE: u64 = 2_000;

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// It was sent, and the answer did not come whole.
    Broken(Broken),
    /// The provider's limits: it was not sent, or was answered with one. Either way nothing was done.
    Limited(Wait),
    /// There is no token: it was not sent.
    NoToken(ConnectorError),
}

impl From<Broken> for Unanswered {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl From<TokenError> for Unanswered {
    fn from(error: TokenError) -> Self {
        Self::NoToken(error.into())
    }
}

impl std::fmt::Display for Unanswered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Broken(broken) => broken.fmt(f),
            Self::Limited(wait) => write!(f, "not before {}: {}", wait.until, wait.why),
            Self::NoToken(error) => error.fmt(f),
        }
    }
}

/// An answer to a read, with what was known before.
pub(super) struct Read {
    pub(super) answer: Answer,
    /// Under what the answer may be kept; none for a read that must be fresh.
    pub(super) key: Option<Key>,
    /// What the provider says is still so, when it says 304.
    pub(super) known: Option<Kept>,
}

/// What is sent, apart from the token.
#[derive(Clone, Copy)]
struct Request<'a> {
    task: Use,
    method: &'a Method,
    path: &'a str,
    body: Option<&'a str>,
}

/// A request whose answer has begun.
struct Begun<'a> {
    response: reqwest::Response,
    booking: Booking<'a>,
    _place: Option<SemaphorePermit<'a>>,
}

/// One repository's way to the provider.
pub(super) struct Caller {
    client: GithubClient,
    http: reqwest::Client,
    base: String,
    credential: Arc<dyn TokenSource>,
    allowance: Arc<Allowance>,
    deadline: Duration,
    requests: AtomicU64,
    watching: AtomicU64,
    unchanged: AtomicU64,
    repeated: AtomicU64,
}

impl Caller {
    pub(super) fn new(
        client: &GithubClient,
        http: reqwest::Client,
        base: &str,
        credential: Arc<dyn TokenSource>,
        deadline: Duration,
    ) -> Self {
        Self {
            client: client.clone(),
            http,
            base: base.to_owned(),
            allowance: client.allowance(base, credential.identity()),
            credential,
            deadline,
            requests: AtomicU64::new(0),
            watching: AtomicU64::new(0),
            unchanged: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
        }
    }

    pub(super) fn client(&self) -> &GithubClient {
        &self.client
    }

    pub(super) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    pub(super) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The credential.
    pub(super) fn credential(&self) -> &dyn TokenSource {
        &*self.credential
    }

    /// A token that is handed on, to git or to be asked about.
    pub(super) async fn token(
        &self,
        task: Use,
        at_least: Duration,
    ) -> Result<IssuedToken, TokenError> {
        self.credential.token(task, at_least).await
    }

    /// What was asked so far, and what is left.
    pub(super) fn usage(&self) -> Usage {
        let Standing {
            limit,
            remaining,
            resets_at,
            paused,
        } = self.allowance.standing(self.client.now());
        let (paused_until, paused_for) = paused.map(|Wait { until, why }| (until, why)).unzip();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Usage {
            requests: count(&self.requests),
            watching: count(&self.watching),
            unchanged: count(&self.unchanged),
            repeated: count(&self.repeated),
            limit,
            remaining,
            resets_at,
            paused_until,
            paused_for,
            credential: Some(self.credential.identity().to_string()),
        }
    }

    /// Reads. With a `kind`, an answer of that kind that was kept is asked about instead of asked for. `path` starts with a
    /// slash and is encoded.
    pub(super) async fn read(
        &self,
        task: Use,
        path: &str,
        kind: Option<TypeId>,
    ) -> Result<Read, Unanswered> {
        let token = self.credential.token(Use::Read, self.deadline).await?;
        self.within(self.read_with(task, path, kind, token)).await
    }

    async fn read_with(
        &self,
        task: Use,
        path: &str,
        kind: Option<TypeId>,
        mut token: IssuedToken,
    ) -> Result<Read, Unanswered> {
        let request = Request {
            task,
            method: &Method::GET,
            path,
            body: None,
        };
        let mut renewed = false;
        let mut conditional = true;
        loop {
            let key = kind.map(|kind| self.key(path, &token, kind));
            let known = key.as_ref().filter(|_| conditional);
            let known = known.and_then(|key| self.client.etags().get(key));
            let answer = self.until_answered(request, &token, known.as_ref()).await?;
            match answer.status {
                StatusCode::UNAUTHORIZED if !renewed && self.credential.refused(&token).await => {
                    renewed = true;
                    token = self.credential.token(Use::Read, self.deadline).await?;
                }
                // Not modified since nothing: once more, without any condition.
                StatusCode::NOT_MODIFIED if known.is_none() && conditional => conditional = false,
                // Break it: leave this out; a tag that the server does not take back then refuses every later look
                // (`connector::unchanged::a_tag_that_the_server_does_not_take_back_is_left_out`).
                status if known.is_some() && may_mean_the_condition(status) => conditional = false,
                _ => return Ok(Read { answer, key, known }),
            }
        }
    }

    fn key(&self, path: &str, token: &IssuedToken, kind: TypeId) -> Key {
        Key {
            address: format!("{}{path}", self.base),
            accept: MEDIA_TYPE,
            version: API_VERSION,
            token: token.fingerprint.clone(),
            kind,
        }
    }

    /// Sends a read until it comes to something, at most three times. What came of the last one is the answer.
    async fn until_answered(
        &self,
        request: Request<'_>,
        token: &IssuedToken,
        known: Option<&Kept>,
    ) -> Result<Answer, Unanswered> {
        let etag = known.map(|known| known.etag.as_str());
        let mut last = self.once(request, token, etag).await;
        for repeat in 0..REPEATS {
            if !is_worth_repeating(&last) {
                break;
            }
            tokio::time::sleep(pause(self.client.random(), repeat)).await;
            match self.once(request, token, etag).await {
                // The limits do not leave room for it: what came before counts.
                Err(Unanswered::Limited(_)) => break,
                other => last = other,
            }
            self.repeated.fetch_add(1, Ordering::Relaxed);
        }
        last
    }

    /// Asks for a change. See the module for when it is sent once more.
    pub(super) async fn change(
        &self,
        task: Use,
        method: &Method,
        path: &str,
        body: Option<&str>,
    ) -> Result<Answer, Unanswered> {
        let token = self.credential.token(task, self.deadline).await?;
        let request = Request {
            task,
            method,
            path,
            body,
        };
        let answered = self.within(async {
            let answer = self.once(request, &token, None).await?;
            if answer.status != StatusCode::UNAUTHORIZED {
                return Ok(answer);
            }
            let another = self.credential.refused(&token).await;
            // Break it: drop the second condition;
            // `connector::github::merge::tests::a_merge_is_not_sent_again_even_with_another_token` then fails.
            if !another || task == Use::Execute {
                return Ok(answer);
            }
            let token = self.credential.token(task, self.deadline).await?;
            self.once(request, &token, None).await
        });
        let answered = answered.await;
        if task == Use::Execute {
            // Break it: leave this out; `worker::acting_as_app::a_fix_is_merged_by_the_app_and_the_token_that_merged_it_ends` then fails.
            self.release(&token).await;
        }
        answered
    }

    /// Ends a token whose task is done, whatever came of it. What keeps it from ending is no fault of the task.
    async fn release(&self, token: &IssuedToken) {
        let released = tokio::time::timeout(RELEASE, self.credential.release(token)).await;
        let reason = match released {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", RELEASE.as_secs()),
        };
        tracing::warn!(
            fingerprint = token.fingerprint,
            %reason,
            "a token whose task is done could not be ended; it ends by itself within the hour"
        );
    }

    /// Asks for something that may be large: the head of the answer, with the rest still to come, or a whole answer when it is
    /// not a success.
    pub(super) async fn open(&self, task: Use, path: &str) -> Result<Opened, Unanswered> {
        let token = self.credential.token(Use::Read, self.deadline).await?;
        let request = Request {
            task,
            method: &Method::GET,
            path,
            body: None,
        };
        self.within(async {
            match self.open_with(request, &token).await? {
                Opened::Other(answer) if answer.status == StatusCode::UNAUTHORIZED => {
                    if !self.credential.refused(&token).await {
                        return Ok(Opened::Other(answer));
                    }
                    let token = self.credential.token(Use::Read, self.deadline).await?;
                    self.open_with(request, &token).await
                }
                opened => Ok(opened),
            }
        })
        .await
    }

    async fn open_with(
        &self,
        request: Request<'_>,
        token: &IssuedToken,
    ) -> Result<Opened, Unanswered> {
        let begun = self.begin(request, token, None).await?;
        if !begun.response.status().is_success() {
            return self.finish(begun).await.map(Opened::Other);
        }
        let head = Answer {
            status: begun.response.status(),
            headers: begun.response.headers().clone(),
            body: Vec::new(),
        };
        self.settle(begun.booking, head)?;
        Ok(Opened::Body(begun.response))
    }

    async fn once(
        &self,
        request: Request<'_>,
        token: &IssuedToken,
        etag: Option<&str>,
    ) -> Result<Answer, Unanswered> {
        let begun = self.begin(request, token, etag).await?;
        self.finish(begun).await
    }

    /// Sends one request, if the budget has room for it.
    async fn begin<'a>(
        &'a self,
        request: Request<'_>,
        token: &IssuedToken,
        etag: Option<&str>,
    ) -> Result<Begun<'a>, Unanswered> {
        let place = self.allowance.place().await;
        // Break it: send without asking the budget; `connector::limits::a_paused_credential_sends_nothing` then fails.
        let booking = self
            .allowance
            .admit(self.client.now(), request.task, Cost::of(request.method))
            .map_err(Unanswered::Limited)?;
        self.requests.fetch_add(1, Ordering::Relaxed);
        // Break it: count every request; `connector::limits::what_is_asked_for_a_merge_is_not_counted_as_watching` then fails.
        if request.task == Use::Read {
            self.watching.fetch_add(1, Ordering::Relaxed);
        }
        let outgoing = Outgoing {
            method: request.method,
            address: &format!("{}{}", self.base, request.path),
            token: &token.secret,
            etag,
            body: request.body,
        };
        Ok(Begun {
            response: begun(&self.http, outgoing).await?,
            booking,
            _place: place,
        })
    }

    async fn finish(&self, begun: Begun<'_>) -> Result<Answer, Unanswered> {
        let answer = complete(begun.response).await?;
        if answer.status == StatusCode::NOT_MODIFIED {
            self.unchanged.fetch_add(1, Ordering::Relaxed);
        }
        self.settle(begun.booking, answer)
    }

    /// Tells the budget what became of a request.
    fn settle(&self, booking: Booking<'_>, answer: Answer) -> Result<Answer, Unanswered> {
        let now = self.client.now();
        match booking.answered(now, &heard(&answer, now)) {
            Some(wait) => Err(Unanswered::Limited(wait)),
            None => Ok(answer),
        }
    }

    /// Gives up at the deadline.
    pub(super) async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, Unanswered>>,
    ) -> Result<T, Unanswered> {
        let ended = tokio::time::timeout(self.deadline, call).await;
        ended.unwrap_or_else(|_| {
            let millis = self.deadline.as_millis();
            let reason = format!("no complete answer within {millis} ms");
            Err(Unanswered::Broken(Broken::Off(reason)))
        })
    }
}

/// Whether a refusal may be about the condition, and not about what was asked for: a tag may be too long for the server that
/// gave it.
fn may_mean_the_condition(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::PRECONDITION_FAILED
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::URI_TOO_LONG
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    )
}

/// What [`Caller::open`] was answered with.
pub(super) enum Opened {
    /// Success; the body is still to come.
    Body(reqwest::Response),
    /// Anything else.
    Other(Answer),
}

/// Whether a read may come to something when it is sent again. A limit, a refusal and an answer that makes no sense would be
/// the same again; a provider that says when to come back is not asked before.
fn is_worth_repeating(sent: &Result<Answer, Unanswered>) -> bool {
    match sent {
        Ok(answer) => {
            answer.status.is_server_error()
                && answer.status != StatusCode::NOT_IMPLEMENTED
                && answer.header("retry-after").is_none()
        }
        Err(Unanswered::Broken(Broken::Off(_))) => true,
        Err(_) => false,
    }
}

/// Anything up to the longest pause, so that those who failed together do not come back together.
fn pause(random: u64, repeat: u32) -> Duration {
    let longest = (LONGEST_PAUSE / 4).saturating_mul(4_u64.saturating_pow(repeat));
    Duration::from_millis(random % (longest.min(LONGEST_PAUSE) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_spread_and_short() {
        let millis = |random, repeat| pause(random, repeat).as_millis();
        assert_eq!([millis(0, 0), millis(500, 0), millis(501, 0)], [0, 500, 0]);
        assert_eq!([millis(2_000, 1), millis(2_001, 1)], [2_000, 0]);
        for repeat in 0..40 {
            assert!(millis(u64::MAX, repeat) <= 2_000);
        }
    }
}
