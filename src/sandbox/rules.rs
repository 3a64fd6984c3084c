//! Landlock: which files the process and all its descendants may use from here on.
//!
//! The kernel's description: Documentation/userspace-api/landlock.rst.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    PathFd, PathFdError, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _,
    RulesetError, RulesetStatus, Scope,
};

use super::paths;
use super::wire::{Access, Grant, Sockets};

/// The newest version whose file rules are used; what an older kernel lacks of it is left out.
const NEWEST: ABI = ABI::V9;
/// What must be in force inside bubblewrap, where the mounts are already the limit.
const NEEDED_INSIDE: ABI = ABI::V1;
/// What must be in force when Landlock stands alone: before version 3 (Linux 6.2) it does not stop `truncate`, so any
/// file the user owns could be emptied.
const NEEDED_ALONE: ABI = ABI::V3;

/// Devices every program expects and no harm can come of.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// What tells about the machine as a whole and nothing about other processes.
const MACHINE: [&str; 10] = [
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/self",
    "/proc/stat",
    "/proc/sys/kernel",
    "/proc/sys/vm",
    "/proc/version",
    "/sys/devices/system/cpu",
];

/// Why Landlock could not be put in force.
#[derive(Debug, thiserror::Error)]
pub(super) enum RulesError {
    #[error("Landlock refused the rules: {0}")]
    Ruleset(#[from] RulesetError),
    #[error("Landlock cannot open a path that is to be usable: {0}")]
    Path(#[from] PathFdError),
    #[error(
        "the kernel accepted the Landlock rules but does not enforce them; enable Landlock at boot"
    )]
    NotEnforced,
}

/// Where the rules stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Inside bubblewrap: only what belongs in the sandbox is mounted at all.
    Inside(Sockets),
    /// On the shared system.
    Alone,
}

impl Place {
    fn needed(self) -> ABI {
        match self {
            Self::Inside(_) => NEEDED_INSIDE,
            Self::Alone => NEEDED_ALONE,
        }
    }
}

/// Why this kernel cannot enforce what is needed at `place`, if so. Restricts nothing.
pub(super) fn lacking(place: Place) -> Option<String> {
    let needed = AccessFs::from_all(place.needed());
    let files = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(needed)
        .and_then(Ruleset::create);
    if let Err(reason) = files {
        return Some(reason.to_string());
    }
    // The kernel does not limit how many processes root has, and without a process namespace a fork bomb can only be
    // killed at once by one signal to everything in the scope.
    let bounded = place != Place::Alone || !rustix::process::getuid().is_root();
    (!bounded && signal_scope().is_err()).then(|| {
        "before Linux 6.12 Landlock cannot hold root's processes together; run caretaker as an ordinary user".to_owned()
    })
}

/// Every ruleset forbids moving files between folders unless it allows that itself, whatever else it is about: without the
/// rule for `/`, compilers that write beside their target and rename (rustc does for metadata) fail with EXDEV.
fn signal_scope() -> Result<RulesetCreated, RulesError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)?
        .handle_access(AccessFs::Refer)?
        .create()?;
    Ok(ruleset.add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::Refer))?)
}

/// Keeps signals that this process and its descendants send from now on among themselves; `Ok` means that it is in
/// force. With `privileged`, programs that gain privileges when they start still do, which only root may ask for.
pub(super) fn keep_signals_inside(privileged: bool) -> Result<(), RulesError> {
    let scope = signal_scope()?.no_new_privs(!privileged);
    match scope.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => {
            Err(RulesError::NotEnforced)
        }
    }
}

/// Restricts this process to `grants` and the system's public files. `Ok` means that it is in force.
pub(super) fn restrict(place: Place, grants: &[Grant]) -> Result<(), RulesError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(place.needed()))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    // A private loopback interface is already cut off from everything else.
    let ruleset = match place {
        Place::Inside(Sockets::Loopback) => ruleset,
        _ => ruleset.handle_access(AccessNet::from_all(NEWEST))?,
    };
    let mut ruleset = ruleset.create()?;
    for grant in system(place).iter().chain(grants) {
        let rights = rights(grant.access, Path::new(&grant.path).is_dir());
        ruleset = ruleset.add_rule(PathBeneath::new(PathFd::new(&grant.path)?, rights))?;
    }
    match ruleset.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(RulesError::NotEnforced),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// The system's own paths, as far as they exist.
fn system(place: Place) -> Vec<Grant> {
    let read = paths::SYSTEM
        .iter()
        .chain(&paths::ETC)
        .chain(&paths::ETC_SMALL)
        .map(|path| (*path, Access::Read));
    let devices = DEVICES.iter().map(|path| (*path, Access::Device));
    let own: &[(&str, Access)] = match place {
        // This process table, these terminals and this memory are the sandbox's own.
        Place::Inside(_) => &[
            ("/proc", Access::Read),
            ("/dev", Access::Read),
            ("/dev/pts", Access::Device),
            ("/dev/ptmx", Access::Device),
            ("/dev/shm", Access::Write),
            ("/tmp", Access::Write),
        ],
        Place::Alone => &[],
    };
    let machine = MACHINE
        .iter()
        .filter(|_| place == Place::Alone)
        .map(|path| (*path, Access::Read));
    let all = read
        .chain(devices)
        .chain(own.iter().copied())
        .chain(machine);
    all.filter(|(path, _)| Path::new(path).exists())
        .map(|(path, access)| Grant::new(path, access))
        .collect()
}

fn rights(access: Access, directory: bool) -> BitFlags<AccessFs> {
    let wanted = match access {
        Access::List => AccessFs::ReadDir.into(),
        Access::HideFolder | Access::HideFile => AccessFs::ReadFile | AccessFs::ReadDir,
        Access::Read if directory => AccessFs::from_read(NEWEST),
        // A file that is named by itself may be a socket to talk to.
        Access::Read => AccessFs::from_read(NEWEST) | AccessFs::ResolveUnix,
        Access::Write => AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
        Access::Device => {
            AccessFs::ReadDir
                | AccessFs::ReadFile
                | AccessFs::WriteFile
                | AccessFs::Truncate
                | AccessFs::IoctlDev
        }
    };
    if directory {
        wanted
    } else {
        wanted & AccessFs::from_file(NEWEST)
    }
}
