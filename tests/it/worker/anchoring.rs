//! What has to hold an approval before the merge, and what becomes of a merge while it does not.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use caretaker::anchor::{Anchor, AnchorError, AnchorKind, LogReader, Receipt};
use caretaker::approve::HumanDecision;
use caretaker::clock::{Clock as _, Millis};
use caretaker::config::BranchAnchor;
use caretaker::forge::{FileEdit, Protection};
use caretaker::incident::{EscalationReason, Stage};
use caretaker::log::{Leaf, Record, SignedCheckpoint, verify_consistency};
use caretaker::signer::CheckpointSigner;
use caretaker::store::{Store, StoredAnchor};
use caretaker::worker::{Rounds, ShownTo, drain, log_round};

use super::tampering::stopped_at_the_next_commit;
use super::world::{NOW, RULES, Setting, World};

/// What nobody outside has said.
const FORGED: &[u8] = b"it is fine";

/// An anchor that answers as a test says; without a word it holds what it is shown.
#[derive(Clone)]
pub(super) struct Ear {
    kind: AnchorKind,
    name: &'static str,
    script: Arc<Mutex<VecDeque<AnchorError>>>,
    shown: Arc<Mutex<Vec<u64>>>,
}

impl Ear {
    pub(super) fn new(kind: AnchorKind, name: &'static str) -> Self {
        Self {
            kind,
            name,
            script: Arc::default(),
            shown: Arc::default(),
        }
    }

    fn fails(&self, times: usize) {
        let failure = AnchorError::Unanswered {
            action: "asking".to_owned(),
            reason: "nobody is there".to_owned(),
        };
        let failures = std::iter::repeat_n(failure, times);
        self.script.lock().unwrap().extend(failures);
    }

    pub(super) fn contradicts(&self) {
        self.script
            .lock()
            .unwrap()
            .push_back(AnchorError::Contradiction {
                action: "asking".to_owned(),
                evidence: "it holds another history".to_owned(),
            });
    }

    fn shown(&self) -> Vec<u64> {
        self.shown.lock().unwrap().clone()
    }
}

#[async_trait]
impl Anchor for Ear {
    fn kind(&self) -> AnchorKind {
        self.kind
    }

    fn name(&self) -> &str {
        self.name
    }

    async fn confirm(
        &self,
        checkpoint: &SignedCheckpoint,
        receipt: &Receipt,
    ) -> Result<(), AnchorError> {
        if receipt.bytes == checkpoint.to_string().into_bytes() {
            return Ok(());
        }
        Err(AnchorError::Refused {
            action: "looking at a receipt".to_owned(),
            reason: "it is not mine".to_owned(),
            mend: "look who writes the database".to_owned(),
        })
    }

    async fn anchor(
        &self,
        checkpoint: &SignedCheckpoint,
        log: &dyn LogReader,
        last: Option<&Receipt>,
        _: Millis,
    ) -> Result<Receipt, AnchorError> {
        let shown = checkpoint.claimed().head();
        if let Some(failure) = self.script.lock().unwrap().pop_front() {
            return Err(failure);
        }
        if let Some(last) = last.filter(|last| last.bytes != FORGED) {
            // What an anchor is given proves that the log grew.
            let proof = log.consistency(last.size, shown.size()).await?;
            let before = SignedCheckpoint::parse(&last.bytes).unwrap();
            verify_consistency(&before.claimed().head(), &shown, &proof).unwrap();
        }
        self.shown.lock().unwrap().push(shown.size());
        Ok(Receipt {
            size: shown.size(),
            bytes: checkpoint.to_string().into_bytes(),
        })
    }
}

/// An approved fix in a project that demands these anchors.
async fn approved(required: &str, ears: &[&Ear], branch: Option<BranchAnchor>) -> World {
    approved_with(None, required, ears, branch).await
}

/// The same in a database that may be elsewhere, without a branch.
pub(super) async fn approved_on(database: Option<String>, required: &str, ears: &[&Ear]) -> World {
    approved_with(database, required, ears, None).await
}

async fn approved_with(
    database: Option<String>,
    required: &str,
    ears: &[&Ear],
    branch: Option<BranchAnchor>,
) -> World {
    let mut world = World::new(Setting {
        rules: format!("{RULES}anchors: {{required: [{required}]}}\n"),
        database,
        ..Setting::sums()
    })
    .await;
    world.engine.anchoring.branch = branch;
    for ear in ears {
        world.engine.anchoring.outside.push(ShownTo {
            anchor: Arc::new((*ear).clone()),
            every: Duration::from_mins(1),
        });
    }
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    world.answer(HumanDecision::Approve).await;
    world
}

