//! Writing to the stream, from any number of processes.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::line::{self, MAX_LINE};
use super::{Head, StreamError, key, open_plain, open_plain_with, write_over};
use crate::attest::SecretKey;
use crate::attest::keys::Fill;
use crate::clock::Clock;
use crate::events::{Event, EventSink, SinkError};
use crate::log::VerifierKey;

/// Held by the process that writes.
const LOCK_FILE: &str = "lock";
/// The end of the stream, as the last writer left it: the file's first number and the head.
pub(super) const HEAD_FILE: &str = "head";
/// How often the end is read until it is the same twice.
const MOST_LOOKS: usize = 8;
/// How much of a file's end is read at first, in bytes: usual lines have a tenth of it. Every hook reads it, so that reading what the
/// longest line may take cost a millisecond.
const USUAL_END: u64 = 8 << 10;
/// A file of the stream is followed by another one from this size on, in bytes.
const ROTATE_AT: u64 = 64 << 20;
/// Longest file that says where a stream ends, in bytes.
const LONGEST_END: u64 = 1024;
/// How long a writer waits for another one, in milliseconds: longer than a line takes, much shorter than a client waits for a hook.
const PATIENCE_MILLIS: u64 = 2_000;

/// A stream that can be written to.
pub struct AuditStream {
    folder: PathBuf,
    secret: SecretKey,
    key: VerifierKey,
    clock: Arc<dyn Clock>,
    rotate_at: u64,
    /// The lock file: the machine's lock is between processes, the mutex between this one's threads.
    lock: Mutex<File>,
}

/// Shows the folder only.
impl std::fmt::Debug for AuditStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AuditStream({})", self.folder.display())
    }
}

/// The file that is written to, and where the stream ends.
#[derive(Debug, Clone, Copy)]
struct End {
    /// Number of the first event in the file.
    first: u64,
    /// The file's length, in bytes.
    length: u64,
    head: Head,
}

