//! Polls, one after another.

use std::sync::atomic::{AtomicU8, Ordering};

use caretaker::clock::Millis;
use caretaker::connector::github::credential::TokenError;
use caretaker::connector::{Connector as _, ConnectorError, RunView};
use caretaker::id::IncidentId;
use caretaker::incident::FailureKind;
use caretaker::watch::{Memory, PollReport, WatchError, poll};

use super::provider::{Book, Provider, job, project, run};

/// A provider, a store and the process that polls.
pub(super) struct Bench {
    pub(super) provider: Provider,
    pub(super) book: Book,
    pub(super) memory: Memory,
    ids: AtomicU8,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self {
            provider: Provider::new(),
            book: Book::default(),
            memory: Memory::default(),
            ids: AtomicU8::new(0),
        }
    }

    pub(super) async fn try_poll(&mut self) -> Result<PollReport, WatchError> {
        let new_id = || {
            Ok(IncidentId::new(
                Millis(9),
                [self.ids.fetch_add(1, Ordering::SeqCst); 10],
            ))
        };
        poll(
            &project(),
            "main",
            &self.provider,
            &self.book,
            &mut self.memory,
            Millis(9),
            &new_id,
        )
        .await
    }

    pub(super) async fn poll(&mut self) -> PollReport {
        self.try_poll().await.unwrap()
    }

    pub(super) fn fails(&self, id: u64) {
        self.provider
            .put(run(id, "failure"), &[job("test", "failure", 3)]);
    }

    pub(super) fn succeeds(&self, id: u64) {
        self.provider
            .put(run(id, "success"), &[job("test", "success", 3)]);
    }

    pub(super) fn observed_runs(&self) -> Vec<u64> {
        let failures = self.book.failures.lock().unwrap();
        failures.iter().map(|failure| failure.run_id).collect()
    }
}

pub(super) fn refused() -> ConnectorError {
    ConnectorError::Refused {
        action: "reading the jobs".to_owned(),
        reason: "gone wrong".to_owned(),
    }
}

pub(super) fn unreachable() -> ConnectorError {
    ConnectorError::Unreachable {
        action: "reading the jobs".to_owned(),
        address: "memory".to_owned(),
        reason: "reset".to_owned(),
    }
}

fn limited() -> ConnectorError {
    ConnectorError::Limited {
        action: "reading the jobs".to_owned(),
        until: Millis(77),
    }
}

