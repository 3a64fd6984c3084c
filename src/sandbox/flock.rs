//! Every process of a run, as far as it can be killed at once.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, getpid, getppid, getuid, kill_process_group, test_kill_process,
};

use super::processes::Descendants;
use super::rules;
use super::wire::Boundary;

/// The supervisor's descendants.
pub(super) enum Flock {
    /// The supervisor can signal them and nobody else, so one signal to everybody reaches exactly them. The kernel
    /// delivers it to all at once, also to those that are just starting another process.
    Penned,
    /// They have to be looked for one by one.
    Scattered,
}

impl Flock {
    /// Confines this process's signals where that is possible and needed. Must come before any thread and any child.
    pub(super) fn gather(boundary: &Boundary) -> Self {
        let confined = match boundary {
            // Its processes are in a namespace whose first one dies with bubblewrap, and all others with that one. Rules for
            // signals alone would forbid moving files between folders, and rules that allow that would forbid mounting.
            Boundary::Bubblewrap { .. } => return Self::Scattered,
            // The kernel limits how many processes an ordinary user has, so looking for them comes to an end.
            Boundary::Nothing if !getuid().is_root() => return Self::Scattered,
            Boundary::Nothing => rules::keep_signals_inside(true),
            Boundary::Landlock => rules::keep_signals_inside(false),
        };
        // A signal to everybody without this would reach everything the user runs, so the kernel is asked once more.
        if confined.is_ok() && parent_is_out_of_reach() {
            Self::Penned
        } else {
            Self::Scattered
        }
    }

    /// Kills them all, as far as they are found.
    pub(super) fn kill(&self) {
        match self {
            // The group of process 1 is kill(2)'s word for everybody but the caller.
            Self::Penned => {
                kill_process_group(Pid::INIT, Signal::KILL).ok();
            }
            Self::Scattered => Descendants::of(getpid().as_raw_nonzero().get()).kill(),
        }
    }
}

/// Whether a signal to the parent is refused although it belongs to the same user.
fn parent_is_out_of_reach() -> bool {
    let Some(parent) = getppid() else {
        return false;
    };
    let owner =
        fs::metadata(format!("/proc/{}", parent.as_raw_nonzero())).map(|process| process.uid());
    owner.is_ok_and(|owner| owner == getuid().as_raw())
        && test_kill_process(parent) == Err(Errno::PERM)
}
