//! The owner: a webhook receiver, and a browser.

use axum::extract::State;
use axum::{Json, Router, routing::post};
use reqwest::StatusCode;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::process::{Process, bounded};

/// What an incident ends with; waiting for anything else is over then.
const ENDS: [&str; 4] = [
    "incident-resolved",
    "incident-escalated",
    "incident-blocked",
    "incident-closed",
];

/// A webhook receiver; messages come in order.
pub(crate) struct Inbox {
    pub(crate) url: String,
    messages: UnboundedReceiver<Value>,
}

impl Inbox {
    pub(crate) async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, messages) = unbounded_channel();
        let router = Router::new().route("/hook", post(take)).with_state(sender);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, messages }
    }

    /// The next message of this event; `serving` is whose log says why it does not come.
    pub(crate) async fn wait_for(&mut self, event: &str, serving: &Process) -> Value {
        let coming = async {
            loop {
                let message = self.messages.recv().await.unwrap();
                let found = message["event"].as_str().unwrap().to_owned();
                if found == event {
                    return message;
                }
                let over = ENDS.contains(&found.as_str());
                assert!(!over, "{message}, not {event}: {}", serving.log());
            }
        };
        let waited = tokio::time::timeout(super::process::PATIENCE, coming).await;
        waited.unwrap_or_else(|_| panic!("no {event}: {}", serving.log()))
    }

    /// Messages that came and were not waited for.
    pub(crate) fn left(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.messages.try_recv().ok()).collect()
    }
}

async fn take(State(sender): State<UnboundedSender<Value>>, Json(message): Json<Value>) {
    // The test may be over.
    drop(sender.send(message));
}

/// A browser that follows nothing.
pub(crate) fn browser() -> reqwest::Client {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    reqwest::Client::builder()
        .user_agent("browser")
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap()
}

/// The status and the text at an address.
pub(crate) async fn look(browser: &reqwest::Client, address: &str) -> (StatusCode, String) {
    let page = bounded(address, browser.get(address).send()).await.unwrap();
    let status = page.status();
    (status, bounded(address, page.text()).await.unwrap())
}

/// The hidden fields of the one form on a page.
pub(crate) fn hidden_fields(page: &str) -> Vec<(String, String)> {
    let field = regex::Regex::new(r#"<input type="hidden" name="([^"]+)" value="([^"]*)">"#);
    let fields = field.unwrap();
    let found = fields.captures_iter(page);
    found
        .map(|field| (field[1].to_owned(), field[2].to_owned()))
        .collect()
}

/// Presses a button of the form.
pub(crate) async fn press(
    browser: &reqwest::Client,
    link: &str,
    mut fields: Vec<(String, String)>,
    decision: &str,
) -> StatusCode {
    fields.push(("decision".to_owned(), decision.to_owned()));
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    let request = browser
        .post(link)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body);
    bounded(link, request.send()).await.unwrap().status()
}
