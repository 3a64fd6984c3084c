//! The git executable, for what libgit2 is not used for: fetching, pushing, and merging as GitHub does.
//!
//! Every invocation is built here and nowhere else. It runs on the trusted bare repository only, with a closed environment:
//! no configuration but the repository's own and the settings below, no hooks, no credential helpers, no `.netrc`, no
//! terminal, no redirects, no protocols but the remote's own. The credential is handed over on a private socket when git asks
//! for it; it is never in an argument, a setting, an address or an environment variable.

pub mod askpass;
mod failure;
mod names;
mod process;
mod remote;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::change::Oid;

pub use failure::GitError;
pub use names::{Push, RefName, Refspec};
pub use remote::Remote;

use askpass::Answerer;
use process::Finished;

/// How long one invocation may take unless told otherwise.
const DEADLINE: Duration = Duration::from_mins(10);

/// Settings of every invocation. They come after the repository's own configuration and win over it.
const SETTINGS: [&str; 22] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "credential.helper=",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "http.cookieFile=",
    "http.extraHeader=",
    "http.followRedirects=false",
    "http.sslVerify=true",
    "maintenance.auto=false",
    "merge.renormalize=false",
    "merge.verifySignatures=false",
    "protocol.allow=never",
    "push.followTags=false",
    "push.gpgSign=false",
    "push.recurseSubmodules=no",
    "submodule.recurse=false",
    "transfer.bundleURI=false",
    "transfer.credentialsInUrl=die",
    "user.useConfigOnly=true",
];

/// Variables that may be passed on from the operator's environment: where certificates lie, and the proxy.
const PASSED_ON: [&str; 8] = [
    "ALL_PROXY",
    "GIT_SSL_CAINFO",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "https_proxy",
    "no_proxy",
];

/// What a merge came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// It is clean; this tree is in the repository.
    Tree(Oid),
    /// It conflicts in these paths, as git prints them: raw bytes, at most 100 of them.
    Conflict(Vec<Vec<u8>>),
}

/// The git executable on one trusted bare repository.
#[derive(Debug, Clone)]
pub struct GitCommand {
    git: PathBuf,
    launcher: PathBuf,
    repository: PathBuf,
    deadline: Duration,
    passed_on: Vec<(String, String)>,
}

impl GitCommand {
    /// Git, found in `PATH`, on the bare repository at `repository`.
    ///
    /// `launcher` is our own binary, whose `main` calls [`askpass::answer_if_asked`].
    pub fn new(
        repository: impl Into<PathBuf>,
        launcher: impl Into<PathBuf>,
    ) -> Result<Self, GitError> {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        let git = std::env::split_paths(&path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join("git"))
            .find(|candidate| candidate.is_file())
            .ok_or(GitError::NoGit)?;
        Ok(Self {
            git,
            launcher: launcher.into(),
            repository: repository.into(),
            deadline: DEADLINE,
            passed_on: Vec::new(),
        })
    }

    /// The same with another git executable, given by its absolute path.
    #[must_use]
    pub fn with_program(self, git: impl Into<PathBuf>) -> Self {
        Self {
            git: git.into(),
            ..self
        }
    }

    /// The same with another deadline for each invocation.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// The same with those of `variables` passed on that say where certificates lie or which proxy to use.
    #[must_use]
    pub fn with_environment(self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let passed = variables
            .into_iter()
            .filter(|(name, _)| PASSED_ON.contains(&name.as_str()));
        Self {
            passed_on: passed.collect(),
            ..self
        }
    }

    /// Fetches objects and sets the refs that `refspecs` name. Tags, submodules and `FETCH_HEAD` are left alone.
    pub async fn fetch(&self, remote: &Remote, refspecs: &[Refspec]) -> Result<(), GitError> {
        let mut arguments: Vec<String> = [
            "fetch",
            "--quiet",
            "--atomic",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--no-auto-maintenance",
            "--end-of-options",
        ]
        .map(str::to_owned)
        .to_vec();
        arguments.push(remote.address().to_owned());
        arguments.extend(refspecs.iter().map(ToString::to_string));
        let finished = self.run(arguments, Some(remote)).await?;
        if finished.success() {
            return Ok(());
        }
        Err(failure::of_fetch(remote, &finished))
    }

