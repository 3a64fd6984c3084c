//! Webhooks: who listens, what waits to be delivered, and what became of it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::locked;

/// A webhook to be set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewHook {
    /// The repository it is about, by number; `None`: it belongs to an App and hears of every repository.
    pub repository: Option<u64>,
    /// Where deliveries go, such as `http://127.0.0.1:4001/webhooks/github`.
    pub url: String,
    /// What deliveries are signed with.
    pub secret: String,
    /// The events it hears of, such as `workflow_run`; `*` for all.
    pub events: Vec<String>,
}

/// What goes wrong with deliveries. Each is asked with the number of the delivery, counted from 1 over all hooks.
#[derive(Clone, Copy, Debug)]
pub struct HookFaults {
    /// Whether the delivery never arrives.
    pub lose: fn(u64) -> bool,
    /// Whether it arrives twice.
    pub duplicate: fn(u64) -> bool,
    /// Whether what waits is delivered newest first.
    pub reverse: bool,
}

impl Default for HookFaults {
    /// Everything arrives once and in order.
    fn default() -> Self {
        Self {
            lose: |_| false,
            duplicate: |_| false,
            reverse: false,
        }
    }
}

/// A delivery and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// GitHub's name for the event's delivery; a redelivery keeps it.
    pub guid: String,
    /// Such as `workflow_run`.
    pub event: String,
    /// The JSON that is signed and sent.
    pub body: String,
    /// The status of the receiver's answer; `None`: it waits, was lost, or there was no answer.
    pub status: Option<u16>,
}

/// A webhook.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    pub(crate) id: u64,
    pub(crate) to: NewHook,
}

/// One delivery.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) id: u64,
    pub(crate) hook: Hook,
    pub(crate) guid: String,
    pub(crate) event: &'static str,
    pub(crate) action: Option<String>,
    pub(crate) repository: Option<u64>,
    pub(crate) installation: Option<u64>,
    pub(crate) body: String,
    pub(crate) redelivery: bool,
    /// `None` while it waits.
    pub(crate) outcome: Option<Outcome>,
}

/// What became of a delivery.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) at: u64,
    /// `None`: there was no answer.
    pub(crate) status: Option<u16>,
    pub(crate) answer: String,
}

/// Something that happened.
pub(crate) struct Event {
    pub(crate) name: &'static str,
    pub(crate) action: Option<&'static str>,
    pub(crate) repository: Option<u64>,
    pub(crate) installation: Option<u64>,
    /// Without action and installation.
    pub(crate) payload: Value,
}

/// Everything about webhooks.
#[derive(Default)]
pub(crate) struct Outbox {
    hooks: Mutex<Vec<Hook>>,
    records: Mutex<Vec<Record>>,
    faults: Mutex<HookFaults>,
    /// Of guids.
    issued: AtomicU64,
    attempts: AtomicU64,
}

impl Hook {
    fn hears(&self, repository: Option<u64>, event: &str) -> bool {
        let about = self.to.repository.is_none() || self.to.repository == repository;
        about
            && self
                .to
                .events
                .iter()
                .any(|known| known == "*" || known == event)
    }
}

impl Outbox {
    pub(crate) fn add_hook(&self, id: u64, to: NewHook) {
        locked(&self.hooks).push(Hook { id, to });
    }

    pub(crate) fn set_faults(&self, faults: HookFaults) {
        *locked(&self.faults) = faults;
    }

    pub(crate) fn faults(&self) -> HookFaults {
        *locked(&self.faults)
    }

    /// The number of the next attempt to deliver something, counted from 1.
    pub(crate) fn next_attempt(&self) -> u64 {
        self.attempts.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether anybody hears of such an event; where nobody does, it need not be described.
    pub(crate) fn is_heard(&self, repository: Option<u64>, event: &str) -> bool {
        locked(&self.hooks)
            .iter()
            .any(|hook| hook.hears(repository, event))
    }

    /// Whether this is a hook of the repository, or of an App (`None`).
    pub(crate) fn has_hook(&self, id: Option<u64>, repository: Option<u64>) -> bool {
        locked(&self.hooks)
            .iter()
            .any(|hook| id.is_none_or(|id| hook.id == id) && hook.to.repository == repository)
    }

    /// Queues a delivery for everybody who hears of the event.
    pub(crate) fn emit(&self, event: &Event) {
        let mut payload = event.payload.clone();
        if let Some(action) = event.action {
            payload["action"] = json!(action);
        }
        if let (Some(id), true) = (event.installation, payload["installation"].is_null()) {
            payload["installation"] = json!({"id": id, "node_id": format!("I_forge{id}")});
        }
        let body = payload.to_string();
        let hooks: Vec<Hook> = locked(&self.hooks)
            .iter()
            .filter(|hook| hook.hears(event.repository, event.name))
            .cloned()
            .collect();
        for hook in hooks {
            let number = self.issued.fetch_add(1, Ordering::Relaxed) + 1;
            let mut records = locked(&self.records);
            let id = records.len() as u64 + 1;
            records.push(Record {
                id,
                hook,
                guid: format!("{number:08x}-f04e-4000-8000-{number:012x}"),
                event: event.name,
                action: event.action.map(str::to_owned),
                repository: event.repository,
                installation: event.installation,
                body: body.clone(),
                redelivery: false,
                outcome: None,
            });
        }
    }

    /// What waits, oldest first.
    pub(crate) fn waiting(&self) -> Vec<Record> {
        locked(&self.records)
            .iter()
            .filter(|record| record.outcome.is_none())
            .cloned()
            .collect()
    }

    pub(crate) fn settle(&self, id: u64, outcome: Outcome) {
        if let Some(record) = locked(&self.records)
            .iter_mut()
            .find(|record| record.id == id)
        {
            record.outcome = Some(outcome);
        }
    }

    /// Every delivery, oldest first.
    pub(crate) fn records(&self) -> Vec<Record> {
        locked(&self.records).clone()
    }

    /// Queues a delivery again under the same guid; `false` where there is none of this number.
    pub(crate) fn repeat(&self, wanted: impl Fn(&Record) -> bool) -> bool {
        let mut records = locked(&self.records);
        let Some(mut again) = records.iter().rev().find(|record| wanted(record)).cloned() else {
            return false;
        };
        again.id = records.len() as u64 + 1;
        again.redelivery = true;
        again.outcome = None;
        records.push(again);
        true
    }
}
