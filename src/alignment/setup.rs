//! The engine as it is configured.

use std::sync::Arc;

use secrecy::SecretString;

use super::intents::{FolderIntents, IntentError};
use super::{Alignment, Intents, Parts, Scoring};
use crate::clock::{Clock as _, SystemClock};
use crate::config::{Configuration, EmbedderChoice, EmbedderPlace, Environment};
use crate::embedder::embedded::EmbeddedEmbedder;
use crate::embedder::embedded::weights::WeightsError;
use crate::embedder::http::{HttpEmbedder, HttpEmbedderError, HttpEmbedderSettings, Patience};
use crate::embedder::{Embedder, Provider};
use crate::events::EventSink;
use crate::https;

/// The variable in which programs that speak to `OpenAI` look for the organisation that pays.
const ORGANISATION: &str = "OPENAI_ORG_ID";

/// Why there is no engine although one is configured; nothing starts without it.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// There is no key.
    #[error(
        "setting up the embedder {embedder}: environment variable {variable} is not set or empty; set it to the provider's key, or name another under security.intent_alignment.api_key_env"
    )]
    Key {
        /// Which embedder.
        embedder: String,
        /// The variable.
        variable: String,
    },
    /// The embedder cannot be asked.
    #[error(transparent)]
    Http(#[from] HttpEmbedderError),
    /// The weights cannot be used.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// Intents cannot be kept.
    #[error(transparent)]
    Intents(#[from] IntentError),
}

/// The embedder that is configured. Nobody is asked yet; weights are read, all 91 MB.
///
/// # Errors
/// See [`SetupError`].
pub fn embedder(
    choice: &EmbedderChoice,
    environment: &Environment,
) -> Result<Arc<dyn Embedder>, SetupError> {
    let (base, variable) = match &choice.place {
        EmbedderPlace::Folder(folder) => return Ok(Arc::new(EmbeddedEmbedder::load(folder)?)),
        EmbedderPlace::Http { base, key_variable } => (base, key_variable.as_deref()),
    };
    let key = match (variable, variable.and_then(|name| environment.value(name))) {
        (_, Some(key)) => Some(SecretString::from(key)),
        // Stand-ins and gateways on this machine want no key, unless it is said that they do.
        (Some(variable), None)
            if !https::is_loopback(base.url())
                || Some(variable) != choice.provider.default_key_variable() =>
        {
            return Err(SetupError::Key {
                embedder: choice.id.to_string(),
                variable: variable.to_owned(),
            });
        }
        // Ollama wants any.
        (None, None) if choice.provider == Provider::Ollama => Some(SecretString::from("ollama")),
        _ => None,
    };
    let organisation = environment
        .value(ORGANISATION)
        .filter(|_| choice.provider == Provider::Openai);
    let settings = HttpEmbedderSettings {
        id: choice.id.clone(),
        model: choice.model.clone(),
        base: base.url().clone(),
        key,
        organisation: organisation.map(str::to_owned),
        patience: Patience::default(),
    };
    let random = || getrandom::u64().unwrap_or(u64::MAX);
    let embedder = HttpEmbedder::new(settings, Arc::new(SystemClock), random)?;
    Ok(Arc::new(embedder))
}

impl Alignment {
    /// The engine that is configured; `None` when alignment is off and nothing is under `deny_prompts`: then there is none, no
    /// embedder, and no folder for intents.
    ///
    /// # Errors
    /// See [`SetupError`].
    pub fn configured(
        configuration: &Configuration,
        environment: &Environment,
        sink: Arc<dyn EventSink>,
    ) -> Result<Option<Self>, SetupError> {
        let alignment = configuration.intent_alignment.as_ref();
        // Break it: make one in any case (`alignment::off::nothing_is_made_while_it_is_off`).
        if alignment.is_none() && configuration.deny_prompts.is_empty() {
            return Ok(None);
        }
        let scoring = match alignment {
            Some(alignment) => Some(Scoring {
                embedder: embedder(&alignment.embedder, environment)?,
                thresholds: alignment.thresholds,
                cache_size: alignment.cache_size,
                exempt: alignment.exempt.clone(),
                drift: alignment.drift,
            }),
            None => None,
        };
        let clock = SystemClock;
        let folder = configuration.home.join("intents");
        let intents = FolderIntents::open(&folder, clock.now())?;
        let intents: Arc<dyn Intents> = Arc::new(intents);
        Ok(Some(Self::new(Parts {
            scoring,
            deny_prompts: configuration.deny_prompts.clone(),
            intents: Some(intents),
            sink,
            clock: Arc::new(clock),
        })))
    }
}
