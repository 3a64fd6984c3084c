//! Runs that contradict each other, that are not answered for, or that say what nobody knows: each is told, and none hides another.

use caretaker::clock::Millis;
use caretaker::connector::{ConnectorError, JobView, RunView};
use caretaker::incident::FailureKind;
use caretaker::watch::Memory;

use super::polling::{Bench, refused, unreachable};
use super::provider::{job, run};

/// One in which run 1 has succeeded and was seen.
async fn quiet() -> Bench {
    let mut bench = Bench::new();
    bench.succeeds(1);
    bench.poll().await;
    bench
}

fn kinds(bench: &Bench) -> Vec<FailureKind> {
    let failures = bench.book.failures.lock().unwrap();
    failures.iter().map(|failure| failure.kind).collect()
}

fn of_workflow(workflow_id: u64, id: u64, conclusion: &str) -> RunView {
    RunView {
        workflow_id,
        ..run(id, conclusion)
    }
}

/// A run of a pull request, which does not count.
fn other(id: u64) -> RunView {
    RunView {
        event: "pull_request".to_owned(),
        ..run(id, "failure")
    }
}

fn logged(id: u64, name: &str) -> JobView {
    JobView {
        id,
        ..job(name, "failure", 3)
    }
}

#[tokio::test]
async fn a_failed_job_does_not_hide_behind_a_namesake_that_succeeded() {
    for jobs in [
        ["success", "failure"],
        ["failure", "success"],
        ["failure", "failure"],
    ] {
        let mut bench = quiet().await;
        let jobs = jobs.map(|conclusion| job("test", conclusion, 3));
        bench.provider.put(run(2, "failure"), &jobs);
        let report = bench.poll().await;
        assert_eq!((report.opened.len(), report.successes), (1, 0), "{jobs:?}");
    }
}

#[tokio::test]
async fn a_page_full_of_other_runs_makes_no_history_of_failures() {
    let mut bench = Bench::new();
    bench.provider.page_length = 3;
    bench.succeeds(1);
    bench.poll().await;
    bench
        .provider
        .put(run(2, "failure"), &[job("test", "failure", 3)]);
    let jobs = [job("test", "skipped", 0), job("docs", "failure", 3)];
    bench.provider.put(run(3, "failure"), &jobs);
    // The ten pages that are read end before the run that was seen.
    for id in 4..=31 {
        bench.provider.put(other(id), &[]);
    }
    assert_eq!(bench.poll().await.opened.len(), 2);
    assert_eq!(bench.observed_runs(), [2, 3]);
}

#[tokio::test]
async fn logs_that_do_not_come_hold_nothing_back_and_the_run_is_told_in_the_end() {
    let mut bench = quiet().await;
    let jobs: Vec<JobView> = (901..=906)
        .map(|id| logged(id, &format!("job {id}")))
        .collect();
    bench.provider.put(run(2, "failure"), &jobs);
    for job in &jobs {
        let mut logs = bench.provider.logs.lock().unwrap();
        logs.insert(job.id, || Err(unreachable()));
    }
    bench
        .provider
        .put(of_workflow(6, 3, "failure"), &[job("test", "failure", 3)]);
    let report = bench.poll().await;
    assert_eq!(report.opened.len(), 1, "the other one does not wait");
    assert!(bench.memory.is_busy());
    assert_eq!(bench.poll().await.opened.len(), 0, "a log is waited for");
    assert_eq!(bench.poll().await.opened.len(), 6, "but not for long");
    assert!(!bench.memory.is_busy());
    let signatures = bench.book.signatures.lock().unwrap().clone();
    assert_eq!(signatures, vec![None; 7]);
}

#[tokio::test]
async fn a_run_that_waits_for_its_log_is_told_before_a_newer_one() {
    let mut bench = quiet().await;
    bench
        .provider
        .logs
        .lock()
        .unwrap()
        .insert(901, || Err(unreachable()));
    bench
        .provider
        .put(run(2, "failure"), &[logged(901, "docs")]);
    assert_eq!(bench.poll().await.opened.len(), 0);
    bench.fails(3);
    // Another process: run 2 would be stale behind run 3 if it had not been written before.
    bench.memory = Memory::default();
    assert_eq!(bench.poll().await.opened.len(), 2);
    assert_eq!(bench.observed_runs(), [2, 3]);
}

#[tokio::test]
async fn runs_whose_jobs_do_not_come_hold_no_others_back_and_are_told_in_the_end() {
    let mut bench = quiet().await;
    for id in 10..=13 {
        bench.provider.put(of_workflow(id, id, "failure"), &[]);
        bench
            .provider
            .broken
            .lock()
            .unwrap()
            .insert(id, unreachable);
    }
    bench.provider.put(of_workflow(14, 14, "success"), &[]);
    bench
        .provider
        .broken
        .lock()
        .unwrap()
        .insert(14, unreachable);
    let newer = of_workflow(15, 15, "failure");
    bench.provider.put(newer, &[job("test", "failure", 3)]);
    bench.fails(2);
    let report = bench.poll().await;
    assert_eq!(bench.observed_runs(), [15], "what was decided is written");
    assert!(matches!(
        report.unanswered,
        Some(ConnectorError::Unreachable { .. })
    ));
    for _ in 0..3 {
        bench.poll().await;
    }
    assert_eq!(
        bench.observed_runs(),
        [15, 2],
        "those that do not come wait"
    );
    let mut remarks = 0;
    for _ in 0..40 {
        remarks += bench.poll().await.remarks.len();
    }
    let mut told = bench.observed_runs();
    told.sort_unstable();
    assert_eq!(told, [2, 10, 11, 12, 13, 15]);
    assert_eq!(remarks, 5, "the success as well");
    let unknown = kinds(&bench)
        .into_iter()
        .filter(|kind| *kind == FailureKind::Unknown);
    assert_eq!(unknown.count(), 4);
    assert!(!bench.memory.is_busy());
}

