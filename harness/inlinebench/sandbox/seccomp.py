"""A seccomp filter: system calls that neither kernels nor honest solutions need fail with an error.

The filter is a program of a few dozen instructions for the kernel's classic BPF
(https://docs.kernel.org/userspace-api/seccomp_filter.html).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
from collections.abc import Iterable, Sequence

_LOAD_WORD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _JUMP_IF_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32_BIT = 0x40000000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_NAMESPACE_FLAGS = 0x7E020000
"""The CLONE_NEW* flags of clone, which also starts threads and processes."""

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CALLS: dict[str, dict[str, int]] = {
    "x86_64": {
        "socket": 41, "connect": 42, "clone": 56, "kill": 62, "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129,
        "rt_tgsigqueueinfo": 297, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "bpf": 321,
        "userfaultfd": 323, "add_key": 248, "request_key": 249, "keyctl": 250, "kexec_load": 246,
        "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176, "reboot": 169,
        "swapon": 167, "swapoff": 168, "acct": 163, "settimeofday": 164, "clock_settime": 227, "sethostname": 170,
        "open_by_handle_at": 304, "quotactl": 179, "shmget": 29, "semget": 64, "msgget": 68, "setpgid": 109,
        "setsid": 112,
    },
    "aarch64": {
        "socket": 198, "connect": 203, "clone": 220, "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138,
        "rt_tgsigqueueinfo": 240, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
        "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268, "bpf": 280,
        "userfaultfd": 282, "add_key": 217, "request_key": 218, "keyctl": 219, "kexec_load": 104,
        "kexec_file_load": 294, "init_module": 105, "finit_module": 273, "delete_module": 106, "reboot": 142,
        "swapon": 224, "swapoff": 225, "acct": 89, "settimeofday": 170, "clock_settime": 112, "sethostname": 161,
        "open_by_handle_at": 265, "quotactl": 60, "shmget": 194, "semget": 190, "msgget": 186, "setpgid": 154,
        "setsid": 157,
    },
}
_COMMON_CALLS = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438, "process_madvise": 440,
    "mount_setattr": 442,
}
"""Newer calls have the same number on every architecture."""
_CONDITIONAL = ("socket", "clone", "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "clone3")
_IGNORED = ("setpgid", "setsid")
"""These calls return success without an effect, so that a process and its descendants stay in one process group and can
be stopped at once. Signalling processes one by one misses processes that keep forking."""
_SIGNALLING = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_ALLOWED_FAMILIES = (socket.AF_UNIX, socket.AF_NETLINK)
"""For socket pairs between a solution's own processes, and for the C library's lookup of network interfaces."""

Instruction = tuple[int, int, int, int]
"""Code, offset if true, offset if false, operand."""


def install(protected: Iterable[int]) -> None:
    """Installs the filter for this process and its children. They cannot send signals to `protected` processes.

    Needs `no_new_privs`. Raises OSError if the kernel refuses the filter.
    """
    program = b"".join(struct.pack("=HBBI", *step) for step in _program(platform.machine(), sorted(set(protected))))
    steps = ctypes.create_string_buffer(program)
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.c_char_p(header), 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")


def _program(machine: str, protected: Sequence[int]) -> list[Instruction]:
    calls = {**_CALLS[machine], **_COMMON_CALLS}
    program = [
        (_LOAD_WORD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD_WORD, 0, 0, _NUMBER_AT),
        (_JUMP_IF_AT_LEAST, 0, 1, _X32_BIT),
        _refuse(errno.ENOSYS),
    ]
    # With ENOSYS the C library falls back to clone, whose flags the filter can read.
    program += _when(calls["clone3"], [_refuse(errno.ENOSYS)])
    program += _when(calls["clone"], [_load(0), (_JUMP_IF_SET, 0, 1, _NAMESPACE_FLAGS), _refuse(), _allow()])
    family_checks = [(_JUMP_IF_EQUAL, 0, 1, int(family)) for family in _ALLOWED_FAMILIES]
    program += _when(calls["socket"], [_load(0), *_each(family_checks, _allow()), _refuse(errno.EACCES)])
    # kill(-1) signals every process, kill(-n) a process group.
    targets = [(_JUMP_IF_EQUAL, 0, 1, value & 0xFFFFFFFF) for pid in protected for value in (pid, -pid)]
    targets.append((_JUMP_IF_EQUAL, 0, 1, 0xFFFFFFFF))
    for name in _SIGNALLING:
        program += _when(calls[name], [_load(0), *_each(targets, _refuse()), _allow()])
    for name, number in calls.items():
        if name in _IGNORED:
            program += _when(number, [_refuse(0)])
        elif name not in _CONDITIONAL:
            program += _when(number, [_refuse(errno.ENOSYS if name == "io_uring_setup" else errno.EPERM)])
    return [*program, _allow()]


def _when(number: int, body: Sequence[Instruction]) -> list[Instruction]:
    return [(_JUMP_IF_EQUAL, 0, len(body), number), *body]


def _each(checks: Sequence[Instruction], action: Instruction) -> list[Instruction]:
    return [step for check in checks for step in (check, action)]


def _load(argument: int) -> Instruction:
    """Loads the low word of an argument, on a little-endian machine."""
    return (_LOAD_WORD, 0, 0, _ARGUMENTS_AT + 8 * argument)


def _refuse(number: int = errno.EPERM) -> Instruction:
    return (_RETURN, 0, 0, _REFUSE | number)


def _allow() -> Instruction:
    return (_RETURN, 0, 0, _ALLOW)
