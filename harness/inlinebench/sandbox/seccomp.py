"""A seccomp filter: system calls that neither kernels nor honest solutions need fail with an error.

The filter is a program of a few hundred instructions for the kernel's classic BPF
(https://docs.kernel.org/userspace-api/seccomp_filter.html).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import signal
import socket
import struct
import termios
from collections.abc import Iterable, Sequence

from inlinebench.sandbox import system_calls
from inlinebench.wire.processes import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG

_LOAD_WORD, _AND, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _JUMP_IF_SET, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32_BIT = 0x40000000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_MACHINE, _ARCHITECTURE = "x86_64", 0xC000003E

_NAMESPACE_FLAGS, _CLONE_PARENT = 0x7E020000, 0x8000
"""Flags of clone, which also starts threads and processes: CLONE_NEW*, and the one for a sibling of the caller."""
_EXIT_SIGNAL = 0xFF
"""The bits of clone's flags that hold the signal which the parent gets at the child's end."""
_PRIO_PROCESS, _IOPRIO_WHO_PROCESS = 0, 1
_PR_SET_DUMPABLE, _PR_SCHED_CORE = 4, 62
_PROCESS_OPTIONS = (PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, _PR_SET_DUMPABLE, _PR_SCHED_CORE)
"""Options of prctl that send any signal when a process ends, keep orphans from their supervisor, hide a process's
system calls, or affect other processes."""
_F_SETSIG, _F_SETOWN_EX = 10, 15
_OWNING = (fcntl.F_SETOWN, _F_SETOWN_EX, _F_SETSIG, fcntl.F_SETLEASE, fcntl.F_NOTIFY)
"""Commands of fcntl that send a signal of the caller's choice or to a process of its choice, or delay and observe those
who open a file."""
_SOCKET_TYPE = 0xF
"""The bits of a socket's type without its flags."""
_NETLINK_ROUTE = 0
_REQUEST_KIND = 0xFF00
_FILE_REQUESTS = tuple(kind << 8 for kind in (ord("f"), ord("X"), ord("v"), 0x94))
"""Kinds of ioctl requests that change attributes of files, which Landlock does not cover."""
_FIOSETOWN, _SIOCSPGRP, _TIOCLINUX = 0x8901, 0x8902, 0x541C
_FOREIGN_REQUESTS = (_FIOSETOWN, _SIOCSPGRP, termios.TIOCSTI, _TIOCLINUX)
"""ioctl requests that send a signal to a process of the caller's choice, or type into a terminal."""

Instruction = tuple[int, int, int, int]
"""Code, offset if true, offset if false, operand."""


def install(protected: Iterable[int]) -> None:
    """Installs the filter for this process and its children. They cannot send signals to `protected` processes.

    Needs `no_new_privs`. Raises OSError if the kernel refuses the filter, or on a machine other than x86-64, which then
    lacks this protection.
    """
    if platform.machine() != _MACHINE:
        raise OSError(errno.ENOSYS, f"seccomp: the filter has the system calls of {_MACHINE}, not {platform.machine()}")
    steps = _program(sorted(set(protected)), os.getpid())
    program = b"".join(struct.pack("=HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(program)
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.c_char_p(header), 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")


def _program(protected: Sequence[int], own: int) -> list[Instruction]:
    program = [
        (_LOAD_WORD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 1, 0, _ARCHITECTURE),
        (_RETURN, 0, 0, _KILL),
        (_LOAD_WORD, 0, 0, _NUMBER_AT),
        (_JUMP_IF_AT_LEAST, 0, 1, _X32_BIT),
        _refuse(errno.ENOSYS),
    ]
    # kill(-1) signals every process, kill(-n) a process group.
    targets = [value & 0xFFFFFFFF for pid in protected for value in (pid, -pid)] + [0xFFFFFFFF]
    itself = _each((0, own), _allow())  # 0 means the caller in each of these calls
    for name, body in _checks(itself).items():
        program += _when(system_calls.CHECKED[name], body)
    bodies = [
        (system_calls.UNKNOWN, [_refuse(errno.ENOSYS)]),
        (system_calls.REFUSED, [_refuse()]),
        (system_calls.IGNORED, [_refuse(0)]),
        (system_calls.SIGNALLING, [_load(0), *_each(targets, _refuse()), _allow()]),
        (system_calls.OF_ITSELF, [_load(0), *itself, _refuse()]),
        (system_calls.SCHEDULING, [_load(0), *itself, _refuse(0)]),
    ]
    for numbers, body in bodies:
        for number in numbers.values():
            program += _when(number, body)
    return [*program, _allow()]


def _checks(itself: Sequence[Instruction]) -> dict[str, list[Instruction]]:
    """Returns what the filter does with each call whose arguments it reads. `itself` allows the caller's own id."""
    # Datagrams need no connection: a process could send them to any socket in the file system. Of netlink, only the
    # C library's lookup of network interfaces is left.
    types = _each((socket.SOCK_STREAM, socket.SOCK_SEQPACKET), _allow())
    local = [_load(1), (_AND, 0, 0, _SOCKET_TYPE), *types, _refuse(errno.EACCES)]
    netlink = [_load(2), *_each((_NETLINK_ROUTE,), _allow()), _refuse(errno.EACCES)]
    families = [_load(0), *_when(int(socket.AF_UNIX), local), *_when(int(socket.AF_NETLINK), netlink)]
    # A priority is treated as the calls of `system_calls.SCHEDULING` are.
    return {
        "clone": [_load(0), (_JUMP_IF_SET, 0, 1, _NAMESPACE_FLAGS | _CLONE_PARENT), _refuse(),
                  (_AND, 0, 0, _EXIT_SIGNAL), *_each((0, signal.SIGCHLD), _allow()), _refuse()],
        "socket": [*families, _refuse(errno.EACCES)],
        "socketpair": [*families, _refuse(errno.EACCES)],
        "fcntl": [_load(1), *_each(_OWNING, _refuse()), _allow()],
        "ioctl": [_load(1), *_each(_FOREIGN_REQUESTS, _refuse()), (_AND, 0, 0, _REQUEST_KIND),
                  *_each(_FILE_REQUESTS, _refuse(errno.ENOTTY)), _allow()],
        "prctl": [_load(0), *_each(_PROCESS_OPTIONS, _refuse()), _allow()],
        "setpriority": [_load(0), *_when(_PRIO_PROCESS, [_load(1), *itself, _refuse(0)]), _refuse()],
        "ioprio_set": [_load(0), *_when(_IOPRIO_WHO_PROCESS, [_load(1), *itself, _refuse(0)]), _refuse()],
    }


def _when(value: int, body: Sequence[Instruction]) -> list[Instruction]:
    """Runs the body, which returns, if the loaded word has this value."""
    return [(_JUMP_IF_EQUAL, 0, len(body), value), *body]


def _each(values: Iterable[int], action: Instruction) -> list[Instruction]:
    """Takes the action if the loaded word is one of the values."""
    return [step for value in values for step in ((_JUMP_IF_EQUAL, 0, 1, int(value)), action)]


def _load(argument: int) -> Instruction:
    """Loads the low word of an argument, on a little-endian machine."""
    return (_LOAD_WORD, 0, 0, _ARGUMENTS_AT + 8 * argument)


def _refuse(number: int = errno.EPERM) -> Instruction:
    return (_RETURN, 0, 0, _REFUSE | number)


def _allow() -> Instruction:
    return (_RETURN, 0, 0, _ALLOW)