#[tokio::test]
async fn a_run_that_is_not_answered_for_is_asked_for_again_and_holds_nothing_back() {
    let mut bench = Bench::new();
    bench.provider.page_length = 2;
    bench.succeeds(1);
    let running = |id| RunView {
        status: "in_progress".to_owned(),
        conclusion: None,
        ..of_workflow(6, id, "")
    };
    bench.provider.put(running(2), &[]);
    for id in 3..=5 {
        bench.provider.put(other(id), &[]);
    }
    bench.poll().await;
    bench.fails(6);
    bench.provider.put(other(7), &[]);
    bench
        .provider
        .unreadable
        .lock()
        .unwrap()
        .insert(2, unreachable);
    let report = bench.poll().await;
    assert_eq!(bench.observed_runs(), [6]);
    assert!(report.unanswered.is_some() && bench.memory.is_busy());
    let failed = of_workflow(6, 2, "failure");
    bench.provider.put(failed, &[job("test", "failure", 3)]);
    bench.provider.unreadable.lock().unwrap().clear();
    bench.poll().await;
    assert_eq!(bench.observed_runs(), [6, 2]);
}

#[tokio::test]
async fn a_running_run_that_turns_odd_on_its_page_is_said_once_and_holds_nothing_back() {
    let mut bench = quiet().await;
    let running = RunView {
        status: "in_progress".to_owned(),
        conclusion: None,
        ..run(2, "")
    };
    bench.provider.put(running, &[]);
    bench.poll().await;
    bench
        .provider
        .runs
        .lock()
        .unwrap()
        .retain(|run| run.id != 2);
    *bench.provider.left_out.lock().unwrap() = vec!["run 2: head_sha is missing".to_owned()];
    bench.provider.unreadable.lock().unwrap().insert(2, refused);
    bench.fails(3);
    assert_eq!(bench.poll().await.remarks.len(), 1);
    assert_eq!(bench.observed_runs(), [3]);
    bench.fails(4);
    assert_eq!(bench.poll().await.remarks, [""; 0]);
    assert!(!bench.memory.is_busy());
}

#[tokio::test]
async fn a_conclusion_under_an_unknown_status_is_told_and_never_a_success() {
    for (status, conclusion, failures, remarks) in [
        ("finished", "failure", 1, 1),
        ("", "timed_out", 1, 1),
        ("finished", "success", 0, 1),
        ("finished", "cancelled", 0, 0),
        ("in_progress", "failure", 0, 0),
    ] {
        let mut bench = quiet().await;
        let odd = RunView {
            status: status.to_owned(),
            ..run(2, conclusion)
        };
        bench.provider.put(odd, &[job("test", conclusion, 3)]);
        let mut said = 0;
        for _ in 0..4 {
            let report = bench.poll().await;
            assert_eq!(report.successes, 0, "{status} {conclusion}");
            said += report.remarks.len();
        }
        assert_eq!(said, remarks, "{status} {conclusion}");
        assert_eq!(
            kinds(&bench),
            vec![FailureKind::Unknown; failures],
            "{status} {conclusion}"
        );
    }
}

#[tokio::test]
async fn a_run_whose_number_cannot_be_right_is_said_and_speaks_for_no_other() {
    let mut bench = quiet().await;
    let ours = [(1 << 53) + 1, 1 << 62, 1 << 63, u64::MAX];
    for id in ours {
        bench
            .provider
            .put(run(id, "success"), &[job("test", "success", 3)]);
    }
    let attempt = RunView {
        attempt: 1 << 63,
        ..of_workflow(6, 2, "failure")
    };
    bench.provider.put(attempt, &[]);
    bench.provider.put(other(u64::MAX - 1), &[]);
    let nowhere = RunView {
        branch: None,
        ..of_workflow(7, 3, "failure")
    };
    bench.provider.put(nowhere, &[]);
    bench.fails(30);
    let report = bench.poll().await;
    assert_eq!(bench.observed_runs(), [30]);
    assert_eq!(report.remarks.len(), 6, "{:?}", report.remarks);
    assert_eq!(bench.memory.newest(), Some(30));
    bench.fails(31);
    assert_eq!(bench.poll().await.remarks, [""; 0]);
}

#[tokio::test]
async fn a_run_whose_number_is_out_of_line_makes_no_newer_one_stale() {
    let hour = 3_600_000;
    let made = |at: i64, run: RunView| RunView {
        made_at: Some(Millis(at)),
        ..run
    };
    let mut bench = Bench::new();
    let odd = made(-2 * hour, run(1 << 40, "success"));
    bench.provider.put(odd, &[job("test", "success", 3)]);
    bench.poll().await;
    let late = made(-hour, run(30, "failure"));
    bench.provider.put(late, &[job("test", "failure", 3)]);
    assert_eq!(bench.poll().await.opened.len(), 1);
    // One that was really made before another stays stale, and one that claims to come from the future is not believed.
    let old = made(-3 * hour, run(29, "failure"));
    bench.provider.put(old, &[job("docs", "failure", 3)]);
    let future = made(1_000 * hour, run(28, "success"));
    bench.provider.put(future, &[job("test", "success", 3)]);
    let report = bench.poll().await;
    assert_eq!((report.opened.len(), report.successes), (0, 0));
    assert_eq!(bench.observed_runs(), [30]);
}
