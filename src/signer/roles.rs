//! One thing for each role.

use crate::attest::Role;

/// One thing for each of the four roles.
#[derive(Debug)]
pub(super) struct PerRole<T> {
    proposer: T,
    policy: T,
    approver: T,
    executor: T,
}

impl<T> PerRole<T> {
    /// Makes each, in the order of [`Role::ALL`].
    pub(super) fn each<E>(mut make: impl FnMut(Role) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self {
            proposer: make(Role::Proposer)?,
            policy: make(Role::Policy)?,
            approver: make(Role::Approver)?,
            executor: make(Role::Executor)?,
        })
    }

    /// One role's.
    pub(super) const fn of(&self, role: Role) -> &T {
        match role {
            Role::Proposer => &self.proposer,
            Role::Policy => &self.policy,
            Role::Approver => &self.approver,
            Role::Executor => &self.executor,
        }
    }

    /// Makes something else of each.
    pub(super) fn map<U>(self, mut make: impl FnMut(Role, T) -> U) -> PerRole<U> {
        PerRole {
            proposer: make(Role::Proposer, self.proposer),
            policy: make(Role::Policy, self.policy),
            approver: make(Role::Approver, self.approver),
            executor: make(Role::Executor, self.executor),
        }
    }
}
