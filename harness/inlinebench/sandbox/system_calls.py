"""The numbers of the system calls that the filter treats specially, by architecture and by what is done about them."""

from __future__ import annotations

from collections.abc import Mapping

Numbers = Mapping[str, tuple[int, int | None]]
"""The numbers on x86_64 and on aarch64; None if the architecture does not have the call."""

REFUSED: Numbers = {
    # Mounts, namespaces, kernel modules, and what only root may do.
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "mount_setattr": (442, 442), "open_tree_attr": (467, 467),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "acct": (163, 89), "settimeofday": (164, 170), "clock_settime": (227, 112), "sethostname": (170, 161),
    "open_by_handle_at": (304, 265), "quotactl": (179, 60), "bpf": (321, 280), "userfaultfd": (323, 282),
    "connect": (42, 203),
    # Access to other processes, and observation of them.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "perf_event_open": (298, 241),
    "fanotify_init": (300, 262),
    # Keys and System V's and POSIX's message queues, semaphores and shared memory, which outlive a process. Python's
    # and the C library's named semaphores and shared memory are files in /dev/shm.
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195),
    "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192),
    "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "mq_notify": (244, 184),
    # What is ordered now and happens later, also to a stopped process: a timer's or a queue's signal may be any, and
    # the filter cannot read the struct that names it. Watches on files see what the judge opens.
    "timer_create": (222, 107), "io_setup": (206, 0), "inotify_init": (253, None), "inotify_init1": (294, 26),
    # Owners and attributes of files, which Landlock does not cover.
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
"""They fail with EPERM."""

UNKNOWN: Numbers = {"io_uring_setup": (425, 425), "clone3": (435, 435)}
"""They fail with ENOSYS, as on an older kernel. The C library then falls back to `clone`, whose flags the filter can
read."""

IGNORED: Numbers = {
    # A process and its descendants stay in one process group and can be stopped at once. Signalling processes one by
    # one misses processes that keep forking.
    "setpgid": (109, 154), "setsid": (112, 157),
    # Modes and times of files, which Landlock does not cover. Linkers and `shutil.copy` fail if they get an error.
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "utime": (132, None),
    "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
}
"""They return success without an effect."""

SIGNALLING: Numbers = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
}
"""Their first argument is the target."""

OF_ITSELF: Numbers = {"prlimit64": (302, 261), "move_pages": (279, 239), "migrate_pages": (256, 238)}
"""Their first argument is a process. They fail with EPERM for any other than the caller."""

SCHEDULING: Numbers = {
    "sched_setaffinity": (203, 122), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
}
"""Their first argument is a thread. They return success without an effect for any other than the caller: the C library
passes the id of each thread that it starts with an affinity, which the filter cannot tell from another process's."""

CHECKED: Numbers = {
    "clone": (56, 220), "socket": (41, 198), "socketpair": (53, 199), "fcntl": (72, 25), "ioctl": (16, 29),
    "prctl": (157, 167), "setpriority": (141, 140), "ioprio_set": (251, 30),
}
"""The filter reads their arguments."""


def of(numbers: Numbers, machine: str) -> dict[str, int]:
    """Returns the numbers on a machine: x86_64 or aarch64."""
    column = ("x86_64", "aarch64").index(machine)
    return {name: number for name, pair in numbers.items() if (number := pair[column]) is not None}
