//! What is known of tasks: what each is for, and how its calls have scored. There are never more than so many.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hashlink::LruCache;

use super::intents::{IntentError, Intents};
use crate::change::Sha256Digest;
use crate::clock::{Clock, Millis};
use crate::intent::{DriftRing, Embedding, PromptPlace, Reason};

/// Tasks at once, at most. When there are as many, the one that has been idle longest makes room, if that is an hour at least; what
/// it is for is found again where intents outlast the process.
pub const MOST_TASKS: usize = 4096;
/// Longest intent, in bytes.
pub const LONGEST_INTENT: usize = 1024 * 1024;
/// Longest name of a task, in bytes.
const LONGEST_NAME: usize = 512;
/// Idle tasks make room after this, in milliseconds.
const IDLE: i64 = 60 * 60 * 1000;
/// Unknown tasks whose trend is watched.
const STRANGERS: usize = 1024;

/// Why a task did not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BeginError {
    /// It has no name, or a name that is too long.
    #[error("beginning a task: its name does not have 1 to {LONGEST_NAME} bytes")]
    Name,
    /// Nothing is asked for.
    #[error("beginning a task: it is not said what it is for; send the text of the first message")]
    Empty,
    /// More is asked for than is kept.
    #[error(
        "beginning a task: what it is for has {found} bytes, at most {LONGEST_INTENT} are kept; say it shorter"
    )]
    Long {
        /// Bytes.
        found: usize,
    },
    /// No room.
    #[error(
        "beginning a task: {MOST_TASKS} tasks are under way, and all of them were active within the hour; end some"
    )]
    Full,
    /// What it is for cannot be kept.
    #[error(transparent)]
    Intent(#[from] IntentError),
}

/// A task.
pub(super) struct Task {
    intent: String,
    digest: Sha256Digest,
    /// The pattern that its intent matches.
    refused: Option<usize>,
    vector: OnceLock<Arc<Embedding>>,
    ring: Mutex<DriftRing>,
    used: AtomicI64,
}

impl Task {
    fn new(intent: &str, refused: Option<usize>, ring: DriftRing, now: Millis) -> Self {
        Self {
            intent: intent.to_owned(),
            digest: Sha256Digest::of(intent.as_bytes()),
            refused,
            vector: OnceLock::new(),
            ring: Mutex::new(ring),
            used: AtomicI64::new(now.0),
        }
    }

    /// What it is for.
    pub(super) fn intent(&self) -> &str {
        &self.intent
    }

    /// SHA-256 of that.
    pub(super) const fn digest(&self) -> Sha256Digest {
        self.digest
    }

    /// Why its calls are denied whatever they are.
    pub(super) fn refusal(&self) -> Option<Reason> {
        self.refused.map(|pattern| Reason::DenyPrompt {
            place: PromptPlace::Intent,
            pattern,
        })
    }

    /// The vector of its intent, once there is one.
    pub(super) fn vector(&self) -> Option<Arc<Embedding>> {
        self.vector.get().map(Arc::clone)
    }

    /// Its intent was embedded; the first vector counts.
    pub(super) fn embedded(&self, vector: Arc<Embedding>) -> Arc<Embedding> {
        Arc::clone(self.vector.get_or_init(|| vector))
    }

    /// Does something with its trend, one call after another, so that events stand in the order of the scores.
    pub(super) fn watch<T>(&self, what: impl FnOnce(&mut DriftRing) -> T) -> T {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        what(&mut ring)
    }
}

/// All of them.
pub(super) struct Tasks {
    known: Mutex<HashMap<Box<str>, Arc<Task>>>,
    /// Trends of tasks that nobody has begun: a run of their calls is told too.
    strangers: Mutex<LruCache<Box<str>, DriftRing>>,
    intents: Option<Arc<dyn Intents>>,
    clock: Arc<dyn Clock>,
}

/// The pattern under `deny_prompts` that a text matches.
type Refused<'a> = &'a dyn Fn(&str) -> Option<usize>;

