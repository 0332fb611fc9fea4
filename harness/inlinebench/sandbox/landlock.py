"""Landlock, the kernel's interface for a process to give up rights over files, signals and sockets.

Uses the system calls directly (https://docs.kernel.org/userspace-api/landlock.html), because no Python library wraps
the later versions that the sandbox needs.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System call numbers, the same on every architecture."""
_VERSION_FLAG = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_FS_RIGHTS_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All file rights by version of the interface. A version that is not listed has the rights of the one before."""
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
"""The rights that can be granted over a file that is not a directory."""
READ = _EXECUTE | _READ_FILE | _READ_DIR
WRITE = (1 << 16) - 1
"""All rights, over files and devices."""

_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2
SIGNALS_SINCE = 6
"""The first version that can refuse signals to processes outside."""

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Returns the version of the interface that the kernel offers, or 0 if there is none."""
    found = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    return max(0, int(found))


def restrict(readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """Permanently restricts this process to the files below the given paths. Skips paths that do not exist.

    Every version also refuses ptrace of processes outside, and so access to their memory and environment. From version
    6 on, signals to processes outside and their abstract sockets are refused too. Needs `no_new_privs`. Raises OSError.
    """
    known = version()
    handled = _FS_RIGHTS_BY_VERSION[max(number for number in _FS_RIGHTS_BY_VERSION if number <= known)]
    scopes = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if known >= SIGNALS_SINCE else 0
    attributes = (ctypes.c_uint64 * 3)(handled, 0, scopes)
    size = 24 if scopes else 8  # an older kernel accepts only the fields that it knows
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)))
    try:
        for path in readable:
            _grant(ruleset, path, READ & handled)
        for path in writable:
            _grant(ruleset, path, WRITE & handled)
        _checked(_libc.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)))
    finally:
        os.close(ruleset)


class _PathBeneath(ctypes.Structure):
    """`struct landlock_path_beneath_attr`."""

    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def _grant(ruleset: int, path: Path, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it does not exist or is not accessible, so there is nothing to grant
    try:
        if not path.is_dir():
            rights &= _OF_FILES
        rule = _PathBeneath(rights, parent)
        _checked(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), ctypes.c_uint32(0)))
    finally:
        os.close(parent)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
