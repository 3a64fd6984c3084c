//! The gate over the exact change of a fix.

use super::super::repository::{Clone, broken, on_disk};
use super::super::work::Work;
use crate::change::{ChangeSet, Oid};
use crate::gate::{Decision, Measured, SecondOpinion, SecondOpinionRule, evaluate};
use crate::incident::StepError;
use crate::workspace::Measurement;

/// A change of the trusted repository, decided upon.
pub(super) struct Judged {
    pub(super) change: ChangeSet,
    pub(super) decision: Decision,
    pub(super) measured: Measurement,
}

/// Decides on the change from `base` to `head`, both commits or trees in the clone.
pub(super) async fn judge(
    work: &Work<'_>,
    clone: &Clone<'_>,
    base: Oid,
    head: Oid,
) -> Result<Judged, StepError> {
    let (repository, rules) = (clone.open()?, work.rules.clone());
    on_disk(move || {
        let read = || {
            let change = repository.change_set(base, head)?;
            let measured = repository.measure(&change)?;
            Ok((change, measured, repository.tracked_paths(head)?))
        };
        let (change, measured, tree) = read().map_err(|error| broken(&error))?;
        let decision = evaluate(
            &rules,
            &Measured {
                change: &change,
                lines: measured.lines,
                binary: measured.binary,
                bump: None,
                tree: Some(&tree),
                opinion: opinion(rules.document().second_opinion),
            },
        );
        Ok(Judged {
            change,
            decision,
            measured,
        })
    })
    .await
}

/// No model can be asked in this version: off where the project says so, otherwise not measured, which asks for approval.
const fn opinion(rule: SecondOpinionRule) -> SecondOpinion {
    match rule {
        SecondOpinionRule::Off => SecondOpinion::Off,
        SecondOpinionRule::Required => SecondOpinion::NotMeasured,
    }
}
