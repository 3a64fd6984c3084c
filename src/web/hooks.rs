//! `POST /webhooks/github`: the hosting service says that there is news. Nothing is parsed or written before the signature of
//! the whole body is known to be right, and all that a delivery can do is to make a project due.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::WebState;
use crate::hook::{
    Delivery, DeliveryError, DeliveryId, EventName, HeaderError, HookKey, Object, Signature,
    Version,
};
use crate::store::{Heard, HookDelivery, HookObject, HookVersion, StoreError};

/// The largest body, in bytes: the service sends no larger ones.
const LARGEST: usize = 25 << 20;
/// What all bodies that are being received may take together, in bytes.
const MEMORY: usize = 64 << 20;
/// The unit in which that is given out, and what every delivery takes at least, in bytes.
const BLOCK: usize = 16 << 10;
/// How long one delivery may take. The service waits ten seconds for an answer.
const PATIENCE: Duration = Duration::from_secs(9);

/// What receiving deliveries needs.
#[derive(Debug)]
pub struct Webhooks {
    key: HookKey,
    host: String,
    memory: Semaphore,
    patience: Duration,
}

impl Webhooks {
    /// Deliveries that are signed with this key, about repositories of this host (with its port when it is not the usual one).
    pub fn new(key: HookKey, host: String) -> Self {
        Self {
            key,
            host,
            memory: Semaphore::new(MEMORY / BLOCK),
            patience: PATIENCE,
        }
    }

    /// With other limits: how long one delivery may take, and how many bytes all bodies may take together.
    #[must_use]
    pub fn limited(self, patience: Duration, memory: usize) -> Self {
        Self {
            memory: Semaphore::new(memory / BLOCK),
            patience,
            ..self
        }
    }
}

/// Why a delivery is not taken.
#[derive(Debug)]
enum Declined {
    /// No, or no well-formed, or a wrong signature.
    Unsigned,
    /// A header that the service does not send so.
    Header(HeaderError),
    /// Not sent as JSON.
    Form,
    /// A longer body than the service sends.
    TooLarge,
    /// Other bodies fill what there is for them.
    Busy,
    /// The body ended early.
    CutOff,
    /// It took too long.
    Slow,
    /// Signed, and still not readable.
    Payload(DeliveryError),
    /// The database does not answer.
    Unavailable,
}

impl Declined {
    const fn status(&self) -> StatusCode {
        match self {
            Self::Unsigned => StatusCode::UNAUTHORIZED,
            Self::Header(_) | Self::CutOff | Self::Payload(_) => StatusCode::BAD_REQUEST,
            Self::Form => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy | Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn problem(&self) -> String {
        match self {
            Self::Unsigned => "X-Hub-Signature-256 is not the signature of this body.".to_owned(),
            Self::Header(error) => format!("{error}."),
            Self::Form => "The delivery is not sent as application/json.".to_owned(),
            Self::TooLarge => format!("The body is larger than {LARGEST} bytes."),
            Self::Busy => "Too much is being received at once.".to_owned(),
            Self::CutOff => "The body was cut off.".to_owned(),
            Self::Slow => "The delivery took too long and was given up.".to_owned(),
            Self::Payload(error) => format!("{error}."),
            Self::Unavailable => "The database does not answer.".to_owned(),
        }
    }

    const fn mend(&self) -> &'static str {
        match self {
            Self::Unsigned => {
                "Set the webhook's secret to the one that github.webhook_secret names; nothing was read of the body."
            }
            Self::Form => "Set the webhook's content type to application/json.",
            Self::Header(_) | Self::TooLarge | Self::CutOff | Self::Payload(_) => {
                "Have the hosting service send it, unchanged; nothing was done."
            }
            Self::Busy | Self::Slow | Self::Unavailable => {
                "Nothing has to be done: polling finds what this delivery told of. If it persists, run `caretaker doctor`."
            }
        }
    }
}

impl IntoResponse for Declined {
    fn into_response(self) -> Response {
        tracing::debug!(
            status = self.status().as_u16(),
            problem = self.problem(),
            "a webhook delivery was declined"
        );
        let body = serde_json::json!({ "error": self.problem(), "mend": self.mend() });
        let mut response = (self.status(), Json(body)).into_response();
        // Whatever is left of the body is not read: the connection is of no use after this.
        response.headers_mut().insert(
            header::CONNECTION,
            header::HeaderValue::from_static("close"),
        );
        response
    }
}

impl From<StoreError> for Declined {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a webhook delivery could not be noted");
        Self::Unavailable
    }
}

/// Takes a delivery. The answer says what became of it and never waits for a look.
pub(super) async fn receive(State(state): State<WebState>, request: Request) -> Response {
    let Some(webhooks) = state.webhooks.clone() else {
        return super::failure::Refusal::NoSuchPage.page();
    };
    match heard(&state, &webhooks, request).await {
        Ok(heard) => {
            let word = match heard {
                Heard::Hinted(_) => "hinted",
                Heard::Known => "known",
                Heard::Stale => "stale",
                Heard::Unwatched => "unwatched",
                Heard::Noted => "noted",
            };
            (
                StatusCode::ACCEPTED,
                Json(serde_json::json!({ "delivery": word })),
            )
                .into_response()
        }
        Err(declined) => declined.into_response(),
    }
}

