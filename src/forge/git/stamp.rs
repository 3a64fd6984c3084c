//! Whether references may have moved, without asking git.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Git;

/// Files that changed less than this ago may change again without a trace: the clock of the file system is that coarse. In
/// nanoseconds.
const UNSETTLED: i128 = 100_000_000;

/// What the files of a repository's references look like from outside: places, numbers, sizes and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReferenceStamp(u64);

/// Gathers a stamp.
struct Look {
    hasher: DefaultHasher,
    /// The newest time at which a file's content changed, in nanoseconds since 1970.
    newest: i128,
}

impl Git {
    /// The stamp of the references as they are now. `None` where something changed so lately that an equal stamp would not
    /// prove that nothing changed since, and where the folder cannot be read: git is to be asked then.
    #[expect(
        clippy::disallowed_methods,
        reason = "times of files are compared with the clock that made them"
    )]
    pub(crate) fn reference_stamp(&self) -> Option<ReferenceStamp> {
        let mut look = Look {
            hasher: DefaultHasher::new(),
            newest: 0,
        };
        for name in ["HEAD", "packed-refs"] {
            look.file(&self.directory().join(name));
        }
        look.folder(&self.directory().join("refs"))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let age = i128::try_from(now.as_nanos()).ok()? - look.newest;
        (age > UNSETTLED).then(|| ReferenceStamp(look.hasher.finish()))
    }
}

impl Look {
    fn folder(&mut self, path: &Path) -> Option<()> {
        self.file(path);
        let mut entries: Vec<_> = std::fs::read_dir(path)
            .ok()?
            .collect::<Result<_, _>>()
            .ok()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            if entry.file_type().ok()?.is_dir() {
                self.folder(&entry.path())?;
            } else {
                self.file(&entry.path());
            }
        }
        Some(())
    }

    /// A file that is not there is a fact as well.
    fn file(&mut self, path: &Path) {
        path.hash(&mut self.hasher);
        let Ok(facts) = std::fs::symlink_metadata(path) else {
            return;
        };
        (facts.ino(), facts.size()).hash(&mut self.hasher);
        (facts.ctime(), facts.ctime_nsec()).hash(&mut self.hasher);
        let (seconds, nanoseconds) = (facts.mtime(), facts.mtime_nsec());
        (seconds, nanoseconds).hash(&mut self.hasher);
        let moment = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        self.newest = self.newest.max(moment);
    }
}
