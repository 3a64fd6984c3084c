//! The last steps before a person is asked: profile, classifier, and whether anybody is asked at all.

use super::classifier::{Classified, Looked, classify};
use super::profile::Profiled;

/// `approvals` as far as it concerns calls of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskingSettings {
    /// Whether people are asked.
    pub interactive: bool,
    /// Whether what the classifier approves needs nobody.
    pub smart_auto_approve: bool,
}

/// Which step settled a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The permission profile.
    Profile,
    /// The classifier's list of what is never done.
    ClassifierDeny,
    /// The classifier's approval.
    ClassifierApprove,
    /// Nobody is asked.
    NobodyAsked,
}

/// What becomes of a call before a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It goes on.
    Allow(Step),
    /// It does not.
    Deny(Step, String),
    /// A person decides.
    Ask,
}

/// Settles a call, or does not. The order is the one of the design: the profile refuses whether or not anybody is asked, the
/// classifier's refusal needs nobody to be there, its approval counts only where that was configured.
pub fn settle(profiled: Profiled, looked: Looked<'_>, settings: AskingSettings) -> Settled {
    let asks = match profiled {
        // Break it: let it pass while nobody is asked (`tool_gate::approval::every_row_of_the_table`).
        Profiled::Refused(reason) => return Settled::Deny(Step::Profile, reason),
        Profiled::Asks => true,
        Profiled::Passes => false,
    };
    match classify(looked) {
        Classified::Deny(reason) => Settled::Deny(
            Step::ClassifierDeny,
            format!("Dangerous command detected: {reason}"),
        ),
        Classified::Approve if settings.interactive && settings.smart_auto_approve && !asks => {
            Settled::Allow(Step::ClassifierApprove)
        }
        _ if !settings.interactive => Settled::Allow(Step::NobodyAsked),
        Classified::Approve | Classified::Ask => Settled::Ask,
    }
}
