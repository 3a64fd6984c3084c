//! Numbers of the system calls the seccomp filter speaks of, for the architectures it knows.
//!
//! Source: Linux's `arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h`.

macro_rules! syscalls {
    ($($name:ident $x86_64:literal $generic:literal)*) => {
        $(
            #[cfg(target_arch = "x86_64")]
            pub(super) const $name: i64 = $x86_64;
            #[cfg(not(target_arch = "x86_64"))]
            pub(super) const $name: i64 = $generic;
        )*
    };
}

syscalls! {
    ACCT 163 89
    ADD_KEY 248 217
    ADJTIMEX 159 171
    BPF 321 280
    CHROOT 161 51
    CLOCK_ADJTIME 305 266
    CLOCK_SETTIME 227 112
    CLONE 56 220
    CLONE_THREE 435 435
    DELETE_MODULE 176 106
    FANOTIFY_INIT 300 262
    FINIT_MODULE 313 273
    FSCONFIG 431 431
    FSMOUNT 432 432
    FSOPEN 430 430
    FSPICK 433 433
    INIT_MODULE 175 105
    IOCTL 16 29
    IO_URING_ENTER 426 426
    IO_URING_REGISTER 427 427
    IO_URING_SETUP 425 425
    KCMP 312 272
    KEXEC_FILE_LOAD 320 294
    KEXEC_LOAD 246 104
    KEYCTL 250 219
    KILL 62 129
    MOUNT 165 40
    MOUNT_SETATTR 442 442
    MOVE_MOUNT 429 429
    MQ_OPEN 240 180
    MSGGET 68 186
    NAME_TO_HANDLE_AT 303 264
    OPEN_BY_HANDLE_AT 304 265
    OPEN_TREE 428 428
    PERF_EVENT_OPEN 298 241
    PIDFD_GETFD 438 438
    PIDFD_OPEN 434 434
    PIVOT_ROOT 155 41
    PRLIMIT 302 261
    QUOTACTL 179 60
    QUOTACTL_FD 443 443
    REBOOT 169 142
    REQUEST_KEY 249 218
    RT_SIGQUEUEINFO 129 138
    RT_TGSIGQUEUEINFO 297 240
    SEMGET 64 190
    SETDOMAINNAME 171 162
    SETHOSTNAME 170 161
    SETNS 308 268
    SETTIMEOFDAY 164 170
    SHMGET 29 194
    SOCKET 41 198
    SOCKETPAIR 53 199
    SWAPOFF 168 225
    SWAPON 167 224
    SYSLOG 103 116
    TGKILL 234 131
    TKILL 200 130
    UMOUNT 166 39
    UNSHARE 272 97
    USERFAULTFD 323 282
}
