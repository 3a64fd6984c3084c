//! The demo's story, told while it happens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::installation::{Stage, build};
use super::person::answer;
use super::show::Teller;
use super::{DemoArguments, Scenario};
use crate::approvals::Approvals;
use crate::approve::HumanDecision;
use crate::attest::chain::Verdict as Validity;
use crate::audit::{Report, StoredLedger, verify};
use crate::cli::Verdict;
use crate::cli::runtime::stop_on_signal;
use crate::cli::serve::Running;
use crate::clock::SystemClock;
use crate::forge::FileEdit;
use crate::id::IncidentId;
use crate::incident::{ClosedReason, Rerun, Snapshot, Stage as Reached, stage};
use crate::web::{ToolCalls, WebState};
use crate::worker;

/// How long the demo may take before it says that it failed.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long a tool call would wait for an answer, in seconds; the scripted coder makes none.
const TOOL_CALL_SECONDS: u32 = 600;
/// Pause between two looks at the incident.
const LOOK: Duration = Duration::from_millis(50);

pub(super) async fn tell(
    arguments: &DemoArguments,
    home: &std::path::Path,
) -> anyhow::Result<Verdict> {
    let started = Instant::now();
    let stop = stop_on_signal()?;
    let mut teller = Teller::new(arguments.json);
    teller.opening(arguments.scenario)?;
    let stage = build(home, arguments.scenario).await?;
    teller.places(&stage, home, arguments.keep)?;
    let mut running = Running::new(stop.clone());
    let Stage { engine, .. } = &stage;
    let organisation = engine.keys.organisation().clone();
    let history = engine.keys.history().clone();
    let mut state = WebState::new(engine.store.clone(), organisation.clone(), history);
    state.tool_calls = Some(ToolCalls {
        approvals: Approvals::new(
            engine.store.clone(),
            organisation,
            Arc::clone(&engine.events),
            Arc::new(SystemClock),
            engine.random,
            TOOL_CALL_SECONDS,
        ),
        tokens: Arc::new([]),
    });
    running.serve(stage.listener()?, state);
    let incident = stage.watch().await?;
    let mut play = Play {
        stage: &stage,
        incident,
        deadline: started + PATIENCE,
        stop: stop.clone(),
    };
    let told = play.scenario(arguments.scenario, &mut teller).await;
    let ended = match told {
        Ok(()) => play.ending(arguments, &mut teller, started).await?,
        Err(error) => {
            stop.cancel();
            // What the story failed for says more than how the pages ended.
            drop(running.until_stopped().await);
            return Err(error);
        }
    };
    if arguments.serve {
        teller.serving(&stage.pages)?;
    } else {
        stop.cancel();
    }
    running.until_stopped().await?;
    Ok(ended)
}

struct Play<'a> {
    stage: &'a Stage,
    incident: IncidentId,
    deadline: Instant,
    stop: CancellationToken,
}

