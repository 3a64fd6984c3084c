//! The bubblewrap command line that builds the boundary.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::paths;
use super::reexec;
use super::scratch::Scratch;
use super::wire::{Access, Launch};

/// Where our own binary stands inside.
pub(super) const LAUNCHER: &str = "/run/caretaker/launcher";
/// Where the report stands inside.
pub(super) const REPORT: &str = "/run/caretaker/report";

/// The user and group the program seems to be inside; the conventional "nobody".
const NOBODY: &str = "65534";

/// The bubblewrap binary: the system's own before one that `PATH` (as given) leads to.
pub(super) fn find(path: Option<&std::ffi::OsStr>) -> Option<PathBuf> {
    let system = ["/usr/bin", "/usr/local/bin", "/bin"]
        .into_iter()
        .map(PathBuf::from);
    let searched = path
        .into_iter()
        .flat_map(std::env::split_paths)
        .filter(|directory| directory.is_absolute());
    system
        .chain(searched)
        .map(|directory| directory.join("bwrap"))
        .find(|candidate| candidate.is_file())
}

/// Everything after the program's name, ending in the confined process's own command line.
///
/// The order matters: a later mount covers an earlier one, so the private `/tmp` comes before the trees that may lie
/// under it, and what must not change any more is made read-only at the end.
pub(super) fn arguments(
    launch: &Launch,
    scratch: &Scratch,
    forbids_namespaces: bool,
) -> Vec<OsString> {
    let mut line = Line(Vec::new());
    line.words([
        "--unshare-all",
        "--unshare-user",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
    ]);
    line.words([
        "--uid",
        NOBODY,
        "--gid",
        NOBODY,
        "--hostname",
        "sandbox",
        "--cap-drop",
        "ALL",
    ]);
    if forbids_namespaces {
        line.words(["--disable-userns"]);
    }
    for path in paths::SYSTEM {
        line.system(Path::new(path));
    }
    for path in paths::ETC {
        line.mount("--ro-bind-try", path, path);
    }
    for name in ["passwd", "group", "hosts", "nsswitch.conf"] {
        line.mount(
            "--ro-bind",
            scratch.file(name),
            Path::new("/etc").join(name),
        );
    }
    line.words(["--proc", "/proc", "--dev", "/dev"]);
    let size = launch.program.limits.temporary.to_string();
    for memory in ["/tmp", "/dev/shm"] {
        line.words(["--perms", "1777", "--size", &size, "--tmpfs", memory]);
    }
    line.mount("--ro-bind", &launch.launcher, LAUNCHER);
    line.mount("--bind", scratch.report(), REPORT);
    for grant in &launch.grants {
        match grant.access {
            Access::Read => line.mount("--ro-bind", &grant.path, &grant.path),
            Access::Write => line.mount("--bind", &grant.path, &grant.path),
            Access::List => line.push("--dir", &grant.path),
            Access::HideFolder => {
                line.push("--tmpfs", &grant.path);
                line.push("--remount-ro", &grant.path);
            }
            Access::HideFile => line.mount("--ro-bind", scratch.file("nothing"), &grant.path),
            Access::Device => {}
        }
    }
    // Root keeps its user id outside the namespace, and the kernel lets that id write most of /proc/sys without any
    // capability: core_pattern alone would run a program of the attacker's choice outside.
    for fixed in ["/proc", "/dev", "/"] {
        line.words(["--remount-ro", fixed]);
    }
    line.words(["--chdir", "/", "--", LAUNCHER, reexec::CONFINE]);
    line.0
}

/// A command line being written.
struct Line(Vec<OsString>);

impl Line {
    fn words<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) {
        self.0.extend(words.into_iter().map(OsString::from));
    }

    fn push(&mut self, option: &str, path: impl AsRef<Path>) {
        self.0
            .extend([OsString::from(option), path.as_ref().into()]);
    }

    fn mount(&mut self, option: &str, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        self.push(option, from);
        self.0.push(to.as_ref().into());
    }

    /// A system location, as the link it is on systems where `/bin` leads to `/usr/bin`.
    fn system(&mut self, path: &Path) {
        match fs::read_link(path) {
            Ok(target) => self.mount("--symlink", target, path),
            Err(_) if path.is_dir() => self.mount("--ro-bind", path, path),
            Err(_) => {}
        }
    }
}
