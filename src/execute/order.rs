//! The one thing that a connector's merge takes.

use crate::approve::{Authority, MergeMethod};
use crate::attest::predicate::CheckpointRef;
use crate::change::Oid;
use crate::clock::Millis;
use crate::id::ExecutionId;
use crate::reconcile::{EXECUTION_TRAILER, Matched};

/// Why no order can be given although there is an authority and a match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// The authority is for another change than the one that was compared.
    #[error(
        "ordering the merge: the authority covers change {authorised}, but {compared} was compared; nothing is merged"
    )]
    OtherChange {
        /// Digest of what is authorised (the whole binding).
        authorised: String,
        /// Digest of what was compared.
        compared: String,
    },
    /// The authority has run out.
    #[error("ordering the merge: the approval expired at {0}; ask for a new one")]
    Expired(Millis),
}

/// Permission to merge one commit once. Made only by [`order`]; nothing else can be handed to a connector's merge.
///
/// ```compile_fail
/// use caretaker::execute::MergeOrder;
/// let forged = MergeOrder { pull_request: 1, ..unreachable!() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeOrder {
    pull_request: u64,
    head_commit: Oid,
    method: MergeMethod,
    title: String,
    message: String,
}

impl MergeOrder {
    /// Pull request number.
    pub const fn pull_request(&self) -> u64 {
        self.pull_request
    }

    /// The head that the provider must still see.
    pub const fn head_commit(&self) -> Oid {
        self.head_commit
    }

    /// How to merge.
    pub const fn method(&self) -> MergeMethod {
        self.method
    }

    /// Title of the landed commit.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Body of the landed commit, with our trailers.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The trailer that names the checkpoint of the log that held the approval: origin, leaves, root (SHA-256, hexadecimal).
pub const LOG_TRAILER: &str = "Caretaker-Log";

/// Gives the order, when authority and match are for the same binding and the authority has not run out.
///
/// # Errors
/// Another binding, or an expired one.
pub fn order(
    authority: &Authority,
    matched: &Matched,
    execution: &ExecutionId,
    checkpoint: Option<&CheckpointRef>,
    now: Millis,
) -> Result<MergeOrder, OrderError> {
    let binding = matched.binding();
    // Break it: drop this comparison; `reconcile::answers::an_authority_for_one_change_orders_no_other` then fails.
    if authority.binding_digest() != binding.digest() {
        return Err(OrderError::OtherChange {
            authorised: authority.binding_digest().to_string(),
            compared: binding.digest().to_string(),
        });
    }
    if now >= binding.expires_at {
        return Err(OrderError::Expired(binding.expires_at));
    }
    let separator = if binding.body.is_empty() { "" } else { "\n\n" };
    let log = checkpoint.map_or_else(String::new, |checkpoint| {
        let CheckpointRef { origin, size, root } = checkpoint;
        format!("{LOG_TRAILER}: {origin} {size} {root}\n")
    });
    let message = format!(
        "{}{separator}{log}{EXECUTION_TRAILER}: {execution}\n",
        binding.body.trim_end()
    );
    Ok(MergeOrder {
        pull_request: binding.pull_request,
        head_commit: binding.head_commit,
        method: binding.merge_method,
        title: binding.title.clone(),
        message,
    })
}
