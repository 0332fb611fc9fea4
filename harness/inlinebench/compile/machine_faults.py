"""Faults of the machine that the output of compilers shows. They say nothing about the source."""

from __future__ import annotations

import re

_KILLED = re.compile(r"^\S*: fatal error: Killed signal terminated program (\w+)"
                     r"|^nvcc error\s*: '(\w+)' died due to signal 9\b", re.MULTILINE)
_SPACE = "no space is left on the disk of the cache; free some, or name another folder with --cache"
_DISK = "the disk of the cache fails ({}); check it, or name another folder with --cache"
_FEW = "the machine has no memory or processes left for the compiler ({}); use fewer --jobs, or free some memory"
_FAULTS = {
    "No space left on device": _SPACE, "Disk quota exceeded": _SPACE,
    "Input/output error": _DISK, "Read-only file system": _DISK, "Stale file handle": _DISK,
    "Cannot allocate memory": _FEW, "Resource temporarily unavailable": _FEW,
    "Too many open files": _FEW, "Too many open files in system": _FEW,
}
"""What to do about an error of the operating system that ends a line."""
_FAULT = re.compile(rf": ({'|'.join(_FAULTS)})\s*$", re.MULTILINE)


def machine_fault(log: str) -> str:
    """Returns which fault a build failed for and what to do about it, or "" if it shows none.

    A source can print the same words. Its author gains nothing: it did not build either way.
    """
    if killed := _KILLED.search(log):
        return (f"the compiler ({killed[1] or killed[2]}) was killed, probably for lack of memory; use fewer --jobs, "
                "or free some memory")
    if fault := _FAULT.search(log):
        return _FAULTS[fault[1]].format(fault[1])
    return ""
