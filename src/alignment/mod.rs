//! Every tool call is compared with what its task is for, and the trend of a task is watched.
//!
//! ```text
//! begin(task, intent)     deny_prompts → kept → embedded        the first intent of a task stays its intent
//! score(task, call)       deny_prompts → exempt → intent → embedding (kept, or one request a text) → score → events
//! end(task)               forgotten
//! ```
//!
//! What cannot be scored is denied; the call is denied, the task goes on. When alignment is off there is no embedder, and nothing is
//! recorded. What is recorded are decisions, never what was asked for or what a call says.

mod events;
mod intents;
mod setup;
mod tasks;
mod vectors;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::change::Sha256Digest;
use crate::clock::Clock;
use crate::config::DenyPrompts;
use crate::embedder::Embedder;
use crate::events::EventSink;
use crate::intent::{
    Decision, DriftRing, DriftRule, EmbedderId, PromptPlace, Reason, Score, Thresholds, Verdict,
    action_text, decide, similarity,
};

pub use intents::{FolderIntents, IntentError, Intents};
pub use setup::{SetupError, embedder};
pub use tasks::{BeginError, LONGEST_INTENT, MOST_TASKS};

use tasks::{Task, Tasks};
use vectors::Vectors;

/// How calls are scored.
pub struct Scoring {
    /// What embeds.
    pub embedder: Arc<dyn Embedder>,
    /// Its thresholds.
    pub thresholds: Thresholds,
    /// Embeddings of actions that are kept; 0 is none.
    pub cache_size: usize,
    /// Tools that are not scored.
    pub exempt: BTreeSet<String>,
    /// How a trend is told, if it is.
    pub drift: Option<DriftRule>,
}

/// What an engine is made of.
pub struct Parts {
    /// How calls are scored; without it only `deny_prompts` are looked at.
    pub scoring: Option<Scoring>,
    /// What no intent and no action may say.
    pub deny_prompts: DenyPrompts,
    /// Where intents outlast this process; without it they do not.
    pub intents: Option<Arc<dyn Intents>>,
    /// Where decisions are recorded.
    pub sink: Arc<dyn EventSink>,
    /// What tells which tasks are idle.
    pub clock: Arc<dyn Clock>,
}

/// The engine.
pub struct Alignment {
    scorer: Option<Scorer>,
    deny_prompts: DenyPrompts,
    tasks: Tasks,
    sink: Arc<dyn EventSink>,
}

struct Scorer {
    vectors: Vectors,
    embedder: Arc<dyn Embedder>,
    thresholds: Thresholds,
    exempt: BTreeSet<String>,
    drift: Option<DriftRule>,
}

/// How the beginning of a task went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// Its calls can be scored.
    Ready,
    /// It had begun before; its intent stays what it was.
    Before,
    /// Its intent could not be embedded, and is kept: it is embedded with the next call.
    Waiting(Reason),
    /// Its intent says what none may: every call will be denied.
    Refused(Reason),
}

/// A decision about one call, with what a signed record of it holds (`attest::IntentScore`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scored {
    /// Allow, warn or deny.
    pub decision: Decision,
    /// How alike intent and call are, in millionths; `None` when that could not be told.
    pub score: Option<Score>,
    /// Why, in words and by a code.
    pub reason: Reason,
    /// What embedded; `None` while alignment is off.
    pub embedder: Option<EmbedderId>,
    /// How many numbers its vectors have, once known.
    pub dimension: Option<usize>,
    /// What the score was compared with; `None` while alignment is off.
    pub thresholds: Option<Thresholds>,
    /// SHA-256 of the intent's text, where there is one.
    pub intent: Option<Sha256Digest>,
    /// SHA-256 of the action's text.
    pub action: Sha256Digest,
}

impl Scored {
    /// Whether the call must not go ahead.
    pub const fn is_denied(&self) -> bool {
        matches!(self.decision, Decision::Deny)
    }
}

/// What a call is, as far as its record goes.
#[derive(Clone, Copy)]
struct Called<'a> {
    task: &'a str,
    tool: &'a str,
    correlation: Option<&'a str>,
}

impl Alignment {
    /// An engine of these parts.
    pub fn new(parts: Parts) -> Self {
        let scorer = parts.scoring.map(|scoring| Scorer {
            vectors: Vectors::new(Arc::clone(&scoring.embedder), scoring.cache_size),
            embedder: scoring.embedder,
            thresholds: scoring.thresholds,
            exempt: scoring.exempt,
            drift: scoring.drift,
        });
        Self {
            scorer,
            deny_prompts: parts.deny_prompts,
            tasks: Tasks::new(parts.intents, parts.clock),
            sink: parts.sink,
        }
    }

    /// A task begins, and this is what it is for. Whatever is said later, it stays that.
    ///
    /// # Errors
    /// There is nothing to begin with, or no room; the task's calls will then be denied.
    pub async fn begin(&self, task: &str, intent: &str) -> Result<Begun, BeginError> {
        // Break it: embed first; what nobody may ask for has then been sent to the provider
        // (`alignment::prompts::what_none_may_ask_for_is_never_embedded`).
        let refused = |text: &str| self.deny_prompts.matching(text);
        let (task, first) = self.tasks.begin(task, intent, &refused)?;
        if let Some(reason) = task.refusal() {
            return Ok(Begun::Refused(reason));
        }
        if !first {
            return Ok(Begun::Before);
        }
        let Some(scorer) = &self.scorer else {
            return Ok(Begun::Ready);
        };
        match scorer.intent(&task).await {
            Ok(_) => Ok(Begun::Ready),
            Err(reason) => Ok(Begun::Waiting(reason)),
        }
    }

