//! Receipts on disk: one chain a session, under a lock, numbered without gaps.
//!
//! A line is written before the head that counts it. What a process that died between the two left behind is found again from the
//! lines; half a line is cut off. A file that is shorter than its head says was tampered with, and nothing is written to it any more.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::home::{Home, StateError, lock, open_own, private_folder, read_private, write_private};
use super::registration::Registered;
use crate::attest::{Label, Text};
use crate::audit_stream::write_over;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::receipts::chain::Session;
use crate::receipts::{
    AgentId, Alignment, Checked, Decision, Door, Head, Outcome, PemKey, ReceiptChain, ReceiptHash,
};

/// Most that lies behind the head after a process died, in bytes.
const MAXIMUM_TAIL: u64 = 16 << 20;

/// How far the file is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredHead {
    count: u64,
    hash: String,
    bytes: u64,
}

/// What became of a call, to be put on record.
#[derive(Debug)]
pub struct Recorded<'a> {
    /// Whether it goes on.
    pub allowed: bool,
    /// The check that decided, by its name.
    pub stage: &'a str,
    /// Why.
    pub reason: &'a str,
    /// The tool, or `completion`, `session-start`.
    pub tool: &'a str,
    /// The sub-agent, or the role, that called.
    pub agent: &'a str,
    /// The digest of the arguments, or of the evidence.
    pub input: Sha256Digest,
    /// What the session's token said, where there is one.
    pub checked: Option<&'a Checked>,
    /// The score, where the call was scored.
    pub score: Option<Alignment>,
}

/// The receipts of a session.
#[derive(Debug)]
pub struct Receipts {
    folder: PathBuf,
    session: Session,
    key: Arc<PemKey>,
    /// Whether a head is there from the beginning, since the session was registered.
    begun: bool,
}

impl Receipts {
    /// The receipts of a session, for calls that come by one door.
    ///
    /// # Errors
    /// The folder or the key cannot be made or read.
    pub fn open(home: &Home, session: &Registered, door: Door) -> Result<Self, StateError> {
        home.keep_apart(&session.worktree)?;
        private_folder(&session.folder)?;
        home.kept_safe(&session.folder)?;
        let unnameable =
            |error: &dyn std::fmt::Display| StateError::damaged(&session.folder, error);
        let opened_by = session
            .intent
            .as_deref()
            .unwrap_or_else(|| session.policy.task());
        Ok(Self {
            key: home.receipt_key()?,
            folder: session.folder.clone(),
            begun: !session.compatible,
            session: Session {
                id: Label::new(&session.session).map_err(|error| unnameable(&error))?,
                gate: AgentId::parse("agent:caretaker-gate").map_err(|error| unnameable(&error))?,
                input: Sha256Digest::of(opened_by.as_bytes()),
                door,
                advisory: !session.sandboxed,
                policy: Some(session.policy.digest()),
            },
        })
    }

    /// Adds the receipt of an outcome and says how far the chain goes now.
    ///
    /// # Errors
    /// It is not on record.
    pub fn add(&self, recorded: &Recorded<'_>, now: Millis) -> Result<Head, StateError> {
        let _held = lock(&self.folder)?;
        let mut file = self.open_file()?;
        let known = self.recovered(&mut file, &self.begun()?)?;
        let failed = |error: &dyn std::fmt::Display| StateError::damaged(&self.file(), error);
        let (mut chain, mut lines, begin) = if let Some((head, bytes)) = known {
            let chain = ReceiptChain::resume(self.session.clone(), self.key.clone(), head);
            (chain, String::new(), bytes)
        } else {
            let (chain, root) = ReceiptChain::begin(self.session.clone(), self.key.clone(), now)
                .map_err(|error| failed(&error))?;
            (chain, root.to_jsonl(), 0)
        };
        let outcome = Outcome {
            decision: if recorded.allowed {
                Decision::Allow
            } else {
                Decision::Deny
            },
            stage: Label::new(recorded.stage).ok(),
            reason: Text::clipped(recorded.reason),
            tool: recorded.tool.to_owned(),
            agent: recorded.agent.to_owned(),
            input: recorded.input,
            ruleset: recorded.checked.map_or(
                self.session.policy.unwrap_or(recorded.input),
                Checked::ruleset,
            ),
            token: recorded.checked.and_then(|checked| checked.token.clone()),
            intent: recorded.checked.and_then(|checked| checked.intent.clone()),
            alignment: recorded.score.clone(),
        };
        let line = chain
            .append(&outcome, now)
            .map_err(|error| failed(&error))?;
        lines.push_str(&line.to_jsonl());
        if let Err(error) = file.write_all(lines.as_bytes()) {
            // Half a line must not stay; if even this fails, the next one to write finds it behind the head.
            drop(cut_to(&mut file, begin, &self.file()));
            return Err(StateError::file("writing", &self.file())(error));
        }
        let head = chain.head();
        self.store(head, begin + lines.len() as u64)?;
        Ok(head)
    }

    /// How many receipts there are beside the root, zero when nothing was recorded.
    ///
    /// # Errors
    /// The head cannot be read.
    pub fn count(folder: &Path) -> Result<u64, StateError> {
        Ok(stored(folder)?.map_or(0, |head| head.count.saturating_sub(1)))
    }

