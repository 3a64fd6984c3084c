//! What witnesses say of a checkpoint, by an auditor's policy.

use serde::Serialize;

use crate::attest::chain::Verdict;
use crate::log::{AuditorPolicy, NoteError, SignedCheckpoint, Unmet};

/// A witness's word, which verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cosignature {
    /// The name of the witness's key.
    pub witness: String,
    /// When by its clock, in seconds since 1970.
    pub seconds: u64,
}

/// What is asked of the checkpoint, in the words of a report.
pub const ASKED: &str = "a checkpoint that the witnesses of the policy cosigned";

/// Which of the policy's witnesses cosigned; else what that makes of the verdict, and why. A checkpoint that others were not
/// shown proves nothing against anybody; a line that was changed was changed by somebody.
///
/// # Errors
/// The policy is not met.
pub fn cosigned(
    policy: &AuditorPolicy,
    signed: &SignedCheckpoint,
) -> Result<Vec<Cosignature>, (Verdict, String)> {
    let cosigned = policy.judge(signed).map_err(|unmet| {
        let verdict = match unmet {
            // Break it: take it for unmet and `audit::cosigned::a_changed_line_of_a_known_witness_is_invalid` fails.
            Unmet::Signature(NoteError::BadSignature { .. }) => Verdict::Invalid,
            Unmet::Signature(_) | Unmet::Log { .. } | Unmet::Quorum { .. } => Verdict::CannotVerify,
        };
        (verdict, unmet.to_string())
    })?;
    let word = |cosigned: crate::log::Cosigned| Cosignature {
        witness: cosigned.witness.as_str().to_owned(),
        seconds: cosigned.seconds,
    };
    Ok(cosigned.into_iter().map(word).collect())
}
