//! The proof that a change passed the gate.

use crate::change::ChangeDigest;

use super::{Class, Verdict};

/// Proof that [`super::evaluate`] saw exactly this change and did not deny it. Only [`super::Decision::cleared`] makes one, so
/// a function that takes `&Cleared` cannot be reached with a denied or an unexamined change.
///
/// ```compile_fail,E0451
/// use caretaker::change::Sha256Digest;
/// use caretaker::gate::{Class, Cleared, Verdict};
/// let forged = Cleared { change: Sha256Digest::of(b""), verdict: Verdict::Free, class: Class::Functional };
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Cleared {
    change: ChangeDigest,
    verdict: Verdict,
    class: Class,
}

impl Cleared {
    pub(super) const fn new(change: ChangeDigest, verdict: Verdict, class: Class) -> Self {
        Self {
            change,
            verdict,
            class,
        }
    }

    /// The digest of the change that was cleared.
    pub const fn change(&self) -> &ChangeDigest {
        &self.change
    }

    /// [`Verdict::Free`] or [`Verdict::Approve`], never deny.
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The blast radius that the decision found.
    pub const fn class(&self) -> Class {
        self.class
    }
}
