//! Whether anything can be reached from here.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;
use url::Url;

use crate::probe::Probe;

/// How long a target may take.
const DEADLINE: Duration = Duration::from_secs(5);

/// Targets that have nothing to do with each other nor with what is watched. When none of them answers, the outage is ours.
pub struct SelfCheck {
    probe: Arc<dyn Probe>,
    targets: Vec<Url>,
    /// When it was last asked, and what came of it. The lock is held while asking: of many checks that fail together, one asks.
    known: Mutex<Option<(Instant, bool)>>,
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

    /// Whether any target answers, asked after a check has failed: what was found out before that says nothing about it.
    pub async fn reaches_anything(&self) -> bool {
        if self.targets.is_empty() {
            return true;
        }
        let failed = Instant::now();
        let mut known = self.known.lock().await;
        // Break it: let an answer stand for some seconds; an outage of ours that begins in between is then an endpoint's.
        if let Some((asked, reached)) = *known
            && asked >= failed
        {
            return reached;
        }
        let asked = Instant::now();
        let reached = self.ask().await;
        *known = Some((asked, reached));
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
