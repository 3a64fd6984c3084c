//! Answering on this machine, without a link.

use std::path::Path;

use anyhow::Context as _;

use super::{AnswerArguments, show};
use crate::approve::{Binding, HumanDecision};
use crate::cli::installation::Installation;
use crate::cli::{Verdict, complain, incident, print};
use crate::id::{ApprovalId, Entropy, ProjectId};
use crate::signer::{CredentialSeal, system_randomness};
use crate::store::LocalAnswer;
use crate::worker::repository_folder;
use crate::workspace::{WorkspaceError, open_read_only};

/// Approves or rejects, when the user of this machine is who was asked. An approval needs the change to be computed here and
/// to be what was asked about; a rejection needs nothing, since nothing follows from it.
pub(super) async fn answer(
    installation: &Installation,
    arguments: &AnswerArguments,
    decision: HumanDecision,
) -> anyhow::Result<Verdict> {
    let (store, organisation) = installation.open_database().await?;
    let id = &arguments.incident;
    let record = incident::read(&store, &organisation, id).await?;
    let request = show::request(&record)?;
    let user = installation.current_user()?;
    anyhow::ensure!(
        request.principal == user,
        "answering for {id}: {} was asked and you are {user}. The answer is given through the link that was sent there; `caretaker approval resend {id}` has a new one sent",
        request.principal
    );
    if decision == HumanDecision::Approve {
        let home = &installation.configuration.home;
        match recompute(home, &record.row.project, &request.binding) {
            Ok(()) => {}
            // Break it: go on here; `commands::answering::nothing_is_approved_that_cannot_be_computed_here` then fails.
            Err(Mismatch::Unreadable(error)) => {
                complain(&format!(
                    "answering for {id}: the change cannot be computed here, so nothing was answered: {error}. Answer on the machine and in the CARETAKER_HOME of the worker that made the fix, or through the link"
                ));
                return Ok(Verdict::CannotTell);
            }
            Err(Mismatch::Differs { what, asked, found }) => anyhow::bail!(
                "answering for {id}: nothing was answered, since the {what} in the repository here is {found} and {asked} was asked about. Something other than caretaker changed the repository or the database: reject the change, and look at both"
            ),
        }
    }
    let mut entropy = Entropy::default();
    system_randomness(&mut entropy).context("naming the answer")?;
    let now = store.now().await?;
    let approval = ApprovalId::new(now, entropy);
    let seal = CredentialSeal::read(&installation.configuration)?;
    let comment = arguments.comment.as_deref().map(str::trim);
    let local = LocalAnswer {
        incident: id,
        request: request.digest(),
        principal: &user,
        decision,
        comment: comment.filter(|comment| !comment.is_empty()),
        approval: &approval,
        token: &seal.link(&approval, &request.digest(), &user),
    };
    store.answer_locally(&organisation, &local, now).await?;
    let binding = &request.binding;
    print(&match decision {
        HumanDecision::Approve => format!(
            "approved: exactly the change {} may be merged as pull request {}; a running worker signs the answer and goes on",
            binding.change_digest(),
            binding.pull_request
        ),
        HumanDecision::Reject => format!(
            "rejected: a running worker signs the answer and closes pull request {}",
            binding.pull_request
        ),
    })?;
    Ok(Verdict::Done)
}

/// Why a change is not what was asked about, or cannot be told to be.
enum Mismatch {
    /// It cannot be read here.
    Unreadable(WorkspaceError),
    /// It is another one.
    Differs {
        what: &'static str,
        asked: String,
        found: String,
    },
}

impl From<WorkspaceError> for Mismatch {
    fn from(error: WorkspaceError) -> Self {
        Self::Unreadable(error)
    }
}

/// Computes the change anew from the objects in the trusted repository. Nothing is fetched.
fn recompute(home: &Path, project: &ProjectId, binding: &Binding) -> Result<(), Mismatch> {
    let repository = open_read_only(&repository_folder(home, project))?;
    let same = |what, asked: String, found: String| {
        if asked == found {
            Ok(())
        } else {
            Err(Mismatch::Differs { what, asked, found })
        }
    };
    let head = binding.head_commit;
    let change = repository.change_set(binding.merge_base, head)?.digest();
    // Break it: leave this comparison out; `commands::answering::another_change_than_the_one_asked_about_is_not_approved` then
    // fails.
    same(
        "change",
        binding.change_digest().to_string(),
        change.to_string(),
    )?;
    let tree = repository.commit_tree(head)?;
    same(
        "head's tree",
        binding.head_tree.to_string(),
        tree.to_string(),
    )?;
    let parents = repository.parents(head)?;
    let parents: Vec<String> = parents.iter().map(ToString::to_string).collect();
    same(
        "head's parent",
        binding.merge_base.to_string(),
        parents.join(" and "),
    )
}
