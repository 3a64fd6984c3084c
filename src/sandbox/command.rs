//! What is to be run, and how much of the machine it may use.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use super::SandboxError;

/// One untrusted program, everything it may see, and its limits. Nothing is inherited from this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments. A program without `/` is looked up in the `PATH` of [`Command::environment`].
    pub argv: Vec<OsString>,
    /// Where the program starts: absolute, and beneath one of `writable` or `readable`.
    pub directory: PathBuf,
    /// Absolute directories the program may change.
    pub writable: Vec<PathBuf>,
    /// Absolute files and directories it may read and execute beside the system's own (toolchains, command files).
    /// One that lies inside a writable directory makes that part read-only, which only bubblewrap can do.
    pub readable: Vec<PathBuf>,
    /// Absolute files and directories beneath those that are to seem empty: a directory holds nothing, a file an empty JSON object.
    /// What is not there need not be hidden. Only bubblewrap can do this.
    pub hidden: Vec<PathBuf>,
    /// The whole environment, except for the defaults `PATH`, `HOME`, `TMPDIR` and `LANG` where these are not given.
    pub environment: Vec<(String, String)>,
    /// What the program reads from its standard input.
    pub stdin: Vec<u8>,
    /// Whether the program may use TCP and UDP over a loopback interface of its own that nothing else can reach. Only
    /// bubblewrap can give this; under Landlock alone every socket stays refused.
    pub private_loopback: bool,
    /// Its limits.
    pub limits: Limits,
}

/// How much one run may use. Limits that the kernel keeps per process are marked so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time on the wall; at its end everything the program started is killed.
    pub wall: Duration,
    /// Processor seconds, per process.
    pub cpu_seconds: u64,
    /// Bytes of address space, per process; `None` leaves it unlimited, which some runtimes (Go, Java, sanitizers) need.
    pub address_space: Option<u64>,
    /// Bytes of the largest file that may be written.
    pub file_size: u64,
    /// Open files, per process.
    pub open_files: u64,
    /// Processes and threads of the whole run.
    pub processes: u64,
    /// Bytes of standard output, and as many of standard error; more ends the run.
    pub output: u64,
    /// Bytes of the private `/tmp`, and as many of `/dev/shm`. Not enforced without bubblewrap.
    pub temporary: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_mins(15),
            cpu_seconds: 3600,
            address_space: None,
            file_size: 4 << 30,
            open_files: 4096,
            processes: 512,
            output: 8 << 20,
            temporary: 1 << 30,
        }
    }
}

impl Command {
    /// A command that may change `directory` and nothing else, with an empty standard input and the default limits.
    pub fn new(
        argv: impl IntoIterator<Item = impl Into<OsString>>,
        directory: impl Into<PathBuf>,
    ) -> Self {
        let directory = directory.into();
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            writable: vec![directory.clone()],
            directory,
            readable: Vec::new(),
            hidden: Vec::new(),
            environment: Vec::new(),
            stdin: Vec::new(),
            private_loopback: false,
            limits: Limits::default(),
        }
    }

    /// Refuses what could not be started as written: an empty command line, NUL bytes, malformed variables, a zero limit.
    pub(super) fn check_words(&self) -> Result<(), SandboxError> {
        let refuse = |reason: String| Err(SandboxError::BadCommand { reason });
        match self.argv.first() {
            None => return refuse("the command line is empty; name a program".into()),
            Some(program) if program.is_empty() => {
                return refuse("the program's name is empty; name a program".into());
            }
            Some(_) => {}
        }
        if let Some(argument) = self
            .argv
            .iter()
            .find(|argument| argument.as_bytes().contains(&0))
        {
            return refuse(format!(
                "the argument {} contains a NUL byte",
                argument.display()
            ));
        }
        for (name, value) in &self.environment {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return refuse(format!(
                    "the environment variable {name:?} has a name or value no process can carry"
                ));
            }
        }
        let limits = &self.limits;
        let zero = [
            ("wall", limits.wall.is_zero()),
            ("cpu_seconds", limits.cpu_seconds == 0),
            ("address_space", limits.address_space == Some(0)),
            ("open_files", limits.open_files == 0),
            ("processes", limits.processes == 0),
            ("temporary", limits.temporary == 0),
        ];
        match zero.iter().find(|(_, is_zero)| *is_zero) {
            Some((name, _)) => refuse(format!(
                "the limit {name} is zero, so nothing could run; raise it"
            )),
            None => Ok(()),
        }
    }
}
