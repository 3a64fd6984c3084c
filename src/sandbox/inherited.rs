//! Open files that this process was started with and would pass on.
//!
//! Everything the product opens is closed when it starts a program. What whoever started caretaker left open is not,
//! and an open directory or socket is a way out that neither mounts nor Landlock close.

use std::fs;

/// `O_CLOEXEC` as `/proc/PID/fdinfo/N` shows it: octal, the same on x86-64, arm64 and riscv64.
const CLOSED_ON_EXEC: u32 = 0o2_000_000;

/// Where an inherited file may lead without giving anything away.
const HARMLESS: [&str; 8] = [
    "pipe:",
    "/dev/null",
    "/dev/zero",
    "/dev/urandom",
    "/dev/random",
    "anon_inode:[event",
    "anon_inode:[timerfd",
    "anon_inode:inotify",
];

/// Says which open file would be passed on to the program, if any would beyond its three streams.
pub(super) fn leaking() -> Option<String> {
    let Ok(open) = fs::read_dir("/proc/self/fd") else {
        return Some(
            "/proc/self/fd cannot be read, so open files cannot be checked; mount /proc".to_owned(),
        );
    };
    let numbers = open
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|number| *number > 2).find_map(|number| {
        let flags = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
        let flags = flags.lines().find_map(|line| line.strip_prefix("flags:"))?.trim().to_owned();
        let kept = u32::from_str_radix(&flags, 8).map_or(true, |flags| flags & CLOSED_ON_EXEC == 0);
        let target = fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
        let harmless = target.to_str().is_some_and(|target| HARMLESS.iter().any(|start| target.starts_with(start)));
        (kept && !harmless).then(|| {
            format!(
                "caretaker was started with file descriptor {number} open ({}) and would pass it on to the program; \
                 start it with `{number}>&-`",
                target.display()
            )
        })
    })
}
