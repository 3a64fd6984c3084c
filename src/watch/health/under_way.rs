//! Checks that one process is making.

use std::collections::{BTreeMap, BTreeSet};

use tokio::task::{Id, JoinSet};

/// Checks under way, each with the name under which it was claimed.
pub(super) struct UnderWay<T> {
    tasks: JoinSet<T>,
    names: BTreeMap<Id, String>,
}

impl<T> Default for UnderWay<T> {
    fn default() -> Self {
        Self {
            tasks: JoinSet::new(),
            names: BTreeMap::new(),
        }
    }
}

impl<T: Send + 'static> UnderWay<T> {
    pub(super) fn begin(&mut self, name: &str, check: impl Future<Output = T> + Send + 'static) {
        let task = self.tasks.spawn(check).id();
        self.names.insert(task, name.to_owned());
    }

    /// How many were begun and not yet taken note of as ended.
    pub(super) fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Waits for the next one to end; what it came to, unless it broke off. None when there is none.
    pub(super) async fn next(&mut self) -> Option<Option<T>> {
        let ended = self.tasks.join_next_with_id().await?;
        Some(self.forget(ended))
    }

    /// Takes note of those that have ended.
    pub(super) fn forget_ended(&mut self) {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            drop(self.forget(ended));
        }
    }

    fn forget(&mut self, ended: Result<(Id, T), tokio::task::JoinError>) -> Option<T> {
        let (task, came) = match ended {
            Ok((task, came)) => (task, Some(came)),
            Err(error) => {
                tracing::error!(%error, "a health check broke off");
                (error.id(), None)
            }
        };
        // Break it: keep the names until no check is under way; in a process that always makes one they then grow for ever
        // (`watch::health::under_way::tests::the_name_of_a_claim_is_forgotten_with_its_check`).
        self.names.remove(&task);
        came
    }

    /// Drops what is under way; the names under which that was claimed.
    pub(super) async fn end(mut self) -> BTreeSet<String> {
        self.tasks.shutdown().await;
        self.names.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_name_of_a_claim_is_forgotten_with_its_check() {
        let mut under_way = UnderWay::default();
        // One that never ends, and then many that do, well or badly.
        under_way.begin("slow", std::future::pending());
        for number in 0..50 {
            under_way.begin(&format!("quick {number}"), async move {
                assert!(number % 2 == 0, "as it was meant to");
                number
            });
            let ended = under_way.next().await.unwrap();
            assert_eq!(ended, (number % 2 == 0).then_some(number));
            under_way.forget_ended();
            assert_eq!((under_way.count(), under_way.names.len()), (1, 1));
        }
        assert_eq!(under_way.end().await, BTreeSet::from(["slow".to_owned()]));
    }
}
