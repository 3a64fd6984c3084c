//! The processes a supervisor is responsible for, read from `/proc`.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// One process as `/proc/PID/stat` shows it (proc(5)).
struct Entry {
    parent: i32,
    threads: u64,
}

/// The descendants of process `root`, without `root` itself.
///
/// Complete for a process that is a child subreaper, because then no descendant can be adopted by anyone else.
pub(super) struct Descendants {
    pids: Vec<i32>,
    threads: u64,
}

impl Descendants {
    /// Reads the process table now.
    pub(super) fn of(root: i32) -> Self {
        let table = table();
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for (pid, entry) in &table {
            children.entry(entry.parent).or_default().push(*pid);
        }
        let mut found = Self {
            pids: Vec::new(),
            threads: 0,
        };
        let mut pending = vec![root];
        while let Some(parent) = pending.pop() {
            // Removing makes the walk end even if process numbers were reused while the table was read.
            for pid in children.remove(&parent).unwrap_or_default() {
                found.pids.push(pid);
                found.threads += table.get(&pid).map_or(0, |entry| entry.threads);
                pending.push(pid);
            }
        }
        found
    }

    /// Processes and threads together, as `RLIMIT_NPROC` counts them.
    pub(super) fn threads(&self) -> u64 {
        self.threads
    }

    /// Kills each of them. One that is already gone is none of our concern.
    pub(super) fn kill(&self) {
        for pid in self.pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            kill_process(pid, Signal::KILL).ok();
        }
    }
}

/// How many processes and threads run as user `uid` on the machine.
pub(super) fn threads_of_user(uid: u32) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let owned =
        |pid: &i32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|kind| kind.uid() == uid);
    table()
        .iter()
        .filter(|(pid, _)| owned(pid))
        .map(|(_, entry)| entry.threads)
        .sum()
}

fn table() -> HashMap<i32, Entry> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, read(pid)?))).collect()
}

fn read(pid: i32) -> Option<Entry> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The second field is the program's name in parentheses and may itself contain spaces and parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Entry {
        parent: fields.get(1)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
    })
}