impl Tasks {
    pub(super) fn new(intents: Option<Arc<dyn Intents>>, clock: Arc<dyn Clock>) -> Self {
        Self {
            known: Mutex::new(HashMap::new()),
            strangers: Mutex::new(LruCache::new(STRANGERS)),
            intents,
            clock,
        }
    }

    /// A task with its intent, and whether it is new.
    pub(super) fn begin(
        &self,
        name: &str,
        intent: &str,
        refused: Refused<'_>,
    ) -> Result<(Arc<Task>, bool), BeginError> {
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(BeginError::Name);
        }
        if intent.trim().is_empty() {
            return Err(BeginError::Empty);
        }
        if intent.len() > LONGEST_INTENT {
            return Err(BeginError::Long {
                found: intent.len(),
            });
        }
        // Break it: replace what is there; a later message then says what the task is for
        // (`alignment::story::a_later_message_never_becomes_the_intent`).
        if let Some(task) = self.find(name, refused) {
            return Ok((task, false));
        }
        let first = match &self.intents {
            Some(intents) => intents.keep(name, intent)?,
            None => intent.to_owned(),
        };
        let first_is_this = first == intent;
        self.insert(name, &first, refused)
            .map(|(task, new)| (task, new && first_is_this))
    }

    /// A task that has begun, here or in an earlier process.
    pub(super) fn find(&self, name: &str, refused: Refused<'_>) -> Option<Arc<Task>> {
        if let Some(task) = self.known().get(name) {
            task.used.store(self.clock.now().0, Ordering::Relaxed);
            return Some(Arc::clone(task));
        }
        let kept = self.intents.as_ref()?.kept(name);
        let intent = kept.unwrap_or_else(|error| {
            tracing::warn!("{error}");
            None
        })?;
        let inserted = self.insert(name, &intent, refused);
        inserted
            .inspect_err(|error| tracing::warn!("{error}"))
            .ok()
            .map(|(task, _)| task)
    }

    fn insert(
        &self,
        name: &str,
        intent: &str,
        refused: Refused<'_>,
    ) -> Result<(Arc<Task>, bool), BeginError> {
        let refused = refused(intent);
        let ring = self.strangers().remove(name).unwrap_or_default();
        let mut known = self.known();
        if let Some(task) = known.get(name) {
            return Ok((Arc::clone(task), false));
        }
        let now = self.clock.now();
        if known.len() >= MOST_TASKS {
            // Break it: leave this out; whoever names tasks then fills the memory
            // (`alignment::bounds::tasks_are_bounded_and_idle_ones_make_room`).
            make_room(&mut known, now)?;
        }
        let task = Arc::new(Task::new(intent, refused, ring, now));
        known.insert(Box::from(name), Arc::clone(&task));
        Ok((task, true))
    }

    /// Does something with the trend of a task that nobody has begun.
    pub(super) fn watch_stranger<T>(
        &self,
        name: &str,
        what: impl FnOnce(&mut DriftRing) -> T,
    ) -> T {
        let name = name.get(..name.floor_char_boundary(LONGEST_NAME));
        let name = Box::from(name.unwrap_or_default());
        let mut strangers = self.strangers();
        let ring = strangers.entry(name).or_insert_with(DriftRing::default);
        what(ring)
    }

    pub(super) fn end(&self, name: &str) -> Result<(), IntentError> {
        self.known().remove(name);
        self.strangers().remove(name);
        match &self.intents {
            Some(intents) => intents.forget(name),
            None => Ok(()),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.known().len()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<Task>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn strangers(&self) -> MutexGuard<'_, LruCache<Box<str>, DriftRing>> {
        self.strangers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn make_room(known: &mut HashMap<Box<str>, Arc<Task>>, now: Millis) -> Result<(), BeginError> {
    let idle = known
        .iter()
        .map(|(name, task)| (task.used.load(Ordering::Relaxed), name))
        .min()
        .filter(|(used, _)| now.0.saturating_sub(*used) >= IDLE)
        .map(|(_, name)| name.clone());
    match idle {
        Some(name) => {
            known.remove(&name);
            Ok(())
        }
        None => Err(BeginError::Full),
    }
}
