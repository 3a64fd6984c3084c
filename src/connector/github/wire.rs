//! The provider's answers as far as they are read. Every member may be missing or null, words are open, and what is needed
//! is demanded where it is used.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A member as far as it is what it should be: one of another kind is as good as missing. It is taken as text first, since a
/// number that is too large, half a character or a nesting that is too deep would otherwise spoil what is around it.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(text.get()).ok())
}

/// The number of an item of which nothing else is understood.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Numbered {
    #[serde(deserialize_with = "lenient")]
    id: Option<u64>,
}

/// An item of a list that must not be lost for the sake of an odd one.
#[derive(Debug)]
pub(super) enum Item<T> {
    /// It was understood.
    Plain(T),
    /// It was not.
    Odd {
        /// Its number, where it has one.
        id: Option<u64>,
        /// What is wrong with it.
        fault: String,
    },
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Item<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Break it: read it as a `Value`; one number that is too large then loses the page
        // (`connector::odd::what_only_spoils_itself_when_taken_as_text_hides_no_other`).
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(match serde_json::from_str(text.get()) {
            Ok(item) => Self::Plain(item),
            Err(fault) => Self::Odd {
                id: serde_json::from_str::<Numbered>(text.get())
                    .ok()
                    .and_then(|it| it.id),
                fault: fault.to_string(),
            },
        })
    }
}

/// One page of `GET actions/runs`.
#[derive(Debug, Deserialize)]
pub(super) struct Runs {
    pub(super) workflow_runs: Vec<Item<Run>>,
}

/// One page of a run's jobs.
#[derive(Debug, Deserialize)]
pub(super) struct Jobs {
    pub(super) jobs: Vec<Item<Job>>,
}

/// One page of `GET actions/workflows`.
#[derive(Debug, Deserialize)]
pub(super) struct Workflows {
    pub(super) workflows: Vec<Item<Workflow>>,
}

/// `GET /repos/{owner}/{repo}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Repository {
    pub(super) id: Option<u64>,
    pub(super) full_name: Option<String>,
    pub(super) default_branch: Option<String>,
    pub(super) archived: Option<bool>,
    pub(super) disabled: Option<bool>,
    pub(super) allow_merge_commit: Option<bool>,
    pub(super) allow_squash_merge: Option<bool>,
    pub(super) allow_rebase_merge: Option<bool>,
}

/// A repository inside another answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RepositoryMention {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<u64>,
}

/// A pull request, alone or in a list (where counts are missing).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pull {
    pub(super) number: Option<u64>,
    pub(super) html_url: Option<String>,
    pub(super) state: Option<String>,
    pub(super) merged: Option<bool>,
    pub(super) merged_at: Option<String>,
    pub(super) merge_commit_sha: Option<String>,
    pub(super) draft: Option<bool>,
    pub(super) stack: Option<Value>,
    pub(super) auto_merge: Option<Value>,
    pub(super) mergeable: Option<bool>,
    pub(super) commits: Option<u64>,
    pub(super) changed_files: Option<u64>,
    pub(super) head: Option<PullSide>,
    pub(super) base: Option<PullSide>,
}

/// Head or base of a pull request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PullSide {
    #[serde(rename = "ref")]
    pub(super) branch: Option<String>,
    pub(super) sha: Option<String>,
    pub(super) repo: Option<RepositoryMention>,
}

/// One row of a pull request's files.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FileRow {
    pub(super) filename: Option<String>,
    pub(super) status: Option<String>,
    pub(super) sha: Option<String>,
    pub(super) previous_filename: Option<String>,
}

/// A workflow run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Run {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<u64>,
    #[serde(rename = "run_attempt", deserialize_with = "lenient")]
    pub(super) attempt: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) workflow_id: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) event: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) head_branch: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) head_sha: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) repository: Option<RepositoryMention>,
    #[serde(deserialize_with = "lenient")]
    pub(super) head_repository: Option<RepositoryMention>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) conclusion: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) created_at: Option<String>,
    #[serde(rename = "run_started_at", deserialize_with = "lenient")]
    pub(super) started_at: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) updated_at: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) html_url: Option<String>,
}

/// A workflow.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Workflow {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) path: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) state: Option<String>,
}

/// `GET contents/{path}` of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) encoding: Option<String>,
    #[serde(rename = "content")]
    pub(super) text: Option<String>,
}

/// A job of a run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Job {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) conclusion: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) steps: Option<Vec<Item<Step>>>,
}

/// A step of a job.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Step {
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) conclusion: Option<String>,
}

/// A check run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CheckRun {
    pub(super) id: Option<u64>,
    pub(super) name: Option<String>,
    pub(super) status: Option<String>,
    pub(super) conclusion: Option<String>,
    pub(super) app: Option<App>,
    pub(super) check_suite: Option<CheckSuite>,
}

/// The app that reported a check.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct App {
    pub(super) slug: Option<String>,
}

/// The suite that a check belongs to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CheckSuite {
    pub(super) id: Option<u64>,
}

/// A commit status.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub(super) context: Option<String>,
    pub(super) state: Option<String>,
}

/// A rule that is active on a branch.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Rule {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) parameters: Option<RuleParameters>,
}

/// Those parameters of a rule that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RuleParameters {
    pub(super) allowed_merge_methods: Option<Vec<String>>,
}

/// `GET git/ref/{ref}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Reference {
    #[serde(rename = "ref")]
    pub(super) name: Option<String>,
    pub(super) object: Option<ReferenceTarget>,
}

/// What a reference points at.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReferenceTarget {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) sha: Option<String>,
}

/// An object named by its id.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ObjectMention {
    pub(super) sha: Option<String>,
}

/// `GET git/commits/{sha}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Commit {
    pub(super) sha: Option<String>,
    pub(super) tree: Option<ObjectMention>,
    pub(super) parents: Option<Vec<ObjectMention>>,
    pub(super) message: Option<String>,
}

/// `GET compare/{base}...{head}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Compared {
    pub(super) merge_base_commit: Option<ObjectMention>,
}

/// `GET git/trees/{sha}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tree {
    pub(super) sha: Option<String>,
    #[serde(rename = "tree")]
    pub(super) entries: Option<Vec<TreeEntry>>,
    pub(super) truncated: Option<bool>,
}

/// One entry of a tree.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TreeEntry {
    pub(super) path: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) sha: Option<String>,
}

/// A comment.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Comment {
    pub(super) body: Option<String>,
}

/// A successful answer to a merge.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Merged {
    pub(super) sha: Option<String>,
    pub(super) merged: Option<bool>,
}

/// The body of a refusal.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    pub(super) message: Option<String>,
    pub(super) errors: Option<Value>,
}
