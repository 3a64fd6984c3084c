//! The page, served on this machine until the provider has sent the person back, once.
//!
//! Looking at the page changes nothing. The way back is a GET because the provider sends the browser with a redirect; it acts
//! only when it carries the `state` that went out with the button, and only the first time.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture as _};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use askama::Template as _;
use async_trait::async_trait;
use axum::Router;
use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::manifest::{Plan, PlanError};
use super::pages::{OutcomePage, STYLE, StartPage, rows};
use super::reception::{Created, ReceptionError};
use crate::attest::keys::{Fill, FillError};
use crate::change::Sha256Digest;

/// How long the last answer may take once everything is done.
const FAREWELL: Duration = Duration::from_secs(5);
/// The path to which the provider sends the person back.
const BACK: &str = "/created";

/// Why no App came of it.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// What was wanted cannot be asked for.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The App was not received.
    #[error(transparent)]
    Reception(#[from] ReceptionError),
    /// No randomness.
    #[error(transparent)]
    Random(#[from] FillError),
    /// Listening or serving fails.
    #[error("serving the page: {cause}")]
    Serve {
        /// What the system said.
        cause: io::Error,
    },
    /// The page cannot be written.
    #[error("writing the page: {cause}; this is a fault in caretaker")]
    Page {
        /// What the template said.
        cause: askama::Error,
    },
    /// Other machines could reach the page.
    #[error(
        "serving the page: {0} can be reached from other machines; listen on 127.0.0.1 and bring the port to your machine, as with ssh -L"
    )]
    Reachable(SocketAddr),
    /// Nobody came back.
    #[error(
        "waiting for the App: nobody confirmed it within {seconds} s; start again, with --timeout-seconds for more time"
    )]
    Timeout {
        /// How long was waited, in seconds.
        seconds: u64,
    },
    /// Interrupted.
    #[error("waiting for the App: stopped before it was confirmed; nothing was kept")]
    Stopped,
}

impl From<io::Error> for FlowError {
    fn from(cause: io::Error) -> Self {
        Self::Serve { cause }
    }
}

impl From<askama::Error> for FlowError {
    fn from(cause: askama::Error) -> Self {
        Self::Page { cause }
    }
}

/// What happens with the provider's code.
#[async_trait]
pub trait Receive: Send + Sync {
    /// Exchanges the code for the App and keeps it.
    ///
    /// # Errors
    /// The provider or the disk fails.
    async fn receive(&self, code: &str) -> Result<Created, ReceptionError>;
}

/// A page that waits to be served.
pub struct Flow {
    listener: TcpListener,
    address: SocketAddr,
    desk: Desk,
}

type Outcome = Result<Created, ReceptionError>;

/// What the answers need.
struct Desk {
    /// The page's own part of its address: other users of this machine do not know it, and so do not know the state.
    door: String,
    page: String,
    policy: HeaderValue,
    state: Mutex<Option<Sha256Digest>>,
    done: Mutex<Option<oneshot::Sender<Outcome>>>,
}

/// What the handlers share.
struct Serving {
    desk: Desk,
    hosts: [String; 2],
    receive: Arc<dyn Receive>,
}

