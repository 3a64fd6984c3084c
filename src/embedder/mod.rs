//! The port to embedders: texts in, one vector a text out.
//!
//! Adapters: [`http`] for providers and anything that speaks their form, [`embedded`] for a model that runs in this process. An embedder
//! is part of what one trusts: it decides which score an action gets.

pub mod embedded;
pub mod http;
mod provider;

use async_trait::async_trait;

pub use provider::{EMBEDDED_ID, Provider};

use crate::intent::{EmbedderId, Outage};

/// Texts of one call at most.
pub const MOST_TEXTS: usize = 64;
/// Numbers of one vector at most; models have some thousand at most.
pub const MOST_DIMENSIONS: usize = 16_384;

/// Why there are no vectors: a class, which may stand in an audit stream, and what happened in our own words. What a provider
/// answered is not repeated: it may repeat the text that was sent, and it is a stranger's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("asking the embedder {embedder}: {detail}")]
pub struct EmbedError {
    /// Which embedder.
    pub embedder: EmbedderId,
    /// The class.
    pub outage: Outage,
    /// What happened and the mend.
    pub detail: String,
}

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Its name, under which thresholds stand.
    fn id(&self) -> &EmbedderId;

    /// How many numbers its vectors have, once that is known: then always the same.
    fn dimension(&self) -> Option<usize>;

    /// One vector a text, in the order of the texts, all of one dimension and finite; or an error, never a part. At most
    /// [`MOST_TEXTS`] texts.
    ///
    /// # Errors
    /// See [`Outage`]; repeating, where it may help, has been done.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
}
