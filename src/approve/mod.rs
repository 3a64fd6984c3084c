//! Approval of one exact change by one named person, once.
//!
//! A link carries a 32-byte nonce; only its hash is stored. What is approved is a [`Binding`]; the [`ApprovalRequest`] over it
//! is fixed before anyone is asked. Possession of an [`Authority`] means: a signed approval, or a signed decision that the
//! change needs none, exists in a ledger that was verified just now.

mod authority;
mod binding;
mod principal;
mod request;
mod standing;
mod token;

pub use crate::gate::MergeMethod;
pub use authority::{Authority, AuthorityError, AuthoritySource};
pub use binding::Binding;
pub use principal::{Principal, PrincipalError};
pub use request::{ApprovalRequest, Consumption, HumanDecision};
pub(crate) use standing::Standing;
pub use token::{ApprovalToken, TokenError, TokenHash};
