//! A repository against the log: is everything on the branch that says it was merged by caretaker in the log, and is everything
//! on the branch that the log says was merged?

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::attest::chain::{Verdict, authenticate_logged};
use crate::attest::predicate::{AuthorityRef, CheckpointRef, Execution};
use crate::attest::statement::Predicate;
use crate::attest::text::shown;
use crate::attest::{Event, TrustHistory};
use crate::change::{Oid, Sha256Digest};
use crate::execute::LOG_TRAILER;
use crate::log::{Frontier, Leaf, Record, TreeError, TreeHash};
use crate::reconcile::EXECUTION_TRAILER;

/// How much of a trailer is kept, in bytes.
const LONGEST: usize = 400;
/// Failures that are told; more are counted.
const MOST_FAILURES: usize = 1_000;

/// A commit of the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedCommit {
    commit: Oid,
    /// The execution that it names.
    execution: Option<String>,
    /// The checkpoint that it names.
    checkpoint: Option<String>,
    /// When it was made, in seconds since 1970, by the clock of whoever made it.
    time: i64,
}

impl LandedCommit {
    /// What a message says; of each trailer at most 400 bytes are kept, which no real one has.
    pub fn read(commit: Oid, message: &str, time: i64) -> Self {
        let kept = |key| {
            let value = trailer(message, key)?;
            let end = value.floor_char_boundary(LONGEST);
            Some(value.get(..end).unwrap_or_default().to_owned())
        };
        Self {
            commit,
            execution: kept(EXECUTION_TRAILER),
            checkpoint: kept(LOG_TRAILER),
            time,
        }
    }
}

/// What of a log concerns repositories. Each statement is authenticated, the log itself has to be verified before.
#[derive(Debug)]
pub struct LoggedExecutions {
    tree: Frontier,
    /// Sizes whose roots are wanted, and the roots.
    roots: BTreeMap<u64, Option<TreeHash>>,
    /// Where approvals and decisions are.
    authorities: BTreeMap<Sha256Digest, u64>,
    executions: Vec<Execution>,
    alive_at: Option<i64>,
}

impl LoggedExecutions {
    /// Of a log whose leaves follow; the roots that commits name are kept.
    pub fn of(commits: &[LandedCommit]) -> Self {
        let named = commits
            .iter()
            .filter_map(|commit| Some(Named::parse(commit.checkpoint.as_deref()?)?.size));
        Self {
            tree: Frontier::new(),
            roots: named.map(|size| (size, None)).collect(),
            authorities: BTreeMap::new(),
            executions: Vec::new(),
            alive_at: None,
        }
    }

    /// Takes the next leaf.
    ///
    /// # Errors
    /// The tree is full.
    pub fn take(&mut self, trust: &TrustHistory, entry: &[u8]) -> Result<(), TreeError> {
        let place = self.tree.size();
        self.tree.append(TreeHash::of_leaf(entry))?;
        if let Some(root) = self.roots.get_mut(&self.tree.size()) {
            *root = Some(self.tree.root());
        }
        match Leaf::parse(entry) {
            Ok(Leaf::Statement(envelope)) => {
                if let Ok(attested) = authenticate_logged(trust, &envelope, Some(place))
                    && let Predicate::Event(event) = attested.statement().predicate()
                {
                    match event {
                        Event::Execution(execution) => self.executions.push((**execution).clone()),
                        Event::Approval(_) | Event::PolicyDecision(_) => {
                            self.authorities.insert(attested.digest(), place);
                        }
                        _ => {}
                    }
                }
            }
            Ok(Leaf::Record(Record::Heartbeat { at })) => self.alive_at = Some(at.0),
            _ => {}
        }
        Ok(())
    }

    /// The repositories that the log knows executions of: address and number.
    pub fn repositories(&self) -> BTreeSet<(String, String)> {
        let projects = self.executions.iter().map(|one| &one.event.project);
        let named = projects.map(|project| {
            (
                project.uri.to_string(),
                project.repository_id.as_str().to_owned(),
            )
        });
        named.collect()
    }
}