/// Lets the worker work for a while; the reasons why the incident rests.
async fn wait(world: &World) -> Vec<String> {
    let mut reasons = Vec::new();
    for _ in 0..6 {
        drain(&world.engine, "worker").await.unwrap();
        let scoped = world.engine.store.within(&world.project.organisation);
        let row = scoped.incident(&world.incident).await.unwrap().unwrap();
        reasons.extend(row.wait.map(|(_, reason)| reason));
        world.clock.advance_millis(5_000);
    }
    reasons
}

fn in_own_repository() -> BranchAnchor {
    BranchAnchor {
        project: None,
        name: "caretaker-log".to_owned(),
        every_seconds: 60,
    }
}

/// The landed commit's message.
fn landed(world: &World) -> String {
    let repository = world.repository();
    let tip = repository.tip("main").unwrap();
    let directory = repository.git_directory();
    let shown = std::process::Command::new("git")
        .arg("--git-dir")
        .arg(directory)
        .args(["log", "-1", "--format=%B", &tip.to_string()])
        .output()
        .unwrap();
    String::from_utf8(shown.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_names_the_checkpoint_that_holds_its_approval() {
    let world = approved("checkpoint", &[], None).await;
    assert_eq!(world.settle().await, Stage::Resolved);
    let execution = world.signed("execution").await;
    let checkpoint = &execution["checkpoint"];
    let size = checkpoint["size"].as_u64().unwrap();
    let scoped = world.engine.store.within(&world.project.organisation);
    let places = scoped.log_places(&world.incident).await.unwrap();
    let approval = places.iter().find(|(seq, _)| *seq == 2).unwrap().1;
    assert!(size > approval, "{checkpoint} holds leaf {approval}");
    // The same stands in the commit, where everybody who has the repository sees it.
    let root = checkpoint["root"].as_str().unwrap();
    let origin = checkpoint["origin"].as_str().unwrap();
    let line = format!("Caretaker-Log: {origin} {size} {root}");
    let message = landed(&world);
    assert!(message.lines().any(|it| it == line), "{line} in {message}");
    // And it is a checkpoint that the log's key signed.
    let stored = scoped.checkpoint_over(size).await.unwrap().unwrap();
    let signed = SignedCheckpoint::parse(stored.note.as_bytes()).unwrap();
    assert_eq!(signed.claimed().head().size(), size);
    assert_eq!(signed.claimed().head().root().to_digest().to_string(), root);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_waits_for_the_witness_that_the_project_demands() {
    let witness = Ear::new(AnchorKind::Witness, "auditor");
    witness.fails(4);
    let world = approved("witness", &[&witness], None).await;
    drain(&world.engine, "worker").await.unwrap();
    let reasons = wait(&world).await;
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("witness auditor") && reason.contains("nobody is there")),
        "{reasons:?}"
    );
    assert_eq!(world.settle().await, Stage::Resolved);
    let execution = world.signed("execution").await;
    let size = execution["checkpoint"]["size"].as_u64().unwrap();
    assert!(witness.shown().iter().any(|shown| *shown <= size));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_merged_while_the_witness_does_not_answer() {
    let witness = Ear::new(AnchorKind::Witness, "auditor");
    witness.fails(1_000);
    let world = approved("\"witness:auditor\"", &[&witness], None).await;
    for _ in 0..3 {
        wait(&world).await;
    }
    assert_eq!(world.merges_asked(), 0);
    world.assert_unmerged();
    // The approval ends, and with it the question.
    world.clock.advance_millis(25 * 3_600_000);
    assert_eq!(world.settle().await, Stage::Closed);
    world.assert_unmerged();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_anchor_that_holds_another_history_hands_over() {
    let witness = Ear::new(AnchorKind::Witness, "auditor");
    witness.contradicts();
    let world = approved("witness", &[&witness], None).await;
    assert_eq!(world.settle().await, Stage::Escalated);
    let (reason, detail, _) = world.handed_over().await;
    assert_eq!(reason, EscalationReason::AnchorFailed);
    assert!(detail.contains("it holds another history"), "{detail}");
    assert_eq!(world.merges_asked(), 0);
    world.assert_unmerged();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_anchor_that_nobody_demands_never_blocks() {
    let witness = Ear::new(AnchorKind::Witness, "auditor");
    witness.fails(1_000);
    let world = approved("", &[&witness], None).await;
    let mut rounds = Rounds::default();
    log_round(&world.engine).await.unwrap();
    for _ in 0..4 {
        rounds.round(&world.engine).await.unwrap();
        world.clock.advance_millis(61_000);
    }
    assert_eq!(world.settle().await, Stage::Resolved);
    // It is said once to people, and stands in the incident's history.
    let messages = world.inbox.0.lock().unwrap().clone();
    let told = messages.iter().filter(|message| {
        let text = message["text"].as_str().unwrap_or_default();
        message["event"] == "notice" && text.contains("witness auditor fails")
    });
    assert_eq!(told.count(), 1, "{messages:#?}");
    let scoped = world.engine.store.within(&world.project.organisation);
    let history = scoped.audit_events(&world.incident).await.unwrap();
    assert!(
        history.iter().any(|event| event.kind == "anchor-failing"),
        "{history:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_anchor_is_shown_what_is_new_at_its_pace() {
    let witness = Ear::new(AnchorKind::Witness, "auditor");
    let world = approved("", &[&witness], None).await;
    let mut rounds = Rounds::default();
    log_round(&world.engine).await.unwrap();
    rounds.round(&world.engine).await.unwrap();
    assert_eq!(witness.shown().len(), 1);
    assert_eq!(world.settle().await, Stage::Resolved);
    log_round(&world.engine).await.unwrap();
    let before = world.clock.now();
    world.clock.advance_millis(61_000);
    rounds.round(&world.engine).await.unwrap();
    rounds.round(&world.engine).await.unwrap();
    assert_eq!(witness.shown().len(), 2, "once more after {before}");
    world.clock.advance_millis(61_000);
    rounds.round(&world.engine).await.unwrap();
    assert_eq!(witness.shown().len(), 2, "nothing new was logged");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_demanded_and_not_configured_blocks_the_merge() {
    for (demand, mend) in [
        ("witness", "add it under `anchor`"),
        ("\"timestamp:one\"", "add it under `anchor`"),
        ("branch", "add `anchor.branch`"),
    ] {
        let witness = Ear::new(AnchorKind::Timestamp, "two");
        let world = approved(demand, &[&witness], None).await;
        let reasons = wait(&world).await;
        assert!(reasons.iter().any(|it| it.contains(mend)), "{reasons:?}");
        assert_eq!(world.merges_asked(), 0, "{demand}");
        world.assert_unmerged();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_from_before_the_approval_does_not_count() {
    let witness = Ear::new(AnchorKind::Witness, "auditor");
    let mut world = World::new(Setting {
        rules: format!("{RULES}anchors: {{required: [witness]}}\n"),
        ..Setting::sums()
    })
    .await;
    world.engine.anchoring.outside.push(ShownTo {
        anchor: Arc::new(witness.clone()),
        every: Duration::from_mins(1),
    });
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    log_round(&world.engine).await.unwrap();
    Rounds::default().round(&world.engine).await.unwrap();
    assert_eq!(witness.shown().len(), 1);
    witness.fails(1_000);
    world.answer(HumanDecision::Approve).await;
    wait(&world).await;
    assert_eq!(world.merges_asked(), 0);
    world.assert_unmerged();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_that_somebody_put_into_the_database_does_not_count() {
    let witness = Ear::new(AnchorKind::Witness, "auditor");
    witness.fails(1_000);
    let world = approved("witness", &[&witness], None).await;
    wait(&world).await;
    // The approval is signed and logged, and a checkpoint covers it. Somebody who writes the database has the witness agree.
    let checkpoint = log_round(&world.engine).await.unwrap().unwrap();
    let size = checkpoint.claimed().head().size();
    let organisation = &world.project.organisation;
    for size in [size, 1_000_000] {
        let forged = StoredAnchor {
            size,
            kind: "witness".to_owned(),
            name: "auditor".to_owned(),
            receipt: FORGED.to_vec(),
            anchored_at: world.clock.now(),
        };
        let kept = world.engine.store.keep_anchor(organisation, &forged);
        kept.await.unwrap();
    }
    wait(&world).await;
    assert_eq!(world.merges_asked(), 0);
    world.assert_unmerged();
    // Nor does it keep the witness from being asked.
    witness.script.lock().unwrap().clear();
    world.clock.advance_millis(3_700_000);
    log_round(&world.engine).await.unwrap();
    Rounds::default().round(&world.engine).await.unwrap();
    assert!(!witness.shown().is_empty());
    assert_eq!(world.settle().await, Stage::Resolved);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_demanded_after_the_comparison_is_waited_for() {
    let witness = Ear::new(AnchorKind::Witness, "auditor");
    let mut world = approved("witness", &[&witness], None).await;
    // The comparison is done and the merge not asked for: the worker stops there.
    while world.snapshot().await.active_merge().is_none() {
        assert!(stopped_at_the_next_commit(&mut world).await);
    }
    assert_eq!(witness.shown().len(), 1);
    // It starts again with another witness in its configuration.
    let another = Ear::new(AnchorKind::Witness, "another");
    another.fails(1_000);
    world.engine.anchoring.outside = vec![ShownTo {
        anchor: Arc::new(another),
        every: Duration::from_mins(1),
    }];
    wait(&world).await;
    assert_eq!(world.merges_asked(), 0);
    world.assert_unmerged();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_merged_while_the_log_is_not_the_one_that_was_signed_for() {
    let world = approved("", &[], None).await;
    // The key has signed for more than the database holds: it was restored from an older copy.
    longer_log(&world).await;
    let memory = world.home().join("log.checkpoint");
    let signed = std::fs::read(&memory).unwrap();
    let reasons = wait(&world).await;
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("restored from an older copy")),
        "{reasons:?}"
    );
    assert_eq!(world.merges_asked(), 0);
    assert_eq!(std::fs::read(&memory).unwrap(), signed);
    world.assert_unmerged();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_in_the_repository_holds_the_checkpoint_before_the_merge() {
    let world = approved("branch", &[], Some(in_own_repository())).await;
    assert_eq!(world.settle().await, Stage::Resolved);
    let repository = world.repository();
    let held = repository.file("caretaker-log", "checkpoint").unwrap();
    let held = SignedCheckpoint::parse(&held.unwrap()).unwrap();
    let execution = world.signed("execution").await;
    let size = execution["checkpoint"]["size"].as_u64().unwrap();
    assert_eq!(held.claimed().head().size(), size);
    // What others could not read elsewhere is not here either.
    let entries = repository.file("caretaker-log", "tile/entries/000.p/1");
    assert_eq!(entries.unwrap(), None);
    assert_eq!(repository.file("caretaker-log", "sums.py").unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_for_auditors_holds_the_whole_log() {
    let mut settings = in_own_repository();
    let mut world = approved("", &[], None).await;
    settings.project = Some(world.project.id.clone());
    world.engine.anchoring.branch = Some(settings);
    let mut rounds = Rounds::default();
    let first = log_round(&world.engine).await.unwrap().unwrap();
    rounds.round(&world.engine).await.unwrap();
    assert_eq!(world.settle().await, Stage::Resolved);
    log_round(&world.engine).await.unwrap();
    world.clock.advance_millis(61_000);
    rounds.round(&world.engine).await.unwrap();
    let repository = world.repository();
    let held = repository.file("caretaker-log", "checkpoint").unwrap();
    let held = SignedCheckpoint::parse(&held.unwrap()).unwrap();
    let size = held.claimed().head().size();
    assert!(size > first.claimed().head().size());
    let path = format!("tile/entries/000.p/{size}");
    assert!(repository.file("caretaker-log", &path).unwrap().is_some());
    let before = format!("tile/entries/000.p/{}", first.claimed().head().size());
    assert_eq!(repository.file("caretaker-log", &before).unwrap(), None);
    // A clone of it verifies, with what an auditor has pinned.
    let clone = world.home().join("clone");
    let cloned = std::process::Command::new("git")
        .args(["clone", "--quiet", "--branch", "caretaker-log"])
        .arg(repository.git_directory())
        .arg(&clone)
        .status()
        .unwrap();
    assert!(cloned.success());
    let pinned = world.home().join("root.json");
    let newest = world.engine.keys.history().versions().last().unwrap();
    std::fs::write(&pinned, newest.to_bytes().unwrap()).unwrap();
    let verified = std::process::Command::new(env!("CARGO_BIN_EXE_caretaker-verify"))
        .arg(&clone)
        .arg("--trust-root")
        .arg(&pinned)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(verified.status.success(), "{said}");
}

/// A branch that was anchored once, and an approval that is to be held by it again.
async fn anchored_once() -> World {
    let world = Box::pin(approved("branch", &[], Some(in_own_repository()))).await;
    let mut world = world;
    log_round(&world.engine).await.unwrap();
    let mut settings = in_own_repository();
    settings.project = Some(world.project.id.clone());
    world.engine.anchoring.branch = Some(settings);
    Box::pin(Rounds::default().round(&world.engine))
        .await
        .unwrap();
    world.engine.anchoring.branch = Some(in_own_repository());
    world
}

async fn escalated(world: &World) -> String {
    assert_eq!(Box::pin(world.settle()).await, Stage::Escalated);
    let (reason, detail, _) = world.handed_over().await;
    assert_eq!(reason, EscalationReason::AnchorFailed);
    assert_eq!(world.merges_asked(), 0);
    world.assert_unmerged();
    detail
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_was_deleted_is_noticed() {
    let world = anchored_once().await;
    let repository = world.repository();
    repository
        .delete_reference("refs/heads/caretaker-log")
        .unwrap();
    let detail = escalated(&world).await;
    assert!(detail.contains("the branch is gone"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_was_pushed_over_is_noticed() {
    let world = anchored_once().await;
    let repository = world.repository();
    let held = repository.file("caretaker-log", "checkpoint").unwrap();
    // The same files in a commit of another history.
    let edit = [("checkpoint", FileEdit::file(held.unwrap()))];
    let other = repository.commit_object(&[], &edit, "another").unwrap();
    repository
        .force_reference("refs/heads/caretaker-log", &other)
        .unwrap();
    let detail = escalated(&world).await;
    assert!(detail.contains("pushed over it"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_write_to_the_branch_is_noticed() {
    let world = anchored_once().await;
    let repository = world.repository();
    let edit = [("readme", FileEdit::file("x"))];
    repository.commit("caretaker-log", &edit, "more").unwrap();
    let detail = escalated(&world).await;
    assert!(detail.contains("others wrote to it"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_holds_something_else_is_never_written_to() {
    let world = approved("branch", &[], Some(in_own_repository())).await;
    let repository = world.repository();
    let main = repository.tip("main").unwrap();
    repository.create_branch("caretaker-log", &main).unwrap();
    let reasons = wait(&world).await;
    assert!(
        reasons.iter().any(|it| it.contains("holds other files")),
        "{reasons:?}"
    );
    assert_eq!(repository.tip("caretaker-log").unwrap(), main);
    assert_eq!(world.merges_asked(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_protected_from_force_pushes_takes_checkpoints() {
    let world = anchored_once().await;
    world
        .repository()
        .protect("caretaker-log", Protection::default())
        .unwrap();
    assert_eq!(world.settle().await, Stage::Resolved);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_notices_that_everything_here_was_rolled_back() {
    let world = approved("branch", &[], Some(in_own_repository())).await;
    let held = longer_log(&world).await;
    let repository = world.repository();
    let edit = [("checkpoint", FileEdit::file(held.to_string()))];
    let commit = repository
        .commit_object(&[], &edit, "it was longer")
        .unwrap();
    repository
        .force_reference("refs/heads/caretaker-log", &commit)
        .unwrap();
    // Somebody restores the database and the key's memory together.
    std::fs::remove_file(world.home().join("log.checkpoint")).unwrap();
    let detail = escalated(&world).await;
    assert!(detail.contains("the database was rolled back"), "{detail}");
}

/// What the key signed for a longer log than the database has now.
async fn longer_log(world: &World) -> SignedCheckpoint {
    let keys = &world.engine.keys;
    let file = world.home().join("longer.db");
    let longer = Store::open(&format!("sqlite://{}", file.display())).await;
    let longer = longer.unwrap();
    let organisation = keys.organisation();
    let made = longer.ensure_organisation(organisation, "example", NOW);
    made.await.unwrap();
    for number in 0..50 {
        let at = NOW.plus_millis(number);
        let leaf = Leaf::record(Record::Heartbeat { at }).unwrap();
        longer.log(organisation, &leaf, NOW).await.unwrap();
    }
    let memory = world.home().join("log.checkpoint");
    if memory.exists() {
        std::fs::remove_file(&memory).unwrap();
    }
    let signer = CheckpointSigner::of(keys, world.home()).unwrap();
    signer.cover(&longer, NOW).await.unwrap().unwrap()
}