impl Flow {
    /// Writes the page. `key_file` is only shown.
    ///
    /// # Errors
    /// The listener can be reached from other machines, or the plan cannot be asked for.
    pub fn prepare(
        listener: TcpListener,
        plan: &Plan,
        key_file: &str,
        random: Fill<'_>,
    ) -> Result<Self, FlowError> {
        plan.check()?;
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            return Err(FlowError::Reachable(address));
        }
        let (door, state) = (secret(random)?, secret(random)?);
        let manifest = plan.manifest(&format!("http://{address}{BACK}"))?;
        let web = plan.web_url.url();
        let page = StartPage {
            host: web.host_str().unwrap_or_default(),
            organisation: plan.organisation.as_deref(),
            permissions: rows(plan),
            webhook: plan.webhook.as_deref(),
            action: &plan.action(&state),
            manifest: &manifest.to_string(),
            key_file,
        };
        // The form goes to the provider, which sends the browser back here: both are targets of the form.
        let policy = format!(
            "default-src 'none'; style-src 'self'; form-action 'self' {}; base-uri 'none'; frame-ancestors 'none'",
            web.origin().ascii_serialization()
        );
        let policy = HeaderValue::from_str(&policy).map_err(io::Error::other)?;
        let desk = Desk {
            page: page.render()?,
            door,
            policy,
            state: Mutex::new(Some(Sha256Digest::of(state.as_bytes()))),
            done: Mutex::default(),
        };
        Ok(Self {
            listener,
            address,
            desk,
        })
    }

    /// The address that a person opens. It is for them alone.
    pub fn url(&self) -> String {
        format!("http://{}/{}", self.address, self.desk.door)
    }

    /// Serves until the App is there, `patience` is over, or `stop` is ready.
    ///
    /// # Errors
    /// Anything but an App that was received.
    pub async fn run(
        self,
        receive: Arc<dyn Receive>,
        patience: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Created, FlowError> {
        let (done, outcome) = oneshot::channel();
        *lock(&self.desk.done) = Some(done);
        let port = self.address.port();
        let serving = Arc::new(Serving {
            desk: self.desk,
            hosts: [self.address.to_string(), format!("localhost:{port}")],
            receive,
        });
        let (finish, finished) = oneshot::channel();
        let served = axum::serve(self.listener, router(serving));
        let served = served.with_graceful_shutdown(async move { finished.await.unwrap_or(()) });
        let mut served = pin!(served.into_future());
        let result = tokio::select! {
            ended = &mut served => {
                ended?;
                return Err(FlowError::Stopped);
            }
            outcome = outcome => outcome.map_or(Err(FlowError::Stopped), |outcome| Ok(outcome?)),
            () = tokio::time::sleep(patience) => Err(FlowError::Timeout { seconds: patience.as_secs() }),
            () = stop => Err(FlowError::Stopped),
        };
        // The receiver is gone only when serving has ended by itself.
        finish.send(()).unwrap_or(());
        // The last answer is on its way; if it does not get through, the App is there all the same.
        drop(tokio::time::timeout(FAREWELL, served).await);
        result
    }
}

/// 256 bits in hexadecimal.
fn secret(random: Fill<'_>) -> Result<String, FillError> {
    let mut bytes = [0; 32];
    random(&mut bytes)?;
    Ok(hex::encode(bytes))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn router(serving: Arc<Serving>) -> Router {
    Router::new()
        .route("/{door}", get(start))
        .route(BACK, get(back))
        .route("/caretaker.css", get(style))
        .fallback(|| async { plain(StatusCode::NOT_FOUND, "There is nothing here.") })
        .layer(middleware::from_fn_with_state(
            Arc::clone(&serving),
            guarded,
        ))
        .with_state(serving)
}

/// Only this machine's own names for itself are answered, so that no page of another site reaches these; and what every answer
/// carries.
async fn guarded(State(serving): State<Arc<Serving>>, request: Request, next: Next) -> Response {
    // Break it: let every host pass; `app::creating::a_page_of_another_site_reaches_nothing` then fails.
    let mut response = if is_ours(request.headers(), &serving.hosts) {
        next.run(request).await
    } else {
        plain(StatusCode::MISDIRECTED_REQUEST, "This is another host.")
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, serving.desk.policy.clone());
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // The provider may want to know the origin of the form; the page's address is nobody's business.
        (header::REFERRER_POLICY, "strict-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

fn is_ours(headers: &HeaderMap, hosts: &[String; 2]) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    host.is_some_and(|host| hosts.iter().any(|ours| ours == host))
}

fn plain(status: StatusCode, text: &'static str) -> Response {
    (status, text).into_response()
}

/// Whether two texts are the same, in a time that says nothing about where they differ.
fn same(expected: &Sha256Digest, given: &str) -> bool {
    let given = Sha256Digest::of(given.as_bytes());
    let differences = expected
        .as_bytes()
        .iter()
        .zip(given.as_bytes())
        .fold(0, |sum, (one, other)| sum | (one ^ other));
    std::hint::black_box(differences) == 0
}

async fn start(
    State(serving): State<Arc<Serving>>,
    axum::extract::Path(door): axum::extract::Path<String>,
) -> Response {
    let expected = Sha256Digest::of(serving.desk.door.as_bytes());
    // Break it: show the page under every address; `app::creating::the_page_is_shown_under_its_own_address_only` then fails.
    if !same(&expected, &door) {
        return plain(StatusCode::NOT_FOUND, "There is nothing here.");
    }
    Html(serving.desk.page.clone()).into_response()
}

/// Kept by the browser, so that the last page has it when nothing is served any more.
async fn style() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/css; charset=utf-8"),
        (header::CACHE_CONTROL, "private, max-age=3600"),
    ];
    (headers, STYLE).into_response()
}

