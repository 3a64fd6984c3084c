//! Whether anything can be reached from here.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use url::Url;

use crate::clock::Millis;
use crate::probe::Probe;

/// How long a target may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// For how long an answer stands for other checks that fail meanwhile, in milliseconds.
const STANDS: i64 = 5_000;

/// Targets that have nothing to do with each other nor with what is watched. When none of them answers, the outage is ours.
pub struct SelfCheck {
    probe: Arc<dyn Probe>,
    targets: Vec<Url>,
    /// When it was last found out, and how it was. The lock is held while asking: many checks that fail at once ask once.
    known: Mutex<Option<(Millis, bool)>>,
}

impl SelfCheck {
    /// With these targets; with none, everything counts as reachable.
    pub fn new(probe: Arc<dyn Probe>, targets: Vec<Url>) -> Self {
        Self {
            probe,
            targets,
            known: Mutex::new(None),
        }
    }

    /// Whether any target answers.
    pub async fn reaches_anything(&self, now: Millis) -> bool {
        if self.targets.is_empty() {
            return true;
        }
        let mut known = self.known.lock().await;
        if let Some((at, reached)) = *known
            && (0..STANDS).contains(&now.0.saturating_sub(at.0))
        {
            return reached;
        }
        let reached = self.ask().await;
        *known = Some((now, reached));
        reached
    }

    /// Asks all targets at once, and does not wait for the others when one has answered.
    async fn ask(&self) -> bool {
        let mut asked = JoinSet::new();
        for target in self.targets.clone() {
            let probe = Arc::clone(&self.probe);
            asked.spawn(async move { probe.reaches(&target, DEADLINE).await });
        }
        while let Some(answered) = asked.join_next().await {
            if matches!(answered, Ok(true)) {
                return true;
            }
        }
        false
    }
}
