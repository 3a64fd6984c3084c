//! A branch at the provider that holds checkpoints: whoever clones it holds them too.
//!
//! Each commit follows the one before it, so a branch that was pushed over, deleted or written to by others shows: what was there
//! at the last look has to be in its history still.

use std::collections::BTreeMap;
use std::path::PathBuf;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::super::Engine;
use super::super::log::checkpoint_signer;
use super::super::repository::{Clone, folder, name, on_disk};
use crate::anchor::{Anchor, AnchorError, AnchorKind, LogReader, Receipt};
use crate::change::{Oid, RepoPath};
use crate::clock::Millis;
use crate::config::BranchAnchor;
use crate::connector::Connector;
use crate::incident::StepError;
use crate::log::{MAX_NOTE, SignedCheckpoint, TileId, TreeHead, verify_consistency};
use crate::store::Project;
use crate::workspace::git_command::Push;
use crate::workspace::{Identity, RecordCommit, TrustedRepository, WorkspaceError};

/// The file with the newest checkpoint.
const CHECKPOINT: &str = "checkpoint";
/// Commits that others of our processes may have made since the last receipt.
const MOST_BETWEEN: usize = 10_000;

/// What is kept of a checkpoint in a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pushed {
    /// `HOST/OWNER/NAME`.
    repository: String,
    /// The branch.
    branch: String,
    /// The commit that holds the checkpoint.
    commit: Oid,
}

/// A branch of one project's repository.
pub(in crate::worker) struct Branch<'a> {
    engine: &'a Engine,
    project: &'a Project,
    connector: &'a dyn Connector,
    settings: &'a BranchAnchor,
    name: String,
}

impl<'a> Branch<'a> {
    /// The branch that the settings name, in this repository.
    pub(in crate::worker) fn new(
        engine: &'a Engine,
        project: &'a Project,
        connector: &'a dyn Connector,
        settings: &'a BranchAnchor,
    ) -> Self {
        Self {
            engine,
            project,
            connector,
            settings,
            name: format!("{}/{}", project.id, settings.name),
        }
    }

    fn action(&self) -> String {
        format!(
            "keeping a checkpoint in branch {} of {}",
            self.settings.name, self.project.full_name
        )
    }

    fn unanswered(&self, reason: &impl ToString) -> AnchorError {
        AnchorError::Unanswered {
            action: self.action(),
            reason: reason.to_string(),
        }
    }

    fn contradiction(&self, evidence: String) -> AnchorError {
        AnchorError::Contradiction {
            action: self.action(),
            evidence,
        }
    }

    fn refused(&self, reason: impl Into<String>) -> AnchorError {
        AnchorError::Refused {
            action: self.action(),
            reason: reason.into(),
            mend: "name another branch under `anchor.branch.name`, or remove this one".to_owned(),
        }
    }

    fn path(&self) -> PathBuf {
        folder(&self.engine.settings.home, &self.project.id)
    }

    /// Works on the clone beside the loop.
    async fn in_clone<T: Send + 'static>(
        &self,
        work: impl FnOnce(&TrustedRepository) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, AnchorError> {
        let path = self.path();
        let done = on_disk(move || {
            let repository = TrustedRepository::open_or_create(&path);
            let done = repository.and_then(|repository| work(&repository));
            done.map_err(|error| StepError::retry(std::time::Duration::ZERO, error))
        });
        done.await.map_err(|error| self.unanswered(&error))
    }

    /// The checkpoint at the branch's tip, which has to be one of ours.
    async fn held(&self, tip: Oid) -> Result<SignedCheckpoint, AnchorError> {
        let clone = Clone::of(self.engine, &self.project.id, self.connector);
        let clone = clone.map_err(|error| self.unanswered(&error))?;
        let fetched = clone.fetch(&self.settings.name, tip).await;
        fetched.map_err(|error| self.unanswered(&error))?;
        let file: RepoPath = CHECKPOINT
            .parse()
            .map_err(|error| self.unanswered(&error))?;
        let (bytes, files) = self
            .in_clone(move |repository| {
                let bytes = repository.read_file(tip, &file, MAX_NOTE as u64)?;
                Ok((bytes, repository.tracked_paths(tip)?))
            })
            .await?;
        // Break it: leave this out; a branch of somebody's code is then built upon
        // (`worker::anchoring::a_branch_that_holds_something_else_is_never_written_to`).
        if !files.iter().all(is_ours) {
            return Err(self.refused(format!("the branch is at {tip}, which holds other files")));
        }
        let bytes = bytes.ok_or_else(|| {
            self.refused(format!("the branch is at {tip}, which holds no checkpoint"))
        })?;
        let signed = SignedCheckpoint::parse(&bytes).map_err(|error| {
            self.refused(format!("the checkpoint at {tip} is not one: {error}"))
        })?;
        let ours = checkpoint_signer(self.engine).is_some_and(|signer| signer.is_ours(&signed));
        if ours {
            Ok(signed)
        } else {
            Err(self.refused(format!(
                "the checkpoint at {tip} is not signed by this log's key"
            )))
        }
    }

