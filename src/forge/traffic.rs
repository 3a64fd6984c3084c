//! What arrived at the forge, and what a test wants to happen to it: faults as data, and acts between requests.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::error::ForgeError;
use super::state::locked;

/// How many requests are remembered; older ones are forgotten.
const REMEMBERED: usize = 20_000;

/// Which of the forge's two origins a request went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// API, git and pages.
    Main,
    /// Log downloads.
    Logs,
}

/// One request as it arrived, and how it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// Where it arrived.
    pub origin: Origin,
    /// The method, in capitals.
    pub method: String,
    /// The path as sent, percent-encoded, without the query.
    pub path: String,
    /// The query as sent, without the question mark.
    pub query: String,
    /// Whether it carried an `Authorization` header.
    pub authorized: bool,
    /// The status of the answer; `None` while there is none, and for ever when the connection was closed instead.
    pub status: Option<u16>,
}

/// What goes wrong with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// The request has no effect; this is the answer.
    Status {
        /// The HTTP status.
        code: u16,
        /// The body, sent as JSON.
        body: String,
        /// Further headers.
        headers: Vec<(String, String)>,
    },
    /// The request has no effect and there is never an answer.
    Hang,
    /// The request has no effect and the connection is closed without an answer.
    CloseBeforeEffect,
    /// The request is carried out, and the connection is closed without an answer.
    CloseAfterEffect,
    /// The request is carried out; the headers announce the whole body, but the connection ends after so many bytes of it.
    Truncate(usize),
    /// The request is carried out after so many milliseconds.
    Delay(u64),
    /// The request has no effect; the answer is 200 with a body that never ends, for as long as the client reads.
    Endless,
    /// The request has no effect; the answer is 200 and says that these bytes are JSON.
    Garbage(Vec<u8>),
}

/// A fault and the request it strikes. It strikes once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The method in capitals; `*` for any.
    pub method: String,
    /// A part of the path, such as `/pulls/1/merge`; a log's path at the log origin begins with `/logs/`.
    pub path: String,
    /// Which of the matching requests from now on, counted from 1.
    pub nth: usize,
    /// What happens to it.
    pub action: FaultAction,
}

/// Before or after the effect of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the request is looked at.
    Before,
    /// After its effect and before its answer is sent.
    After,
}

/// An act that somebody performs between requests.
pub(crate) type Act = Box<dyn FnOnce() -> Result<(), ForgeError> + Send>;

/// Changes an answer.
pub(crate) type Distortion = Box<dyn Fn(&mut serde_json::Value) + Send + Sync>;

/// Strikes once, at the nth request that matches.
struct Trap<T> {
    method: String,
    path: String,
    left: usize,
    load: T,
}

/// What befalls one request.
#[derive(Default)]
pub(crate) struct Interventions {
    pub(crate) fault: Option<FaultAction>,
    pub(crate) before: Vec<Act>,
    pub(crate) after: Vec<Act>,
}

/// The log of requests and the traps that wait for them.
#[derive(Default)]
pub(crate) struct Traffic {
    log: Mutex<Log>,
    faults: Mutex<Vec<Trap<FaultAction>>>,
    acts: Mutex<Vec<Trap<(Moment, Act)>>>,
    /// By method and part of the path.
    distortions: Mutex<Vec<(String, String, Distortion)>>,
}

#[derive(Default)]
struct Log {
    /// How many requests were forgotten.
    forgotten: usize,
    records: VecDeque<RequestRecord>,
}

/// Names a record of the log.
#[derive(Clone, Copy)]
pub(crate) struct RecordNumber(usize);

impl Traffic {
    /// Notes a request that has arrived.
    pub(crate) fn arrived(&self, record: RequestRecord) -> RecordNumber {
        let mut log = locked(&self.log);
        if log.records.len() == REMEMBERED {
            log.records.pop_front();
            log.forgotten += 1;
        }
        log.records.push_back(record);
        RecordNumber(log.forgotten + log.records.len() - 1)
    }

    /// Notes the status of its answer.
    pub(crate) fn answered(&self, number: RecordNumber, status: u16) {
        let mut log = locked(&self.log);
        let index = number.0.checked_sub(log.forgotten);
        if let Some(record) = index.and_then(|index| log.records.get_mut(index)) {
            record.status = Some(status);
        }
    }

    pub(crate) fn records(&self) -> Vec<RequestRecord> {
        locked(&self.log).records.iter().cloned().collect()
    }

    pub(crate) fn plan_fault(&self, fault: Fault) {
        let Fault {
            method,
            path,
            nth,
            action,
        } = fault;
        locked(&self.faults).push(Trap {
            method,
            path,
            left: nth.max(1),
            load: action,
        });
    }

    pub(crate) fn plan_act(&self, method: &str, path: &str, nth: usize, moment: Moment, act: Act) {
        let trap = Trap {
            method: method.to_owned(),
            path: path.to_owned(),
            left: nth.max(1),
            load: (moment, act),
        };
        locked(&self.acts).push(trap);
    }

    pub(crate) fn plan_distortion(&self, method: &str, path: &str, change: Distortion) {
        locked(&self.distortions).push((method.to_owned(), path.to_owned(), change));
    }

    /// The answer as it was changed by every distortion that fits; `None` where none does.
    pub(crate) fn distorted(
        &self,
        method: &str,
        path: &str,
        answer: impl FnOnce() -> serde_json::Value,
    ) -> Option<serde_json::Value> {
        let distortions = locked(&self.distortions);
        let mut fitting = distortions
            .iter()
            .filter(|(wanted, part, _)| {
                (wanted == "*" || wanted == method) && path.contains(part.as_str())
            })
            .peekable();
        fitting.peek()?;
        let mut changed = answer();
        for (_, _, change) in fitting {
            change(&mut changed);
        }
        Some(changed)
    }

    /// What befalls this request. Every matching trap counts it.
    pub(crate) fn interventions(&self, method: &str, path: &str) -> Interventions {
        let mut found = Interventions {
            fault: sprung(&self.faults, method, path).into_iter().next(),
            ..Interventions::default()
        };
        for (moment, act) in sprung(&self.acts, method, path) {
            match moment {
                Moment::Before => found.before.push(act),
                Moment::After => found.after.push(act),
            }
        }
        found
    }
}

/// Counts the request at every trap and takes out those whose turn it is.
fn sprung<T>(traps: &Mutex<Vec<Trap<T>>>, method: &str, path: &str) -> Vec<T> {
    let mut waiting = locked(traps);
    for trap in waiting
        .iter_mut()
        .filter(|trap| (trap.method == "*" || trap.method == method) && path.contains(&trap.path))
    {
        trap.left -= 1;
    }
    waiting
        .extract_if(.., |trap| trap.left == 0)
        .map(|trap| trap.load)
        .collect()
}
