//! The processes a supervisor is responsible for, read from `/proc`.

use std::collections::{HashMap, HashSet};
use std::fs;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal, setpriority_process,
};

/// One process as `/proc/PID/stat` shows it (proc(5)).
struct Entry {
    parent: i32,
    threads: u64,
    /// Clock ticks between the machine's start and the process's; tells it from a later one with the same number.
    started: u64,
}

/// The descendants of process `root`, without `root` itself.
///
/// Complete for a process that is a child subreaper, because then no descendant can be adopted by anyone else.
pub(super) struct Descendants(Vec<(i32, Entry)>);

impl Descendants {
    /// Reads the process table now.
    pub(super) fn of(root: i32) -> Self {
        let mut children: HashMap<i32, Vec<(i32, Entry)>> = HashMap::new();
        for (pid, entry) in table() {
            children.entry(entry.parent).or_default().push((pid, entry));
        }
        let mut found = Vec::new();
        let mut pending = vec![root];
        while let Some(parent) = pending.pop() {
            // Removing makes the walk end even if process numbers were reused while the table was read.
            let next = children.remove(&parent).unwrap_or_default();
            pending.extend(next.iter().map(|(pid, _)| *pid));
            found.extend(next);
        }
        Self(found)
    }

    /// Kills each of them. One that is already gone is none of our concern.
    pub(super) fn kill(&self) {
        for (pid, entry) in &self.0 {
            kill(*pid, entry.started);
        }
    }
}

/// Whether process `root` has more than `most` descendants, processes and threads together as `RLIMIT_NPROC` counts them.
///
/// Stops reading as soon as that is certain, because while it reads a fork bomb grows.
pub(super) fn exceed(root: i32, most: u64) -> bool {
    let mut found = HashSet::from([root]);
    let mut threads = 0;
    let mut strangers = Vec::new();
    // The kernel lists processes by number, so parents mostly come before their children.
    for (pid, entry) in table() {
        if found.contains(&entry.parent) {
            found.insert(pid);
            threads += entry.threads;
        } else {
            strangers.push((pid, entry));
        }
        if threads > most {
            return true;
        }
    }
    // Those whose number wrapped around came too early.
    loop {
        let before = strangers.len();
        strangers.retain(|(pid, entry)| {
            let ours = found.contains(&entry.parent);
            if ours {
                found.insert(*pid);
                threads += entry.threads;
            }
            !ours
        });
        if threads > most || strangers.len() == before {
            return threads > most;
        }
    }
}

/// Kills process `pid` if it still is the one that started at `started`.
///
/// While a fork bomb is being killed the numbers wrap around within seconds, and a number read a moment ago may by now
/// belong to anyone's process. The handle is taken before the second look, so what is killed is what was looked at.
fn kill(pid: i32, started: u64) {
    let Some(number) = Pid::from_raw(pid) else {
        return;
    };
    let handle = pidfd_open(number, PidfdFlags::empty());
    if read(pid).is_none_or(|entry| entry.started != started) {
        return;
    }
    match handle {
        Ok(handle) => pidfd_send_signal(handle, Signal::KILL).ok(),
        // Linux before 5.3 has no such handles.
        Err(Errno::NOSYS) => kill_process(number, Signal::KILL).ok(),
        Err(_) => None,
    };
}

/// Processes and threads of the whole machine; `None` where that cannot be read. Costs one small read.
pub(super) fn threads_of_machine() -> Option<u64> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

/// Lets this thread run before all others where that is permitted, which is for root.
pub(super) fn go_first() {
    setpriority_process(None, -20).ok();
}

/// How many processes and threads run as user `uid` on the machine.
pub(super) fn threads_of_user(uid: u32) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let owned =
        |pid: &i32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|kind| kind.uid() == uid);
    table()
        .filter(|(pid, _)| owned(pid))
        .map(|(_, entry)| entry.threads)
        .sum()
}

fn table() -> impl Iterator<Item = (i32, Entry)> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, read(pid)?)))
}

fn read(pid: i32) -> Option<Entry> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The second field is the program's name in parentheses and may itself contain spaces and parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Entry {
        parent: fields.get(1)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}
