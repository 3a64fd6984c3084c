//! What was read before, so that it need not be read again while the provider says that it has not changed.
//!
//! Only a complete answer with status 200 that was understood is kept, and only for the token, the media type and the version
//! it was asked for with. What is kept is what was understood of it, not the text.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// What an answer answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// Address with its query.
    pub(super) address: String,
    /// Media type that was asked for.
    pub(super) accept: &'static str,
    /// Version of the interface.
    pub(super) version: &'static str,
    /// Fingerprint of the token: an `ETag` is bound to it.
    pub(super) token: String,
    /// As what the answer was understood.
    pub(super) kind: TypeId,
}

/// A value with the tag that names its version.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) etag: String,
    pub(super) value: Arc<dyn Any + Send + Sync>,
}

#[derive(Debug)]
struct Entry {
    kept: Kept,
    weight: usize,
    used: u64,
}

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<Arc<Key>, Entry>,
    /// By when they were used last, oldest first.
    by_use: BTreeMap<u64, Arc<Key>>,
    weight: usize,
    uses: u64,
}

impl Entries {
    fn next_use(&mut self) -> u64 {
        self.uses = self.uses.wrapping_add(1);
        self.uses
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.by_key.remove(key) {
            self.by_use.remove(&entry.used);
            self.weight = self.weight.saturating_sub(entry.weight);
        }
    }
}

/// Keeps values up to a total weight; those used longest ago go first.
#[derive(Debug)]
pub(super) struct EtagStore {
    /// In bytes.
    limit: usize,
    entries: Mutex<Entries>,
}

impl EtagStore {
    /// A store for `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            entries: Mutex::default(),
        }
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept for a key.
    pub(super) fn get(&self, key: &Key) -> Option<Kept> {
        let mut entries = self.entries();
        let now = entries.next_use();
        let (key, _) = entries.by_key.get_key_value(key)?;
        let key = Arc::clone(key);
        let entry = entries.by_key.get_mut(&key)?;
        let before = std::mem::replace(&mut entry.used, now);
        let kept = entry.kept.clone();
        entries.by_use.remove(&before);
        entries.by_use.insert(now, key);
        Some(kept)
    }

    /// Keeps a value of about `weight` bytes in place of what was kept for its key. One that is heavier than a quarter of the
    /// whole is not kept: it would drive out too much.
    pub(super) fn put(&self, key: Key, kept: Kept, weight: usize) {
        let overhead = 2 * std::mem::size_of::<Key>() + std::mem::size_of::<Entry>();
        let texts = key.address.len() + key.token.len() + kept.etag.len();
        let weight = weight.saturating_add(overhead).saturating_add(texts);
        let mut entries = self.entries();
        entries.remove(&key);
        if weight > self.limit / 4 {
            return;
        }
        let (key, used) = (Arc::new(key), entries.next_use());
        entries.weight = entries.weight.saturating_add(weight);
        entries.by_use.insert(used, Arc::clone(&key));
        entries.by_key.insert(key, Entry { kept, weight, used });
        while entries.weight > self.limit {
            let Some((_, oldest)) = entries.by_use.pop_first() else {
                return;
            };
            entries.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(address: &str, token: &str) -> Key {
        Key {
            address: address.to_owned(),
            accept: "application/json",
            version: "1",
            token: token.to_owned(),
            kind: TypeId::of::<u32>(),
        }
    }

    fn kept(value: u32) -> Kept {
        Kept {
            etag: value.to_string(),
            value: Arc::new(value),
        }
    }

    #[test]
    fn the_weight_is_bounded_and_what_is_used_stays() {
        let store = EtagStore::new(100_000);
        store.put(key("/kept", "a"), kept(0), 1_000);
        for n in 1..1_000 {
            store.put(key(&format!("/{n}"), "a"), kept(n), 1_000);
            assert!(store.get(&key("/kept", "a")).is_some(), "{n}");
            assert!(store.entries().weight <= 100_000);
        }
        assert!(store.get(&key("/1", "a")).is_none());
        assert!(store.get(&key("/999", "a")).is_some());
        let entries = store.entries();
        assert_eq!(entries.by_key.len(), entries.by_use.len());
        let weights: usize = entries.by_key.values().map(|entry| entry.weight).sum();
        assert_eq!(weights, entries.weight);
    }

    #[test]
    fn another_token_another_type_and_another_media_type_see_nothing() {
        let store = EtagStore::new(100_000);
        store.put(key("/x", "a"), kept(1), 10);
        assert!(store.get(&key("/x", "b")).is_none());
        let of_type = Key {
            kind: TypeId::of::<u64>(),
            ..key("/x", "a")
        };
        assert!(store.get(&of_type).is_none());
        let of_media = Key {
            accept: "text/plain",
            ..key("/x", "a")
        };
        assert!(store.get(&of_media).is_none());
        store.put(key("/x", "a"), kept(2), 10);
        assert_eq!(store.get(&key("/x", "a")).unwrap().etag, "2");
        store.put(key("/x", "a"), kept(3), 90_000);
        assert!(store.get(&key("/x", "a")).is_none(), "too heavy");
    }
}