/// The provider sent the person back.
async fn back(
    State(serving): State<Arc<Serving>>,
    method: Method,
    RawQuery(query): RawQuery,
) -> Response {
    if method != Method::GET {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "Open this in a browser.");
    }
    let Some((code, state)) = code_and_state(&query.unwrap_or_default()) else {
        return refused(
            StatusCode::BAD_REQUEST,
            "This address does not come from the button.",
        );
    };
    {
        let mut expected = lock(&serving.desk.state);
        match expected.as_ref() {
            None => {
                return refused(
                    StatusCode::GONE,
                    "The App was received already; nothing more is done here.",
                );
            }
            // Break it: take every state; `app::creating::a_wrong_state_is_refused_and_the_right_one_counts_once` then fails.
            Some(expected) if !same(expected, &state) => {
                return refused(
                    StatusCode::FORBIDDEN,
                    "This address does not come from the button of this page.",
                );
            }
            Some(_) => *expected = None,
        }
    }
    // On a task of its own: a browser that goes away must not leave an App without its key.
    let receive = Arc::clone(&serving.receive);
    let outcome = tokio::spawn(async move { receive.receive(&code).await }).await;
    let done = lock(&serving.desk.done).take();
    let Ok(outcome) = outcome else {
        return refused(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Something broke here; look at the terminal.",
        );
    };
    let response = shown(&outcome);
    if let Some(done) = done {
        // Whoever waits is there until this is sent.
        drop(done.send(outcome));
    }
    response
}

/// The one code and the one state of a query.
fn code_and_state(query: &str) -> Option<(String, String)> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if found
            .insert(name.into_owned(), value.into_owned())
            .is_some()
        {
            return None;
        }
    }
    Some((found.remove("code")?, found.remove("state")?))
}

fn refused(status: StatusCode, text: &str) -> Response {
    let page = OutcomePage {
        title: "Nothing was done",
        text,
        done: false,
        install_url: None,
    };
    written(status, &page)
}

fn shown(outcome: &Outcome) -> Response {
    match outcome {
        Ok(created) => {
            let text = format!(
                "{} is App number {}. Its private key is kept; the lines for the configuration are in the terminal. One step is left:",
                created.name, created.id
            );
            let page = OutcomePage {
                title: "The App is there",
                text: &text,
                done: true,
                install_url: Some(&created.install_url),
            };
            written(StatusCode::OK, &page)
        }
        Err(error) => {
            let page = OutcomePage {
                title: "The App was not received",
                text: &error.to_string(),
                done: false,
                install_url: None,
            };
            written(StatusCode::BAD_GATEWAY, &page)
        }
    }
}

fn written(status: StatusCode, page: &OutcomePage<'_>) -> Response {
    match page.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(_) => plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "This page cannot be written; look at the terminal.",
        ),
    }
}
