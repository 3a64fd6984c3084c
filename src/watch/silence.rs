//! Looking for workflows that have fallen silent, and writing down what was found.

use super::look::{Means, Watched};
use super::poll::WatchError;
use super::record::{Observations as _, RecordError, StoreObservations};
use super::workflows::{Finding, WorkflowFacts, judge};
use super::{Success, calendar};
use crate::clock::Millis;
use crate::connector::{Connector, ConnectorError, WorkflowView};
use crate::incident::{Failure, FailureKind};
use crate::store::Project;

/// Bytes of a workflow's file that are read.
const FILE_BYTES: usize = 256 * 1024;
/// The scope under which silence is kept: a scheduled run ends it.
const SCOPE: &str = "schedule";

/// Looks at every workflow of a project. What cannot be judged is given back in words, whatever else comes of it.
pub(super) async fn look(
    means: &Means,
    project: &Project,
    watched: &Watched,
    (connector, base): (&dyn Connector, &str),
    now: Millis,
    left_out: &mut Vec<String>,
) -> Result<(), WatchError> {
    let provider = |source: ConnectorError| WatchError::Provider {
        project: project.id.clone(),
        source,
    };
    let record = |source: RecordError| WatchError::Record {
        project: project.id.clone(),
        source,
    };
    let views = match connector.workflows().await {
        Ok(list) => {
            left_out.extend(list.left_out);
            list.workflows
        }
        // A repository without workflows.
        Err(ConnectorError::Absent { .. }) => return Ok(()),
        Err(error) => return Err(provider(error)),
    };
    let known = means.store.workflow_facts(&project.id).await;
    let known = known.map_err(|error| record(error.into()))?;
    let keep = async |facts: &[(u64, String)]| {
        let kept = means.store.keep_workflow_facts(&project.id, facts, now);
        kept.await.map_err(|error| record(error.into()))
    };
    let mut uneventful = Vec::new();
    let mut failed = Ok(());
    for view in &views {
        let before: Option<WorkflowFacts> = known
            .iter()
            .find(|(id, _)| *id == view.id)
            .and_then(|(_, facts)| serde_json::from_str(facts).ok());
        let schedules = match schedules(connector, base, view, before.as_ref()).await {
            Ok(schedules) => schedules,
            Err(error) => {
                failed = Err(provider(error));
                break;
            }
        };
        let scheduled_at = watched.scheduled.get(&view.id).copied();
        let (facts, finding) = judge(before.as_ref(), view, schedules, scheduled_at, now);
        let text = serde_json::to_string(&facts).map_err(|error| record(error.into()))?;
        if let Some(finding) = finding {
            let place = (connector, base);
            write(means, project, watched, place, view, &finding, now).await?;
            // Break it: keep them with the others; a workflow whose file does not come then lets every look write this again
            // (`watch::silence::while_one_file_does_not_come_another_silence_is_told_once`).
            keep(&[(view.id, text)]).await?;
        } else if before.as_ref() != Some(&facts) {
            uneventful.push((view.id, text));
        }
    }
    keep(&uneventful).await?;
    failed
}

/// When a workflow's file says that it runs. A file that makes no sense says what it said `before`.
async fn schedules(
    connector: &dyn Connector,
    base: &str,
    view: &WorkflowView,
    before: Option<&WorkflowFacts>,
) -> Result<Vec<String>, ConnectorError> {
    if view.state != "active" || !view.path.starts_with(".github/workflows/") {
        return Ok(Vec::new());
    }
    match connector.file(base, &view.path, FILE_BYTES).await {
        Ok(file) => Ok(file.map_or_else(Vec::new, |file| calendar::schedules(&file))),
        // Break it: say that it has no schedule, or say so of a file that may not be seen; a silence that goes on then counts
        // as ended (`watch::silence::a_file_that_cannot_be_read_ends_no_silence`).
        Err(ConnectorError::Refused { action, reason }) => {
            tracing::warn!(reason, "{action}: what was known of the workflow stays");
            Ok(before.map_or_else(Vec::new, |before| before.schedules.clone()))
        }
        Err(error) => Err(error),
    }
}

async fn write(
    means: &Means,
    project: &Project,
    watched: &Watched,
    (connector, base): (&dyn Connector, &str),
    view: &WorkflowView,
    finding: &Finding,
    now: Millis,
) -> Result<(), WatchError> {
    let record = |source: RecordError| WatchError::Record {
        project: project.id.clone(),
        source,
    };
    let observations = StoreObservations {
        store: &means.store,
        project,
    };
    // Numbers of runs grow: any run that is seen later is newer than this.
    let run_id = watched.newest();
    let reason = match finding {
        Finding::Heard => {
            let success = Success {
                workflow_id: view.id,
                scope: SCOPE.to_owned(),
                base_ref: base.to_owned(),
                job: None,
                run_id,
                // Later than the silence, which is kept under its own moment.
                attempt: u64::try_from(now.0).unwrap_or_default(),
            };
            let key = success.key(&project.id);
            let ended = observations.observe_success(&key, &success, now).await;
            return ended.map_err(record);
        }
        Finding::Silent(reason) => reason,
    };
    let tip = connector.branch(base).await;
    let tip = tip.map_err(|source| WatchError::Provider {
        project: project.id.clone(),
        source,
    })?;
    let Some(commit) = tip else { return Ok(()) };
    let failure = Failure {
        kind: FailureKind::SilentWorkflow,
        workflow_id: view.id,
        workflow: view.name.clone(),
        scope: SCOPE.to_owned(),
        base_ref: base.to_owned(),
        job: None,
        job_id: None,
        run_id,
        // Not an attempt of a run: the moment keeps one silence apart from the next.
        attempt: u64::try_from(now.0).unwrap_or_default(),
        commit,
        url: None,
        detail: Some(reason.clone()),
    };
    let id = means.new_id(now).map_err(|error| record(error.into()))?;
    let observed = observations.observe(&failure, None, id, now).await;
    observed.map(|_| ()).map_err(record)
}
