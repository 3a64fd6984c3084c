//! A repository against the log: what an auditor finds who has clones of both.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use caretaker::attest::TrustHistory;
use caretaker::attest::chain::Verdict;
use caretaker::attest::predicate::CheckpointRef;
use caretaker::audit::{LandedCommit, LandedReport, LoggedExecutions, audit_landed};
use caretaker::change::{Oid, Sha256Digest};
use caretaker::clock::Millis;
use caretaker::forge::FileEdit;
use caretaker::incident::Stage;
use caretaker::log::{Leaf, Record, TileId};
use caretaker::worker::log_round;
use serde_json::Value;

use crate::attest::ledger::{Ledger, text, trust_root};
use crate::reconcile::installation::approved;
use crate::worker::world::World;

/// An incident that was merged, with the log as files and a clone of the repository.
struct Audited {
    world: World,
    log: PathBuf,
    root: PathBuf,
}

impl Audited {
    async fn new() -> Self {
        let world = approved().await;
        assert_eq!(world.settle().await, Stage::Resolved);
        Self::of(world).await
    }

    async fn of(world: World) -> Self {
        // A sign of life after everything, so that the log does not end before what is looked at.
        world.clock.advance_millis(3_700_000);
        let log = world.home().join("log");
        let audited = Self {
            root: log.join("root/1.json"),
            log,
            world,
        };
        audited.export().await;
        audited
    }

    /// What `caretaker log export` writes.
    async fn export(&self) {
        let engine = &self.world.engine;
        let checkpoint = log_round(engine).await.unwrap().unwrap();
        let scoped = engine.store.within(&self.world.project.organisation);
        let write = |path: &Path, bytes: &[u8]| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        for root in engine.keys.history().versions() {
            let name = format!("root/{}.json", root.document().version);
            write(&self.log.join(name), &root.to_bytes().unwrap());
        }
        for tile in TileId::grown(0, checkpoint.claimed().head().size()) {
            let bytes = scoped.log_file(tile).await.unwrap();
            write(&self.log.join(tile.to_string()), &bytes);
        }
        write(
            &self.log.join("checkpoint"),
            checkpoint.to_string().as_bytes(),
        );
    }

