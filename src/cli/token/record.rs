//! Files that several processes append to: a line whole or not at all, one process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::clock::Millis;
use crate::receipts::verify::{MAX_LINE, Reader};
use crate::receipts::{Head, Outcome, PemKey, ReceiptChain, ReceiptLine, Session, TrustedKeys};

/// How long another process is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest list that is appended to, in bytes.
const MAX_LIST: u64 = 16 * 1024 * 1024;

/// Appends what `line` makes of the file's present text, if anything; whether it was.
pub(super) fn append_line(
    path: &Path,
    line: impl FnOnce(&str) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<bool> {
    let mut file = Locked::open(path)?;
    anyhow::ensure!(
        file.length <= MAX_LIST,
        "it is longer than {MAX_LIST} bytes"
    );
    let listed = String::from_utf8(file.tail(MAX_LIST)?).context("it is not text")?;
    let Some(mut line) = line(&listed)? else {
        return Ok(false);
    };
    if !listed.is_empty() && !listed.ends_with('\n') {
        line.insert(0, '\n');
    }
    file.append(line.as_bytes())?;
    Ok(true)
}

/// Appends the receipt of a decision to the chain in `path`, which it begins where there is none.
pub(super) fn append_receipt(
    path: &Path,
    key: &Arc<PemKey>,
    session: Session,
    outcome: &Outcome,
    now: Millis,
) -> anyhow::Result<(ReceiptLine, Head)> {
    let mut file = Locked::open(path)?;
    let (mut chain, root) = if file.length == 0 {
        let (chain, root) = ReceiptChain::begin(session, key.clone(), now)?;
        (chain, Some(root))
    } else {
        (resumed(&mut file, key, session)?, None)
    };
    let line = chain.append(outcome, now)?;
    let mut text = root.map(|root| root.to_jsonl()).unwrap_or_default();
    text.push_str(&line.to_jsonl());
    file.append(text.as_bytes())?;
    Ok((line, chain.head()))
}

/// The chain that the file's last line ends, which this key must have signed.
fn resumed(file: &mut Locked, key: &Arc<PemKey>, session: Session) -> anyhow::Result<ReceiptChain> {
    const LONGEST: u64 = MAX_LINE as u64 + 2;
    let tail = file.tail(LONGEST)?;
    let whole = tail.strip_suffix(b"\n").context(
        "its last line is cut off, as when a process was killed while writing; move the file away, a new chain begins",
    )?;
    let start = whole.iter().rposition(|byte| *byte == b'\n');
    let last = start.map_or(whole, |start| &whole[start + 1..]);
    let reader = Reader::new(&TrustedKeys::new([key.public()]), []);
    let receipt = reader
        .read(last)
        .context("its last line is no receipt of this gate's key; name another file")?;
    let (name, seq) = receipt
        .place
        .context("its last receipt is not of a session's chain; name another file")?;
    let head = Head {
        count: seq.saturating_add(1),
        hash: receipt.hash,
    };
    let id = name.try_into().context("its session's name")?;
    let session = Session { id, ..session };
    Ok(ReceiptChain::resume(session, key.clone(), head))
}

/// A file that this process alone writes until it is dropped.
struct Locked {
    file: File,
    length: u64,
}

impl Locked {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .with_context(|| format!("opening {}", path.display()))?;
        let begin = Instant::now();
        // Break it: leave the lock out; `receipts::commands::checks_at_the_same_time_make_one_chain` fails.
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::WouldBlock if begin.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                TryLockError::WouldBlock => {
                    anyhow::bail!("another process has held {} for long", path.display())
                }
                TryLockError::Error(error) => {
                    return Err(error).with_context(|| format!("locking {}", path.display()));
                }
            }
        }
        let found = file.metadata()?;
        anyhow::ensure!(
            found.is_file(),
            "{} is no ordinary file, so that what is written there is not kept",
            path.display()
        );
        let length = found.len();
        Ok(Self { file, length })
    }

    /// The last `most` bytes.
    fn tail(&mut self, most: u64) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file
            .seek(SeekFrom::Start(self.length.saturating_sub(most)))?;
        (&self.file).take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Appends, whole or not at all.
    fn append(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let written = self
            .file
            .write_all(bytes)
            .and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Part of a line would keep the next one from being written.
            drop(self.file.set_len(self.length));
            return Err(error).context("writing it");
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}
