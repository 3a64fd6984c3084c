//! Following the references of the bare repository: what a push means for pull requests.

use serde_json::json;

use super::super::error::ForgeError;
use super::super::git::ObjectId;
use super::pulls::{Ending, PullState};
use super::{CheckRun, Ci, PERSON, Repository, RepositoryState, Suite};

/// One move of a reference that the forge saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceChange {
    /// The full name, such as `refs/heads/main`.
    pub name: String,
    /// What it named before; `None`: it did not exist.
    pub before: Option<ObjectId>,
    /// What it names now; `None`: it was deleted.
    pub after: Option<ObjectId>,
}

/// What came of an attempt to move a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReferenceUpdate {
    Done,
    /// Somebody else moved it meanwhile.
    Overtaken,
}

impl Repository {
    /// Reads the references and draws the consequences of every one that moved.
    pub(super) fn follow_references(&self, state: &mut RepositoryState) -> Result<(), ForgeError> {
        let stamp = self.git.reference_stamp();
        if stamp.is_some() && stamp == state.stamp {
            return Ok(());
        }
        // Taken before git looks: what moves meanwhile makes the next stamp another one.
        state.stamp = stamp;
        let mut references = self.git.references()?;
        references.retain(|name, _| !name.starts_with("refs/pull/"));
        let changes = differences(state, &references);
        if changes.is_empty() {
            return Ok(());
        }
        state.version += 1;
        state.references = references;
        state.pushed_at = (self.now)();
        for change in &changes {
            self.tell_push(state, change)?;
            if let Some(branch) = change.name.strip_prefix("refs/heads/") {
                self.follow_branch(state, branch, change.after.as_ref())?;
            }
        }
        state.reference_changes.extend(changes);
        Ok(())
    }

    /// Heads of pull requests follow their branch; a deleted branch closes what hangs on it; a base that has come to
    /// contain a head has merged it.
    fn follow_branch(
        &self,
        state: &mut RepositoryState,
        branch: &str,
        tip: Option<&ObjectId>,
    ) -> Result<(), ForgeError> {
        let now = (self.now)();
        let base_tips: Vec<Option<ObjectId>> = state
            .pulls
            .iter()
            .map(|pull| state.tip(&pull.base_ref).cloned())
            .collect();
        let mut moved_heads = Vec::new();
        let mut news = Vec::new();
        for (pull, base_tip) in state
            .pulls
            .iter_mut()
            .zip(base_tips)
            .filter(|(pull, _)| pull.is_open())
        {
            match tip {
                None if pull.head_ref == branch || pull.base_ref == branch => {
                    pull.state = PullState::Closed { at: now };
                    pull.updated_at = now;
                    news.push((pull.number, "closed", json!({})));
                }
                Some(tip) if pull.head_ref == branch => {
                    let sides = json!({"before": pull.head_sha.as_str(), "after": tip.as_str()});
                    news.push((pull.number, "synchronize", sides));
                    pull.head_sha = tip.clone();
                    pull.base_sha = base_tip.unwrap_or_else(|| pull.base_sha.clone());
                    pull.updated_at = now;
                    self.git
                        .force_reference(&format!("refs/pull/{}/head", pull.number), tip)?;
                    moved_heads.push(tip.clone());
                }
                Some(tip)
                    if pull.base_ref == branch && self.git.is_ancestor(&pull.head_sha, tip)? =>
                {
                    let ending = Ending {
                        at: now,
                        by: PERSON,
                        commit: tip.clone(),
                        base_before: pull.base_sha.clone(),
                    };
                    pull.state = PullState::Merged(ending);
                    pull.updated_at = now;
                    news.push((pull.number, "closed", json!({})));
                }
                _ => {}
            }
        }
        for head in moved_heads {
            self.play_ci(state, &head);
        }
        for (number, action, more) in news {
            self.tell_pull(state, number, action, PERSON, more)?;
        }
        Ok(())
    }

    /// The successful check run of [`Ci::Automatic`].
    pub(crate) fn play_ci(&self, state: &mut RepositoryState, head: &ObjectId) {
        let has_one = state
            .check_runs
            .iter()
            .any(|check| check.head_sha == *head && check.name == "test");
        if state.ci == Ci::Off || has_one {
            return;
        }
        let now = (self.now)();
        state.check_runs.push(CheckRun {
            id: self.ids.next(),
            suite: Suite {
                id: self.ids.next(),
                app_id: 15_368,
                app_slug: "github-actions".to_owned(),
            },
            head_sha: head.clone(),
            name: "test".to_owned(),
            status: "completed".to_owned(),
            conclusion: Some("success".to_owned()),
            started_at: now,
            completed_at: Some(now),
        });
    }

    /// Moves a reference if it is what `state` says, and draws the consequences.
    pub(crate) fn update_reference(
        &self,
        state: &mut RepositoryState,
        name: &str,
        to: &ObjectId,
    ) -> Result<ReferenceUpdate, ForgeError> {
        let moved = self
            .git
            .move_reference(name, to, state.references.get(name))?;
        self.follow_references(state)?;
        Ok(if moved {
            ReferenceUpdate::Done
        } else {
            ReferenceUpdate::Overtaken
        })
    }
}

/// The references that differ from what was known.
fn differences(
    state: &RepositoryState,
    now: &std::collections::BTreeMap<String, ObjectId>,
) -> Vec<ReferenceChange> {
    let change = |name: &String, after: Option<&ObjectId>| ReferenceChange {
        name: name.clone(),
        before: state.references.get(name).cloned(),
        after: after.cloned(),
    };
    let gone = state
        .references
        .keys()
        .filter(|name| !now.contains_key(*name))
        .map(|name| change(name, None));
    let moved = now
        .iter()
        .filter(|(name, id)| state.references.get(*name) != Some(id))
        .map(|(name, id)| change(name, Some(id)));
    gone.chain(moved).collect()
}