#[tokio::test]
async fn the_first_poll_takes_the_newest_run_and_leaves_history_alone() {
    let mut bench = Bench::new();
    for id in 1..=5 {
        bench.fails(id);
    }
    let scheduled = RunView {
        event: "schedule".to_owned(),
        ..run(2, "failure")
    };
    bench
        .provider
        .put(scheduled, &[job("nightly", "failure", 2)]);
    let report = bench.poll().await;
    assert_eq!(report.opened.len(), 2);
    assert_eq!(bench.observed_runs(), [2, 5]);
    assert_eq!(bench.book.seen.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn a_newest_run_that_succeeded_settles_the_history_before_it() {
    let mut bench = Bench::new();
    bench.fails(1);
    bench.succeeds(2);
    // Cancelled runs say nothing.
    bench.provider.put(run(3, "cancelled"), &[]);
    assert_eq!(bench.poll().await.opened, []);
    assert!(bench.observed_runs().is_empty());
}

#[tokio::test]
async fn nothing_is_raised_twice_not_even_after_a_restart() {
    let mut bench = Bench::new();
    bench.fails(1);
    assert_eq!(bench.poll().await.opened.len(), 1);
    for restarted in [false, true] {
        if restarted {
            bench.memory = Memory::default();
        }
        let report = bench.poll().await;
        assert!(report.opened.is_empty() && report.attached.is_empty());
    }
    assert_eq!(bench.observed_runs(), [1]);
}

#[tokio::test]
async fn a_later_attempt_attaches_and_a_success_recovers() {
    let mut bench = Bench::new();
    bench.fails(1);
    let opened = bench.poll().await.opened;
    let again = RunView {
        attempt: 2,
        ..run(1, "failure")
    };
    bench.provider.put(again, &[job("test", "failure", 3)]);
    assert_eq!(bench.poll().await.attached, opened);
    bench.fails(2);
    assert_eq!(bench.poll().await.attached, opened);
    bench.succeeds(3);
    // The run and its job.
    assert_eq!(bench.poll().await.successes, 2);
    let key = format!("{}/5/push/main/test", project());
    assert_eq!(*bench.book.recovered.lock().unwrap(), [key]);
    bench.fails(4);
    assert_eq!(bench.poll().await.opened.len(), 1);
}

#[tokio::test]
async fn an_older_run_that_ends_late_is_refused() {
    for late in ["success", "failure"] {
        let mut bench = Bench::new();
        let running = RunView {
            status: "in_progress".to_owned(),
            ..run(1, "")
        };
        bench.provider.put(running, &[]);
        if late == "success" {
            bench.fails(2);
        } else {
            bench.succeeds(2);
        }
        bench.poll().await;
        let before = bench.observed_runs();
        if late == "success" {
            bench.succeeds(1);
        } else {
            bench.fails(1);
        }
        let report = bench.poll().await;
        assert_eq!(report.successes, 0, "{late}");
        assert_eq!(bench.observed_runs(), before, "{late}");
        assert!(bench.book.seen.lock().unwrap().contains(&(1, 1)));
    }
}

#[tokio::test]
async fn between_polls_every_job_that_no_newer_run_speaks_of_is_told() {
    let mut bench = Bench::new();
    bench.succeeds(1);
    bench.poll().await;
    let jobs = [job("test", "failure", 3), job("docs", "failure", 3)];
    bench.provider.put(run(2, "failure"), &jobs);
    let jobs = [job("test", "success", 3), job("docs", "skipped", 0)];
    bench.provider.put(run(3, "success"), &jobs);
    let report = bench.poll().await;
    assert_eq!(report.opened.len(), 1);
    let failures = bench.book.failures.lock().unwrap();
    assert_eq!(failures[0].job.as_deref(), Some("docs"));
}

#[tokio::test]
async fn a_run_that_ends_after_it_has_left_the_first_page_is_found() {
    let mut bench = Bench::new();
    bench.provider.page_length = 2;
    let nightly = |status: &str| RunView {
        status: status.to_owned(),
        workflow_id: 6,
        ..run(1, "failure")
    };
    bench.provider.put(nightly("in_progress"), &[]);
    for id in 2..=6 {
        bench.succeeds(id);
        bench.poll().await;
    }
    bench
        .provider
        .put(nightly("completed"), &[job("soak", "failure", 9)]);
    assert_eq!(bench.poll().await.opened.len(), 1);
    assert_eq!(bench.observed_runs(), [1]);
    // Nothing is pending any more: one page is enough.
    assert_eq!(bench.poll().await.pages, 1);
}

#[tokio::test]
async fn pages_are_bounded_however_many_runs_there_are() {
    let mut bench = Bench::new();
    bench.provider.page_length = 3;
    for id in 1..=100 {
        let of_pull = RunView {
            event: "pull_request".to_owned(),
            ..run(id, "failure")
        };
        bench.provider.put(of_pull, &[]);
    }
    assert_eq!(bench.poll().await.pages, 10);
    assert_eq!(bench.poll().await.pages, 1);
}

#[tokio::test]
async fn what_is_not_understood_is_read_again_and_then_unknown() {
    let mut bench = Bench::new();
    bench.succeeds(1);
    bench.poll().await;
    bench.fails(2);
    bench.provider.put(run(3, "vanished"), &[]);
    for _ in 0..2 {
        let report = bench.poll().await;
        // Whether run 2 is stale depends on run 3.
        assert_eq!((report.opened.len(), report.remarks.len()), (0, 0));
    }
    let report = bench.poll().await;
    assert_eq!((report.opened.len(), report.remarks.len()), (2, 1));
    let kinds: Vec<_> = bench
        .book
        .failures
        .lock()
        .unwrap()
        .iter()
        .map(|failure| failure.kind)
        .collect();
    assert_eq!(kinds, [FailureKind::Code, FailureKind::Unknown]);
}

#[tokio::test]
async fn a_word_that_becomes_clear_in_time_raises_nothing() {
    let mut bench = Bench::new();
    bench.succeeds(1);
    bench.poll().await;
    let null = RunView {
        conclusion: None,
        ..run(2, "")
    };
    bench.provider.put(null, &[]);
    bench.poll().await;
    bench.succeeds(2);
    assert_eq!(bench.poll().await.successes, 2);
    assert!(bench.observed_runs().is_empty());
}

#[tokio::test]
async fn one_run_that_cannot_be_read_does_not_hide_the_others() {
    for error in [refused, unreachable] {
        let mut bench = Bench::new();
        bench.succeeds(1);
        bench.poll().await;
        bench.fails(2);
        bench.provider.broken.lock().unwrap().insert(2, error);
        let other = RunView {
            workflow_id: 6,
            ..run(3, "failure")
        };
        bench.provider.put(other, &[job("test", "failure", 3)]);
        assert_eq!(bench.poll().await.opened.len(), 1);
        assert_eq!(bench.observed_runs(), [3]);
        bench.provider.broken.lock().unwrap().clear();
        assert_eq!(bench.poll().await.opened.len(), 1);
        assert_eq!(bench.observed_runs(), [3, 2]);
    }
}

#[tokio::test]
async fn a_limit_ends_the_poll_and_nothing_is_lost() {
    let mut bench = Bench::new();
    bench.fails(1);
    bench.provider.broken.lock().unwrap().insert(1, limited);
    let error = bench.try_poll().await.unwrap_err();
    assert!(error.to_string().contains(project().as_str()), "{error}");
    assert!(bench.book.seen.lock().unwrap().is_empty());
    bench.provider.broken.lock().unwrap().clear();
    assert_eq!(bench.poll().await.opened.len(), 1);
}

#[tokio::test]
async fn a_run_that_waits_for_a_person_is_said_once_and_read_when_it_goes_on() {
    let mut bench = Bench::new();
    bench.provider.put(run(1, "action_required"), &[]);
    assert_eq!(bench.poll().await.remarks.len(), 1);
    assert!(bench.poll().await.remarks.is_empty());
    bench.fails(1);
    assert_eq!(bench.poll().await.opened.len(), 1);
}

#[tokio::test]
async fn wherever_writing_stops_the_next_poll_goes_on_and_history_stays_history() {
    for writes in 0..6 {
        let mut bench = Bench::new();
        for id in 1..=4 {
            bench.fails(id);
        }
        *bench.book.writes_left.lock().unwrap() = Some(writes);
        let stopped = bench.try_poll().await.is_err();
        // What says nothing is marked in one go: the three old runs, then the failure, then its run.
        assert_eq!(stopped, writes < 3, "{writes}");
        *bench.book.writes_left.lock().unwrap() = None;
        bench.memory = Memory::default();
        bench.poll().await;
        // Break it: write the newest first in `Plan::entries`; runs 1 to 3 are then raised after a crash.
        assert_eq!(bench.observed_runs(), [4], "{writes}");
        assert_eq!(bench.book.seen.lock().unwrap().len(), 4, "{writes}");
    }
}

#[tokio::test]
async fn a_run_that_cannot_be_judged_is_said_once() {
    let mut bench = Bench::new();
    bench.fails(1);
    *bench.provider.left_out.lock().unwrap() = vec!["run 7: head_sha is missing".to_owned()];
    let remarks = bench.poll().await.remarks;
    assert!(
        remarks
            .iter()
            .any(|words| words.starts_with("run 7: head_sha is missing; "))
    );
    bench.fails(2);
    assert_eq!(bench.poll().await.remarks, Vec::<String>::new());
}

#[tokio::test]
async fn a_page_that_a_failed_poll_has_read_is_read_again() {
    let mut bench = Bench::new();
    bench.succeeds(1);
    bench.poll().await;
    bench.fails(2);
    *bench.book.unreadable.lock().unwrap() = true;
    assert!(bench.try_poll().await.is_err());
    *bench.book.unreadable.lock().unwrap() = false;
    // The provider says "not modified" from now on: that very page was read before.
    assert_eq!(bench.poll().await.opened.len(), 1);
    assert!(bench.poll().await.opened.is_empty());
}

#[tokio::test]
async fn another_project_that_reads_the_same_page_first_takes_nothing_away() {
    let mut bench = Bench::new();
    bench.succeeds(1);
    bench.poll().await;
    bench.fails(2);
    let memory = std::mem::take(&mut bench.memory);
    bench.provider.runs(1).await.unwrap();
    bench.memory = memory;
    assert_eq!(bench.poll().await.opened.len(), 1);
}

#[tokio::test]
async fn what_a_failed_poll_would_have_said_is_said_by_the_next() {
    let mut bench = Bench::new();
    bench.succeeds(1);
    bench.poll().await;
    bench.provider.put(run(2, "action_required"), &[]);
    bench.fails(3);
    *bench.book.writes_left.lock().unwrap() = Some(0);
    assert!(bench.try_poll().await.is_err());
    *bench.book.writes_left.lock().unwrap() = None;
    assert_eq!(bench.poll().await.remarks.len(), 1);
}

/// Break it: let the poll fail; every later one then fails too, since the run is asked for again.
#[tokio::test]
async fn an_old_run_that_turns_odd_is_said_once_and_keeps_nothing_from_being_polled() {
    let mut bench = Bench::new();
    let running = RunView {
        status: "in_progress".to_owned(),
        conclusion: None,
        ..run(1, "")
    };
    bench.provider.put(running, &[]);
    bench.poll().await;
    // It leaves the list, and what is said of it by itself makes no sense.
    bench.provider.runs.lock().unwrap().clear();
    bench.provider.unreadable.lock().unwrap().insert(1, refused);
    bench.fails(2);
    let report = bench.poll().await;
    assert_eq!(bench.observed_runs(), [2]);
    assert_eq!(report.remarks.len(), 1, "{:?}", report.remarks);
    assert!(report.remarks[0].contains("run 1"), "{:?}", report.remarks);
    bench.fails(3);
    let report = bench.poll().await;
    assert_eq!(report.remarks, [""; 0]);
    assert_eq!(bench.observed_runs(), [2, 3]);
    assert!(!bench.memory.is_busy());
}

fn suspended() -> ConnectorError {
    ConnectorError::from(TokenError::Suspended {
        action: "getting a token for the poller".to_owned(),
        installation: 77,
    })
}

/// Break it: treat it as an answer that makes no sense; after three polls the run then counts as failed for an unknown cause.
#[tokio::test]
async fn without_a_token_nothing_is_made_up_about_a_run() {
    let mut bench = Bench::new();
    bench.poll().await;
    bench.fails(1);
    bench.provider.broken.lock().unwrap().insert(1, suspended);
    for _ in 0..4 {
        bench.try_poll().await.unwrap_err();
    }
    assert!(bench.observed_runs().is_empty());
    bench.provider.broken.lock().unwrap().clear();
    bench.poll().await;
    assert_eq!(bench.observed_runs(), [1]);
}
