//! What a signer has signed, kept across restarts.
//!
//! One file a role, `signed/<role>` in the installation's folder: a line for each position of an incident, appended and brought to the disk
//! before the signature leaves. Several processes of one machine share it under a lock. A line that was cut off belongs to a
//! signature that never left. Each line's check covers those before it, so that none is missing from the middle; and who runs on notices
//! when the file was cut, or an older copy put in its place.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::files;
use crate::attest::signer::{Memory, MemoryError};
use crate::change::Sha256Digest;
use crate::id::IncidentId;

/// Positions that are kept; the store's own record of unsigned statements has no such limit.
const KEPT: usize = 32_768;
/// The longest file, in bytes: beyond it, the positions of the oldest incidents are left out. About twice what is kept.
const LONGEST: u64 = 8 << 20;

/// The memory of one role's signer.
#[derive(Debug)]
pub struct FileMemory {
    path: PathBuf,
    held: Mutex<Held>,
}

/// What was read of the file so far.
#[derive(Debug, Default)]
struct Held {
    positions: BTreeMap<(IncidentId, u64), Sha256Digest>,
    file: Option<File>,
    /// How far the file was read: always the end of a line.
    read: u64,
    /// The check of the last line that was read.
    check: String,
    /// What was read of the file that had the name before.
    former: BTreeMap<(IncidentId, u64), Sha256Digest>,
}

impl FileMemory {
    /// The memory in a file, which is made with the first signature.
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            held: Mutex::default(),
        }
    }

    fn failed(&self, doing: &str, cause: &io::Error) -> MemoryError {
        let path = self.path.display();
        let mend = if cause.kind() == io::ErrorKind::InvalidData {
            "put its newest copy back; docs/keys.md says what to do where there is none"
        } else {
            "make the folder writable for this user, or mend the disk"
        };
        MemoryError(format!(
            "{doing} its memory of what it signed, {path}: {cause}; without it nothing is signed; {mend}"
        ))
    }
}

impl Memory for FileMemory {
    fn take(
        &self,
        incident: &IncidentId,
        seq: u64,
        digest: Sha256Digest,
    ) -> Result<Sha256Digest, MemoryError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.open(&self.path)
            .map_err(|cause| self.failed("opening", &cause))?;
        // Held until the next one opens or unlocks it: another process must not sign between the look and the line.
        let taken = held.take(&self.path, incident, seq, digest);
        let unlocked = held.file.as_ref().map_or(Ok(()), File::unlock);
        // Break it: ignore this error;
        // `keys::memory::a_line_that_was_cut_off_is_written_anew_and_a_damaged_one_stops_everything` fails.
        let digest = taken.map_err(|cause| self.failed("using", &cause))?;
        unlocked.map_err(|cause| self.failed("unlocking", &cause))?;
        Ok(digest)
    }
}

impl Held {
    /// Opens and locks the file that has the name now: another process may have put a shorter one in its place.
    fn open(&mut self, path: &Path) -> io::Result<()> {
        loop {
            if self.file.is_none() {
                let folder = path.parent().unwrap_or(Path::new("."));
                files::make_private_folder(folder)?;
                let file = OpenOptions::new()
                    .read(true)
                    .append(true)
                    .create(true)
                    .mode(0o600)
                    .open(path)?;
                files::sync_folder(folder)?;
                let mut former = std::mem::take(&mut self.former);
                former.append(&mut self.positions);
                *self = Self {
                    file: Some(file),
                    former,
                    ..Self::default()
                };
            }
            let Some(file) = &self.file else { continue };
            file.lock()?;
            let named = std::fs::metadata(path).map(|found| found.ino()).ok();
            if named == Some(file.metadata()?.ino()) {
                return Ok(());
            }
            self.file = None;
        }
    }

    fn take(
        &mut self,
        path: &Path,
        incident: &IncidentId,
        seq: u64,
        digest: Sha256Digest,
    ) -> io::Result<Sha256Digest> {
        self.catch_up()?;
        if self.read > LONGEST {
            self.shorten(path)?;
        }
        if let Some(found) = self.positions.get(&(incident.clone(), seq)) {
            return Ok(*found);
        }
        let (line, check) = line(&self.check, incident, seq, digest);
        let Some(file) = &mut self.file else {
            return Err(io::Error::other("it is not open"));
        };
        // What is behind the last whole line was never synced with a signature.
        file.set_len(self.read)?;
        file.write_all(line.as_bytes())?;
        file.sync_data()?;
        self.read += line.len() as u64;
        self.check = check;
        self.remember(incident.clone(), seq, digest);
        Ok(digest)
    }

