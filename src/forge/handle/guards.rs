//! What an owner sets up: branch protection, rules and workflows.

use serde_json::Value;

use super::super::error::ForgeError;
use super::super::state::{Protection, Rule, Workflow};
use super::RepositoryHandle;

/// A workflow to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWorkflow {
    /// The workflow's number.
    pub id: u64,
    /// The workflow's name.
    pub name: String,
    /// The workflow's file, such as `.github/workflows/ci.yml`.
    pub path: String,
    /// `active`, `deleted`, `disabled_fork`, `disabled_inactivity` or `disabled_manually`.
    pub state: String,
}

impl RepositoryHandle {
    /// The owner protects a branch. Pushes over HTTP, the API and every merge obey; a person who pushes through this handle
    /// is an administrator and does not.
    pub fn protect(&self, branch: &str, protection: Protection) -> Result<(), ForgeError> {
        self.change(|state| state.protections.insert(branch.to_owned(), protection))
            .map(drop)
    }

    /// The owner takes the protection of a branch away, and its rules.
    pub fn unprotect(&self, branch: &str) -> Result<(), ForgeError> {
        self.change(|state| {
            state.protections.remove(branch);
            state.rules.retain(|rule| rule.branch != branch);
        })
    }

    /// The owner makes a ruleset of one rule for a branch; its number. `kind` is GitHub's word, such as `merge_queue`, and
    /// `parameters` what GitHub's API shows for it (`null` where it has none).
    pub fn add_rule(&self, branch: &str, kind: &str, parameters: Value) -> Result<u64, ForgeError> {
        let ruleset = self.repository.ids.next();
        let rule = Rule {
            branch: branch.to_owned(),
            kind: kind.to_owned(),
            parameters,
            ruleset,
        };
        self.change(|state| state.rules.push(rule))?;
        Ok(ruleset)
    }

    /// A workflow file comes up. Runs of workflows that were never added add an active one by themselves.
    pub fn add_workflow(&self, workflow: NewWorkflow) -> Result<(), ForgeError> {
        let now = (self.shared.now)();
        let added = Workflow {
            id: workflow.id,
            name: workflow.name,
            path: workflow.path,
            state: workflow.state,
            created_at: now,
            updated_at: now,
        };
        let mut state = self.repository.current()?;
        if state.workflows.iter().any(|known| known.id == added.id) {
            return Err(ForgeError::Exists {
                what: format!("workflow {}", added.id),
            });
        }
        state.workflows.push(added);
        Ok(())
    }

    /// A person, or GitHub after weeks of silence, gives a workflow another state.
    pub fn set_workflow_state(&self, id: u64, word: &str) -> Result<(), ForgeError> {
        let now = (self.shared.now)();
        let mut state = self.repository.current()?;
        let workflow = state
            .workflows
            .iter_mut()
            .find(|known| known.id == id)
            .ok_or_else(|| ForgeError::Absent {
                what: format!("workflow {id}"),
            })?;
        word.clone_into(&mut workflow.state);
        workflow.updated_at = now;
        Ok(())
    }
}
