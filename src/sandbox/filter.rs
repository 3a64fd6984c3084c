//! seccomp: which system calls the process and all its descendants may not make from here on.
//!
//! A list of refusals, not of permissions: any compiler, runtime or test must keep working, and what remains allowed is
//! already confined by the mounts, by Landlock and by having no capability. The list closes what those leave open.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::syscalls as call;
use super::wire::Sockets;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// errno(3), the same on every architecture known here.
const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

const AF_UNIX: u64 = 1;
const AF_INET: u64 = 2;
const AF_INET_SIX: u64 = 10;

/// Each flag with which `clone` makes a namespace (include/uapi/linux/sched.h).
const NAMESPACES: [u64; 7] = [
    0x0002_0000,
    0x0200_0000,
    0x0400_0000,
    0x0800_0000,
    0x1000_0000,
    0x2000_0000,
    0x4000_0000,
];

/// `ioctl` requests that type into the terminal a program was started from.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

/// Administration of the machine, keys of the user, other ways to files, and large kernel interfaces no test needs.
const NEVER: [i64; 42] = [
    call::ACCT,
    call::ADD_KEY,
    call::ADJTIMEX,
    call::BPF,
    call::CHROOT,
    call::CLOCK_ADJTIME,
    call::CLOCK_SETTIME,
    call::DELETE_MODULE,
    call::FANOTIFY_INIT,
    call::FINIT_MODULE,
    call::FSCONFIG,
    call::FSMOUNT,
    call::FSOPEN,
    call::FSPICK,
    call::INIT_MODULE,
    call::KCMP,
    call::KEXEC_FILE_LOAD,
    call::KEXEC_LOAD,
    call::KEYCTL,
    call::MOUNT,
    call::MOUNT_SETATTR,
    call::MOVE_MOUNT,
    call::NAME_TO_HANDLE_AT,
    call::OPEN_BY_HANDLE_AT,
    call::OPEN_TREE,
    call::PERF_EVENT_OPEN,
    call::PIDFD_GETFD,
    call::PIVOT_ROOT,
    call::QUOTACTL,
    call::QUOTACTL_FD,
    call::REBOOT,
    call::REQUEST_KEY,
    call::SETDOMAINNAME,
    call::SETHOSTNAME,
    call::SETNS,
    call::SETTIMEOFDAY,
    call::SWAPOFF,
    call::SWAPON,
    call::SYSLOG,
    call::UMOUNT,
    call::UNSHARE,
    call::USERFAULTFD,
];

/// Answered as by a kernel that does not have them, so that programs fall back: `clone3` hides its flags from a filter
/// behind a pointer, and `io_uring` opens sockets without calling `socket`.
const UNKNOWN: [i64; 4] = [
    call::CLONE_THREE,
    call::IO_URING_ENTER,
    call::IO_URING_REGISTER,
    call::IO_URING_SETUP,
];

/// Memory and queues shared with the user's other processes where there is no IPC namespace.
const SHARED: [i64; 4] = [call::MQ_OPEN, call::MSGGET, call::SEMGET, call::SHMGET];

/// Where the filter stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    /// Inside bubblewrap's namespaces.
    Inside(Sockets),
    /// On the shared system; these processes and (as negative numbers) process groups may not be signalled.
    Alone { protected: &'a [i32] },
}

