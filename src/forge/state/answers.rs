//! Answers that stay right as long as nothing changes: a client that asks a thousand repositories every minute must not
//! make the forge render the same lists again.

use std::collections::HashMap;
use std::sync::Mutex;

use axum::body::Bytes;

use super::locked;

/// How many answers are kept per repository before they are forgotten.
const KEPT: usize = 32;

/// A whole answer with status 200.
#[derive(Clone, Debug)]
pub(crate) struct KeptAnswer {
    /// JSON.
    pub(crate) text: Bytes,
    /// Follows from the text.
    pub(crate) hash: u64,
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// The kept answers of one repository, by request and by the version of the state that they tell of.
#[derive(Default)]
pub(crate) struct Answers(Mutex<HashMap<String, (u64, KeptAnswer)>>);

impl Answers {
    pub(crate) fn get(&self, request: &str, version: u64) -> Option<KeptAnswer> {
        locked(&self.0)
            .get(request)
            .filter(|(kept, _)| *kept == version)
            .map(|(_, answer)| answer.clone())
    }

    pub(crate) fn keep(&self, request: String, version: u64, answer: KeptAnswer) {
        let mut kept = locked(&self.0);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(request, (version, answer));
    }
}
