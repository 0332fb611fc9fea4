"""Gives up privileges beyond files: network, other processes, root's capabilities, and files of unlimited size."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import resource
import struct
from contextlib import suppress

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND = 1 << 1, 1 << 2, 1 << 3, 1 << 12
_MS_REC, _MS_PRIVATE = 1 << 14, 1 << 18
_PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 24, 28, 38, 47
_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION = 0x20080522
_LAST_POSSIBLE_CAPABILITY = 63
_NO_ROOT_LOCKED = 0b1111
"""SECBIT_NOROOT and SECBIT_NO_SETUID_FIXUP with their locks: programs started by user 0 gain no capabilities."""

_libc = ctypes.CDLL(None, use_errno=True)


def leave_namespaces(*, network: bool, pids: bool) -> None:
    """Moves this process into a mount namespace, where mounts are its own.

    With `network` it leaves the network, and with `pids` its next child is the first process of a new PID namespace.
    Root does so directly, other users through a user namespace in which they keep their ids. Raises OSError.
    """
    apart = _CLONE_NEWNS | (_CLONE_NEWNET if network else 0) | (_CLONE_NEWPID if pids else 0)
    if _libc.unshare(apart):
        user, group = os.getuid(), os.getgid()
        _checked(_libc.unshare(_CLONE_NEWUSER | apart), "unshare")
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    _checked(_libc.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None), "mount /")


def mount_shared_memory(size: int) -> None:
    """Mounts a private /dev/shm of this size in bytes. Raises OSError."""
    options = f"size={size},mode=1777".encode()
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV)
    _checked(_libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", flags, options), "mount /dev/shm")


def mount_proc() -> None:
    """Mounts a /proc that shows the processes of this process's PID namespace only. Raises OSError.

    What is mounted below the old /proc is below the new one as well: with such mounts a container hides files, or
    changes what they say.
    """
    opened = [(point, os.open(point, os.O_PATH | os.O_CLOEXEC)) for point in _mounted_below("/proc/")]
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    _checked(_libc.mount(b"proc", b"/proc", b"proc", flags, None), "mount /proc")
    for point, descriptor in opened:
        with suppress(FileNotFoundError):  # below the folder of a process that the new /proc does not show
            source = f"/proc/self/fd/{descriptor}".encode()
            _checked(_libc.mount(source, os.fsencode(point), None, ctypes.c_ulong(_MS_BIND | _MS_REC), None),
                     f"mount {point}")
        os.close(descriptor)


def _mounted_below(folder: str) -> list[str]:
    """Returns the mount points below a folder, each after those above it, but for mounts that others have covered."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        points = [re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), line.split()[4]) for line in file]
    return list(dict.fromkeys(point for point in points if point.startswith(folder)))


def drop_capabilities() -> None:
    """Drops all capabilities, also for programs started later. Raises OSError."""
    if os.geteuid() == 0:
        _checked(_libc.prctl(_PR_SET_SECUREBITS, _NO_ROOT_LOCKED, 0, 0, 0), "prctl")
        for number in range(_LAST_POSSIBLE_CAPABILITY + 1):
            if _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) and ctypes.get_errno() != errno.EINVAL:
                _checked(-1, "prctl")  # EINVAL: the kernel has fewer capabilities
    _libc.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION, 0))
    nothing = ctypes.create_string_buffer(24)
    _checked(_libc.capset(header, nothing), "capset")


def gain_nothing() -> None:
    """Keeps programs that this process starts from gaining privileges. Raises OSError."""
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")


def limit(file_bytes: int) -> None:
    """Limits the size of each written file, and disables core files."""
    _lower(resource.RLIMIT_FSIZE, file_bytes)
    _lower(resource.RLIMIT_CORE, 0)


def _lower(kind: int, wanted: int) -> None:
    _, hard = resource.getrlimit(kind)
    bound = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (bound, bound))


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
