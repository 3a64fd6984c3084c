//! `security.intent_alignment`, `security.intent_drift` and `security.deny_prompts`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize, de};

use super::address::ServiceUrl;
use crate::embedder::{EMBEDDED_ID, Provider};
use crate::intent::{DriftFault, DriftRule, EmbedderId, ThresholdTable, Thresholds};

/// Embeddings of actions that are kept, unless another number is configured.
const CACHE_SIZE: u32 = 1024;
/// Most of them that can be asked for: 1,536 numbers each, they take 400 MB.
const LARGEST_CACHE: u32 = 65_536;
/// Tools under `exempt` at most.
const MOST_EXEMPT: usize = 200;
/// Patterns at most.
const MOST_PATTERNS: usize = 200;
/// Longest pattern, in bytes.
const PATTERN_BYTES: usize = 500;
/// Largest compiled pattern, in bytes.
const PATTERN_MEMORY: usize = 256 * 1024;

/// Where a problem is, and what it is.
type Refusal = (&'static str, String);

const ALIGNMENT: &str = "security.intent_alignment";
const DRIFT: &str = "security.intent_drift";
const PROMPTS: &str = "security.deny_prompts";

/// A cosine as it is written. What is not finite is refused where it stands, since it would not survive being overridden.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct Floor(f64);

impl<'de> Deserialize<'de> for Floor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        // Break it: take it as it is; a threshold of NaN, which nothing is below, then starts
        // (`config::alignment::nan_is_refused_where_it_stands`).
        if number.is_finite() {
            Ok(Self(number))
        } else {
            Err(de::Error::custom(
                "this is no threshold; write a number from -1 to 1",
            ))
        }
    }
}

/// `security.intent_alignment` as it is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AlignmentSection {
    enabled: bool,
    provider: Option<String>,
    model: Option<String>,
    base_url: Option<ServiceUrl>,
    weights_dir: Option<PathBuf>,
    api_key_env: Option<String>,
    threshold: Option<Floor>,
    hard_threshold: Option<Floor>,
    thresholds: BTreeMap<EmbedderId, FloorsSection>,
    cache_size: Option<u32>,
    exempt: Vec<String>,
}

/// An entry of `security.intent_alignment.thresholds`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FloorsSection {
    threshold: Floor,
    hard_threshold: Floor,
}

/// `security.intent_drift` as it is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DriftSection {
    enabled: bool,
    window: Option<i64>,
    drift_threshold: Option<Floor>,
    monotone_n: Option<i64>,
}

/// How actions are compared with what was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct IntentAlignment {
    /// What embeds.
    pub embedder: EmbedderChoice,
    /// Its thresholds.
    pub thresholds: Thresholds,
    /// Embeddings of actions that are kept; 0 is none.
    pub cache_size: usize,
    /// Tools that are not scored.
    pub exempt: BTreeSet<String>,
    /// How a trend is told, if it is.
    pub drift: Option<DriftRule>,
}

/// What embeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedderChoice {
    /// Its id.
    pub id: EmbedderId,
    /// Who it is.
    pub provider: Provider,
    /// The model.
    pub model: String,
    /// How it is reached.
    pub place: EmbedderPlace,
}

/// How an embedder is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedderPlace {
    /// By HTTP.
    Http {
        /// The base of its addresses.
        base: ServiceUrl,
        /// The variable that holds its key.
        key_variable: Option<String>,
    },
    /// In this process, from the files in a folder.
    Folder(PathBuf),
}

/// Regular expressions that no intent and no action may match, whatever their case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DenyPrompts(Vec<DenyPrompt>);

/// One of them.
#[derive(Debug, Clone)]
struct DenyPrompt(Regex);

impl DenyPrompts {
    /// The number, from 1, of the first pattern that matches somewhere in a text.
    pub fn matching(&self, text: &str) -> Option<usize> {
        let place = self.0.iter().position(|pattern| pattern.0.is_match(text));
        place.map(|place| place + 1)
    }