/// What an audit of a branch says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LandedReport {
    /// The worst of everything.
    pub verdict: Verdict,
    /// Commits of the branch that were looked at.
    pub commits: u64,
    /// Executions of ours that the log holds for this repository.
    pub executions: u64,
    /// Commits that do not say that caretaker merged them: whoever may push or merge made them.
    pub by_others: u64,
    /// What does not hold, at most 1,000 of it.
    pub failures: Vec<LandedFailure>,
    /// How much more does not hold.
    pub more_failures: u64,
}

/// One thing that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LandedFailure {
    /// The commit, when it is about one.
    pub commit: Oid,
    /// Which rule, kebab-case.
    pub rule: &'static str,
    /// Whether it is wrong, or cannot be told.
    pub verdict: Verdict,
    /// In words.
    pub found: String,
}

/// A checkpoint as a commit names it.
#[derive(Debug, PartialEq, Eq)]
struct Named<'a> {
    origin: &'a str,
    size: u64,
    root: Sha256Digest,
}

impl<'a> Named<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut words = text.split(' ');
        let named = Self {
            origin: words.next()?,
            size: words.next()?.parse().ok()?,
            root: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(named)
    }

    fn is(&self, checkpoint: &CheckpointRef) -> bool {
        self.origin == checkpoint.origin.to_string()
            && self.size == checkpoint.size
            && self.root == checkpoint.root
    }
}

/// The value of a trailer in the last paragraph of a message.
fn trailer<'m>(message: &'m str, key: &str) -> Option<&'m str> {
    let last = message.trim_end().rsplit("\n\n").next()?;
    last.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
        .map(str::trim_end)
}

/// Compares a branch's history with the executions of one repository, whose number at the provider is `repository`. `origin` is
/// the log's name.
pub fn audit_landed(
    log: &LoggedExecutions,
    origin: &str,
    repository: &str,
    commits: &[LandedCommit],
) -> LandedReport {
    let ours = log.executions.iter().filter(|execution| {
        execution.by_us && execution.event.project.repository_id.as_str() == repository
    });
    let ours: Vec<&Execution> = ours.collect();
    let mut audit = Audit {
        log,
        origin,
        executions: ours.iter().map(|one| (one.landed.commit, *one)).collect(),
        report: LandedReport {
            verdict: Verdict::Valid,
            commits: commits.len() as u64,
            executions: ours.len() as u64,
            by_others: 0,
            failures: Vec::new(),
            more_failures: 0,
        },
    };
    for commit in commits {
        audit.commit(commit);
    }
    let present: BTreeSet<Oid> = commits.iter().map(|commit| commit.commit).collect();
    for execution in ours {
        audit.execution(execution, &present);
    }
    audit.report
}

struct Audit<'a> {
    log: &'a LoggedExecutions,
    origin: &'a str,
    executions: BTreeMap<Oid, &'a Execution>,
    report: LandedReport,
}