    /// Reads what was appended since.
    fn catch_up(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let length = file.metadata()?.len();
        // Break it: leave this out; `keys::memory::who_runs_on_notices_that_the_memory_was_cut_or_exchanged` fails.
        if length < self.read {
            return Err(untrue("it was cut"));
        }
        // Whatever were left unread would be cut off by the next line.
        if length - self.read > 2 * LONGEST {
            return Err(untrue("it is longer than such a file gets"));
        }
        file.seek(SeekFrom::Start(self.read))?;
        let mut added = String::new();
        file.take(2 * LONGEST).read_to_string(&mut added)?;
        for text in added
            .split_inclusive('\n')
            .filter(|text| text.ends_with('\n'))
        {
            let (incident, seq, digest, check) = parsed(&self.check, text)
                .ok_or_else(|| untrue(format!("it is damaged at byte {}", self.read)))?;
            self.read += text.len() as u64;
            self.check = check;
            self.remember(incident, seq, digest);
        }
        // Break it: leave this out; `keys::memory::who_runs_on_notices_that_the_memory_was_cut_or_exchanged` fails.
        if !self.holds_the_former() {
            return Err(untrue("a file without what was signed took its place"));
        }
        self.former.clear();
        Ok(())
    }

    /// Whether what was read of the file before is in this one, or older than all that this one keeps.
    fn holds_the_former(&self) -> bool {
        let full = self.positions.len() >= KEPT;
        let oldest = self.positions.first_key_value().filter(|_| full);
        let forgotten = |position| oldest.is_some_and(|(oldest, _)| position < oldest);
        self.former.iter().all(|(position, digest)| {
            self.positions.get(position) == Some(digest) || forgotten(position)
        })
    }

    fn remember(&mut self, incident: IncidentId, seq: u64, digest: Sha256Digest) {
        self.positions.entry((incident, seq)).or_insert(digest);
        if self.positions.len() > KEPT {
            // Incident ids sort by time, so the oldest incident is forgotten first.
            self.positions.pop_first();
        }
    }

    /// Puts a file with what is kept in the place of a long one. Whoever waits for the old one's lock looks again.
    fn shorten(&mut self, path: &Path) -> io::Result<()> {
        let mut lines = String::new();
        let mut before = String::new();
        for ((incident, seq), digest) in &self.positions {
            let (line, check) = line(&before, incident, *seq, *digest);
            lines.push_str(&line);
            before = check;
        }
        files::write_whole(path, lines.as_bytes(), true)?;
        self.file = None;
        self.open(path)?;
        self.catch_up()
    }
}

/// What stands in the file is not all that was written there.
fn untrue(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// `<incident> <seq> <digest> <check>` and the check, which is the beginning of the SHA-256 of the check before and of what stands
/// before this one: against damage, not against who may write the file.
fn line(before: &str, incident: &IncidentId, seq: u64, digest: Sha256Digest) -> (String, String) {
    let said = format!("{incident} {seq} {digest}");
    let check = check(before, &said);
    (format!("{said} {check}\n"), check)
}

fn check(before: &str, said: &str) -> String {
    let digest = Sha256Digest::of(format!("{before} {said}").as_bytes()).to_string();
    digest.chars().take(8).collect()
}

fn parsed(before: &str, text: &str) -> Option<(IncidentId, u64, Sha256Digest, String)> {
    let (said, found) = text.strip_suffix('\n')?.rsplit_once(' ')?;
    let mut words = said.split(' ');
    let (incident, seq, digest) = (words.next()?, words.next()?, words.next()?);
    let check = check(before, said);
    // Break it: take any check; `keys::memory::a_line_that_is_missing_before_others_stops_everything` fails.
    if words.next().is_some() || check != found {
        return None;
    }
    let (incident, seq, digest) = (
        incident.parse().ok()?,
        seq.parse().ok()?,
        digest.parse().ok()?,
    );
    Some((incident, seq, digest, check))
}