    /// What the command says, and its exit code.
    fn audit(&self) -> (Value, i32) {
        let output = self.run();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}{problem}"));
        (said, output.status.code().unwrap())
    }

    fn run(&self) -> Output {
        Command::new(env!("CARGO_BIN_EXE_caretaker"))
            .args(["log", "audit", "--json"])
            .arg(&self.log)
            .arg("--trust-root")
            .arg(&self.root)
            .arg("--repository")
            .arg(self.world.repository().git_directory())
            .output()
            .unwrap()
    }

    /// Puts a commit with a message of somebody's own making onto the branch, whatever the message is.
    fn push(&self, message: &[u8]) {
        let repository = self.world.repository();
        let file = self.world.home().join("commit");
        let parent = repository.tip("main").unwrap();
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.arg("--git-dir").arg(repository.git_directory());
            let done = command.args(arguments).output().unwrap();
            assert!(done.status.success(), "{done:?}");
            String::from_utf8(done.stdout).unwrap().trim().to_owned()
        };
        let tree = git(&["rev-parse", "main^{tree}"]);
        let head = format!(
            "tree {tree}\nparent {parent}\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\n"
        );
        std::fs::write(&file, [head.as_bytes(), message].concat()).unwrap();
        let file = file.to_str().unwrap();
        let commit = git(&["hash-object", "-t", "commit", "-w", "--literally", file]);
        git(&["update-ref", "refs/heads/main", &commit]);
    }

    fn rules(&self) -> Vec<String> {
        let (said, _) = self.audit();
        let failures = said["repository"]["failures"].as_array().unwrap();
        let rule = |failure: &Value| failure["rule"].as_str().unwrap().to_owned();
        failures.iter().map(rule).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_merged_and_what_was_logged_agree() {
    let audited = Box::pin(Audited::new()).await;
    let (said, code) = audited.audit();
    assert_eq!(code, 0, "{said:#}");
    assert_eq!(said["verdict"], "valid");
    assert_eq!(said["repository"]["executions"], 1);
    // The repository had a commit before; a person's is nothing that caretaker answers for.
    let others = said["repository"]["by_others"].as_u64().unwrap();
    let repository = audited.world.repository();
    let edit = [("notes.txt", FileEdit::file("by hand\n"))];
    repository.commit("main", &edit, "by hand").unwrap();
    let (said, code) = audited.audit();
    assert_eq!(code, 0, "{said:#}");
    assert_eq!(said["repository"]["by_others"], others + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_that_is_not_in_the_log_is_found() {
    let audited = Box::pin(Audited::new()).await;
    let repository = audited.world.repository();
    let edit = [("notes.txt", FileEdit::file("x\n"))];
    let message = "A fix\n\nCaretaker-Execution: exe-01jpo49200081040g2081040g2\n";
    // Its clock says that it is from before the log's last sign of life.
    repository.commit("main", &edit, message).unwrap();
    let (said, code) = audited.audit();
    assert_ne!(code, 0, "{said:#}");
    assert_eq!(audited.rules(), ["unlogged-merge"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_that_is_gone_from_the_branch_is_found() {
    let audited = Box::pin(Audited::new()).await;
    let repository = audited.world.repository();
    let landed = repository.tip("main").unwrap();
    let edit = [("sums.py", FileEdit::file("pass\n"))];
    let other = repository.commit_object(&[], &edit, "another").unwrap();
    repository
        .force_reference("refs/heads/main", &other)
        .unwrap();
    let (said, code) = audited.audit();
    assert_eq!(code, 1, "{said:#}");
    assert_eq!(said["verdict"], "invalid");
    let failure = &said["repository"]["failures"][0];
    assert_eq!(failure["rule"], "gone-from-branch");
    assert_eq!(failure["commit"], landed.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_was_written_anew_is_found_by_the_commits() {
    // The commit names a checkpoint; somebody with every key makes another log of the same installation afterwards.
    let audited = Box::pin(Audited::new()).await;
    let repository = audited.world.repository();
    let tip = repository.tip("main").unwrap();
    let shown = Command::new("git")
        .arg("--git-dir")
        .arg(repository.git_directory())
        .args(["log", "-1", "--format=%B", &tip.to_string()])
        .output()
        .unwrap();
    let message = String::from_utf8(shown.stdout).unwrap();
    let line = message
        .lines()
        .find(|line| line.starts_with("Caretaker-Log: "));
    let root = line.unwrap().rsplit(' ').next().unwrap();
    let forged = message.replace(root, &"0".repeat(64));
    let edit = [("notes.txt", FileEdit::file("x\n"))];
    repository.commit("main", &edit, &forged).unwrap();
    assert!(audited.rules().contains(&"checkpoint-trailer".to_owned()));
    for odd in [
        "Caretaker-Log: x",
        "Caretaker-Log: a b c",
        "Caretaker-Log: caretaker/x 1 00",
    ] {
        repository
            .commit("main", &edit, &format!("odd\n\n{odd}\n"))
            .unwrap();
    }
    let rules = audited.rules();
    let odd = rules.iter().filter(|rule| *rule == "checkpoint-trailer");
    assert_eq!(odd.count(), 4, "{rules:?}");
}

/// Whoever may push writes what whoever audits reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_end_is_refused() {
    let audited = Box::pin(Audited::new()).await;
    // A long one is read to its end, where the trailers are, and shown without what a terminal would obey.
    let long = format!(
        "{}\n\nCaretaker-Execution: exe-\u{1b}[2J{}\n",
        "a".repeat(100_000),
        "b".repeat(5_000)
    );
    audited.push(long.as_bytes());
    let (said, code) = audited.audit();
    assert_ne!(code, 0);
    let found = said["repository"]["failures"][0]["found"].as_str();
    let found = found.unwrap();
    assert!(found.len() < 1_000 && !found.contains('\u{1b}'), "{found}");
    // One that is larger than any real commit ends the audit with its reason, and never with a verdict.
    audited.push(&vec![b'a'; 40 << 20]);
    let output = audited.run();
    assert_ne!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"");
    let problem = String::from_utf8(output.stderr).unwrap();
    assert!(problem.contains("look who pushed it"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_does_not_verify_is_not_compared() {
    let audited = Box::pin(Audited::new()).await;
    let place = std::fs::read_dir(audited.log.join("tile/entries/000.p")).unwrap();
    let file = place.last().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let (said, code) = audited.audit();
    assert_ne!(code, 0, "{said:#}");
    assert_eq!(said["repository"], Value::Null);
}

/// One incident that was merged, as leaves of a log; `checkpoint` is what its execution names, and the commit.
fn leaves(checkpoint: Option<&CheckpointRef>) -> (Vec<Vec<u8>>, LandedCommit) {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    ledger.answer(|_| ());
    ledger.execute(|execution| execution.checkpoint = checkpoint.cloned());
    let execution = ledger.execution_event();
    let message = format!("A fix\n\nCaretaker-Execution: {}\n", execution.execution_id);
    let commit = LandedCommit::read(execution.landed.commit, &message, 0);
    (ledger.envelopes.clone(), commit)
}

fn audit(entries: &[Vec<u8>], commit: &LandedCommit) -> LandedReport {
    let trust = TrustHistory::from(trust_root());
    let commits = [commit.clone()];
    let mut log = LoggedExecutions::of(&commits);
    for entry in entries {
        log.take(&trust, entry).unwrap();
    }
    let (_, number) = log.repositories().into_iter().next().unwrap();
    audit_landed(&log, "caretaker/example", &number, &commits)
}

#[test]
fn a_checkpoint_from_before_the_approval_is_found() {
    let over = |size| CheckpointRef {
        origin: text("caretaker/example"),
        size,
        root: Sha256Digest::of(b"root"),
    };
    // Proposal, decision and approval are leaves 0 to 2.
    let (entries, commit) = leaves(Some(&over(3)));
    let held = audit(&entries, &commit);
    assert_eq!(held.verdict, Verdict::Valid, "{held:#?}");
    let (entries, commit) = leaves(Some(&over(2)));
    let early = audit(&entries, &commit);
    assert_eq!(early.verdict, Verdict::Invalid);
    assert_eq!(early.failures[0].rule, "approval-not-held");
}

#[test]
fn a_commit_younger_than_the_log_cannot_be_told() {
    let (mut entries, commit) = leaves(None);
    let at = Millis(1_000_000);
    let alive = Leaf::record(Record::Heartbeat { at }).unwrap();
    entries.push(alive.to_bytes().unwrap());
    let of = |time| {
        let commit = Oid::from_bytes(&[9; 20]).unwrap();
        LandedCommit::read(commit, "x\n\nCaretaker-Execution: exe-1\n", time)
    };
    let trust = TrustHistory::from(trust_root());
    for (time, verdict) in [(1_000, Verdict::Invalid), (1_001, Verdict::CannotVerify)] {
        let commits = [commit.clone(), of(time)];
        let mut log = LoggedExecutions::of(&commits);
        for entry in &entries {
            log.take(&trust, entry).unwrap();
        }
        let (_, number) = log.repositories().into_iter().next().unwrap();
        let report = audit_landed(&log, "caretaker/example", &number, &commits);
        assert_eq!(report.verdict, verdict, "{report:#?}");
        assert_eq!(report.failures.len(), 1);
    }
}
