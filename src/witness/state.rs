//! What a witness remembers: of each log the last checkpoint it cosigned, a line each.
//!
//! The first line names format and witness, the last is the SHA-256 of all before it, so that a file that was cut at a line
//! shows: a log that is forgotten could show another history.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::WitnessError;
use super::request::number;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::log::{KeyName, TreeHead, VerifierKey};

/// The file's name in the witness's folder.
pub const STATE_FILE: &str = "state";
/// Held by the process that runs.
const LOCK_FILE: &str = "lock";
/// The longest file that is read, in bytes.
const MAX_FILE: u64 = 16 << 20;
/// What the first line begins with.
const FORMAT: &str = "caretaker-witness/v1";

/// The last checkpoint that was cosigned of a log, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Size and root.
    pub head: TreeHead,
    /// When, by this machine's clock.
    pub at: Millis,
}

/// What one process remembers and keeps.
#[derive(Debug)]
pub(super) struct State {
    folder: PathBuf,
    key: VerifierKey,
    logs: BTreeMap<KeyName, Seen>,
    /// Locked until the process ends, however it ends.
    _lock: File,
}

impl State {
    /// The memory of a witness that has seen nothing.
    pub(super) fn begin(folder: &Path, key: &VerifierKey) -> Result<(), WitnessError> {
        write(folder, key, &BTreeMap::new())
    }

    /// Reads what is remembered. One process at a time: two would not know what the other has cosigned.
    pub(super) fn open(folder: &Path, key: VerifierKey) -> Result<Self, WitnessError> {
        let lock = locked(folder)?;
        let path = folder.join(STATE_FILE);
        let failed = WitnessError::file("reading what was cosigned from", &path);
        let mut bytes = Vec::new();
        match File::open(&path) {
            // Break it: begin anew here; who deletes one file then has every log's history cosigned a second time
            // (`witness::folder::a_witness_without_its_memory_does_not_run`).
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(WitnessError::Forgotten { path });
            }
            Err(error) => return Err(failed(error)),
            Ok(file) => file.take(MAX_FILE).read_to_end(&mut bytes),
        }
        .map_err(failed)?;
        let logs = parse(&bytes, &key).map_err(|reason| WitnessError::State { path, reason })?;
        Ok(Self {
            folder: folder.to_owned(),
            key,
            logs,
            _lock: lock,
        })
    }

    /// The last checkpoint of a log.
    pub(super) fn of(&self, origin: &KeyName) -> Option<Seen> {
        self.logs.get(origin).copied()
    }

    pub(super) fn all(&self) -> &BTreeMap<KeyName, Seen> {
        &self.logs
    }

    /// Remembers a checkpoint: on the disk when this returns, or not at all.
    pub(super) fn record(&mut self, origin: &KeyName, seen: Seen) -> Result<(), WitnessError> {
        let mut logs = self.logs.clone();
        logs.insert(origin.clone(), seen);
        write(&self.folder, &self.key, &logs)?;
        self.logs = logs;
        Ok(())
    }
}

fn locked(folder: &Path) -> Result<File, WitnessError> {
    let path = folder.join(LOCK_FILE);
    let failed = WitnessError::file("locking", &path);
    let lock = File::create(&path).map_err(&failed)?;
    // Break it: leave the lock out and `witness::folder::one_process_at_a_time` fails.
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(WitnessError::Running {
            folder: folder.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Whole or not at all, and on the disk.
fn write(
    folder: &Path,
    key: &VerifierKey,
    logs: &BTreeMap<KeyName, Seen>,
) -> Result<(), WitnessError> {
    let (beside, place) = (folder.join("state.new"), folder.join(STATE_FILE));
    let failed = WitnessError::file("writing what was cosigned to", &place);
    let mut file = File::create(&beside).map_err(&failed)?;
    file.write_all(&bytes(key, logs)).map_err(&failed)?;
    file.sync_all().map_err(&failed)?;
    std::fs::rename(&beside, &place).map_err(&failed)?;
    // The new name is on the disk when its folder is.
    let named = File::open(folder).and_then(|folder| folder.sync_all());
    named.map_err(failed)
}

fn bytes(key: &VerifierKey, logs: &BTreeMap<KeyName, Seen>) -> Vec<u8> {
    let line = |(origin, seen): (&KeyName, &Seen)| {
        let Seen { head, at } = seen;
        format!("{origin} {} {} {}", head.size(), head.root(), at.0)
    };
    let mut lines = vec![format!("{FORMAT} {key}")];
    lines.extend(logs.iter().map(line));
    let text = lines.join("\n") + "\n";
    let digest = Sha256Digest::of(text.as_bytes());
    format!("{text}sha256 {digest}\n").into_bytes()
}

/// What [`bytes`] wrote; anything else in words.
fn parse(bytes: &[u8], key: &VerifierKey) -> Result<BTreeMap<KeyName, Seen>, String> {
    let text = str::from_utf8(bytes).map_err(|_| "it is no text".to_owned())?;
    let before = text
        .trim_end_matches('\n')
        .rfind('\n')
        .map_or(0, |end| end + 1);
    let (before, last) = text.split_at(before);
    let expected = format!("sha256 {}\n", Sha256Digest::of(before.as_bytes()));
    // Break it: leave this out; a file that lost its last logs then starts
    // (`witness::folder::a_memory_that_was_cut_or_changed_is_refused`).
    if last != expected {
        return Err("it was cut off or changed".to_owned());
    }
    let mut lines = before.lines();
    let first = lines.next().unwrap_or_default();
    if first != format!("{FORMAT} {key}") {
        return Err("it is another witness's or of another version".to_owned());
    }
    let line = |line: &str| {
        let [origin, size, root, at] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let head = TreeHead::new(number(size)?, root.parse().ok()?).ok()?;
        let at = Millis(at.parse().ok()?);
        Some((KeyName::new(origin).ok()?, Seen { head, at }))
    };
    let logs: Option<BTreeMap<_, _>> = lines.map(line).collect();
    logs.ok_or_else(|| "one of its lines is not a log, a size, a root and a time".to_owned())
}
