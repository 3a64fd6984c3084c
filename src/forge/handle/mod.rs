//! What a person, or a test, does to a repository without asking the HTTP interface.

mod checks;
mod guards;
mod pulls;
mod runs;

use std::path::Path;
use std::sync::Arc;

use super::api::Refusal;
use super::error::ForgeError;
use super::git::{FileEdit, ObjectId, Person};
use super::state::{
    Ci, MergeMethods, PERSON, ReferenceChange, ReferenceUpdate, Repository, RepositoryState, Shared,
};

pub use checks::NewCheckRun;
pub use guards::NewWorkflow;
pub use pulls::PullSummary;
pub use runs::{NewJob, NewRun, NewStep};

/// One repository of a forge. Clones are the same repository.
#[derive(Clone)]
pub struct RepositoryHandle {
    shared: Arc<Shared>,
    repository: Arc<Repository>,
}

impl std::fmt::Debug for RepositoryHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("RepositoryHandle")
            .field(&self.full_name())
            .finish()
    }
}

/// GitHub's refusal of an act, for somebody who acts without HTTP.
fn refused(act: String) -> impl FnOnce(Refusal) -> ForgeError {
    move |refusal| {
        let details = refusal
            .errors
            .iter()
            .map(|error| format!(" {error}"))
            .collect::<Vec<_>>()
            .concat();
        ForgeError::Refused {
            act,
            reason: format!("{} {}{details}", refusal.status, refusal.message),
        }
    }
}

impl RepositoryHandle {
    pub(crate) fn new(shared: Arc<Shared>, repository: Arc<Repository>) -> Self {
        Self { shared, repository }
    }

    /// The number that outlives renames.
    pub fn id(&self) -> u64 {
        self.repository.id
    }

    /// `owner/name`.
    pub fn full_name(&self) -> String {
        self.repository.remembered().full_name()
    }

    /// The repository's page, which is also what a project is registered by.
    pub fn url(&self) -> String {
        format!("{}/{}", self.shared.url, self.full_name())
    }

    /// Where git clones from and pushes to.
    pub fn clone_url(&self) -> String {
        format!("{}.git", self.url())
    }

    /// The bare repository on disk, for whoever wants to ask git directly.
    pub fn git_directory(&self) -> &Path {
        self.repository.git.directory()
    }

    /// The commit at the tip of a branch.
    pub fn tip(&self, branch: &str) -> Result<ObjectId, ForgeError> {
        let state = self.repository.current()?;
        state
            .tip(branch)
            .cloned()
            .ok_or_else(|| ForgeError::Absent {
                what: format!("branch {branch}"),
            })
    }

    /// Every reference and what it names, except those of pull requests.
    pub fn references(&self) -> Result<Vec<(String, ObjectId)>, ForgeError> {
        let state = self.repository.current()?;
        Ok(state
            .references
            .iter()
            .map(|(name, id)| (name.clone(), id.clone()))
            .collect())
    }

    /// Every move of a reference since the repository was made, oldest first: where nothing ever pushed, this is empty.
    pub fn reference_changes(&self) -> Result<Vec<ReferenceChange>, ForgeError> {
        Ok(self.repository.current()?.reference_changes.clone())
    }

    /// The content of a file at a commit or at the tip of a branch, `None` where there is no such file.
    pub fn file(&self, revision: &str, path: &str) -> Result<Option<Vec<u8>>, ForgeError> {
        let commit = match ObjectId::parse(revision) {
            Some(id) => id,
            None => self.tip(revision)?,
        };
        self.repository.git.file(&commit, path)
    }

    /// Makes a commit on top of `parents` without moving any branch. The date is a minute after the first parent's, so
    /// that the same edits give the same id. Paths that a checkout would refuse, such as `a/../b`, are let through: hostile
    /// trees exist.
    pub fn commit_object(
        &self,
        parents: &[ObjectId],
        edits: &[(&str, FileEdit)],
        message: &str,
    ) -> Result<ObjectId, ForgeError> {
        let person = Person {
            name: PERSON.login.to_owned(),
            email: PERSON.email.to_owned(),
        };
        let edits: Vec<(String, FileEdit)> = edits
            .iter()
            .map(|(path, edit)| ((*path).to_owned(), edit.clone()))
            .collect();
        let seconds = match parents.first() {
            Some(parent) => self.repository.git.commit(parent)?.committer.seconds + 60,
            None => super::time::START,
        };
        self.repository
            .git
            .commit_edits(parents, &edits, &person, seconds, message)
    }