impl AuditStream {
    /// Opens the stream in a folder; makes folder and key where there are none.
    ///
    /// # Errors
    /// The folder or the key cannot be used.
    pub fn open(folder: &Path, clock: Arc<dyn Clock>, fill: Fill<'_>) -> Result<Self, StreamError> {
        let mut folders = DirBuilder::new();
        folders
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(StreamError::file(
                "making the folder of the audit stream",
                folder,
            ))?;
        kept_apart(folder)?;
        let path = folder.join(LOCK_FILE);
        let failed = StreamError::file("opening the lock of the audit stream", &path);
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true).mode(0o600);
        let lock = open_plain_with(&path, options, OFlags::NOFOLLOW).map_err(&failed)?;
        wait_for(&lock, folder)?;
        let keys = key::open_or_make(folder, fill);
        lock.unlock().map_err(&failed)?;
        let (secret, key) = keys?;
        Ok(Self {
            folder: folder.to_owned(),
            secret,
            key,
            clock,
            rotate_at: ROTATE_AT,
            lock: Mutex::new(lock),
        })
    }

    /// The same, with another size from which on a file is followed by another one, in bytes.
    #[must_use]
    pub fn rotating_at(self, bytes: u64) -> Self {
        Self {
            rotate_at: bytes,
            ..self
        }
    }

    /// What verifies it.
    pub fn key(&self) -> &VerifierKey {
        &self.key
    }

    /// Writes one event and says where the stream now ends.
    ///
    /// # Errors
    /// The event is not on record; the stream is as it was.
    pub fn write(&self, event: &Event) -> Result<Head, StreamError> {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        wait_for(&lock, &self.folder)?;
        let written = self.append(event);
        let path = self.folder.join(LOCK_FILE);
        lock.unlock().map_err(StreamError::file(
            "letting go of the audit stream's lock",
            &path,
        ))?;
        written
    }

    fn append(&self, event: &Event) -> Result<Head, StreamError> {
        let mut end = self.end()?;
        self.mend(&mut end)?;
        let line = self.line(event, &end.head)?;
        if end.length > 0 && end.length + line.len() as u64 > self.rotate_at {
            end.first = end.head.events;
            end.length = 0;
        }
        end.head = self.put(&line, &end)?;
        end.length += line.len() as u64 + 1;
        self.remember(&end)?;
        Ok(end.head)
    }

    fn line(&self, event: &Event, head: &Head) -> Result<String, StreamError> {
        line::write(event, self.clock.now(), head, &self.secret, &self.key).map_err(|reason| {
            StreamError::Event {
                event: event.event.to_owned(),
                reason,
            }
        })
    }

    /// Appends a line to its file. What a failed write leaves there is cut off again; where that fails too, the next
    /// writer does it.
    fn put(&self, line: &str, end: &End) -> Result<Head, StreamError> {
        let path = self.file(end.first);
        let failed = StreamError::file("writing to the audit stream", &path);
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true).mode(0o600);
        let mut file = open_plain_with(&path, options, OFlags::NOFOLLOW).map_err(&failed)?;
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            drop(file.set_len(end.length));
            return Err(failed(error));
        }
        Ok(Head {
            events: end.head.events + 1,
            hash: crate::change::Sha256Digest::of(line.as_bytes()),
        })
    }

    /// Where the last writer left the stream.
    fn end(&self) -> Result<End, StreamError> {
        let path = self.folder.join(HEAD_FILE);
        let text = match recorded_text(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // Break it: begin anew although there are files; who deletes `head` then rewrites the past
                // (`audit_stream::writer::a_stream_whose_end_was_changed_is_not_written_to`).
                if super::files(&self.folder)?.is_empty() {
                    return Ok(End {
                        first: 0,
                        length: 0,
                        head: Head::START,
                    });
                }
                return Err(
                    self.changed("there are events, but nothing says where they end".to_owned())
                );
            }
            text => text.map_err(StreamError::file(
                "reading the audit stream's end in",
                &path,
            ))?,
        };
        End::parse(&text)
            .ok_or_else(|| self.changed(format!("{HEAD_FILE} does not say where the stream ends")))
    }

    fn remember(&self, end: &End) -> Result<(), StreamError> {
        let path = self.folder.join(HEAD_FILE);
        let failed = StreamError::file("writing the audit stream's end to", &path);
        let text = format!("{} {} {}\n", end.first, end.length, end.head);
        if write_over(&path, text.as_bytes()).map_err(&failed)? {
            return Ok(());
        }
        let new = self.folder.join("head.new");
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(true).write(true).mode(0o600);
        let mut file = options.open(&new).map_err(&failed)?;
        file.write_all(text.as_bytes()).map_err(&failed)?;
        std::fs::rename(&new, &path).map_err(&failed)
    }

    /// Brings the end up to what a writer left that died: half a line, which is cut off, or a whole one that the end does not
    /// know yet, which is taken over.
    fn mend(&self, end: &mut End) -> Result<(), StreamError> {
        // A new file begins where the old one ended; its writer may have died before it said so.
        if end.head.events > end.first && self.file(end.head.events).exists() {
            self.is_last(end)?;
            end.first = end.head.events;
            end.length = 0;
        }
        let path = self.file(end.first);
        let failed = StreamError::file("reading the end of the audit stream in", &path);
        let opened = open_plain_with(
            &path,
            OpenOptions::new().read(true).write(true),
            OFlags::NOFOLLOW,
        );
        let mut file = match opened {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && end.length == 0 => {
                return Ok(());
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(self.changed(format!("{} is gone", path.display())));
            }
            file => file.map_err(&failed)?,
        };
        let tail = Tail::read(&mut file).map_err(&failed)?;
        let torn = tail.length - tail.whole;
        if torn > MAX_LINE as u64 {
            return Err(self.changed(format!("its last line has {torn} bytes and no end")));
        }
        let mended = if tail.whole == end.length {
            end.length == 0 || self.ends_with(&tail, end).is_ok()
        } else {
            self.takes_over(end, &tail)
        };
        // Break it: go on whatever is there; lines can then be cut off, changed or put behind
        // (`audit_stream::writer::a_stream_whose_end_was_changed_is_not_written_to`).
        if !mended {
            return Err(self.changed(format!(
                "{} does not end with event {}, the last one written",
                path.display(),
                end.head.events.saturating_sub(1)
            )));
        }
        if torn > 0 {
            file.set_len(tail.whole).map_err(&failed)?;
        }
        Ok(())
    }

    /// Whether one whole line follows the end, and is the next one; the end is then behind it.
    fn takes_over(&self, end: &mut End, tail: &Tail) -> bool {
        let Ok(last) = line::read(&tail.line, &self.key) else {
            return false;
        };
        let follows = last.seq == end.head.events
            && last.before == end.head.hash
            && tail.whole == end.length + tail.line.len() as u64 + 1;
        if follows {
            end.length = tail.whole;
            end.head = Head {
                events: last.seq + 1,
                hash: last.hash,
            };
        }
        follows
    }

    /// The file has to end where the stream ended.
    fn is_last(&self, end: &End) -> Result<(), StreamError> {
        let path = self.file(end.first);
        let failed = StreamError::file("reading the end of the audit stream in", &path);
        let mut file = File::open(&path).map_err(&failed)?;
        let tail = Tail::read(&mut file).map_err(&failed)?;
        self.ends_with(&tail, end)
    }

    fn ends_with(&self, tail: &Tail, end: &End) -> Result<(), StreamError> {
        let last = line::read(&tail.line, &self.key)
            .map_err(|reason| self.changed(format!("of its last line, {reason}")))?;
        if last.hash == end.head.hash {
            Ok(())
        } else {
            let path = self.file(end.first);
            Err(self.changed(format!("{} does not end where it ended", path.display())))
        }
    }

    fn file(&self, first: u64) -> PathBuf {
        self.folder.join(format!("{first:020}.ndjson"))
    }

    fn changed(&self, found: String) -> StreamError {
        StreamError::Changed {
            folder: self.folder.clone(),
            found,
        }
    }
}

