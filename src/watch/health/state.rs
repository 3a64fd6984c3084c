//! How an endpoint stands, and what each check changes about it: one pure table.

use serde::{Deserialize, Serialize};

use crate::change::Oid;
use crate::clock::Millis;
use crate::config::HealthCheck;

/// What is understood of a stored state. A newer one is refused, not guessed at.
const VERSION: u8 = 1;
/// Between two messages about a certificate that ends soon, in milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1_000;
/// Transitions that wait to be told, at most; beyond that whole outages that came and went are dropped.
const MOST_OWED: usize = 16;

/// What one check came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as expected.
    Passed {
        /// How long it took, in milliseconds.
        latency: u64,
        /// Whole days until the certificate ends; none without TLS.
        certificate_days: Option<i64>,
        /// The commit that the endpoint says it runs.
        commit: Option<Oid>,
    },
    /// Something is not.
    Failed {
        /// What, in words.
        reason: String,
        /// The commit that the endpoint says it runs.
        commit: Option<Oid>,
    },
    /// It failed, and so does everything else that is asked from here.
    OurOutage {
        /// How it failed, in words.
        reason: String,
    },
}

/// Where an endpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Phase {
    /// It answers as expected.
    Up,
    /// It failed, not often enough yet.
    Failing {
        /// How often in a row.
        count: u32,
        /// Since when.
        since: Millis,
    },
    /// It is down: this has opened an incident.
    Down {
        /// Since the first failure of the outage.
        since: Millis,
        /// The outage's number.
        outage: u64,
    },
    /// It answers again, not often enough yet.
    Recovering {
        /// How often in a row.
        count: u32,
        /// Down since then.
        since: Millis,
        /// The outage's number.
        outage: u64,
    },
}

/// Something that people or the incident must hear of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Transition {
    /// An outage began.
    Opened {
        /// Its number: it grows with each outage of an endpoint.
        outage: u64,
        /// When the first of its checks failed.
        since: Millis,
        /// How the last of them failed.
        reason: String,
        /// The commit that the endpoint last said it runs.
        commit: Option<Oid>,
    },
    /// It is over.
    Closed {
        /// Its number.
        outage: u64,
        /// When it began.
        since: Millis,
    },
    /// The certificate ends soon.
    CertificateEnds {
        /// In so many whole days.
        days: i64,
    },
}

/// The last check, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Last {
    /// When it began.
    pub at: Millis,
    /// How it ended.
    pub result: LastResult,
    /// What was wrong, in words; empty when nothing was.
    pub reason: String,
    /// How long it took, in milliseconds, when it passed.
    pub latency: Option<u64>,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LastResult {
    /// As expected.
    Passed,
    /// Not as expected.
    Failed,
    /// Nothing can be reached from here, so it says nothing.
    OurOutage,
}

/// Everything that is remembered of an endpoint. It is stored as JSON; a process that starts again goes on exactly where the
/// last one was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthState {
    version: u8,
    /// Where it is.
    pub phase: Phase,
    /// Since when it is there: up or down, not how often in a row.
    pub since: Option<Millis>,
    /// The last check.
    pub last: Option<Last>,
    /// Whole days until its certificate ends, as last seen.
    pub certificate_days: Option<i64>,
    /// When people were last told that its certificate ends.
    certificate_told: Option<Millis>,
    /// The commit that it last said it runs.
    pub commit: Option<Oid>,
    /// The number of the last outage.
    last_outage: u64,
    /// What happened and is not told yet, oldest first.
    owed: Vec<Transition>,
}

impl Default for HealthState {
    fn default() -> Self {
        Self {
            version: VERSION,
            phase: Phase::Up,
            since: None,
            last: None,
            certificate_days: None,
            certificate_told: None,
            commit: None,
            last_outage: 0,
            owed: Vec::new(),
        }
    }
}

/// Why a stored state cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("reading the stored state of a health check: {reason}; was it written by a newer version?")]
pub struct StateError {
    reason: String,
}

impl HealthState {
    /// From the stored text; the empty text is an endpoint that was never asked.
    ///
    /// # Errors
    /// Text that this version has not written.
    pub fn from_text(text: &str) -> Result<Self, StateError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let state: Self = serde_json::from_str(text).map_err(|error| StateError {
            reason: error.to_string(),
        })?;
        if state.version != VERSION {
            return Err(StateError {
                reason: format!("it has version {}, not {VERSION}", state.version),
            });
        }
        Ok(state)
    }

    /// As text for the store.
    ///
    /// # Errors
    /// Never for what [`advance`] made; JSON has no other failure.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Whether it counts as down.
    pub const fn is_down(&self) -> bool {
        matches!(self.phase, Phase::Down { .. } | Phase::Recovering { .. })
    }

    /// Whether one more failure would change anything but the record.
    pub const fn heeds_failures(&self) -> bool {
        !matches!(self.phase, Phase::Down { .. })
    }

    /// What happened and is not told yet, oldest first.
    pub fn owed(&self) -> &[Transition] {
        &self.owed
    }

    /// The oldest of it is told.
    pub fn told(&mut self) {
        if !self.owed.is_empty() {
            self.owed.remove(0);
        }
    }

    /// Keeps what happened until it is told. An endpoint that comes and goes while nothing can be told does not fill the
    /// database: a whole outage in the middle is dropped, never half of one.
    fn owe(&mut self, transition: Transition) {
        self.owed.push(transition);
        while self.owed.len() > MOST_OWED {
            let whole = self.owed.windows(2).position(|pair| {
                matches!(pair, [Transition::Opened { .. }, Transition::Closed { .. }])
            });
            match whole {
                Some(place) => drop(self.owed.drain(place..place + 2)),
                None => drop(self.owed.remove(0)),
            }
        }
    }
}