    /// A person pushes one commit onto a branch that exists.
    pub fn commit(
        &self,
        branch: &str,
        edits: &[(&str, FileEdit)],
        message: &str,
    ) -> Result<ObjectId, ForgeError> {
        let tip = self.tip(branch)?;
        let commit = self.commit_object(&[tip], edits, message)?;
        self.push(&format!("refs/heads/{branch}"), &commit)?;
        Ok(commit)
    }

    /// A person makes a branch at a commit.
    pub fn create_branch(&self, branch: &str, at: &ObjectId) -> Result<(), ForgeError> {
        if self.repository.current()?.tip(branch).is_some() {
            return Err(ForgeError::Exists {
                what: format!("branch {branch}"),
            });
        }
        self.push(&format!("refs/heads/{branch}"), at)
    }

    fn push(&self, name: &str, to: &ObjectId) -> Result<(), ForgeError> {
        let mut state = self.repository.current()?;
        match self.repository.update_reference(&mut state, name, to)? {
            ReferenceUpdate::Done => Ok(()),
            ReferenceUpdate::Overtaken => {
                let reason =
                    "somebody else moved it meanwhile, or git does not allow the name; look again"
                        .to_owned();
                Err(ForgeError::Refused {
                    act: format!("moving {name} to {to}"),
                    reason,
                })
            }
        }
    }

    /// A person sets a reference, given by its full name, whatever it was: a forced push.
    pub fn force_reference(&self, name: &str, to: &ObjectId) -> Result<(), ForgeError> {
        self.repository.git.force_reference(name, to)?;
        self.repository.current().map(drop)
    }

    /// A person deletes a reference, given by its full name.
    pub fn delete_reference(&self, name: &str) -> Result<(), ForgeError> {
        if !self.repository.current()?.references.contains_key(name) {
            return Err(ForgeError::Absent {
                what: format!("reference {name}"),
            });
        }
        self.repository.git.delete_reference(name)?;
        self.repository.current().map(drop)
    }

    /// A person renames the repository; the old name redirects from then on.
    pub fn rename(&self, name: &str) -> Result<(), ForgeError> {
        let owner = self.repository.remembered().owner.clone();
        self.shared.relocate(&self.repository, &owner, name)
    }

    /// The owner gives the repository to another; the old address redirects from then on.
    pub fn transfer(&self, owner: &str) -> Result<(), ForgeError> {
        let name = self.repository.remembered().name.clone();
        self.shared.relocate(&self.repository, owner, &name)
    }

    /// The owner deletes the repository: it is found neither by name nor by number. What this handle still does to it,
    /// nobody sees.
    pub fn delete(&self) {
        self.shared.delete(&self.repository);
    }

    /// The owner archives the repository.
    pub fn archive(&self) -> Result<(), ForgeError> {
        self.set_archived(true)
    }

    /// A person renames a branch; pull requests into it follow, and its old name redirects.
    pub fn rename_branch(&self, from: &str, to: &str) -> Result<(), ForgeError> {
        let tip = self.tip(from)?;
        self.create_branch(to, &tip)?;
        self.change(|state| {
            for pull in state.pulls.iter_mut().filter(|pull| pull.base_ref == from) {
                to.clone_into(&mut pull.base_ref);
            }
            if state.default_branch == from {
                to.clone_into(&mut state.default_branch);
            }
            state
                .renamed_branches
                .insert(from.to_owned(), to.to_owned());
        })?;
        self.repository.git.run(&[
            "symbolic-ref",
            "HEAD",
            &format!("refs/heads/{}", self.repository.remembered().default_branch),
        ])?;
        self.delete_reference(&format!("refs/heads/{from}"))
    }

    /// Which merge methods the repository allows from now on.
    pub fn set_merge_methods(&self, allowed: MergeMethods) -> Result<(), ForgeError> {
        self.change(|state| state.allowed = allowed)
    }

    /// Whether a merge deletes the head branch from now on.
    pub fn set_delete_branch_on_merge(&self, deletes: bool) -> Result<(), ForgeError> {
        self.change(|state| state.delete_branch_on_merge = deletes)
    }

    /// Archives the repository, or takes it back.
    pub fn set_archived(&self, archived: bool) -> Result<(), ForgeError> {
        let mut state = self.repository.current()?;
        state.archived = archived;
        let action = if archived { "archived" } else { "unarchived" };
        self.repository
            .tell_repository(&state, action, &serde_json::Value::Null);
        Ok(())
    }

    /// Whether heads of pull requests get a successful check run by themselves from now on.
    pub fn set_ci(&self, ci: Ci) -> Result<(), ForgeError> {
        self.change(|state| state.ci = ci)
    }

    fn change<T>(&self, change: impl FnOnce(&mut RepositoryState) -> T) -> Result<T, ForgeError> {
        Ok(change(&mut *self.repository.current()?))
    }
}