impl End {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim_end().split(' ');
        Some(Self {
            first: parts.next()?.parse().ok()?,
            length: parts.next()?.parse().ok()?,
            head: parts.next()?.parse().ok()?,
        })
    }
}

/// Where a folder says that its stream ends; `None` when it says nothing.
pub(super) fn recorded_end(folder: &Path) -> Result<Option<Head>, StreamError> {
    let path = folder.join(HEAD_FILE);
    // A writer may be at it: what is read twice alike is whole.
    let mut text = recorded_text(&path);
    for _ in 0..MOST_LOOKS {
        let again = recorded_text(&path);
        let whole = matches!((&text, &again), (Ok(before), Ok(now)) if before == now);
        text = again;
        if whole {
            break;
        }
    }
    let text = match text {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(StreamError::file(
            "reading the audit stream's end in",
            &path,
        ))?,
    };
    let end = End::parse(&text).ok_or_else(|| StreamError::Changed {
        folder: folder.to_owned(),
        found: format!("{HEAD_FILE} does not say where the stream ends"),
    })?;
    Ok(Some(end.head))
}

fn recorded_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    open_plain(path)?
        .take(LONGEST_END)
        .read_to_string(&mut text)?;
    Ok(text)
}

/// A folder that others can write may hold anything that they like.
fn kept_apart(folder: &Path) -> Result<(), StreamError> {
    let status =
        std::fs::symlink_metadata(folder).map_err(StreamError::file("looking at", folder))?;
    // Break it: leave this out; `audit_stream::writer::a_folder_that_others_may_write_is_not_used` fails.
    let own = status.uid() == rustix::process::geteuid().as_raw();
    if status.is_dir() && own && status.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(StreamError::Key {
        path: folder.to_owned(),
        reason: "its folder is a link, belongs to another user, or others may write it (chmod go-w); take another folder".to_owned(),
    })
}

impl EventSink for AuditStream {
    fn record(&self, event: &Event) -> Result<(), SinkError> {
        self.write(event)
            .map(|_| ())
            .map_err(|error| SinkError(error.to_string()))
    }
}

/// The end of a file.
struct Tail {
    length: u64,
    /// Length up to the last line feed.
    whole: u64,
    /// The last whole line without its line feed.
    line: Vec<u8>,
}

impl Tail {
    fn read(file: &mut File) -> std::io::Result<Self> {
        let length = file.metadata()?.len();
        // A whole line, its line feed and the one before it, and half of another line.
        let most = length.min(2 * (MAX_LINE as u64 + 1) + 1);
        let mut reach = most.min(USUAL_END);
        loop {
            file.seek(SeekFrom::Start(length - reach))?;
            let mut bytes = Vec::with_capacity(usize::try_from(reach).unwrap_or(0));
            file.take(reach).read_to_end(&mut bytes)?;
            let end = bytes.iter().rposition(|byte| *byte == b'\n');
            let before = end.and_then(|end| bytes[..end].iter().rposition(|byte| *byte == b'\n'));
            if before.is_none() && reach < most {
                reach = most.min(reach * 4);
                continue;
            }
            let torn = bytes.len() - end.map_or(0, |end| end + 1);
            let start = before.map_or(0, |before| before + 1);
            let line = end.map(|end| bytes[start..end].to_vec());
            return Ok(Self {
                length,
                whole: length - torn as u64,
                line: line.unwrap_or_default(),
            });
        }
    }
}

/// Takes the lock, waiting a while for who holds it.
fn wait_for(lock: &File, folder: &Path) -> Result<(), StreamError> {
    let begun = Instant::now();
    let patience = Duration::from_millis(PATIENCE_MILLIS);
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => {
                let path = folder.join(LOCK_FILE);
                return Err(StreamError::file("locking the audit stream with", &path)(
                    error,
                ));
            }
            Err(TryLockError::WouldBlock) if begun.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(StreamError::Busy {
                    folder: folder.to_owned(),
                    waited_millis: PATIENCE_MILLIS,
                });
            }
        }
    }
}
