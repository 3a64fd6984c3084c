//! An engine with an embedder and an audit stream of the tests' own.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use caretaker::alignment::{Alignment, Intents, Parts, Scoring};
use caretaker::clock::{FixedClock, Millis};
use caretaker::config::DenyPrompts;
use caretaker::embedder::{EmbedError, Embedder};
use caretaker::events::{Event, EventSink, SinkError};
use caretaker::intent::{DriftRule, EmbedderId, Outage, Thresholds};
use tokio::sync::Semaphore;

/// An embedder that knows the vectors of some texts, and makes those of others from their words (a hash of each word is a direction).
pub(crate) struct Fake {
    id: EmbedderId,
    known: Mutex<HashMap<String, Vec<f32>>>,
    /// The texts that were asked for, in their order.
    pub(crate) asked: Mutex<Vec<String>>,
    /// While it is down: how.
    pub(crate) down: Mutex<Option<Outage>>,
    /// Requests wait here for a permit; there are plenty unless a test takes them away.
    pub(crate) gate: Semaphore,
}

impl Fake {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            id: "openai-compatible:hash".parse().unwrap(),
            known: Mutex::default(),
            asked: Mutex::default(),
            down: Mutex::default(),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
        })
    }

    pub(crate) fn knows(&self, text: &str, vector: &[f32]) {
        let mut known = self.known.lock().unwrap();
        known.insert(text.to_owned(), vector.to_vec());
    }

    pub(crate) fn fails(&self, outage: impl Into<Option<Outage>>) {
        *self.down.lock().unwrap() = outage.into();
    }

    pub(crate) fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        if let Some(vector) = self.known.lock().unwrap().get(text) {
            return vector.clone();
        }
        let mut vector = vec![0.0; 64];
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            if !word.is_empty() {
                let hash = word.bytes().fold(5381_u32, |hash, byte| {
                    hash.wrapping_mul(33) ^ u32::from(byte)
                });
                vector[usize::try_from(hash % 64).unwrap()] += 1.0;
            }
        }
        vector
    }
}

#[async_trait]
impl Embedder for Fake {
    fn id(&self) -> &EmbedderId {
        &self.id
    }

    fn dimension(&self) -> Option<usize> {
        None
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        for text in texts {
            self.asked.lock().unwrap().push((*text).to_owned());
        }
        let _permit = self.gate.acquire().await.unwrap();
        if let Some(outage) = *self.down.lock().unwrap() {
            return Err(EmbedError {
                embedder: self.id.clone(),
                outage,
                detail: "the provider said: SECRET".to_owned(),
            });
        }
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

/// An audit stream in memory, which can be full.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) events: Mutex<Vec<Event>>,
    pub(crate) full: AtomicBool,
    pub(crate) tried: AtomicUsize,
}

impl Stream {
    pub(crate) fn all(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// Transition and severity of each `intent_drift`.
    pub(crate) fn turns(&self) -> Vec<String> {
        let all = self.all();
        let turns = all.iter().filter(|event| event.event == "intent_drift");
        turns
            .map(|event| {
                let word = |name: &str| event.fields[name].as_str().unwrap().to_owned();
                format!("{} {}", word("transition"), word("severity"))
            })
            .collect()
    }
}

impl EventSink for Stream {
    fn record(&self, event: &Event) -> Result<(), SinkError> {
        self.tried.fetch_add(1, Ordering::SeqCst);
        if self.full.load(Ordering::SeqCst) {
            return Err(SinkError("the disk is full".to_owned()));
        }
        self.events.lock().unwrap().push(event.clone());
        Ok(())
    }
}

/// What a test changes.
pub(crate) struct Wanted {
    pub(crate) thresholds: (f64, f64),
    pub(crate) cache_size: usize,
    pub(crate) exempt: &'static [&'static str],
    pub(crate) drift: Option<DriftRule>,
    pub(crate) deny_prompts: &'static str,
    pub(crate) scoring: bool,
    pub(crate) intents: Option<Arc<dyn Intents>>,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            thresholds: Thresholds::DEFAULT,
            cache_size: 1024,
            exempt: &[],
            drift: None,
            deny_prompts: "[]",
            scoring: true,
            intents: None,
        }
    }
}

/// An engine and what stands around it.
pub(crate) struct Scene {
    pub(crate) engine: Alignment,
    pub(crate) fake: Arc<Fake>,
    pub(crate) stream: Arc<Stream>,
    pub(crate) clock: Arc<FixedClock>,
}

impl Scene {
    pub(crate) fn new(wanted: Wanted) -> Self {
        let (fake, stream) = (Fake::new(), Arc::new(Stream::default()));
        let clock = Arc::new(FixedClock::at(Millis(1_800_000_000_000)));
        let deny_prompts: DenyPrompts = serde_json::from_str(wanted.deny_prompts).unwrap();
        let (soft, hard) = wanted.thresholds;
        let exempt: BTreeSet<String> = wanted.exempt.iter().map(ToString::to_string).collect();
        let scoring = wanted.scoring.then(|| Scoring {
            embedder: Arc::clone(&fake) as Arc<dyn Embedder>,
            thresholds: Thresholds::new(soft, hard).unwrap(),
            cache_size: wanted.cache_size,
            exempt,
            drift: wanted.drift,
        });
        let engine = Alignment::new(Parts {
            scoring,
            deny_prompts,
            intents: wanted.intents,
            sink: Arc::clone(&stream) as Arc<dyn EventSink>,
            clock: Arc::clone(&clock) as Arc<dyn caretaker::clock::Clock>,
        });
        Self {
            engine,
            fake,
            stream,
            clock,
        }
    }

    /// With an intent `the intent` along the first of three axes, and a task `task` that has it.
    pub(crate) async fn begun(wanted: Wanted) -> Self {
        let scene = Self::new(wanted);
        scene.fake.knows("the intent", &[1.0, 0.0, 0.0]);
        scene.engine.begin("task", "the intent").await.unwrap();
        scene
    }

    /// Makes a call whose score is this, and answers the decision and its reason.
    pub(crate) async fn call(&self, cosine: f32) -> (&'static str, String) {
        let arguments = format!("{{\"at\":{cosine}}}");
        let rest = (1.0 - cosine * cosine).max(0.0).sqrt();
        self.fake.knows(
            &format!("A tool\n\nargs: {arguments}"),
            &[cosine, rest, 0.0],
        );
        self.called("task", &arguments).await
    }

    pub(crate) async fn called(&self, task: &str, arguments: &str) -> (&'static str, String) {
        let scored = self.engine.score(task, "tool", Some("A tool"), arguments);
        let scored = scored.await;
        (scored.decision.as_str(), scored.reason.to_string())
    }
}