    /// Moves one ref of the remote, only if it still is what [`Push::expected`] says. Succeeds, too, when the remote already
    /// is as wanted, so that a push whose answer was lost can be repeated.
    pub async fn push(&self, remote: &Remote, push: &Push) -> Result<(), GitError> {
        let mut arguments: Vec<String> = [
            "push",
            "--quiet",
            "--porcelain",
            "--no-verify",
            "--no-follow-tags",
            "--no-signed",
            "--recurse-submodules=no",
        ]
        .map(str::to_owned)
        .to_vec();
        arguments.push(push.lease());
        arguments.push("--end-of-options".to_owned());
        arguments.push(remote.address().to_owned());
        arguments.push(push.refspec());
        let finished = self.run(arguments, Some(remote)).await?;
        if finished.success() {
            return Ok(());
        }
        Err(failure::of_push(remote, push, &finished))
    }

    /// Merges `head` into `base`, both commits, without touching any ref. Written as GitHub merges: with renamed files and
    /// directories followed.
    pub async fn merge_tree(&self, base: &Oid, head: &Oid) -> Result<Merged, GitError> {
        let options = [
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
        ];
        let mut arguments: Vec<String> = options.map(str::to_owned).to_vec();
        arguments.extend([base.to_string(), head.to_string()]);
        let finished = self.run(arguments, None).await?;
        names::merged(&finished)
            .ok_or_else(|| failure::of_local("merging two commits", &self.repository, &finished))
    }

    async fn run(
        &self,
        arguments: Vec<String>,
        remote: Option<&Remote>,
    ) -> Result<Finished, GitError> {
        let answerer = Answerer::create(&self.launcher, remote)?;
        let mut command = tokio::process::Command::new(&self.git);
        for setting in SETTINGS
            .into_iter()
            .map(str::to_owned)
            .chain(protocols(remote))
        {
            command.arg("-c").arg(setting);
        }
        command.arg("--git-dir").arg(&self.repository);
        // Replacement refs would change what an id means.
        command.arg("--no-replace-objects").args(&arguments);
        command.env_clear().envs(self.passed_on.iter().cloned());
        command.envs(environment(&self.git, answerer.home()));
        if let Some(program) = answerer.program() {
            command.env("GIT_ASKPASS", program);
        }
        command.current_dir(answerer.home());
        process::run(command, answerer, self.deadline)
            .await
            .map_err(|failed| {
                let doing = if remote.is_some() {
                    "talking to a remote"
                } else {
                    "merging"
                };
                failed.into_error(doing, &self.git, self.deadline)
            })
    }
}

/// The one protocol that `remote` needs.
fn protocols(remote: Option<&Remote>) -> Option<String> {
    Some(format!("protocol.{}.allow=always", remote?.protocol()))
}

/// The closed environment; `home` is an empty directory.
fn environment(git: &Path, home: &Path) -> Vec<(&'static str, std::ffi::OsString)> {
    let mut path = git
        .parent()
        .map(Path::as_os_str)
        .unwrap_or_default()
        .to_owned();
    path.push(":/usr/bin:/bin");
    let mut variables = vec![
        // Where there is none, curl looks up the user's real home and reads the `.netrc` there.
        ("HOME", home.into()),
        ("XDG_CONFIG_HOME", home.into()),
        ("PATH", path),
    ];
    let fixed = [
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_LFS_SKIP_SMUDGE", "1"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("LC_ALL", "C"),
    ];
    variables.extend(fixed.map(|(name, value)| (name, value.into())));
    variables
}
