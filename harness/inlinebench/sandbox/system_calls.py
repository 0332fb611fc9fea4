"""The numbers on x86-64 of the system calls that the filter treats specially, by what is done about them."""

from __future__ import annotations

from collections.abc import Mapping

Numbers = Mapping[str, int]

REFUSED: Numbers = {
    # Mounts, namespaces, kernel modules, and what only root may do.
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "mount_setattr": 442, "open_tree_attr": 467,
    "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176,
    "reboot": 169, "swapon": 167, "swapoff": 168, "acct": 163, "settimeofday": 164, "clock_settime": 227,
    "sethostname": 170, "open_by_handle_at": 304, "quotactl": 179, "bpf": 321, "userfaultfd": 323, "connect": 42,
    # Access to other processes, and observation of them.
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "process_madvise": 440,
    "process_mrelease": 448, "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438, "perf_event_open": 298,
    "fanotify_init": 300,
    # Keys and System V's and POSIX's message queues, semaphores and shared memory, which outlive a process. Python's
    # and the C library's named semaphores and shared memory are files in /dev/shm.
    "add_key": 248, "request_key": 249, "keyctl": 250, "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64,
    "semop": 65, "semctl": 66, "semtimedop": 220, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
    "mq_open": 240, "mq_unlink": 241, "mq_notify": 244,
    # What is ordered now and happens later, also to a stopped process: a timer's or a queue's signal may be any, and
    # the filter cannot read the struct that names it. Watches on files see what the judge opens.
    "timer_create": 222, "io_setup": 206, "inotify_init": 253, "inotify_init1": 294,
    # Owners and attributes of files, which Landlock does not cover.
    "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
    "setxattrat": 463, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "removexattrat": 466,
    "file_setattr": 469,
}
"""They fail with EPERM."""

UNKNOWN: Numbers = {"io_uring_setup": 425, "clone3": 435}
"""They fail with ENOSYS, as on an older kernel. The C library then falls back to `clone`, whose flags the filter can
read."""

IGNORED: Numbers = {
    # A process and its descendants stay in one process group and can be stopped at once. Signalling processes one by
    # one misses processes that keep forking.
    "setpgid": 109, "setsid": 112,
    # Modes and times of files, which Landlock does not cover. Linkers and `shutil.copy` fail if they get an error.
    "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "utime": 132, "utimes": 235, "futimesat": 261,
    "utimensat": 280,
}
"""They return success without an effect."""

SIGNALLING: Numbers = {
    "kill": 62, "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297,
}
"""Their first argument is the target."""

OF_ITSELF: Numbers = {"prlimit64": 302, "move_pages": 279, "migrate_pages": 256}
"""Their first argument is a process. They fail with EPERM for any other than the caller."""

SCHEDULING: Numbers = {
    "sched_setaffinity": 203, "sched_setparam": 142, "sched_setscheduler": 144, "sched_setattr": 314,
}
"""Their first argument is a thread. They return success without an effect for any other than the caller: the C library
passes the id of each thread that it starts with an affinity, which the filter cannot tell from another process's."""

CHECKED: Numbers = {
    "clone": 56, "socket": 41, "socketpair": 53, "fcntl": 72, "ioctl": 16, "prctl": 157, "setpriority": 141,
    "ioprio_set": 251,
}
"""The filter reads their arguments."""