impl Audit<'_> {
    fn fail(&mut self, commit: Oid, rule: &'static str, verdict: Verdict, found: String) {
        self.report.verdict = self.report.verdict.max(verdict);
        if self.report.failures.len() < MOST_FAILURES {
            self.report.failures.push(LandedFailure {
                commit,
                rule,
                verdict,
                found,
            });
        } else {
            self.report.more_failures += 1;
        }
    }

    /// What a commit says of itself.
    fn commit(&mut self, commit: &LandedCommit) {
        let named = commit.execution.as_deref();
        let execution = self.executions.get(&commit.commit).copied();
        match (named, execution) {
            (None, None) => self.report.by_others += 1,
            // Break it: leave this out; a merge that passed by the log is then not noticed
            // (`log::landed::a_merge_that_is_not_in_the_log_is_found`).
            (Some(named), None) => {
                let named = shown(named);
                // The log may simply end before it.
                let later = self
                    .log
                    .alive_at
                    .is_none_or(|alive| commit.time.saturating_mul(1_000) > alive);
                let (verdict, found) = if later {
                    let found = format!(
                        "it names the execution {named}, and the log ends before it; have a newer one"
                    );
                    (Verdict::CannotVerify, found)
                } else {
                    let found = format!(
                        "it names the execution {named}, which the log does not have for this commit"
                    );
                    (Verdict::Invalid, found)
                };
                self.fail(commit.commit, "unlogged-merge", verdict, found);
            }
            (Some(named), Some(execution)) if named != execution.execution_id.as_str() => {
                let found = format!(
                    "it names the execution {}, the log has {} for it",
                    shown(named),
                    execution.execution_id
                );
                self.fail(commit.commit, "other-execution", Verdict::Invalid, found);
            }
            // A rebase keeps the branch's own messages.
            (_, Some(_)) => {}
        }
        if let Some(text) = commit.checkpoint.as_deref() {
            self.named(commit.commit, text, execution);
        }
    }

    /// The checkpoint that a commit names.
    fn named(&mut self, commit: Oid, text: &str, execution: Option<&Execution>) {
        const RULE: &str = "checkpoint-trailer";
        let Some(named) = Named::parse(text) else {
            let found = format!("its trailer {:?} names no checkpoint", shown(text));
            return self.fail(commit, RULE, Verdict::Invalid, found);
        };
        let root = self.log.roots.get(&named.size).copied().flatten();
        let size = self.log.tree.size();
        if named.origin != self.origin {
            let origin = shown(named.origin);
            let found = format!(
                "it names a checkpoint of {origin}, this log is {}",
                self.origin
            );
            self.fail(commit, RULE, Verdict::CannotVerify, found);
        } else if named.size > size {
            let found = format!(
                "it names a checkpoint over {} leaves, the log has {size}",
                named.size
            );
            self.fail(commit, RULE, Verdict::CannotVerify, found);
        // Break it: leave this out; a log that was written anew after a merge then passes
        // (`log::landed::a_log_that_was_written_anew_is_found_by_the_commits`).
        } else if root.is_none_or(|root| root.to_digest() != named.root) {
            let found = format!(
                "it names the root {} over {} leaves, which is not that of the log",
                named.root, named.size
            );
            self.fail(commit, RULE, Verdict::Invalid, found);
        }
        if let Some(checkpoint) = execution.and_then(|one| one.checkpoint.as_ref())
            && !named.is(checkpoint)
        {
            let found = "it names another checkpoint than its execution".to_owned();
            self.fail(commit, RULE, Verdict::Invalid, found);
        }
    }

    /// What the log says of the branch.
    fn execution(&mut self, execution: &Execution, present: &BTreeSet<Oid>) {
        let commit = execution.landed.commit;
        // Break it: leave this out; a branch that was pushed over is then not noticed
        // (`log::landed::a_merge_that_is_gone_from_the_branch_is_found`).
        if !present.contains(&commit) {
            let found = format!(
                "the log says that it landed for {}, and the branch does not have it: it was pushed over, or this is another branch",
                execution.event.incident
            );
            self.fail(commit, "gone-from-branch", Verdict::Invalid, found);
        }
        let authority = execution
            .authority
            .as_ref()
            .map(|authority| match authority {
                AuthorityRef::Approval(event) | AuthorityRef::Decision(event) => event.sha256,
            });
        let place = authority.and_then(|digest| self.log.authorities.get(&digest).copied());
        let held = execution.checkpoint.as_ref().zip(place);
        // Break it: leave this out; a checkpoint from before the approval then passes for one that holds it
        // (`log::landed::a_checkpoint_from_before_the_approval_is_found`).
        if let Some((checkpoint, place)) = held
            && place >= checkpoint.size
        {
            let found = format!(
                "its checkpoint has {} leaves, and what allowed it is leaf {place}",
                checkpoint.size
            );
            self.fail(commit, "approval-not-held", Verdict::Invalid, found);
        }
    }
}