    /// Whether nothing is denied.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        if self.0.len() > MOST_PATTERNS {
            return Err((PROMPTS, format!("more than {MOST_PATTERNS} patterns")));
        }
        Ok(())
    }
}

impl PartialEq for DenyPrompt {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl FromStr for DenyPrompt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > PATTERN_BYTES {
            return Err(format!(
                "a pattern has 1 to {PATTERN_BYTES} bytes; an empty one would match everything"
            ));
        }
        // Break it: leave out what does not compile; a protection that is asked for is then not there
        // (`config::alignment::a_pattern_that_is_none_is_refused`).
        RegexBuilder::new(text)
            .case_insensitive(true)
            .size_limit(PATTERN_MEMORY)
            .dfa_size_limit(PATTERN_MEMORY)
            .build()
            .map(Self)
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => {
                    "the regular expression repeats too much; write it shorter".to_owned()
                }
                _ => "this is no regular expression; quote what is meant literally with \\"
                    .to_owned(),
            })
    }
}

impl Serialize for DenyPrompt {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for DenyPrompt {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl fmt::Display for EmbedderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

/// Nothing when it is off; then nothing else of it is looked at.
pub(super) fn resolve(
    section: AlignmentSection,
    drift: &DriftSection,
    folder: &Path,
) -> Result<Option<IntentAlignment>, Refusal> {
    if !section.enabled {
        return if drift.enabled {
            Err((DRIFT, DriftFault::Alone.to_string()))
        } else {
            Ok(None)
        };
    }
    let embedder = section.embedder(folder)?;
    let cache_size = section.cache_size.unwrap_or(CACHE_SIZE);
    if cache_size > LARGEST_CACHE {
        let problem = format!("intent_alignment: cache_size {cache_size} > {LARGEST_CACHE}");
        return Err((ALIGNMENT, problem));
    }
    if section.exempt.len() > MOST_EXEMPT {
        let problem = format!("intent_alignment: exempt names more than {MOST_EXEMPT} tools");
        return Err((ALIGNMENT, problem));
    }
    Ok(Some(IntentAlignment {
        thresholds: section.thresholds_of(&embedder)?,
        cache_size: usize::try_from(cache_size).unwrap_or(0),
        exempt: section.exempt.into_iter().collect(),
        drift: drift.rule(embedder.provider)?,
        embedder,
    }))
}

impl AlignmentSection {
    fn embedder(&self, folder: &Path) -> Result<EmbedderChoice, Refusal> {
        let refuse = |problem: &str| (ALIGNMENT, format!("intent_alignment: {problem}"));
        let Some(provider) = self.provider.as_deref().filter(|name| !name.is_empty()) else {
            return Err((
                ALIGNMENT,
                "intent_alignment.enabled but no provider set; set it to openai, gemini, ollama, openai-compatible or embedded".to_owned(),
            ));
        };
        let provider: Provider = provider
            .parse()
            .map_err(|error| refuse(&format!("{error}")))?;
        let named = self.model.as_deref().filter(|model| !model.is_empty());
        let model = named.or(provider.default_model());
        let model = model.ok_or_else(|| refuse("openai-compatible needs model; set it"))?;
        let place = if provider == Provider::Embedded {
            if Some(model) != provider.default_model() {
                return Err(refuse(
                    "embedded has one model, all-MiniLM-L6-v2; leave model out",
                ));
            }
            self.files(folder)?
        } else {
            self.address(provider)?
        };
        let id = match provider {
            Provider::Embedded => EMBEDDED_ID.to_owned(),
            _ => format!("{provider}:{model}"),
        };
        Ok(EmbedderChoice {
            id: id
                .parse()
                .map_err(|error| refuse(&format!("model: {error}")))?,
            provider,
            model: model.to_owned(),
            place,
        })
    }