impl Play<'_> {
    /// Everything up to the incident's end.
    async fn scenario(&mut self, scenario: Scenario, teller: &mut Teller) -> anyhow::Result<()> {
        if scenario == Scenario::Flaky {
            return self.flaky(teller).await;
        }
        let reached = self.work_until_rest(teller).await?;
        if scenario == Scenario::Denied || reached.is_final() {
            return Ok(());
        }
        let link = self
            .stage
            .inbox
            .approval_link()
            .context("the approval link did not arrive")?;
        teller.link(&link)?;
        answer(&link, HumanDecision::Approve).await?;
        teller.said("the owner opened the link and approved exactly this change")?;
        if scenario == Scenario::Tampered {
            self.tamper().await?;
            teller.said("somebody pushed one more commit onto the approved pull request")?;
        }
        self.work_until_rest(teller).await?;
        Ok(())
    }

    /// The sandbox does not show the failure, so that the provider is asked for another attempt, which passes.
    async fn flaky(&mut self, teller: &mut Teller) -> anyhow::Result<()> {
        let asked = |snapshot: &Snapshot| matches!(snapshot.rerun(), Rerun::Awaited { .. });
        if self.work_until(teller, asked).await?.is_final() {
            return Ok(());
        }
        self.stage.run_again()?;
        teller.said("the runner takes the job up again, and every test passes")?;
        let mut eyes = self.stage.eyes();
        while self.snapshot().await?.recovered().is_none() {
            eyes.round().await?;
            anyhow::ensure!(
                Instant::now() < self.deadline,
                "the attempt that passed was not observed"
            );
            tokio::time::sleep(LOOK).await;
        }
        self.work_until_rest(teller).await?;
        Ok(())
    }

    /// Lets a worker work until the incident is over or waits for its owner.
    async fn work_until_rest(&self, teller: &mut Teller) -> anyhow::Result<Reached> {
        let asked = |snapshot: &Snapshot| {
            stage(snapshot) == Reached::AwaitingApproval
                && snapshot
                    .link
                    .as_ref()
                    .is_some_and(|link| snapshot.link_sent(&link.approval))
        };
        self.work_until(teller, asked).await
    }

    /// Lets a worker work until the incident is over or `rests`. It is stopped then, so that the story goes on from a known
    /// place.
    async fn work_until(
        &self,
        teller: &mut Teller,
        rests: impl Fn(&Snapshot) -> bool,
    ) -> anyhow::Result<Reached> {
        let working = self.stop.child_token();
        let (engine, stop) = (self.stage.engine.clone(), working.clone());
        let worker = tokio::spawn(async move { worker::run(engine, "demo", stop).await });
        let reached = loop {
            let snapshot = self.snapshot().await?;
            teller.facts(&snapshot)?;
            let reached = stage(&snapshot);
            let signed = snapshot.ledger.appended == snapshot.ledger.drafted;
            if rests(&snapshot) || (reached.is_final() && signed) {
                break reached;
            }
            anyhow::ensure!(
                Instant::now() < self.deadline,
                "the incident is still {reached} after {} seconds; look at it with --keep and `caretaker incident explain`",
                PATIENCE.as_secs()
            );
            anyhow::ensure!(!self.stop.is_cancelled(), "the demo was interrupted");
            tokio::time::sleep(LOOK).await;
        };
        working.cancel();
        worker.await.context("the demo's worker panicked")?;
        Ok(reached)
    }

    async fn tamper(&self) -> anyhow::Result<()> {
        let snapshot = self.snapshot().await?;
        let branch = snapshot
            .fix()
            .map(|fix| fix.branch.clone())
            .context("there is no fix to tamper with")?;
        let edit = FileEdit::file("//! Nobody approved this file.\n");
        let repository = &self.stage.planted.repository;
        repository.commit(&branch, &[("src/extra.rs", edit)], "one more thing")?;
        Ok(())
    }

    async fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let store = &self.stage.engine.store;
        let scoped = store.within(&self.stage.project.organisation);
        let snapshot = scoped.snapshot(&self.incident, store.now().await?).await?;
        snapshot.context("the incident is gone")
    }

    async fn ledger(&self) -> anyhow::Result<(StoredLedger, Report)> {
        let store = &self.stage.engine.store;
        let scoped = store.within(&self.stage.project.organisation);
        let ledger = scoped.ledger(&self.incident).await?;
        let ledger = ledger.context("the ledger is gone")?;
        let report = verify(self.stage.engine.keys.history(), &ledger);
        Ok((ledger, report))
    }

    /// Shows the ledger and says whether the story ended as it should.
    async fn ending(
        &self,
        arguments: &DemoArguments,
        teller: &mut Teller,
        started: Instant,
    ) -> anyhow::Result<Verdict> {
        let snapshot = self.snapshot().await?;
        let (ledger, report) = self.ledger().await?;
        let end = End {
            incident: self.incident.clone(),
            stage: stage(&snapshot),
            closed_reason: snapshot.closed().map(|(reason, _)| reason),
            pull_request: snapshot.pull_request(),
            merge_commit: merge_commit(&snapshot),
            change_digest: snapshot.fix().map(|fix| fix.change.digest.to_string()),
            events: ledger.rows.len(),
            verdict: report.verdict,
            elapsed: started.elapsed(),
        };
        let surprises = self.surprises(arguments.scenario, &end)?;
        teller.ending(arguments.scenario, &end, &ledger, &report, &surprises)?;
        Ok(if surprises.is_empty() {
            Verdict::Done
        } else {
            Verdict::Refused
        })
    }

    /// What is not as the scenario promises, with the forge itself as the witness.
    fn surprises(&self, scenario: Scenario, end: &End) -> anyhow::Result<Vec<String>> {
        let pulls = self.stage.planted.repository.pulls()?;
        let branches = self.stage.planted.repository.references()?.len();
        let merged = pulls.iter().filter(|pull| pull.merge_commit.is_some());
        let found = (end.stage, pulls.len(), merged.count(), end.events);
        let mut surprises = Vec::new();
        let expected = match scenario {
            Scenario::Fix => (Reached::Resolved, 1, 1, 4),
            Scenario::Denied => (Reached::Blocked, 0, 0, 2),
            Scenario::Tampered => (Reached::Escalated, 1, 0, 4),
            Scenario::Flaky => (Reached::Closed, 0, 0, 0),
        };
        if found != expected {
            surprises.push(format!(
                "expected stage, pull requests, merges and events to be {expected:?}, found {found:?}"
            ));
        }
        if matches!(scenario, Scenario::Denied | Scenario::Flaky) && branches != 1 {
            surprises.push(format!(
                "expected one branch at the forge, found {branches}"
            ));
        }
        if scenario == Scenario::Flaky && end.closed_reason != Some(ClosedReason::Flaky) {
            surprises.push(format!(
                "expected it to be closed as flaky, found {:?}",
                end.closed_reason.map(ClosedReason::as_str)
            ));
        }
        // Of a ledger without events nothing can be verified.
        let verdict = match scenario {
            Scenario::Flaky => Validity::CannotVerify,
            Scenario::Fix | Scenario::Denied | Scenario::Tampered => Validity::Valid,
        };
        if end.verdict != verdict {
            surprises.push(format!("the ledger is {}", end.verdict));
        }
        Ok(surprises)
    }
}

fn merge_commit(snapshot: &Snapshot) -> Option<String> {
    snapshot.facts.iter().find_map(|fact| match &fact.fact {
        crate::incident::Fact::Landed {
            commit,
            matches: true,
            ..
        } => Some(commit.to_string()),
        _ => None,
    })
}

/// How it ended.
pub(super) struct End {
    pub(super) incident: IncidentId,
    pub(super) stage: Reached,
    pub(super) closed_reason: Option<ClosedReason>,
    pub(super) pull_request: Option<u64>,
    pub(super) merge_commit: Option<String>,
    pub(super) change_digest: Option<String>,
    pub(super) events: usize,
    pub(super) verdict: Validity,
    pub(super) elapsed: Duration,
}
