//! What is told to webhooks when something happens, in GitHub's shapes.

use serde_json::{Value, json};

use super::error::ForgeError;
use super::git::ObjectId;
use super::render;
use super::state::{
    Account, Event, Installation, PERSON, ReferenceChange, Repository, RepositoryState, Shared,
};
use super::time::rfc3339;

/// A push names no more commits.
const PUSHED_COMMITS: usize = 20;

impl Repository {
    /// Tells that something happened here; `more` is what the payload has beside repository and sender.
    fn tell(
        &self,
        state: &RepositoryState,
        name: &'static str,
        action: Option<&'static str>,
        sender: Account,
        more: Value,
    ) {
        let mut payload = json!({
            "repository": render::repository(&self.url, self.id, state),
            "sender": render::user(&self.url, sender.login, sender.id),
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut payload, more) {
            all.extend(more);
        }
        self.outbox.emit(&Event {
            name,
            action,
            repository: Some(self.id),
            installation: self.apps.reaching(self.id, &state.owner),
            payload,
        });
    }

    fn is_heard(&self, event: &str) -> bool {
        self.outbox.is_heard(Some(self.id), event)
    }

    /// The repository was renamed, transferred, archived or deleted.
    pub(crate) fn tell_repository(
        &self,
        state: &RepositoryState,
        action: &'static str,
        changes: &Value,
    ) {
        if !self.is_heard("repository") {
            return;
        }
        let more = if changes.is_null() {
            json!({})
        } else {
            json!({"changes": changes})
        };
        self.tell(state, "repository", Some(action), PERSON, more);
    }

    /// A reference moved.
    pub(crate) fn tell_push(
        &self,
        state: &RepositoryState,
        change: &ReferenceChange,
    ) -> Result<(), ForgeError> {
        if !self.is_heard("push") {
            return Ok(());
        }
        let forced = match (&change.before, &change.after) {
            (Some(before), Some(after)) => !self.git.is_ancestor(before, after)?,
            _ => false,
        };
        let new = match (&change.before, &change.after) {
            (Some(before), Some(after)) => self.git.commits_between(before, after)?,
            _ => Vec::new(),
        };
        let mut commits = Vec::new();
        for id in new.iter().rev().take(PUSHED_COMMITS).rev() {
            commits.push(self.pushed_commit(state, id)?);
        }
        let head = match &change.after {
            Some(id) if self.commit(id)?.is_some() => self.pushed_commit(state, id)?,
            _ => Value::Null,
        };
        let sha = |id: &Option<ObjectId>| {
            id.as_ref()
                .map_or_else(|| "0".repeat(40), |id| id.as_str().to_owned())
        };
        let compare = format!(
            "{}/compare/{}...{}",
            render::web_root(&self.url, state),
            sha(&change.before),
            sha(&change.after)
        );
        let more = json!({
            "ref": change.name,
            "before": sha(&change.before),
            "after": sha(&change.after),
            "created": change.before.is_none(),
            "deleted": change.after.is_none(),
            "forced": forced,
            "base_ref": null,
            "compare": compare,
            "commits": commits,
            "head_commit": head,
            "pusher": {"name": PERSON.login, "email": PERSON.email},
        });
        self.tell(state, "push", None, PERSON, more);
        Ok(())
    }

    /// A commit as a push shows it; the files are those against its first parent.
    fn pushed_commit(&self, state: &RepositoryState, id: &ObjectId) -> Result<Value, ForgeError> {
        let commit = self.git.commit(id)?;
        let files = match commit.parents.first() {
            Some(parent) => self.comparison(parent, id)?.files.clone(),
            None => Vec::new(),
        };
        let paths = |letters: &str| -> Vec<&str> {
            files
                .iter()
                .filter(|file| letters.contains(file.letter))
                .map(|file| file.path.as_str())
                .collect()
        };
        let person = |name: &str, email: &str| json!({"name": name, "email": email});
        Ok(json!({
            "id": id.as_str(),
            "tree_id": commit.tree.as_str(),
            "distinct": true,
            "message": commit.message,
            "timestamp": rfc3339(commit.committer.seconds),
            "url": format!("{}/commit/{id}", render::web_root(&self.url, state)),
            "author": person(&commit.author.name, &commit.author.email),
            "committer": person(&commit.committer.name, &commit.committer.email),
            "added": paths("AR"),
            "removed": paths("D"),
            "modified": paths("MT"),
        }))
    }

    /// Something happened to a pull request; `more` is what the action has beside it.
    pub(crate) fn tell_pull(
        &self,
        state: &RepositoryState,
        number: u64,
        action: &'static str,
        sender: Account,
        more: Value,
    ) -> Result<(), ForgeError> {
        let Some(pull) = state.pull(number).filter(|_| self.is_heard("pull_request")) else {
            return Ok(());
        };
        let comparison = self.pull_comparison(state, pull)?;
        let mut payload = json!({
            "number": pull.number,
            "pull_request": render::pull(&self.url, self.id, state, pull, &comparison),
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut payload, more) {
            all.extend(more);
        }
        self.tell(state, "pull_request", Some(action), sender, payload);
        Ok(())
    }

    /// The latest attempt of a run was requested, began or ended.
    pub(crate) fn tell_run(
        &self,
        state: &RepositoryState,
        run: u64,
        action: &'static str,
    ) -> Result<(), ForgeError> {
        if !self.is_heard("workflow_run") && !self.is_heard("check_suite") {
            return Ok(());
        }
        let known = state.runs.iter().find(|known| known.id == run);
        let Some((run, attempt)) = known.and_then(|run| Some((run, run.attempts.last()?))) else {
            return Ok(());
        };
        let commit = self.commit(&run.head_sha)?;
        if self.is_heard("workflow_run") {
            let workflow = state
                .workflows
                .iter()
                .find(|known| known.id == run.workflow_id)
                .map(|workflow| render::workflow(&self.url, state, workflow));
            let more = json!({
                "workflow_run": render::run(&self.url, self.id, state, run, attempt, commit.as_deref()),
                "workflow": workflow,
            });
            self.tell(state, "workflow_run", Some(action), PERSON, more);
        }
        if action == "completed" && self.is_heard("check_suite") {
            let suite = render::check_suite(&self.url, state, run, attempt, commit.as_deref());
            let more = json!({"check_suite": suite});
            self.tell(state, "check_suite", Some(action), PERSON, more);
        }
        Ok(())
    }
}

impl Shared {
    /// An App was installed, removed, suspended or taken back.
    pub(crate) fn tell_installation(&self, installation: &Installation, action: &'static str) {
        let repositories: Vec<Value> = self
            .repositories()
            .iter()
            .map(|repository| (repository.id, repository.remembered()))
            .filter(|(id, state)| installation.reaches(*id, &state.owner))
            .map(|(id, state)| {
                json!({"id": id, "node_id": render::node_id("R", id), "name": state.name, "full_name": state.full_name(), "private": true})
            })
            .collect();
        self.outbox.emit(&Event {
            name: "installation",
            action: Some(action),
            repository: None,
            installation: Some(installation.id),
            payload: json!({
                "installation": render::installation(&self.url, installation),
                "repositories": repositories,
                "sender": render::user(&self.url, PERSON.login, PERSON.id),
            }),
        });
    }
}
