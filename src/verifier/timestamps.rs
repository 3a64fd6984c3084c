//! The timestamps of a whole log as files: `timestamps/<leaves>/checkpoint` and beside it `<authority>.tsr`.

use std::path::Path;

use super::{VerifyError, read};
use crate::attest::TrustHistory;
use crate::attest::chain::Verdict;
use crate::attest::text::shown;
use crate::audit::{
    BroughtTimestamp, Failure, LogFiles, LogReport, Rule, authority_of, extends, stamped_checkpoint,
};
use crate::log::{LogPolicy, MAX_NOTE, TreeHead};

/// Stamped checkpoints that are looked at, the newest: each costs signatures.
const MOST_CHECKPOINTS: usize = 1_000;
/// Entries of a folder that are looked at.
const MOST_ENTRIES: usize = 100_000;
/// Timestamps of one checkpoint.
const MOST_AUTHORITIES: usize = 16;
/// The longest answer of an authority that is read, in bytes.
const MAX_RESPONSE: u64 = 64 * 1024;

/// What the timestamps are held against.
pub(super) struct Held<'a> {
    pub(super) files: &'a dyn LogFiles,
    pub(super) trust: &'a TrustHistory,
    pub(super) policy: &'a LogPolicy,
    pub(super) head: TreeHead,
}

/// Those whose checkpoint is one of this log; what is wrong with the others goes into the report.
pub(super) fn of_folder(
    folder: &Path,
    held: &Held<'_>,
    report: &mut LogReport,
) -> Result<Vec<BroughtTimestamp>, VerifyError> {
    let place = folder.join("timestamps");
    let mut brought = Vec::new();
    if !place.exists() {
        return Ok(brought);
    }
    let mut sizes = Vec::new();
    for name in names(&place)? {
        match name.parse::<u64>() {
            Ok(size) if size.to_string() == name => sizes.push(size),
            _ => fail(
                report,
                Verdict::Invalid,
                format!("timestamps/{}", shown(&name)),
            ),
        }
    }
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    for size in sizes.into_iter().take(MOST_CHECKPOINTS) {
        let place = place.join(size.to_string());
        let bytes = read(&place.join("checkpoint"), "the checkpoint", MAX_NOTE as u64)?;
        let fitting = stamped_checkpoint(&bytes, size, held.policy)
            .map_err(|found| (Verdict::Invalid, found))
            .and_then(|stamped| extends(held.files, held.trust, held.head, &stamped));
        if let Err((verdict, found)) = fitting {
            fail(
                report,
                verdict,
                format!("timestamps/{size}/checkpoint: {found}"),
            );
            continue;
        }
        for file in names(&place)?.into_iter().take(MOST_AUTHORITIES + 1) {
            if let Some(name) = authority_of(&file) {
                let response = read(&place.join(&file), "the timestamp", MAX_RESPONSE)?;
                brought.push(BroughtTimestamp::new(size, name, &bytes, &response));
            } else if file != "checkpoint" {
                let found = format!("timestamps/{size}/{}", shown(&file));
                fail(report, Verdict::Invalid, found);
            }
        }
    }
    Ok(brought)
}

fn names(place: &Path) -> Result<Vec<String>, VerifyError> {
    let failed = |cause| VerifyError::File {
        what: "the timestamps in",
        path: shown(&place.display().to_string()),
        cause,
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(place).map_err(failed)?.take(MOST_ENTRIES) {
        let name = entry.map_err(failed)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn fail(report: &mut LogReport, verdict: Verdict, found: String) {
    let expected = "timestamps of this log's checkpoints";
    add(report, verdict, expected, found);
}

/// Adds a failure that concerns the whole log.
pub(super) fn add(report: &mut LogReport, verdict: Verdict, expected: &str, found: String) {
    report.verdict = report.verdict.max(verdict);
    report.failures.push(Failure {
        seq: report.leaves,
        rule: Rule::Timestamp,
        expected: expected.to_owned(),
        found,
    });
}