/// What a check changes. Total: every phase and every outcome has an answer. `now` never goes back: a clock that does is taken
/// to stand still. What happened is given back, and owed until it is told.
pub fn advance(
    state: &HealthState,
    check: &HealthCheck,
    outcome: &Outcome,
    now: Millis,
) -> (HealthState, Vec<Transition>) {
    let now = state.last.as_ref().map_or(now, |last| last.at.max(now));
    let mut after = state.clone();
    after.last = Some(last(outcome, now));
    let mut transitions = Vec::new();
    if let Outcome::Passed { commit, .. } | Outcome::Failed { commit, .. } = outcome {
        after.commit = commit.or(state.commit);
    }
    after.phase = match (state.phase, outcome) {
        // Break it: count it like a failure; an outage of our own then opens an incident for every endpoint.
        (phase, Outcome::OurOutage { .. }) => phase,
        (Phase::Up | Phase::Failing { .. }, Outcome::Passed { .. }) => Phase::Up,
        (Phase::Up, Outcome::Failed { reason, .. }) => {
            after.fails(check, (1, now), reason, now, &mut transitions)
        }
        (Phase::Failing { count, since }, Outcome::Failed { reason, .. }) => {
            let so_far = (count.saturating_add(1), since);
            after.fails(check, so_far, reason, now, &mut transitions)
        }
        (down @ Phase::Down { .. }, Outcome::Failed { .. }) => down,
        (Phase::Recovering { since, outage, .. }, Outcome::Failed { .. }) => {
            Phase::Down { since, outage }
        }
        (Phase::Down { since, outage }, Outcome::Passed { .. }) => {
            after.recovers(check, 1, (since, outage), now, &mut transitions)
        }
        (
            Phase::Recovering {
                count,
                since,
                outage,
            },
            Outcome::Passed { .. },
        ) => {
            let count = count.saturating_add(1);
            after.recovers(check, count, (since, outage), now, &mut transitions)
        }
    };
    if let (None, Outcome::Passed { .. }) = (after.since, outcome) {
        after.since = Some(now);
    }
    if let Outcome::Passed {
        certificate_days, ..
    } = outcome
    {
        after.certificate(check, *certificate_days, now, &mut transitions);
    }
    for transition in &transitions {
        after.owe(transition.clone());
    }
    (after, transitions)
}

fn last(outcome: &Outcome, at: Millis) -> Last {
    let (result, reason, latency) = match outcome {
        Outcome::Passed { latency, .. } => (LastResult::Passed, String::new(), Some(*latency)),
        Outcome::Failed { reason, .. } => (LastResult::Failed, reason.clone(), None),
        Outcome::OurOutage { reason } => (LastResult::OurOutage, reason.clone(), None),
    };
    Last {
        at,
        result,
        reason,
        latency,
    }
}

impl HealthState {
    /// So many failures in a row, since then.
    fn fails(
        &mut self,
        check: &HealthCheck,
        (count, since): (u32, Millis),
        reason: &str,
        now: Millis,
        transitions: &mut Vec<Transition>,
    ) -> Phase {
        if count < check.failures_to_open {
            return Phase::Failing { count, since };
        }
        let moment = u64::try_from(now.0).unwrap_or(0);
        let outage = moment.max(self.last_outage.saturating_add(1));
        self.last_outage = outage;
        self.since = Some(since);
        transitions.push(Transition::Opened {
            outage,
            since,
            reason: reason.to_owned(),
            commit: self.commit,
        });
        Phase::Down { since, outage }
    }

    /// So many successes in a row.
    fn recovers(
        &mut self,
        check: &HealthCheck,
        count: u32,
        (since, outage): (Millis, u64),
        now: Millis,
        transitions: &mut Vec<Transition>,
    ) -> Phase {
        if count < check.successes_to_close {
            return Phase::Recovering {
                count,
                since,
                outage,
            };
        }
        self.since = Some(now);
        transitions.push(Transition::Closed { outage, since });
        Phase::Up
    }

    /// A certificate that ends soon is told of once a day.
    fn certificate(
        &mut self,
        check: &HealthCheck,
        days: Option<i64>,
        now: Millis,
        transitions: &mut Vec<Transition>,
    ) {
        self.certificate_days = days;
        let Some(days) = days else { return };
        let from = i64::from(check.expect.certificate_days);
        if from == 0 || days > from {
            // Renewed: the next one that ends is told of at once.
            self.certificate_told = None;
        } else if self
            .certificate_told
            .is_none_or(|told| now.0.saturating_sub(told.0) >= DAY)
        {
            self.certificate_told = Some(now);
            transitions.push(Transition::CertificateEnds { days });
        }
    }
}
