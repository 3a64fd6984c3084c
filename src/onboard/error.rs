//! Why a project is not registered, confirmed, paused or resumed. Nothing is half done: the draft is written last, at once.

use super::RepositoryAddressError;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::config::RulesFileError;
use crate::connector::ConnectorError;
use crate::id::ProjectId;
use crate::signer::CredentialError;
use crate::store::StoreError;

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
pub enum OnboardError {
    /// The address names no repository of the configured provider.
    #[error(transparent)]
    Address(#[from] RepositoryAddressError),
    /// What is watched and what is to be asked do not fit together.
    #[error("registering: {problem}")]
    Health {
        /// What is wrong, and the mend.
        problem: &'static str,
    },
    /// Health checks that cannot be kept.
    #[error("registering: the health checks cannot be written as JSON ({0})")]
    HealthText(String),
    /// The rules cannot be used; the message has file, line and column.
    #[error(transparent)]
    Rules(#[from] RulesFileError),
    /// The rules are no text.
    #[error("reading the rules {file}: they are not UTF-8; save the file as UTF-8")]
    RulesText {
        /// The file's name.
        file: String,
    },
    /// The intent document cannot be kept.
    #[error("reading the intent document: it {problem}")]
    Intent {
        /// What is wrong, and the mend.
        problem: String,
    },
    /// No connector for this repository and credential.
    #[error("registering {repository}: {reason}")]
    Connector {
        /// `OWNER/NAME`.
        repository: String,
        /// Why, with the mend.
        reason: String,
    },
    /// The rules would come into force without a signature.
    #[error(
        "confirming {project}: that its rules come into force cannot be signed ({reason}); the key of policy has to be there, or whoever signs with it, since decisions count by signed rules alone"
    )]
    Unsigned {
        /// The project.
        project: ProjectId,
        /// Why.
        reason: String,
    },
    /// The repository cannot be read with this credential.
    #[error("registering {repository}: {source}")]
    Provider {
        /// `OWNER/NAME`.
        repository: String,
        /// What the connector says.
        source: ConnectorError,
    },
    /// The credential may not do what caretaker does.
    #[error("reaching {repository}: {problem}")]
    Lacking {
        /// `OWNER/NAME`.
        repository: String,
        /// What it lacks, with the mend.
        problem: String,
    },
    /// The credential reaches a repository that was given the registered one's name.
    #[error(
        "reaching the repository of project {project}: it is number {found} at the provider, and {expected} was registered, so it is another one; register that one if it is meant, and `caretaker project remove {project}` if the registered one is gone"
    )]
    OtherRepository {
        /// The project.
        project: ProjectId,
        /// The registered number.
        expected: String,
        /// The number that was found.
        found: String,
    },
    /// Its name is the registered one.
    #[error(
        "renaming project {project}: the provider still calls the repository {full_name}, so there is nothing to take over"
    )]
    NotRenamed {
        /// The project.
        project: ProjectId,
        /// Its name.
        full_name: String,
    },
    /// It is gone, but for its history.
    #[error(
        "looking for project {project}: it was removed at {at}; its history and its ledgers stay. Register the repository again to have it watched"
    )]
    Removed {
        /// The project.
        project: ProjectId,
        /// When.
        at: Millis,
    },
    /// Nothing can be merged there.
    #[error(
        "registering {repository}: it is archived, so nothing can be merged; unarchive it first"
    )]
    Archived {
        /// `OWNER/NAME`.
        repository: String,
    },
    /// The branch that the rules name is not there.
    #[error(
        "registering {repository}: the rules say base: {base}, and there is no such branch; the repository's default branch is {default_branch}"
    )]
    Base {
        /// `OWNER/NAME`.
        repository: String,
        /// The branch in the rules.
        base: String,
        /// The provider's default branch.
        default_branch: String,
    },
    /// The credential cannot be sealed.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// There is no such project.
    #[error(
        "looking for project {0}: there is none; `caretaker project list` shows those there are"
    )]
    Absent(ProjectId),
    /// Nothing keeps it from merging.
    #[error(
        "unfreezing project {0}: it is not frozen; `caretaker project show {0}` says how it is"
    )]
    NotFrozen(ProjectId),
    /// The draft is another one than the person saw.
    #[error(
        "confirming project {project}: its draft has digest {found}, not {expected}; look at it with `caretaker project show {project}` and confirm that digest"
    )]
    OtherDraft {
        /// The project.
        project: ProjectId,
        /// What the person confirms.
        expected: Sha256Digest,
        /// What is stored.
        found: Sha256Digest,
    },
    /// The stored draft does not have the digest that was written with it.
    #[error(
        "confirming project {project}: its stored draft was changed after it was registered; register the repository again"
    )]
    Changed {
        /// The project.
        project: ProjectId,
    },
    /// The store fails or refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
}