    /// Decides about one call: `description` is what the tool is known to do (never what the call says of itself), `arguments` what
    /// the model sent, as it sent it.
    pub async fn score(
        &self,
        task: &str,
        tool: &str,
        description: Option<&str>,
        arguments: &str,
    ) -> Scored {
        self.score_for(None, task, tool, description, arguments)
            .await
    }

    /// The same, with what connects the events of one request.
    pub async fn score_for(
        &self,
        correlation: Option<&str>,
        task: &str,
        tool: &str,
        description: Option<&str>,
        arguments: &str,
    ) -> Scored {
        let text = action_text(tool, description, arguments);
        let action = Sha256Digest::of(text.as_bytes());
        let refused = |text: &str| self.deny_prompts.matching(text);
        let known = self.tasks.find(task, &refused);
        let called = Called {
            task,
            tool,
            correlation,
        };
        let verdict = match (&self.scorer, self.refusal(known.as_deref(), &text)) {
            (None, Some(reason)) => Verdict::denied(reason),
            (None, None) => Verdict::unscored(Reason::Disabled),
            (Some(_), Some(reason)) => self.recorded(called, Verdict::denied(reason)),
            (Some(scorer), None) if scorer.exempt.contains(tool) => {
                self.recorded(called, Verdict::unscored(Reason::Exempt))
            }
            (Some(scorer), None) => {
                let scored = scorer.score(known.as_deref(), &text, action).await;
                let verdict = decide(scored, scorer.thresholds);
                let watch = |ring: &mut DriftRing| {
                    let recorded = self.recorded(called, verdict);
                    self.watched(scorer, called, verdict.score, ring);
                    recorded
                };
                match &known {
                    Some(task) => task.watch(watch),
                    None => self.tasks.watch_stranger(called.task, watch),
                }
            }
        };
        let scorer = self.scorer.as_ref();
        Scored {
            decision: verdict.decision,
            score: verdict.score,
            reason: verdict.reason,
            embedder: scorer.map(|scorer| scorer.embedder.id().clone()),
            dimension: scorer.and_then(|scorer| scorer.embedder.dimension()),
            thresholds: scorer.map(|scorer| scorer.thresholds),
            intent: known.map(|task| task.digest()),
            action,
        }
    }

    /// A task has ended: everything about it is forgotten, and calls that still come are denied.
    ///
    /// # Errors
    /// Its intent, which was kept beyond this process, could not be removed.
    pub fn end(&self, task: &str) -> Result<(), IntentError> {
        self.tasks.end(task)
    }

    /// How many tasks are known now.
    pub fn tasks(&self) -> usize {
        self.tasks.count()
    }

    /// What `deny_prompts` say, before anything is embedded.
    fn refusal(&self, task: Option<&Task>, action: &str) -> Option<Reason> {
        task.and_then(Task::refusal).or_else(|| {
            let pattern = self.deny_prompts.matching(action)?;
            Some(Reason::DenyPrompt {
                place: PromptPlace::Action,
                pattern,
            })
        })
    }

    /// Puts a decision on record. One that is not on record is a denial.
    fn recorded(&self, called: Called<'_>, verdict: Verdict) -> Verdict {
        let event = events::alignment(called, &verdict);
        match self.sink.record(&event) {
            Ok(()) => verdict,
            // Break it: go on all the same; calls then pass of which no record is left
            // (`alignment::recording::what_cannot_be_recorded_is_denied`).
            Err(error) => {
                tracing::warn!("recording a decision of intent alignment: {error}");
                if verdict.decision == Decision::Deny {
                    verdict
                } else {
                    Verdict {
                        decision: Decision::Deny,
                        reason: Reason::Unrecorded,
                        ..verdict
                    }
                }
            }
        }
    }

    /// Takes a score into the trend, and tells when it turns.
    fn watched(
        &self,
        scorer: &Scorer,
        called: Called<'_>,
        score: Option<Score>,
        ring: &mut DriftRing,
    ) {
        let Some(rule) = &scorer.drift else {
            return;
        };
        let Some(turn) = ring.observe(rule, score) else {
            return;
        };
        if let Err(error) = self.sink.record(&events::drift(called, &turn)) {
            tracing::warn!("recording that a task drifts or recovered: {error}");
            ring.untold();
        }
    }
}

impl Scorer {
    async fn score(
        &self,
        task: Option<&Task>,
        text: &str,
        digest: Sha256Digest,
    ) -> Result<Score, Reason> {
        let task = task.ok_or(Reason::NoIntent)?;
        let intent = self.intent(task).await?;
        let action = self.vectors.kept(text, digest).await?;
        similarity(&intent, &action).map_err(Reason::Vector)
    }

    /// The intent's vector; after an outage, of the same text.
    async fn intent(&self, task: &Task) -> Result<Arc<crate::intent::Embedding>, Reason> {
        if let Some(vector) = task.vector() {
            return Ok(vector);
        }
        let vector = self.vectors.once(task.intent(), task.digest()).await?;
        Ok(task.embedded(vector))
    }
}

impl std::fmt::Debug for Alignment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let embedder = self.scorer.as_ref().map(|scorer| scorer.embedder.id());
        f.debug_struct("Alignment")
            .field("embedder", &embedder)
            .field("tasks", &self.tasks.count())
            .finish_non_exhaustive()
    }
}
