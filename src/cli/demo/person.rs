//! The owner in the demo: gets the message, opens the link, reads, presses a button.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use axum::extract::State;
use axum::{Json, Router, routing::post};
use serde_json::Value;
use url::Url;

use crate::approve::HumanDecision;

type Messages = Arc<Mutex<Vec<Value>>>;

/// A webhook receiver on loopback that keeps what arrives.
pub(super) struct Inbox {
    address: std::net::SocketAddr,
    messages: Messages,
}

impl Inbox {
    /// Opens it; it ends with the process.
    pub(super) async fn open() -> anyhow::Result<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
            .await
            .context("listening on loopback for the demo's messages")?;
        let address = listener.local_addr()?;
        let messages = Messages::default();
        let router = Router::new()
            .route("/hook", post(take))
            .with_state(Arc::clone(&messages));
        tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the demo's inbox ended");
            }
        });
        Ok(Self { address, messages })
    }

    /// Where messages are posted to.
    pub(super) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// The newest approval link, if one came.
    pub(super) fn approval_link(&self) -> Option<String> {
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let links = messages.iter().rev();
        links
            .filter_map(|message| message.get("approval_url")?.as_str())
            .map(str::to_owned)
            .next()
    }
}

async fn take(State(messages): State<Messages>, Json(message): Json<Value>) {
    let mut kept = messages.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push(message);
}

/// Opens the link, as a browser would, and presses the button.
pub(super) async fn answer(link: &str, decision: HumanDecision) -> anyhow::Result<()> {
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .context("making the demo's browser")?;
    let address: Url = link.parse().context("reading the approval link")?;
    let page = client.get(address.clone()).send().await?;
    anyhow::ensure!(
        page.status().is_success(),
        "opening the approval link: the page answered {}",
        page.status()
    );
    let mut fields = hidden_fields(&page.text().await?);
    fields.push(("decision".to_owned(), decision.as_str().to_owned()));
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    let answered = client
        .post(address)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body)
        .send()
        .await?;
    anyhow::ensure!(
        answered.status().as_u16() == 303,
        "answering on the approval page: it answered {}",
        answered.status()
    );
    Ok(())
}

/// The hidden fields of the one form.
fn hidden_fields(page: &str) -> Vec<(String, String)> {
    let attribute = |tag: &str, name: &str| {
        let start = tag.find(&format!("{name}=\""))? + name.len() + 2;
        let rest = tag.get(start..)?;
        rest.get(..rest.find('"')?).map(str::to_owned)
    };
    page.split("<input")
        .skip(1)
        .filter_map(|rest| rest.split('>').next())
        .filter(|tag| tag.contains("type=\"hidden\""))
        .filter_map(|tag| Some((attribute(tag, "name")?, attribute(tag, "value")?)))
        .collect()
}