    fn files(&self, folder: &Path) -> Result<EmbedderPlace, Refusal> {
        if self.base_url.is_some() || self.api_key_env.is_some() {
            let problem =
                "intent_alignment: embedded asks nobody; leave base_url and api_key_env out";
            return Err((ALIGNMENT, problem.to_owned()));
        }
        let Some(files) = &self.weights_dir else {
            return Err((
                ALIGNMENT,
                "intent_alignment: enabled but no embedder configured; set weights_dir to the folder with the files of all-MiniLM-L6-v2".to_owned(),
            ));
        };
        Ok(EmbedderPlace::Folder(folder.join(files)))
    }

    fn address(&self, provider: Provider) -> Result<EmbedderPlace, Refusal> {
        let refuse = |problem: String| (ALIGNMENT, format!("intent_alignment: {problem}"));
        if self.weights_dir.is_some() {
            let problem = format!("weights_dir is for embedded, the provider is {provider}");
            return Err(refuse(problem));
        }
        let base = match (&self.base_url, provider.default_base()) {
            (Some(base), _) => base.clone(),
            (None, Some(base)) => base
                .parse()
                .map_err(|error| refuse(format!("base_url: {error}")))?,
            (None, None) => {
                return Err(refuse(
                    "enabled but no embedder configured; set base_url to where it is".to_owned(),
                ));
            }
        };
        let variable = self.api_key_env.as_deref().filter(|name| !name.is_empty());
        Ok(EmbedderPlace::Http {
            base,
            key_variable: variable
                .or(provider.default_key_variable())
                .map(str::to_owned),
        })
    }

    /// The configured ones, else those that were found with this embedder; there are no others.
    fn thresholds_of(&self, embedder: &EmbedderChoice) -> Result<Thresholds, Refusal> {
        let thresholds = |soft, hard| {
            Thresholds::new(soft, hard).map_err(|fault| (ALIGNMENT, fault.to_string()))
        };
        let mut entries = Vec::new();
        for (id, floors) in &self.thresholds {
            let floors = thresholds(floors.threshold.0, floors.hard_threshold.0)?;
            entries.push((id.clone(), floors));
        }
        let table = ThresholdTable::new(entries);
        let own = (self.threshold, self.hard_threshold);
        if own != (None, None) && self.thresholds.contains_key(&embedder.id) {
            let problem = format!(
                "intent_alignment: thresholds has an entry for {embedder}; leave threshold and hard_threshold out, or the entry"
            );
            return Err((ALIGNMENT, problem));
        }
        let found = embedder.provider.default_thresholds(&embedder.model);
        match (own, found) {
            ((Some(soft), Some(hard)), _) => thresholds(soft.0, hard.0),
            ((None, None), found) => match (table.of(&embedder.id), found) {
                (Ok(configured), _) => Ok(configured),
                (Err(_), Some((soft, hard))) => thresholds(soft, hard),
                // Break it: fall back on the defaults of another embedder
                // (`config::alignment::an_embedder_without_thresholds_of_its_own_is_refused`).
                (Err(error), None) => Err((ALIGNMENT, error.to_string())),
            },
            ((soft, hard), Some(found)) => thresholds(
                soft.map_or(found.0, |soft| soft.0),
                hard.map_or(found.1, |hard| hard.0),
            ),
            ((soft, _), None) => {
                let missing = if soft.is_none() {
                    "threshold"
                } else {
                    "hard_threshold"
                };
                let problem = format!(
                    "intent_alignment: {embedder} has no default {missing}: scores of one embedder mean nothing to another; set both threshold and hard_threshold (-1 never denies)"
                );
                Err((ALIGNMENT, problem))
            }
        }
    }
}

impl DriftSection {
    fn rule(&self, provider: Provider) -> Result<Option<DriftRule>, Refusal> {
        if !self.enabled {
            return Ok(None);
        }
        let floor = self.drift_threshold;
        let rule = DriftRule::new(
            self.window.unwrap_or(DriftRule::DEFAULT_WINDOW),
            floor.map_or(provider.default_drift_floor(), |floor| floor.0),
            self.monotone_n.unwrap_or(0),
        );
        rule.map(Some).map_err(|fault| (DRIFT, fault.to_string()))
    }
}
