//! The trend of a task's scores: told when it turns, never a gate of its own.

use std::collections::VecDeque;

use super::score::Score;

/// The floor of the mean unless another is configured.
pub const DEFAULT_DRIFT_FLOOR: f64 = 0.35;

/// Longest window, in scores.
const LONGEST_WINDOW: i64 = 1000;

/// Why numbers are no rule. The words are those that operators of such checks know.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum DriftFault {
    /// One score has no trend.
    #[error("intent_drift: window {0} < 2 (one score has no trend)")]
    Short(i64),
    /// Longer than is kept of a task.
    #[error("intent_drift: window {0} > {LONGEST_WINDOW} (no more scores of a task are kept)")]
    Long(i64),
    /// The floor is no cosine.
    #[error("intent_drift: drift_threshold {0:.3} outside [-1,1]")]
    Floor(f64),
    /// A run of one is none.
    #[error("intent_drift: monotone_n {0} invalid (must be 0 or ≥ 2)")]
    Run(i64),
    /// A run that is never seen.
    #[error(
        "intent_drift: monotone_n {run} > window {window} (only window scores are kept, so it would never fire)"
    )]
    Unseen {
        /// The run.
        run: i64,
        /// The window.
        window: i64,
    },
    /// There are no scores to watch.
    #[error("intent_drift: requires intent_alignment.enabled = true")]
    Alone,
}

/// When a task drifts: its last `window` scores have a mean below a floor, or the last `monotone_n` of them fall strictly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriftRule {
    window: usize,
    floor: Score,
    /// 0 is off.
    run: usize,
}

impl DriftRule {
    /// The window unless another is configured.
    pub const DEFAULT_WINDOW: i64 = 5;

    /// Takes the configured numbers: a window of 2 to 1000 scores, a floor of the mean from -1 to 1, and a falling run of 0 (off)
    /// or 2 to `window` scores.
    ///
    /// # Errors
    /// Numbers that could never tell anything, or that are no cosine.
    pub fn new(window: i64, floor: f64, monotone_n: i64) -> Result<Self, DriftFault> {
        if window < 2 {
            return Err(DriftFault::Short(window));
        }
        if window > LONGEST_WINDOW {
            return Err(DriftFault::Long(window));
        }
        let score = Score::from_cosine(floor).filter(|_| (-1.0..=1.0).contains(&floor));
        let score = score.ok_or(DriftFault::Floor(floor))?;
        if monotone_n < 0 || monotone_n == 1 {
            return Err(DriftFault::Run(monotone_n));
        }
        if monotone_n > window {
            return Err(DriftFault::Unseen {
                run: monotone_n,
                window,
            });
        }
        let number = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self {
            window: number(window),
            floor: score,
            run: number(monotone_n),
        })
    }

    /// How many scores are looked at.
    pub const fn window(&self) -> usize {
        self.window
    }
}

/// Which way a task turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransitionKind {
    /// It began to drift.
    Entered,
    /// It no longer drifts.
    Recovered,
}

impl TransitionKind {
    /// The word in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Entered => "entered",
            Self::Recovered => "recovered",
        }
    }
}

/// What showed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The mean is below its floor.
    Mean,
    /// Scores fall one after another.
    Monotone,
    /// Both at once.
    Both,
    /// Neither any more.
    Recovered,
}

impl Severity {
    /// The word in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "mean_below_threshold",
            Self::Monotone => "monotone_decrease",
            Self::Both => "both",
            Self::Recovered => "recovered",
        }
    }
}

/// A turn of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// Which way.
    pub kind: TransitionKind,
    /// What showed it.
    pub severity: Severity,
    /// The mean of the window at that moment, failures counting as -1.
    pub mean: Score,
    /// The configured number of scores.
    pub window: usize,
}

/// The last scores of one task. A call that was denied without a score is kept too: it counts as -1 for the mean, so that a run of
/// failures is seen, and it interrupts a falling run, about which it says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriftRing {
    scores: VecDeque<Option<Score>>,
    drifting: bool,
}

impl DriftRing {
    /// Takes the next score, or the lack of one, and answers when the task turned. Nothing is told before the window is full.
    pub fn observe(&mut self, rule: &DriftRule, score: Option<Score>) -> Option<Transition> {
        self.scores.push_back(score);
        while self.scores.len() > rule.window {
            self.scores.pop_front();
        }
        if self.scores.len() < rule.window {
            return None;
        }
        let millionths = |score: &Option<Score>| i64::from(score.unwrap_or(Score::LEAST).micro());
        let sum: i64 = self.scores.iter().map(millionths).sum();
        let count = i64::try_from(rule.window).unwrap_or(i64::MAX);
        let below = sum < i64::from(rule.floor.micro()) * count;
        let severity = match (below, rule.run > 0 && self.falls(rule.run)) {
            (true, true) => Some(Severity::Both),
            (true, false) => Some(Severity::Mean),
            (false, true) => Some(Severity::Monotone),
            (false, false) => None,
        };
        // Break it: answer whenever there is a severity; a long drift then floods the stream
        // (`intent::drift::events_alternate_whatever_the_scores_are`).
        if severity.is_some() == self.drifting {
            return None;
        }
        self.drifting = !self.drifting;
        Some(Transition {
            kind: match severity {
                Some(_) => TransitionKind::Entered,
                None => TransitionKind::Recovered,
            },
            severity: severity.unwrap_or(Severity::Recovered),
            mean: mean(sum, count),
            window: rule.window,
        })
    }

    /// Takes the last answer back: it could not be put on record, so the turn is told again with the next score.
    pub const fn untold(&mut self) {
        self.drifting = !self.drifting;
    }

    /// Whether the last `run` are scores, each below the one before.
    fn falls(&self, run: usize) -> bool {
        let tail = || self.scores.iter().skip(self.scores.len() - run);
        tail()
            .zip(tail().skip(1))
            .all(|(one, next)| matches!((one, next), (Some(one), Some(next)) if next < one))
    }
}

/// The mean in millionths, halves to the even one.
fn mean(sum: i64, count: i64) -> Score {
    let (quotient, rest) = (sum.div_euclid(count), sum.rem_euclid(count));
    let up = rest * 2 > count || rest * 2 == count && quotient % 2 != 0;
    let micro = i32::try_from(quotient + i64::from(up)).unwrap_or_default();
    Score::from_micro(micro).unwrap_or(Score::LEAST)
}
