//! Vectors of texts: kept while there is room, and asked for once however many want them at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;
use tokio::sync::OnceCell;

use crate::change::Sha256Digest;
use crate::embedder::Embedder;
use crate::intent::{Embedding, Outage, Reason, embedded_part};

/// A vector, or why there is none.
type Outcome = Result<Arc<Embedding>, Reason>;

/// One request that any number wait for.
type Flight = Arc<OnceCell<Outcome>>;

pub(super) struct Vectors {
    embedder: Arc<dyn Embedder>,
    state: Mutex<State>,
}

struct State {
    /// `None` keeps nothing.
    kept: Option<LruCache<Sha256Digest, Arc<Embedding>>>,
    under_way: HashMap<Sha256Digest, Flight>,
}

impl Vectors {
    /// Keeps the vectors of the `size` texts that were last asked for.
    pub(super) fn new(embedder: Arc<dyn Embedder>, size: usize) -> Self {
        Self {
            embedder,
            state: Mutex::new(State {
                kept: (size > 0).then(|| LruCache::new(size)),
                under_way: HashMap::new(),
            }),
        }
    }

    /// The vector of a text, whose SHA-256 is `digest`; it is kept. Why there is none is not.
    pub(super) async fn kept(&self, text: &str, digest: Sha256Digest) -> Outcome {
        if let Some(found) = self
            .state()
            .kept
            .as_mut()
            .and_then(|kept| kept.get(&digest))
        {
            return Ok(Arc::clone(found));
        }
        let vector = self.once(text, digest).await?;
        if let Some(kept) = &mut self.state().kept {
            kept.insert(digest, Arc::clone(&vector));
        }
        Ok(vector)
    }

    /// The vector of a text, which is not kept.
    pub(super) async fn once(&self, text: &str, digest: Sha256Digest) -> Outcome {
        // Break it: ask without looking who else asks (`alignment::caching::many_that_want_one_text_make_one_request`).
        let flight = Arc::clone(self.state().under_way.entry(digest).or_default());
        let waiting = Waiting {
            vectors: self,
            digest,
            flight: Some(flight),
        };
        match &waiting.flight {
            Some(flight) => flight.get_or_init(|| self.embed(text)).await.clone(),
            None => Err(Reason::Unavailable(Outage::Unreachable)),
        }
    }

    async fn embed(&self, text: &str) -> Outcome {
        let embedded = self.embedder.embed(&[embedded_part(text)]).await;
        let mut vectors = embedded.map_err(|error| {
            // What stands there are our own words.
            tracing::warn!("{error}");
            Reason::Unavailable(error.outage)
        })?;
        match (vectors.pop(), vectors.is_empty()) {
            (Some(vector), true) => Embedding::new(vector).map(Arc::new).map_err(Reason::Vector),
            _ => Err(Reason::Unavailable(Outage::Count)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who waits for a request. When it has ended, or the last of them has gone, it is no longer there to be joined: the next
/// who asks asks anew.
struct Waiting<'a> {
    vectors: &'a Vectors,
    digest: Sha256Digest,
    flight: Option<Flight>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.vectors.state();
        let Some(own) = self.flight.take() else {
            return;
        };
        let listed = state.under_way.get(&self.digest);
        let listed = listed.is_some_and(|listed| Arc::ptr_eq(listed, &own));
        // Both: the list's and our own.
        if listed && (own.initialized() || Arc::strong_count(&own) == 2) {
            state.under_way.remove(&self.digest);
        }
    }
}
