//! Commits and branches of fixes.

use git2::{Reference, Signature, Time};

use crate::change::Oid;
use crate::clock::Millis;
use crate::gate::Cleared;

use super::repository::{cooked, raw};
use super::{TrustedRepository, WorkspaceError};

/// Where branches of fixes live, below `refs/heads/`.
pub const BRANCH_PREFIX: &str = "caretaker/";
/// Longest commit message, in bytes.
const MESSAGE_BYTES: usize = 64 << 10;

/// Who a commit says it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Name for people.
    pub name: String,
    /// Electronic mail address.
    pub email: String,
}

impl Identity {
    fn check(&self) -> Result<(), WorkspaceError> {
        for (part, text) in [("name", &self.name), ("address", &self.email)] {
            // git strips these silently; what is signed and what is stored would then differ.
            let odd = text.trim() != text
                || text.is_empty()
                || text.contains(|c: char| matches!(c, '<' | '>') || c.is_control());
            if odd {
                return Err(WorkspaceError::Unwritable {
                    what: format!("a commit's author {part} {text:?}"),
                    reason: "it is empty, has blanks around it, or holds <, > or a control character; correct it"
                        .to_owned(),
                });
            }
        }
        Ok(())
    }
}

impl TrustedRepository {
    /// Writes the one commit of a fix. No branch moves; see [`Self::write_branch`].
    ///
    /// The same arguments give the same commit. The time is kept in whole seconds, UTC.
    ///
    /// # Errors
    /// The change from `parent` to `tree` is not the one that was cleared, the tree or parent is missing, the message is empty, longer than 64 KiB or has a NUL, or the author's name or address
    /// cannot stand in a commit.
    pub fn commit(
        &self,
        cleared: &Cleared,
        tree: Oid,
        parent: Oid,
        author: &Identity,
        message: &str,
        time: Millis,
    ) -> Result<Oid, WorkspaceError> {
        author.check()?;
        if message.trim().is_empty() || message.len() > MESSAGE_BYTES || message.contains('\0') {
            return Err(WorkspaceError::Unwritable {
                what: "a commit message".to_owned(),
                reason: format!(
                    "it is empty, longer than {MESSAGE_BYTES} bytes or holds a NUL; correct it"
                ),
            });
        }
        self.expect_kind(tree, git2::ObjectType::Tree, "tree")?;
        self.expect_kind(parent, git2::ObjectType::Commit, "commit")?;
        let change = self.change_set(parent, tree)?.digest();
        if change != *cleared.change() {
            return Err(WorkspaceError::Unwritable {
                what: format!("a commit of the change {change}"),
                reason: format!(
                    "the gate cleared another change, {}; have the gate decide on this one",
                    cleared.change()
                ),
            });
        }
        let doing = || WorkspaceError::git("writing the commit of a fix");
        let seconds = Time::new(time.0.div_euclid(1000), 0);
        let signature = Signature::new(&author.name, &author.email, &seconds).map_err(doing())?;
        let tree = self.inner.find_tree(raw(tree)?).map_err(doing())?;
        let parent = self.inner.find_commit(raw(parent)?).map_err(doing())?;
        let message = format!("{}\n", message.trim_end());
        let written = self
            .inner
            .commit(None, &signature, &signature, &message, &tree, &[&parent])
            .map_err(doing())?;
        cooked(written)
    }

    /// Points a fix branch, e.g. `caretaker/<incident>-<n>`, to a commit; doing it again changes nothing.
    ///
    /// # Errors
    /// The name is not below `caretaker/` or git does not allow it, or the commit is missing.
    pub fn write_branch(&self, branch: &str, commit: Oid) -> Result<(), WorkspaceError> {
        let full = fix_branch(branch)?;
        self.expect_kind(commit, git2::ObjectType::Commit, "commit")?;
        // Replacing is safe: only the worker that holds the incident's lease writes its branches, and a step that is done
        // again after a crash may have built another commit.
        self.inner
            .reference(&full, raw(commit)?, true, "fix of an incident")
            .map(drop)
            .map_err(WorkspaceError::git(format!("writing {full}")))
    }

    /// Removes a fix branch; a branch that is not there is no error.
    ///
    /// # Errors
    /// The name is not below `caretaker/`, or the reference cannot be removed.
    pub fn delete_branch(&self, branch: &str) -> Result<(), WorkspaceError> {
        let full = fix_branch(branch)?;
        let doing = || WorkspaceError::git(format!("removing {full}"));
        match self.inner.find_reference(&full) {
            Ok(mut found) => found.delete().map_err(doing()),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(()),
            Err(error) => Err(doing()(error)),
        }
    }

    /// The commit that a fix branch points to, if there is one.
    ///
    /// # Errors
    /// The name is not below `caretaker/`.
    pub fn branch(&self, branch: &str) -> Result<Option<Oid>, WorkspaceError> {
        self.reference(&fix_branch(branch)?)
    }
}

fn fix_branch(branch: &str) -> Result<String, WorkspaceError> {
    let full = format!("refs/heads/{branch}");
    let ours = branch.len() > BRANCH_PREFIX.len() && branch.starts_with(BRANCH_PREFIX);
    if ours && branch.len() <= 200 && Reference::is_valid_name(&full) {
        return Ok(full);
    }
    Err(WorkspaceError::Unwritable {
        what: format!(
            "the branch {:?}",
            branch.chars().take(200).collect::<String>()
        ),
        reason: format!(
            "fix branches are named {BRANCH_PREFIX}<incident>-<n>, in at most 200 characters that git allows"
        ),
    })
}