async fn heard(
    state: &WebState,
    webhooks: &Arc<Webhooks>,
    request: Request,
) -> Result<Heard, Declined> {
    let deadline = Instant::now() + webhooks.patience;
    let (parts, body) = request.into_parts();
    let Labels {
        signature,
        id,
        event,
    } = Labels::read(&parts.headers)?;
    // Break it: wait without an end; `hooks::http::a_body_that_trickles_in_is_given_up` then fails.
    let received = timeout_at(deadline, webhooks.received(body, &signature));
    let held = received.await.unwrap_or(Err(Declined::Slow))?;
    let delivery = Delivery::read(&event, &held.bytes).map_err(Declined::Payload)?;
    drop(held);
    let body = signature.name();
    let delivery = HookDelivery {
        id: id.as_str(),
        body: &body,
        host: &webhooks.host,
        repositories: &delivery.repositories,
        object: delivery.object.as_ref().map(Object::heard),
    };
    let noted = timeout_at(deadline, async {
        let now = state.now().await?;
        state.store.hear(&state.organisation, &delivery, now).await
    });
    let heard = noted.await.map_err(|_| Declined::Slow)??;
    tracing::debug!(%id, %event, ?heard, "a webhook delivery was heard");
    Ok(heard)
}

impl Object {
    /// As the store is told of it.
    fn heard(&self) -> HookObject<'_> {
        HookObject {
            name: &self.name,
            version: match &self.version {
                Version::Ordered { digits, at } => HookVersion::Ordered { digits, at: *at },
                Version::Commit(commit) => HookVersion::Other(commit),
            },
        }
    }
}

/// What the headers say.
struct Labels {
    signature: Signature,
    id: DeliveryId,
    event: EventName,
}

impl Labels {
    fn read(headers: &HeaderMap) -> Result<Self, Declined> {
        let bytes = |name: &str| headers.get(name).map_or(&[][..], |value| value.as_bytes());
        let text = |name: &str| str::from_utf8(bytes(name)).unwrap_or_default();
        let signature = Signature::parse(bytes("x-hub-signature-256")).ok_or(Declined::Unsigned)?;
        let id = text("x-github-delivery").parse();
        let event = text("x-github-event").parse();
        let kind = text("content-type").split(';').next().unwrap_or_default();
        if !kind.trim().eq_ignore_ascii_case("application/json") {
            return Err(Declined::Form);
        }
        Ok(Self {
            signature,
            id: id.map_err(Declined::Header)?,
            event: event.map_err(Declined::Header)?,
        })
    }
}

impl Webhooks {
    /// Reads a body to its end and checks it on the way.
    async fn received(&self, mut body: Body, signature: &Signature) -> Result<Held<'_>, Declined> {
        // Break it: drop this condition; `hooks::http::a_body_that_is_announced_as_too_large_is_refused_unread` then fails.
        if body.size_hint().lower() > LARGEST as u64 {
            return Err(Declined::TooLarge);
        }
        let mut held = Held::new(&self.memory)?;
        let mut verifier = self.key.verifier();
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let frame = frame.map_err(|_| Declined::CutOff)?;
            // A trailer belongs to no body.
            if let Ok(piece) = frame.into_data() {
                held.take(&piece)?;
                verifier.update(&piece);
            }
        }
        // Break it: answer `Ok(held)` in both cases; `hooks::http::a_wrong_signature_changes_nothing` then fails.
        if verifier.matches(signature) {
            Ok(held)
        } else {
            Err(Declined::Unsigned)
        }
    }
}

/// A body, and its part of the memory that there is for all of them. It takes what has arrived, not what was announced; when
/// there is no more, it is refused instead of waiting, so that bodies that stand still hold up nobody.
struct Held<'a> {
    bytes: Vec<u8>,
    memory: &'a Semaphore,
    blocks: SemaphorePermit<'a>,
}

impl<'a> Held<'a> {
    fn new(memory: &'a Semaphore) -> Result<Self, Declined> {
        Ok(Self {
            bytes: Vec::with_capacity(BLOCK),
            memory,
            blocks: memory.try_acquire().map_err(|_| Declined::Busy)?,
        })
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), Declined> {
        let needed = self.bytes.len().saturating_add(piece.len());
        // Break it: drop this condition; `hooks::http::a_body_without_an_announced_length_is_cut_at_the_limit` then fails.
        if needed > LARGEST {
            return Err(Declined::TooLarge);
        }
        if needed > self.bytes.capacity() {
            let room = needed.next_power_of_two().min(LARGEST);
            let more = room.div_ceil(BLOCK) - self.blocks.num_permits();
            // Break it: go on without; `hooks::http::a_hundred_largest_bodies_fit_into_the_memory_for_them` then fails.
            let more = u32::try_from(more)
                .ok()
                .and_then(|more| self.memory.try_acquire_many(more).ok());
            self.blocks.merge(more.ok_or(Declined::Busy)?);
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }
}
