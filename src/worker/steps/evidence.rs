//! Test runs as signed evidence.

use std::collections::BTreeMap;

use super::super::drafting::signed_evidence;
use super::super::work::{PLAIN, Work, plain};
use crate::attest::predicate::{ResourceDescriptor, TestOutcome, TestResult};
use crate::attest::{Evidence, List, Subject, Text};
use crate::incident::{EvidenceDocument, StepError};
use crate::workspace::red_green::TestEvidence;

/// The signed test result of a run, and the whole record of the run that it names by digest.
pub(super) async fn test_result(
    work: &Work<'_>,
    run: &TestEvidence,
) -> Result<(EvidenceDocument, EvidenceDocument), StepError> {
    let whole = plain(run)?;
    let sha256 = |digest: String| Some(BTreeMap::from([("sha256".to_owned(), digest)]));
    let record = ResourceDescriptor {
        name: Some(Text::clipped("run")),
        uri: None,
        digest: sha256(whole.digest().to_string()),
        media_type: Some(Text::clipped(PLAIN)),
    };
    let result = TestResult {
        result: if run.status.passed() == Ok(true) {
            TestOutcome::Passed
        } else {
            TestOutcome::Failed
        },
        configuration: List::first_of([record]),
        url: None,
        passed_tests: None,
        warned_tests: None,
        failed_tests: (!run.failed.is_empty())
            .then(|| List::first_of(run.failed.iter().map(|name| Text::clipped(name)))),
    };
    let tree = Subject {
        name: "tree".to_owned(),
        digest: BTreeMap::from([("gitTree".to_owned(), run.tree.to_string())]),
    };
    let evidence = Evidence::TestResult(Box::new(result));
    let signed = signed_evidence(work, vec![tree], evidence).await?;
    Ok((signed, whole))
}