/// Why the filter could not be put in force.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilterError {
    #[error(
        "the seccomp filter is not known for the architecture {}",
        std::env::consts::ARCH
    )]
    Architecture,
    #[error("building the seccomp filter failed: {0}")]
    Build(#[from] seccompiler::BackendError),
    #[error("the kernel refused the seccomp filter: {0}")]
    Refused(#[from] seccompiler::Error),
}

/// The compiled filters for `place`; all of them must be installed.
pub(super) fn compile(place: Place<'_>) -> Result<Vec<BpfProgram>, FilterError> {
    let architecture =
        TargetArch::try_from(std::env::consts::ARCH).map_err(|_| FilterError::Architecture)?;
    let mut refused: Rules = NEVER.iter().map(|number| (*number, Vec::new())).collect();
    let mut unknown: Rules = UNKNOWN.iter().map(|number| (*number, Vec::new())).collect();
    let namespaces = NAMESPACES
        .iter()
        .map(|flag| rule([(0, SeccompCmpOp::MaskedEq(*flag), *flag)]));
    refused.insert(call::CLONE, namespaces.collect::<Result<_, _>>()?);
    let terminal = TERMINAL_INPUT
        .iter()
        .map(|request| rule([(1, SeccompCmpOp::Eq, *request)]));
    refused.insert(call::IOCTL, terminal.collect::<Result<_, _>>()?);
    refused.insert(
        call::SOCKETPAIR,
        vec![rule([(0, SeccompCmpOp::Ne, AF_UNIX)])?],
    );
    match place {
        Place::Inside(sockets) => {
            refused.insert(call::SOCKET, socket_rules(sockets)?);
        }
        Place::Alone { protected } => {
            refused.insert(call::SOCKET, Vec::new());
            refused.extend(SHARED.iter().map(|number| (*number, Vec::new())));
            // Limits of another process of this user can be changed by its number.
            refused.insert(call::PRLIMIT, vec![rule([(0, SeccompCmpOp::Ne, 0)])?]);
            unknown.insert(call::PIDFD_OPEN, Vec::new());
            // It names a thread, so the numbers of processes do not tell what it would hit.
            refused.insert(call::TKILL, Vec::new());
            for number in [
                call::KILL,
                call::TGKILL,
                call::RT_SIGQUEUEINFO,
                call::RT_TGSIGQUEUEINFO,
            ] {
                refused.insert(number, signal_rules(protected)?);
            }
        }
    }
    let refused = SeccompFilter::new(
        refused,
        SeccompAction::Allow,
        SeccompAction::Errno(EPERM),
        architecture,
    )?;
    let unknown = SeccompFilter::new(
        unknown,
        SeccompAction::Allow,
        SeccompAction::Errno(ENOSYS),
        architecture,
    )?;
    let mut programs = vec![refused.try_into()?, unknown.try_into()?];
    if cfg!(target_arch = "x86_64") {
        programs.push(without_second_table());
    }
    Ok(programs)
}

/// Installs compiled filters on this thread; they hold across `execve` and for every descendant.
pub(super) fn install(programs: &[BpfProgram]) -> Result<(), FilterError> {
    for program in programs {
        seccompiler::apply_filter(program)?;
    }
    Ok(())
}

/// Rules under which `socket` is refused; a socket family outside the list may lead out of the namespace, as `AF_VSOCK`
/// does.
fn socket_rules(sockets: Sockets) -> Result<Vec<SeccompRule>, FilterError> {
    let families: &[u64] = match sockets {
        Sockets::Refused => return Ok(Vec::new()),
        Sockets::Local => &[AF_UNIX],
        Sockets::Loopback => &[AF_UNIX, AF_INET, AF_INET_SIX],
    };
    Ok(vec![rule(
        families.iter().map(|family| (0, SeccompCmpOp::Ne, *family)),
    )?])
}

/// Rules under which a signal is refused: to a protected process or group, or to everything at once.
fn signal_rules(protected: &[i32]) -> Result<Vec<SeccompRule>, FilterError> {
    let targets = protected.iter().copied().chain([-1]);
    targets
        .map(|target| rule([(0, SeccompCmpOp::Eq, u64::from(target.cast_unsigned()))]))
        .collect()
}

/// One rule: all conditions, each on the low 32 bits of an argument, which is all the kernel looks at here.
fn rule(
    conditions: impl IntoIterator<Item = (u8, SeccompCmpOp, u64)>,
) -> Result<SeccompRule, FilterError> {
    let conditions = conditions.into_iter().map(|(argument, operation, value)| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
    });
    Ok(SeccompRule::new(conditions.collect::<Result<_, _>>()?)?)
}

/// Refuses x86-64's second system call table (x32), whose numbers differ, so that the other filters see every call.
fn without_second_table() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const TABLE_BIT: u32 = 0x4000_0000;
    let step = |code, jt, k| sock_filter { code, jt, jf: 0, k };
    vec![
        step(LOAD_NUMBER, 0, 0),
        step(JUMP_IF_AT_LEAST, 1, TABLE_BIT),
        step(RETURN, 0, SeccompAction::Allow.into()),
        step(RETURN, 0, SeccompAction::Errno(ENOSYS).into()),
    ]
}
