//! The sandbox as the rest of caretaker holds it: chosen once, proved to work, then run as often as needed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::wire::{Boundary, Sockets};
use super::{Command, Limits, Mode, SandboxError, bubblewrap, rules};

/// How long the probe at the start may take.
const PROBE_WITHIN: Duration = Duration::from_secs(20);

/// A boundary that was seen to work on this machine.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(super) boundary: Boundary,
    pub(super) launcher: PathBuf,
    /// The home directory of the user caretaker runs as, which is never shown whole.
    pub(super) home: Option<PathBuf>,
    /// Where the scratch directories of the runs lie.
    pub(super) temporary_directory: PathBuf,
}

impl Sandbox {
    /// Finds the boundary that `mode` asks for and proves that it works by running a program in it.
    ///
    /// `launcher` is our own binary, whose `main` calls `reexec::run_if_requested`.
    pub async fn detect(mode: Mode, launcher: PathBuf) -> Result<Self, SandboxError> {
        let launcher =
            std::fs::canonicalize(&launcher).map_err(|source| SandboxError::Supervisor {
                action: "find",
                launcher,
                source,
            })?;
        let home = std::env::var_os("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute());
        let home = home.map(|home| std::fs::canonicalize(&home).unwrap_or(home));
        let sandbox = Self {
            boundary: Boundary::Nothing,
            launcher,
            home,
            temporary_directory: std::env::temp_dir(),
        };
        match mode {
            Mode::Bubblewrap => sandbox.with_bubblewrap().await,
            Mode::Landlock => sandbox.with_landlock().await,
            Mode::None => sandbox.proven().await.map_err(|reason| unavailable("resource limits", reason)),
            Mode::Auto => match sandbox.clone().with_bubblewrap().await {
                Ok(found) => Ok(found),
                Err(first) => sandbox.with_landlock().await.map_err(|second| SandboxError::Unavailable {
                    boundary: "bubblewrap or Landlock",
                    reason: format!("{first}; and {second}"),
                    mend: "install bubblewrap and allow unprivileged user namespaces, or write `sandbox: {mode: none}` \
                        if every program of these projects may do whatever this user can",
                }),
            },
        }
    }

    /// What confines the program, for provenance: `bubblewrap+landlock`, `bubblewrap`, `landlock` or `none`.
    pub fn describe(&self) -> &'static str {
        match self.boundary {
            Boundary::Bubblewrap { landlock: true, .. } => "bubblewrap+landlock",
            Boundary::Bubblewrap {
                landlock: false, ..
            } => "bubblewrap",
            Boundary::Landlock => "landlock",
            Boundary::Nothing => "none",
        }
    }

    /// Whether anything confines the program; `false` only for [`Mode::None`].
    pub fn confines(&self) -> bool {
        self.boundary != Boundary::Nothing
    }

    /// Whether it can give a program a loopback interface of its own ([`Command::private_loopback`]).
    pub fn gives_loopback(&self) -> bool {
        matches!(self.boundary, Boundary::Bubblewrap { .. })
    }

    /// Our own binary.
    pub fn launcher(&self) -> &Path {
        &self.launcher
    }

    async fn with_bubblewrap(mut self) -> Result<Self, SandboxError> {
        let found = bubblewrap::find(std::env::var_os("PATH").as_deref());
        let program = found.ok_or_else(|| SandboxError::Unavailable {
            boundary: "bubblewrap",
            reason: "the program bwrap is neither in /usr/bin nor in PATH".to_owned(),
            mend: "install the package bubblewrap (0.8 or newer)",
        })?;
        let landlock = rules::lacking(rules::Place::Inside(Sockets::Local)).is_none();
        let with = |forbids_namespaces| Boundary::Bubblewrap {
            program: program.clone(),
            forbids_namespaces,
            landlock,
        };
        // A bwrap that is installed setuid cannot forbid further namespaces; the seccomp filter does in any case.
        self.boundary = with(true);
        if let Ok(proven) = self.clone().proven().await {
            return Ok(proven);
        }
        self.boundary = with(false);
        self.proven()
            .await
            .map_err(|reason| unavailable("bubblewrap", reason))
    }

    async fn with_landlock(mut self) -> Result<Self, SandboxError> {
        if let Some(reason) = rules::lacking(rules::Place::Alone) {
            return Err(SandboxError::Unavailable {
                boundary: "Landlock",
                reason,
                mend: "use Linux 6.2 or newer with Landlock enabled, or install bubblewrap",
            });
        }
        self.boundary = Boundary::Landlock;
        self.proven()
            .await
            .map_err(|reason| unavailable("Landlock", reason))
    }

    /// Runs `true` in the boundary.
    async fn proven(self) -> Result<Self, SandboxError> {
        let directory = tempfile::tempdir_in(&self.temporary_directory)
            .map_err(|source| self.supervisor("prepare", source))?;
        let mut probe = Command::new(["true"], directory.path());
        probe.limits = Limits {
            wall: PROBE_WITHIN,
            ..Limits::default()
        };
        let outcome = self.run(&probe).await?;
        if outcome.status.success() {
            return Ok(self);
        }
        Err(SandboxError::Setup {
            reason: format!(
                "`true` ended with {:?} instead of 0: {}",
                outcome.status,
                outcome.stderr.text().trim()
            ),
        })
    }
}

fn unavailable(boundary: &'static str, reason: SandboxError) -> SandboxError {
    match reason {
        SandboxError::Setup { reason } | SandboxError::NotStarted { reason, .. } => {
            SandboxError::Unavailable {
                boundary,
                reason,
                mend: "see that unprivileged user namespaces are allowed (sysctl kernel.unprivileged_userns_clone, \
                kernel.apparmor_restrict_unprivileged_userns, or the container's seccomp profile)",
            }
        }
        other => other,
    }
}
