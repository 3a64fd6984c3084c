//! Reading the failed job's log.

use super::super::Stepped;
use super::super::repository::{Clone, broken, on_disk};
use super::super::work::{Reading, Work, plain, unanswered};
use crate::agent::{Extraction, reader};
use crate::connector::JobLog;
use crate::incident::{Fact, Outcome};

/// Bytes of a log that are fetched; the reader itself looks at fewer.
const LOG_BYTES: usize = 8 << 20;

/// The log's bytes are not kept: they may hold secrets. Their hash is, so that reading them again can be compared.
pub(super) async fn read(work: Work<'_>) -> Stepped {
    let failure = &work.snapshot.failure;
    let log = match failure.job_id {
        Some(job) => work.connector.job_log(job, LOG_BYTES).await,
        None => Ok(JobLog::Missing {
            reason: "the run had no jobs".to_owned(),
        }),
    };
    let log = log.map_err(|error| unanswered(&error, work.now))?;
    let (bytes, omitted, cut, missing) = match log {
        JobLog::Text {
            bytes,
            omitted,
            cut,
        } => (bytes, omitted, cut, None),
        JobLog::Missing { reason } => (Vec::new(), 0, None, Some(reason)),
    };
    let clone = Clone::of(work.engine, &work.project.id, work.connector)?;
    let (repository, commit) = (clone.open()?, failure.commit);
    let (extraction, report) = on_disk(move || {
        let tracked = repository.tracked_paths(commit);
        let tracked: std::collections::BTreeSet<String> = tracked
            .map_err(|error| broken(&error))?
            .iter()
            .filter_map(|path| path.as_text().map(str::to_owned))
            .collect();
        Ok(reader::read(&bytes, omitted, &|path| {
            tracked.contains(path)
        }))
    })
    .await?;
    let extraction = Extraction { cut, ..extraction };
    let fact = |evidence| Fact::Extracted {
        evidence,
        count: u32::try_from(extraction.facts.len()).unwrap_or(u32::MAX),
        suspicious: report.suspicious,
        missing,
    };
    let document = plain(&Reading {
        job: failure.job_id,
        extraction: extraction.clone(),
        report: report.clone(),
    })?;
    Ok(Outcome {
        facts: vec![fact(document.digest())],
        evidence: vec![document],
        ..Outcome::default()
    })
}
