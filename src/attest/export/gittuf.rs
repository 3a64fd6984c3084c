//! gittuf reference authorizations, version 0.2 (<https://gittuf.dev/reference-authorization/v0.2>).
//!
//! gittuf counts such an authorization under a *person's* key. Ours is signed by the approver's role key, which answers for having
//! recognised the person: a policy that is to count it lists that key as a principal.

use serde::Serialize;

use super::super::predicate::Approval;
use super::{Chain, ExportKind, Foreign, ForeignSubject, Told};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Authorization {
    target_ref: String,
    #[serde(rename = "fromID")]
    from_id: String,
    #[serde(rename = "targetID")]
    target_id: String,
}

/// An approval under which something landed: the branch moved from `fromID`, a commit, to the tree `targetID`. None before: what
/// tree a merge gives is known only once the base is.
pub(super) fn of_approval(
    chain: &Chain<'_>,
    told: &Told<'_>,
    approval: &Approval,
) -> Option<Foreign<Authorization>> {
    let execution = chain.execution_by(told.digest)?;
    let tree = execution.landed.tree.to_string();
    let predicate = Authorization {
        target_ref: format!("refs/heads/{}", approval.binding.base_ref),
        from_id: execution.landed.parent.to_string(),
        target_id: tree.clone(),
    };
    let subject = ForeignSubject::new("merge-result", [("gitTree", tree)]);
    Some(Foreign::new(
        ExportKind::ReferenceAuthorization,
        vec![subject],
        predicate,
    ))
}
