//! all-MiniLM-L6-v2 in this process: no provider, no network, the same score every time.
//!
//! The model's files are in a folder that is configured, never in the repository, and have to be exactly those that are known
//! ([`weights`]). A text is read up to 256 pieces, about 200 words; what follows is not looked at.

mod network;
pub mod weights;
pub mod wordpiece;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use self::network::{Network, WIDTH};
use self::weights::{CONFIGURATION, VOCABULARY, WEIGHTS, WeightsError};
use self::wordpiece::WordPiece;
use super::{EMBEDDED_ID, EmbedError, Embedder, MOST_TEXTS};
use crate::intent::{EmbedderId, Outage};

/// Texts that are worked on at once: each keeps a processor busy.
const AT_ONCE: usize = 2;

struct Model {
    pieces: WordPiece,
    network: Network,
}

/// The model, in memory: about 90 MB.
pub struct EmbeddedEmbedder {
    id: EmbedderId,
    model: Arc<Model>,
    turns: Semaphore,
}

impl EmbeddedEmbedder {
    /// Loads the model from a folder. It reads 91 MB, so this is for the start of a process, not for inside of it.
    ///
    /// # Errors
    /// A file is missing, or another one than the one that is known.
    pub fn load(folder: &Path) -> Result<Self, WeightsError> {
        let form = |file: weights::WeightFile, reason: String| WeightsError::Form {
            path: file.path(folder),
            reason,
        };
        CONFIGURATION.read(folder)?;
        let vocabulary = VOCABULARY.read(folder)?;
        let vocabulary = String::from_utf8(vocabulary)
            .map_err(|_| form(VOCABULARY, "it is not text".to_owned()))?;
        let pieces =
            WordPiece::new(&vocabulary).map_err(|error| form(VOCABULARY, error.to_string()))?;
        let network =
            Network::read(&WEIGHTS.read(folder)?).map_err(|reason| form(WEIGHTS, reason))?;
        let id = EMBEDDED_ID.parse();
        let id = id.map_err(|error| form(WEIGHTS, format!("{error}")))?;
        Ok(Self {
            id,
            model: Arc::new(Model { pieces, network }),
            turns: Semaphore::new(AT_ONCE),
        })
    }

    fn failed(&self, detail: &str) -> EmbedError {
        EmbedError {
            embedder: self.id.clone(),
            outage: Outage::Weights,
            detail: detail.to_owned(),
        }
    }
}

impl Model {
    /// `None` when the network does not know a piece of the text.
    fn embed(&self, text: &str) -> Option<Vec<f32>> {
        self.network.embed(&self.pieces.pieces(text))
    }
}

#[async_trait]
impl Embedder for EmbeddedEmbedder {
    fn id(&self) -> &EmbedderId {
        &self.id
    }

    fn dimension(&self) -> Option<usize> {
        Some(WIDTH)
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.len() > MOST_TEXTS {
            return Err(self.failed(&format!("more than {MOST_TEXTS} texts at once")));
        }
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let _turn = self.turns.acquire().await;
            let (model, text) = (Arc::clone(&self.model), (*text).to_owned());
            let computed = tokio::task::spawn_blocking(move || model.embed(&text)).await;
            let vector = computed
                .ok()
                .flatten()
                .ok_or_else(|| self.failed("the model did not come to an end with this text"))?;
            vectors.push(vector);
        }
        Ok(vectors)
    }
}

impl std::fmt::Debug for EmbeddedEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EmbeddedEmbedder({})", self.id)
    }
}