    /// How far a session's receipts go, by what was kept beside them; `None` when nothing was recorded.
    ///
    /// # Errors
    /// The head cannot be read.
    pub fn head(folder: &Path) -> Result<Option<Head>, StateError> {
        let Some(stored) = stored(folder)?.filter(|stored| stored.count > 0) else {
            return Ok(None);
        };
        let hash = stored
            .hash
            .parse()
            .map_err(|_| StateError::damaged(folder, "its head names no receipt"))?;
        Ok(Some(Head {
            count: stored.count,
            hash,
        }))
    }

    /// The file of a session's receipts.
    pub fn file_of(folder: &Path) -> PathBuf {
        folder.join("receipts.jsonl")
    }

    fn file(&self) -> PathBuf {
        Self::file_of(&self.folder)
    }

    fn open_file(&self) -> Result<File, StateError> {
        let file = self.file();
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(0o600);
        open_own(&file, options).map_err(StateError::file("opening", &file))
    }

    /// The head that is kept. Where none is, nothing can have been written yet.
    fn begun(&self) -> Result<StoredHead, StateError> {
        if let Some(stored) = stored(&self.folder)? {
            return Ok(stored);
        }
        let file = self.folder.join("head.json");
        let length = std::fs::metadata(self.file()).map_or(0, |status| status.len());
        // Break it: begin anew; `hook_gate::receipts::a_head_that_is_gone_is_not_made_again` fails.
        if self.begun || length > 0 {
            return Err(StateError::refused(
                &file,
                "it is gone, and with it how far the receipts go; keep the folder for whoever looks into this",
            ));
        }
        begin(&self.folder)?;
        Ok(StoredHead::default())
    }

    fn store(&self, head: Head, bytes: u64) -> Result<(), StateError> {
        let stored = StoredHead {
            count: head.count,
            hash: head.hash.to_string(),
            bytes,
        };
        let file = self.folder.join("head.json");
        let text =
            serde_json::to_vec(&stored).map_err(|error| StateError::damaged(&file, error))?;
        if write_over(&file, &text).map_err(StateError::file("writing", &file))? {
            return Ok(());
        }
        write_private(&file, &text)
    }

    /// The head with the lines that a process that died has still written, and where the file ends; `None` when nothing is written.
    fn recovered(
        &self,
        file: &mut File,
        stored: &StoredHead,
    ) -> Result<Option<(Head, u64)>, StateError> {
        let path = self.file();
        let failed = || StateError::file("reading", &path);
        let length = file.metadata().map_err(failed())?.len();
        let begin = stored.bytes;
        let mut head = if stored.count > 0 {
            let hash = stored
                .hash
                .parse()
                .map_err(|_| StateError::damaged(&path, "its head names no receipt"))?;
            Some(Head {
                count: stored.count,
                hash,
            })
        } else {
            None
        };
        // Break it: go on as if nothing were missing; `hook_gate::receipts::a_chain_that_lost_its_end_is_not_continued` fails.
        if length < begin || length - begin > MAXIMUM_TAIL {
            return Err(StateError::damaged(
                &path,
                "it does not end where its head says; keep it for whoever looks into this",
            ));
        }
        let mut end = begin;
        if length > begin {
            file.seek(SeekFrom::Start(begin)).map_err(failed())?;
            let mut tail = Vec::new();
            file.read_to_end(&mut tail).map_err(failed())?;
            for line in tail.split_inclusive(|byte| *byte == b'\n') {
                let Some(hash) = hash_of(line) else {
                    break;
                };
                let count = head.map_or(1, |head| head.count + 1);
                head = Some(Head { count, hash });
                end += line.len() as u64;
            }
            if end < length {
                cut_to(file, end, &path)?;
            }
        }
        Ok(head.map(|head| (head, end)))
    }
}

/// Notes that nothing was written yet.
pub(super) fn begin(folder: &Path) -> Result<(), StateError> {
    let file = folder.join("head.json");
    let text = serde_json::to_vec(&StoredHead::default())
        .map_err(|error| StateError::damaged(&file, error))?;
    write_private(&file, &text)
}

fn stored(folder: &Path) -> Result<Option<StoredHead>, StateError> {
    let file = folder.join("head.json");
    if !file.exists() {
        return Ok(None);
    }
    let bytes = read_private(&file, 4096)?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| StateError::damaged(&file, error))
}

fn cut_to(file: &mut File, length: u64, path: &Path) -> Result<(), StateError> {
    file.set_len(length)
        .map_err(StateError::file("cutting half a line off", path))
}

/// The name of the receipt on a whole line, if it is one.
fn hash_of(line: &[u8]) -> Option<ReceiptHash> {
    #[derive(Deserialize)]
    struct Line {
        receipt_hash: String,
        jws: String,
    }
    let line = line.strip_suffix(b"\n")?;
    let line: Line = serde_json::from_slice(line).ok()?;
    let hash: ReceiptHash = line.receipt_hash.parse().ok()?;
    (ReceiptHash::of(&line.jws) == hash).then_some(hash)
}