    /// Whether what is held and what is shown are of one history.
    async fn agree(
        &self,
        held: TreeHead,
        shown: TreeHead,
        log: &dyn LogReader,
    ) -> Result<(), AnchorError> {
        let (old, new) = if held.size() <= shown.size() {
            (held, shown)
        } else {
            (shown, held)
        };
        let organisation = self.engine.keys.organisation();
        let frontier = self.engine.store.within(organisation).log_frontier().await;
        let there = frontier.map_err(|error| self.unanswered(&error))?.size();
        // Break it: leave this out; a database and memory that were both rolled back are then noticed by nobody
        // (`worker::anchoring::a_branch_notices_that_everything_here_was_rolled_back`).
        if there < new.size() {
            return Err(self.contradiction(format!(
                "it holds a checkpoint over {} leaves, and the log has {there}: the database was rolled back",
                new.size()
            )));
        }
        let agree = if old.size() == new.size() {
            old.root() == new.root()
        } else {
            let proof = log.consistency(old.size(), new.size()).await?;
            verify_consistency(&old, &new, &proof).is_ok()
        };
        if agree {
            return Ok(());
        }
        Err(self.contradiction(format!(
            "the checkpoint over {} leaves that it holds is not of the log as it is now",
            held.size()
        )))
    }

    /// Whether a commit is the tip or before it.
    async fn follows(&self, tip: Oid, before: Oid) -> Result<bool, AnchorError> {
        self.in_clone(move |repository| {
            let mut at = tip;
            for _ in 0..MOST_BETWEEN {
                if at == before {
                    return Ok(true);
                }
                match repository.parents(at)?.first() {
                    Some(parent) => at = *parent,
                    None => return Ok(false),
                }
            }
            Ok(false)
        })
        .await
    }

    /// The tip that the next commit follows, and what it holds; none for a branch that is not there yet.
    async fn there(
        &self,
        last: Option<&Receipt>,
    ) -> Result<Option<(Oid, SignedCheckpoint)>, AnchorError> {
        let tip = self.connector.branch(&self.settings.name).await;
        let tip = tip.map_err(|error| self.unanswered(&error))?;
        let known = last.map(|last| serde_json::from_slice::<Pushed>(&last.bytes));
        let known = known.transpose().map_err(|error| self.unanswered(&error))?;
        match (tip, known) {
            (None, None) => Ok(None),
            // Break it: answer `Ok(None)`; a branch that somebody deleted is then begun anew without a word
            // (`worker::anchoring::a_branch_that_was_deleted_is_noticed`).
            (None, Some(known)) => Err(self.contradiction(format!(
                "the branch is gone; it was at {} last",
                known.commit
            ))),
            (Some(tip), known) => {
                let held = match (self.held(tip).await, &known) {
                    (Err(AnchorError::Refused { reason, .. }), Some(_)) => {
                        return Err(self.contradiction(format!("others wrote to it: {reason}")));
                    }
                    (held, _) => held?,
                };
                // Break it: leave this out; a force push is then not noticed
                // (`worker::anchoring::a_branch_that_was_pushed_over_is_noticed`).
                if let Some(known) = known
                    && !self.follows(tip, known.commit).await?
                {
                    return Err(self.contradiction(format!(
                        "the branch is at {tip}, whose history does not have {}, where it was last: somebody pushed over it",
                        known.commit
                    )));
                }
                Ok(Some((tip, held)))
            }
        }
    }

