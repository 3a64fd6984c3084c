//! The main job, from a failing run to a proven merge, and how it ends otherwise.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use caretaker::agent::{
    AgentDescription, AgentSession, Coder, CoderError, CoderTask, Diagnosis, FixSummary,
    ScriptedCoder,
};
use caretaker::approve::HumanDecision;
use caretaker::forge::Plant;
use caretaker::incident::{Fact, Stage};

use super::world::{Seed, Setting, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_test_is_fixed_approved_merged_and_proven() {
    let world = World::new(Setting::default()).await;
    assert_eq!(
        world.settle().await,
        Stage::AwaitingApproval,
        "{:#?}",
        world.snapshot().await.escalation()
    );
    assert_eq!(
        world.events().await,
        ["proposal", "policy-decision"],
        "{:#?}",
        world.snapshot().await.facts
    );
    world.answer(HumanDecision::Approve).await;
    assert_eq!(
        world.settle().await,
        Stage::Resolved,
        "{:#?}",
        world.snapshot().await.facts
    );
    assert_eq!(
        world.events().await,
        ["proposal", "policy-decision", "approval", "execution"]
    );
    let pulls = world.planted.repository.pulls().unwrap();
    assert_eq!(pulls.len(), 1);
    let merged = pulls[0].merge_commit.as_ref().expect("it is merged");
    let tip = world.planted.repository.tip("main").unwrap();
    assert_eq!(&tip, merged);
    let file = world.planted.repository.file("main", world.planted.file);
    let text = String::from_utf8(file.unwrap().unwrap()).unwrap();
    assert!(text.contains(world.planted.right));
    assert_eq!(
        world.inbox.events(),
        ["approval-requested", "incident-opened", "incident-resolved"]
    );
    let told = stages(&world.home().join("audit"));
    assert_eq!(
        told,
        "detected reproduced diagnosed gated proposed awaiting-approval approved merging resolved"
    );
}

/// The stages that the audit stream tells, in order.
fn stages(folder: &Path) -> String {
    let files = caretaker::audit_stream::files(folder).unwrap();
    let text: String = files
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    let mut told = Vec::new();
    for line in text.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["event"], "stage_changed");
        let (from, to) = (&event["fields"]["from"], &event["fields"]["to"]);
        if told.is_empty() {
            told.push(from.as_str().unwrap().to_owned());
        }
        assert_eq!(from.as_str(), told.last().map(String::as_str));
        told.push(to.as_str().unwrap().to_owned());
    }
    told.join(" ")
}

/// Finds the cause as ever, and must not be asked for more.
struct DiagnosesOnly(ScriptedCoder);

#[async_trait]
impl Coder for DiagnosesOnly {
    fn describe(&self) -> AgentDescription {
        self.0.describe()
    }

    async fn diagnose(
        &self,
        task: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<Diagnosis, CoderError> {
        self.0.diagnose(task, tree, session).await
    }

    async fn fix(
        &self,
        _: &CoderTask,
        _: &Path,
        _: Option<&AgentSession>,
    ) -> Result<FixSummary, CoderError> {
        panic!("it was asked to edit what is denied")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_path_ends_in_two_events_and_nothing_at_the_forge() {
    let world = World::new(Setting {
        seed: Seed::Plant(Plant::DeniedPath),
        coder: Some(Arc::new(DiagnosesOnly(ScriptedCoder::for_demo().unwrap()))),
        ..Setting::default()
    })
    .await;
    let before = world.planted.repository.references().unwrap();
    assert_eq!(world.settle().await, Stage::Blocked);
    assert_eq!(world.events().await, ["proposal", "policy-decision"]);
    let snapshot = world.snapshot().await;
    let kinds: Vec<_> = snapshot.facts.iter().map(|fact| fact.fact.kind()).collect();
    assert_eq!(
        kinds,
        [
            "reproduced",
            "extracted",
            "diagnosed",
            "screened",
            "decided"
        ]
    );
    let screened = snapshot.facts.iter().map(|fact| &fact.fact);
    let refused = |fact: &Fact| matches!(fact, Fact::Screened { passed: false });
    assert!(
        screened.into_iter().any(refused),
        "before anything is edited"
    );
    assert_eq!(world.planted.repository.references().unwrap(), before);
    assert!(world.planted.repository.pulls().unwrap().is_empty());
    let written = world
        .forge
        .requests()
        .into_iter()
        .filter(|request| request.method != "GET" && !request.path.contains("git-upload-pack"))
        .count();
    assert_eq!(written, 0, "nothing but reads reached the forge");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_changed_after_approval_is_not_merged() {
    let world = World::new(Setting::default()).await;
    world.settle().await;
    world.answer(HumanDecision::Approve).await;
    let branch = world.snapshot().await.fix().unwrap().branch.clone();
    let edit = caretaker::forge::FileEdit::file("// more\n");
    world
        .planted
        .repository
        .commit(&branch, &[("src/extra.rs", edit)], "one more")
        .unwrap();
    assert_eq!(world.settle().await, Stage::Escalated);
    assert_eq!(
        world.events().await,
        ["proposal", "policy-decision", "approval", "escalation"]
    );
    let pull = &world.planted.repository.pulls().unwrap()[0];
    assert!(pull.merge_commit.is_none());
}
