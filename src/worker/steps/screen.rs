//! The check of a diagnosis's file list, before any branch, commit, run of a fix's tests or pull request exists.

use super::super::Stepped;
use super::super::work::{Work, expect};
use super::propose::{Refusal, refuse_files};
use crate::gate::check_paths;
use crate::incident::{Fact, Outcome};

pub(super) async fn screen(work: Work<'_>) -> Stepped {
    let diagnosis = expect(work.snapshot.diagnosis(), "the diagnosis")?;
    // Break it: pass no files here; the coder is then asked to edit what is denied, and only its edit is refused
    // (`worker::fix::a_denied_path_ends_in_two_events_and_nothing_at_the_forge`).
    match check_paths(work.rules, &diagnosis.files) {
        None => Ok(Outcome::fact(Fact::Screened { passed: true })),
        Some(denied) => {
            let mut outcome =
                refuse_files(work, &diagnosis.files, &Refusal::of_names(&denied)).await?;
            outcome.facts.insert(0, Fact::Screened { passed: false });
            Ok(outcome)
        }
    }
}