    /// Every file of the next commit, by its object.
    async fn files(
        &self,
        before: Option<&(Oid, SignedCheckpoint)>,
        checkpoint: &SignedCheckpoint,
        log: &dyn LogReader,
    ) -> Result<BTreeMap<RepoPath, Oid>, AnchorError> {
        let mut files = BTreeMap::new();
        if let Some((tip, _)) = before {
            let tip = *tip;
            let there = self.in_clone(move |repository| repository.tracked_files(tip));
            for (path, side) in there.await? {
                // What was part of a file then is in the whole file, or in a longer part, now.
                if !path.as_bytes().windows(3).any(|part| part == b".p/") {
                    files.insert(path, side.oid);
                }
            }
        }
        if self.settings.project.is_some() {
            let from = before.map_or(0, |(_, held)| held.claimed().head().size());
            for tile in TileId::grown(from, checkpoint.claimed().head().size()) {
                self.keep(&mut files, &tile.to_string(), log.file(tile).await?)
                    .await?;
            }
            for root in self.engine.keys.history().versions() {
                let path = format!("root/{}.json", root.document().version);
                let bytes = root.to_bytes().map_err(|error| self.unanswered(&error))?;
                self.keep(&mut files, &path, bytes).await?;
            }
        }
        let note = checkpoint.to_string().into_bytes();
        self.keep(&mut files, CHECKPOINT, note).await?;
        Ok(files)
    }

    async fn keep(
        &self,
        files: &mut BTreeMap<RepoPath, Oid>,
        path: &str,
        bytes: Vec<u8>,
    ) -> Result<(), AnchorError> {
        let path: RepoPath = path.parse().map_err(|error| self.unanswered(&error))?;
        let object = self.in_clone(move |repository| repository.keep_record(&bytes));
        files.insert(path, object.await?);
        Ok(())
    }

    fn receipt(&self, size: u64, commit: Oid) -> Result<Receipt, AnchorError> {
        let pushed = Pushed {
            repository: format!("{}/{}", self.project.host, self.project.full_name),
            branch: self.settings.name.clone(),
            commit,
        };
        let bytes = serde_json::to_vec(&pushed).map_err(|error| self.unanswered(&error))?;
        Ok(Receipt { size, bytes })
    }
}

/// Whether a path is one that only the log's branch has.
fn is_ours(path: &RepoPath) -> bool {
    let path = path.as_bytes();
    path == CHECKPOINT.as_bytes() || path.starts_with(b"tile/") || path.starts_with(b"root/")
}

#[async_trait]
impl Anchor for Branch<'_> {
    fn kind(&self) -> AnchorKind {
        AnchorKind::Branch
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn confirm(
        &self,
        checkpoint: &SignedCheckpoint,
        receipt: &Receipt,
    ) -> Result<(), AnchorError> {
        let size = checkpoint.claimed().head().size();
        let held = self.there(Some(receipt)).await?;
        match held.map(|(_, held)| held.claimed().head()) {
            // The branch only grows, and what is at its tip was compared with the log as it was pushed.
            Some(held) if held.size() > size || held == checkpoint.claimed().head() => Ok(()),
            _ => Err(self.refused(format!("the branch does not hold {size} leaves"))),
        }
    }

    async fn anchor(
        &self,
        checkpoint: &SignedCheckpoint,
        log: &dyn LogReader,
        last: Option<&Receipt>,
        now: Millis,
    ) -> Result<Receipt, AnchorError> {
        let shown = checkpoint.claimed().head();
        let before = self.there(last).await?;
        if let Some((tip, held)) = &before {
            let held = held.claimed().head();
            self.agree(held, shown, log).await?;
            if held.size() >= shown.size() {
                return self.receipt(held.size(), *tip);
            }
        }
        let files = self.files(before.as_ref(), checkpoint, log).await?;
        let parent = before.map(|(tip, _)| tip);
        let author: Identity = self.engine.settings.author.clone();
        let message = format!(
            "Checkpoint of {} over {} leaves\n",
            checkpoint.claimed().origin(),
            shown.size()
        );
        let commit = self
            .in_clone(move |repository| {
                repository.record(&RecordCommit {
                    parent,
                    files: &files,
                    author: &author,
                    message: &message,
                    time: now,
                })
            })
            .await?;
        let push = Push {
            reference: name(&format!("refs/heads/{}", self.settings.name))
                .map_err(|error| self.unanswered(&error))?,
            commit: Some(commit),
            expected: parent,
        };
        let clone = Clone::of(self.engine, &self.project.id, self.connector);
        let clone = clone.map_err(|error| self.unanswered(&error))?;
        let pushed = clone.push(&push).await;
        pushed.map_err(|error| self.unanswered(&error))?;
        self.receipt(shown.size(), commit)
    }
}
