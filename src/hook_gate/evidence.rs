//! A session's receipts and evidence, for people and for the worker: read back, and verified.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::completion::{COMPLETION, read_evidence};
use super::home::{Home, StateError};
use super::record::Receipts;
use crate::audit_stream::open_plain;
use crate::change::Sha256Digest;
use crate::receipts::verify::{Expectation, Reader, Walk};
use crate::receipts::{Fault, ReceiptHash, TrustedKeys};

/// Largest file of receipts that is read whole, in bytes.
const MAXIMUM_RECEIPTS: u64 = 1 << 30;
/// Longest line of it that is read, in bytes; a longer one is no receipt.
const MAXIMUM_LINE: u64 = 128 << 10;
/// Most failures that are told.
const MAXIMUM_FAILURES: usize = 100;

/// The `x_gate` members of a session's receipts, in order, without looking at signatures.
///
/// # Errors
/// The file cannot be read or holds a line that is no receipt.
pub fn gates(folder: &Path) -> Result<Vec<Value>, StateError> {
    let receipts = receipts(folder)?;
    Ok(receipts
        .into_iter()
        .map(|mut receipt| receipt.payload["x_gate"].take())
        .collect())
}

/// A receipt as it stands in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadReceipt {
    /// Its name.
    pub hash: ReceiptHash,
    /// What it says.
    pub payload: Value,
}

/// A session's receipts, in order, without looking at signatures.
///
/// # Errors
/// The file cannot be read or holds a line that is no receipt.
pub fn receipts(folder: &Path) -> Result<Vec<ReadReceipt>, StateError> {
    #[derive(Deserialize)]
    struct Line {
        jws: String,
    }
    let file = Receipts::file_of(folder);
    let opened = match open_plain(&file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StateError::file("reading", &file)(error)),
    };
    let mut text = String::new();
    opened
        .take(MAXIMUM_RECEIPTS)
        .read_to_string(&mut text)
        .map_err(StateError::file("reading", &file))?;
    text.lines()
        .map(|line| {
            let line: Line = serde_json::from_str(line).ok()?;
            let payload = line.jws.split('.').nth(1)?;
            let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
            Some(ReadReceipt {
                hash: ReceiptHash::of(&line.jws),
                payload: serde_json::from_slice(&payload).ok()?,
            })
        })
        .collect::<Option<Vec<ReadReceipt>>>()
        .ok_or_else(|| StateError::damaged(&file, "a line of it is no receipt"))
}

/// How a session's receipts and evidence came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceVerdict {
    /// Every signature holds, nothing is missing, and evidence is what was sealed.
    Valid,
    /// Something does not hold.
    Invalid,
    /// Something that would be needed to tell is not there.
    CannotVerify,
}

/// The verdict, and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EvidenceReport {
    /// The verdict.
    pub verdict: EvidenceVerdict,
    /// Receipts whose signatures hold, the root among them.
    pub receipts: u64,
    /// Pieces of evidence that are what was sealed.
    pub evidence: u64,
    /// What does not hold, or is not there.
    pub failures: Vec<String>,
}

/// Verifies a session's receipts against the key of this installation and the head that was kept, and its evidence against the
/// receipts.
///
/// # Errors
/// The key or the head is there and cannot be read.
pub fn verify_session(home: &Home, folder: &Path) -> Result<EvidenceReport, StateError> {
    let mut report = EvidenceReport {
        verdict: EvidenceVerdict::Valid,
        receipts: 0,
        evidence: 0,
        failures: Vec::new(),
    };
    let Some(key) = home.present_key()? else {
        return Ok(report.cannot("the key that signs receipts is not there"));
    };
    let Ok(file) = open_plain(&Receipts::file_of(folder)) else {
        return Ok(report.cannot("there are no receipts"));
    };
    let Some(head) = Receipts::head(folder)? else {
        return Ok(report.cannot("how far the receipts go was not kept"));
    };
    let reader = Reader::new(&TrustedKeys::new([key.public()]), []);
    let mut walk = Walk::default();
    let mut only_unknown_keys = true;
    let mut lines = BufReader::new(file);
    loop {
        let mut line = Vec::new();
        let read = lines
            .by_ref()
            .take(MAXIMUM_LINE)
            .read_until(b'\n', &mut line)
            .map_err(StateError::file("reading", &Receipts::file_of(folder)))?;
        // Break it: read on; `hook_gate::state::many_receipts_twice_are_not_read_to_the_end` fails.
        if read == 0 || walk.is_hopeless() {
            break;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let found = reader.read(line);
        only_unknown_keys &= matches!(found, Err(Fault::UnknownKey { .. }));
        walk.next(Some(found));
    }
    let walked = walk.finish(&Expectation::from(head));
    report.receipts = walked.receipts;
    for failure in walked.failures.iter().take(MAXIMUM_FAILURES) {
        report
            .failures
            .push(format!("line {}: {}", failure.line, failure.reason));
    }
    if !walked.valid() {
        report.verdict = if only_unknown_keys {
            EvidenceVerdict::CannotVerify
        } else {
            EvidenceVerdict::Invalid
        };
        return Ok(report);
    }
    for receipt in receipts(folder)? {
        report.hold_evidence_against(folder, &receipt.payload);
    }
    Ok(report)
}

impl EvidenceReport {
    fn cannot(mut self, reason: &str) -> Self {
        self.failures.push(reason.to_owned());
        self.verdict = EvidenceVerdict::CannotVerify;
        self
    }

    fn fail(&mut self, verdict: EvidenceVerdict, reason: String) {
        if self.failures.len() < MAXIMUM_FAILURES {
            self.failures.push(reason);
        }
        if self.verdict != EvidenceVerdict::Invalid {
            self.verdict = verdict;
        }
    }

    /// The evidence that the receipt of a turn's end names must be there, and say what the receipt says.
    fn hold_evidence_against(&mut self, folder: &Path, payload: &Value) {
        let gate = &payload["x_gate"];
        if gate["tool"] != COMPLETION {
            return;
        }
        let named = payload["input_hash"]
            .as_str()
            .and_then(|text| text.strip_prefix("sha256:"))
            .and_then(|text| text.parse::<Sha256Digest>().ok());
        let Some(digest) = named else {
            self.fail(
                EvidenceVerdict::Invalid,
                "a receipt names no evidence".to_owned(),
            );
            return;
        };
        let file = folder.join("evidence").join(format!("{digest}.json"));
        if !file.exists() {
            self.fail(
                EvidenceVerdict::CannotVerify,
                format!("the evidence sha256:{digest} is not there"),
            );
            return;
        }
        match read_evidence(folder, digest) {
            Ok(evidence) if evidence.passed == (gate["decision"] == "ALLOW") => self.evidence += 1,
            Ok(_) => self.fail(
                EvidenceVerdict::Invalid,
                format!("the evidence sha256:{digest} says something else than its receipt"),
            ),
            Err(error) => self.fail(EvidenceVerdict::Invalid, error.to_string()),
        }
    }
}
