//! A project in a folder of its repository: its tests stand in the policy of the session that mends it.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use caretaker::agent::{
    AgentDescription, AgentSession, Coder, CoderError, CoderTask, Diagnosis, FixSummary, GatedTool,
    Governance, Permission, ToolAccess,
};
use caretaker::incident::Stage;
use serde_json::{Value, json};

use super::gated::{gated_with, report, write};
use super::sums;
use super::world::{Seed, Setting};

/// Tries to end with the defect still there.
struct Below;

#[async_trait]
impl Coder for Below {
    fn describe(&self) -> AgentDescription {
        sums::coder().describe()
    }

    fn governance(&self) -> Governance {
        Governance::Gated(vec![GatedTool {
            name: "write_file".to_owned(),
            access: ToolAccess::Writes { path: Some("path") },
        }])
    }

    async fn diagnose(
        &self,
        _: &CoderTask,
        _: &Path,
        session: Option<&AgentSession>,
    ) -> Result<Diagnosis, CoderError> {
        // The gate has to be heard of: a call that is refused is one, too.
        let read = json!({"path": "lib/sums.py"});
        let looked = session.unwrap().guard.before_call("read_file", &read).await;
        assert!(matches!(looked, Permission::Refused(_)));
        session.unwrap().report(report(1));
        let files = ["lib/sums.py", "lib/test_more.py"];
        Ok(Diagnosis {
            cause: "add subtracts".to_owned(),
            files: files.map(|file| file.parse().unwrap()).to_vec(),
            confidence: 900,
            summary: "sums.add subtracts its second argument.".to_owned(),
        })
    }

    async fn fix(
        &self,
        _: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<FixSummary, CoderError> {
        let session = session.unwrap();
        let added = write(session, tree, "lib/test_more.py", sums::NEW_TEST).await;
        assert_eq!(added, Permission::Granted);
        let Permission::Refused(reason) = session.guard.before_end().await else {
            panic!("the session could end without the tests of its folder");
        };
        assert!(
            reason.contains("required verification failed (tests-1)"),
            "{reason}"
        );
        let mended = write(session, tree, "lib/sums.py", sums::RIGHT_MODULE).await;
        assert_eq!(mended, Permission::Granted);
        assert_eq!(session.guard.before_end().await, Permission::Granted);
        session.report(report(2));
        Ok(FixSummary {
            title: "Add instead of subtracting".to_owned(),
            summary: "The sign was wrong.".to_owned(),
        })
    }
}

/// Break it: leave the folder out of the policy (`worker::session`).
#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_only_with_the_tests_of_its_folder() {
    let world = gated_with(Setting {
        seed: Seed::Below,
        coder: Some(Arc::new(Below)),
        ..Setting::sums()
    })
    .await;
    assert_eq!(
        world.settle().await,
        Stage::AwaitingApproval,
        "{:?}",
        world.snapshot().await.escalation()
    );
    let snapshot = world.snapshot().await;
    let session = snapshot.fix().unwrap().session.clone().unwrap();
    let folder = world.home().join("hook-gate").join(&session.id);
    let policy = std::fs::read(folder.join("policy.json")).unwrap();
    let policy: Value = serde_json::from_slice(&policy).unwrap();
    let producers = policy["producers"].as_array().unwrap();
    assert_eq!(producers.len(), 1, "{policy}");
    assert_eq!(producers[0]["folder"], "lib");
}
