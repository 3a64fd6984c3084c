//! Where the floors belong, judging by what was observed.

use super::calibration::Calibration;
use super::score::Score;

/// Fewest scores that anything is suggested from.
pub const FEWEST_SCORES: u64 = 50;

/// How far below the floor of normal traffic nothing is denied yet, in millionths.
const MARGIN: i32 = 20_000;
/// Suggestions are whole hundredths.
const STEP: i32 = 10_000;

/// Floors for the observed embedder and workload, in whole hundredths. They rest on the observed traffic being normal: scores of
/// attacks pull them down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suggestion {
    /// The median: half of normal traffic is above it.
    pub threshold: Score,
    /// Two hundredths below the first percentile: a bit below the floor of normal traffic.
    pub hard_threshold: Score,
    /// The tenth percentile: a mean of several scores below it is unusual.
    pub drift_threshold: Score,
}

impl Suggestion {
    /// What the observed scores suggest; `None` while there are fewer than [`FEWEST_SCORES`].
    pub fn from(observed: &Calibration) -> Option<Self> {
        if observed.scored() < FEWEST_SCORES {
            return None;
        }
        let at = |thousandths: u16, below: i32| {
            let score = observed.quantile(thousandths)?;
            let micro = (score.micro() - below).div_euclid(STEP) * STEP;
            Score::from_micro(micro.max(Score::LEAST.micro()))
        };
        Some(Self {
            threshold: at(500, 0)?,
            hard_threshold: at(10, MARGIN)?,
            drift_threshold: at(100, 0)?,
        })
    }
}
