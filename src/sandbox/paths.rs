//! Which paths an untrusted program may be shown at all.

use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::wire::{Access, Grant};
use super::{Command, SandboxError};

/// System locations that are public on every machine: read and executed by any program, holding no secrets.
pub(super) const SYSTEM: [&str; 9] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
];

/// The parts of `/etc` that compilers, linkers and runtimes read. `/etc/alternatives` is where Debian's `cc` leads.
pub(super) const ETC: [&str; 13] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
];

/// Small files of `/etc` that bubblewrap replaces with invented ones; without it they are read as they are.
pub(super) const ETC_SMALL: [&str; 4] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/hosts",
    "/etc/nsswitch.conf",
];

/// Directories too wide to be shown: each holds what belongs to the machine or to other people.
const TOO_WIDE: [&str; 17] = [
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/mnt", "/proc", "/root", "/run",
    "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var",
];

/// Files that hold credentials wherever they lie; a readable directory is shown without those directly in it.
const CREDENTIALS: [&str; 10] = [
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".yarnrc.yml",
    "auth.json",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "settings.xml",
];

/// Most entries of a directory that is shown piece by piece, because a credential lies in it.
const MOST_PIECES: usize = 512;

/// The paths `command` may use beyond the system's own: writable ones and readable ones, outermost first.
///
/// `home` is the home directory of the user caretaker runs as, `launcher` our own binary, neither of which a program may
/// change; `layered` says whether a readable path inside a writable one is possible.
pub(super) fn grants(
    command: &Command,
    home: Option<&Path>,
    launcher: &Path,
    layered: bool,
) -> Result<Vec<Grant>, SandboxError> {
    let mut grants = Vec::new();
    for path in &command.writable {
        let real = checked(path, home)?;
        // A link would let whoever wrote the tree choose what becomes writable.
        if fs::symlink_metadata(path).is_ok_and(|kind| kind.is_symlink()) {
            return Err(bad(
                path,
                "it is a symbolic link; name the directory it leads to",
            ));
        }
        if launcher.starts_with(&real) {
            return Err(bad(
                path,
                "the caretaker binary lies in it and could be replaced; work in another directory",
            ));
        }
        grants.push(Grant::new(path, Access::Write));
    }
    for path in &command.readable {
        let real = checked(path, home)?;
        let inside = command
            .writable
            .iter()
            .any(|writable| path.starts_with(writable) || real.starts_with(writable));
        if inside && !layered {
            return Err(bad(
                path,
                "it lies inside a writable directory, and Landlock alone cannot make it read-only; \
                install bubblewrap or move it",
            ));
        }
        grants.extend(without_credentials(path, &real)?);
    }
    grants.extend(hidden(command, layered)?);
    stay_inside(&grants)?;
    if !grants
        .iter()
        .any(|grant| command.directory.starts_with(&grant.path))
        || !command.directory.is_dir()
    {
        return Err(bad(
            &command.directory,
            "the program is to start here, but it is not a directory beneath a \
            writable or readable path of the command",
        ));
    }
    grants.sort_by_key(|grant| grant.path.components().count());
    Ok(grants)
}

/// What is to seem empty, as far as it is there.
fn hidden(command: &Command, layered: bool) -> Result<Vec<Grant>, SandboxError> {
    let mut grants = Vec::new();
    for path in &command.hidden {
        let Ok(kind) = fs::symlink_metadata(path) else {
            continue;
        };
        if !layered {
            return Err(bad(
                path,
                "Landlock alone cannot hide it; install bubblewrap",
            ));
        }
        // A link, here or above, would let whoever wrote the tree choose what is hidden.
        let straight = command
            .writable
            .iter()
            .chain(&command.readable)
            .filter(|shown| *shown != path)
            .filter_map(|shown| Some((shown, path.strip_prefix(shown).ok()?)))
            .any(|(shown, rest)| {
                let real = fs::canonicalize(path).ok();
                real.is_some() && real == fs::canonicalize(shown).ok().map(|shown| shown.join(rest))
            });
        // Break it: leave this out; `sandbox::paths::what_is_hidden_is_no_link` fails.
        if !straight {
            return Err(bad(
                path,
                "it is to be hidden, but it is a link or lies beneath no directory of the command",
            ));
        }
        grants.push(Grant::new(
            path,
            if kind.is_dir() {
                Access::HideFolder
            } else {
                Access::HideFile
            },
        ));
    }
    Ok(grants)
}

/// A path nested in a writable directory may be led out of it by a link that an earlier run left there.
fn stay_inside(grants: &[Grant]) -> Result<(), SandboxError> {
    for inner in grants {
        let around = grants
            .iter()
            .filter(|outer| outer.access == Access::Write && outer.path != inner.path);
        for outer in around.filter(|outer| inner.path.starts_with(&outer.path)) {
            if !canonical(&inner.path)?.starts_with(canonical(&outer.path)?) {
                return Err(bad(
                    &inner.path,
                    "a symbolic link leads it out of the writable directory it is written under",
                ));
            }
        }
    }
    Ok(())
}

/// The real place of `path`, if it is absolute, exists, is not too wide and is not itself a credential.
fn checked(path: &Path, home: Option<&Path>) -> Result<PathBuf, SandboxError> {
    if !path.is_absolute()
        || path
            .components()
            .any(|part| matches!(part, Component::ParentDir | Component::CurDir))
    {
        return Err(bad(
            path,
            "it is not an absolute path without `..`; write the full path",
        ));
    }
    let real = canonical(path)?;
    let wide = TOO_WIDE
        .iter()
        .map(Path::new)
        .chain(home)
        .any(|wide| wide.starts_with(&real));
    if wide
        || ["/dev", "/proc", "/sys"]
            .iter()
            .any(|kernel| real.starts_with(kernel))
    {
        return Err(bad(
            path,
            "it holds more than a program's own files; name the directory that is really needed",
        ));
    }
    if is_credential(&real) {
        return Err(bad(
            path,
            "a file of this name holds credentials, and none may enter the sandbox",
        ));
    }
    Ok(real)
}

fn canonical(path: &Path) -> Result<PathBuf, SandboxError> {
    fs::canonicalize(path).map_err(|reason| bad(path, &format!("it cannot be reached: {reason}")))
}

fn is_credential(path: &Path) -> bool {
    path.is_file()
        && path
            .file_name()
            .and_then(OsStr::to_str)
            .is_some_and(|name| CREDENTIALS.contains(&name))
}

/// Grants for a readable path: itself, or its entries one by one when a credential lies among them.
fn without_credentials(path: &Path, real: &Path) -> Result<Vec<Grant>, SandboxError> {
    if !CREDENTIALS.iter().any(|name| real.join(name).is_file()) {
        return Ok(vec![Grant::new(path, Access::Read)]);
    }
    let unreadable =
        |reason: std::io::Error| bad(path, &format!("its entries cannot be listed: {reason}"));
    let mut grants = vec![Grant::new(path, Access::List)];
    for entry in fs::read_dir(real).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // A link beside the credential may be a second name for it.
        let kind = entry.file_type().map_err(unreadable)?;
        if (kind.is_dir() || kind.is_file()) && !is_credential(&entry.path()) {
            grants.push(Grant::new(path.join(entry.file_name()), Access::Read));
        }
        if grants.len() > MOST_PIECES {
            return Err(bad(
                path,
                "a credential lies in it among more than 512 entries; name the subdirectories needed",
            ));
        }
    }
    Ok(grants)
}

fn bad(path: &Path, reason: &str) -> SandboxError {
    SandboxError::BadPath {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}
