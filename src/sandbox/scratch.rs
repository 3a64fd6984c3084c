//! The supervisor's own directory for one run: small system files, the report, and `/tmp` where there is no bubblewrap.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The confined process writes this as the last thing before it becomes the program.
const REACHED: &str = "reached\n";

/// A directory only this user can enter, removed when dropped.
///
/// Its file `report` says how far a run came: empty while the boundary is being set up, `reached` from the moment before
/// the program takes over, and a reason after that word (or instead of it) when something failed. The program itself
/// cannot write to it wherever Landlock is in force.
pub(super) struct Scratch {
    directory: TempDir,
}

/// How far a run came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The program took over.
    Program,
    /// The program could not be started.
    NotStarted(String),
    /// The boundary failed; the reason, if anything was said.
    SetupFailed(Option<String>),
}

impl Scratch {
    /// Creates the directory beneath `parent`.
    pub(super) fn create(parent: &Path) -> io::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("caretaker-sandbox-")
            .tempdir_in(parent)?;
        let scratch = Self { directory };
        fs::create_dir(scratch.temporary())?;
        fs::write(scratch.report(), "")?;
        fs::write(
            scratch.file("passwd"),
            "sandbox:x:65534:65534:sandbox:/tmp:/bin/sh\n",
        )?;
        fs::write(scratch.file("group"), "sandbox:x:65534:\n")?;
        fs::write(
            scratch.file("hosts"),
            "127.0.0.1 localhost\n::1 localhost\n",
        )?;
        fs::write(
            scratch.file("nsswitch.conf"),
            "passwd: files\ngroup: files\nhosts: files\n",
        )?;
        fs::write(scratch.file("nothing"), "{}\n")?;
        Ok(scratch)
    }

    /// One of the small system files by its name in `/etc`, or `nothing`, which stands for a file that is hidden.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The report.
    pub(super) fn report(&self) -> PathBuf {
        self.file("report")
    }

    /// What stands for `/tmp` where there is no mount namespace.
    pub(super) fn temporary(&self) -> PathBuf {
        self.file("tmp")
    }

    /// How far the run came.
    pub(super) fn reach(&self) -> io::Result<Reach> {
        let report = fs::read(self.report())?;
        let report = String::from_utf8_lossy(&report[..report.len().min(4096)]).into_owned();
        Ok(match report.strip_prefix(REACHED) {
            Some("") => Reach::Program,
            Some(reason) => Reach::NotStarted(reason.trim_end().to_owned()),
            None if report.is_empty() => Reach::SetupFailed(None),
            None => Reach::SetupFailed(Some(report.trim_end().to_owned())),
        })
    }
}

/// The confined process's end of the report, opened before it gives up the right to.
pub(super) struct Report(fs::File);

impl Report {
    /// Opens an existing report.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        fs::OpenOptions::new().append(true).open(path).map(Self)
    }

    /// Says that everything is in place and the program takes over next.
    pub(super) fn reached(&mut self) -> io::Result<()> {
        io::Write::write_all(&mut self.0, REACHED.as_bytes())
    }

    /// Says what failed.
    pub(super) fn failed(&mut self, reason: &str) -> io::Result<()> {
        io::Write::write_all(&mut self.0, reason.as_bytes())
    }
}
