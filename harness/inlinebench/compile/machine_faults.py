"""Faults of the machine that the output of compilers shows. They say nothing about the source."""

from __future__ import annotations

import re

_KILLED = re.compile(r"^\S*: fatal error: Killed signal terminated program (\w+)"
                     r"|^nvcc error\s*: '(\w+)' died due to signal 9\b", re.MULTILINE)
_FULL = re.compile(r"\b(?:No space left on device|Disk quota exceeded)\s*$", re.MULTILINE)


def machine_fault(log: str) -> str:
    """Returns which fault a build failed for and what to do about it, or "" if it shows none.

    A source can print the same words. Its author gains nothing: it did not build either way.
    """
    if killed := _KILLED.search(log):
        return (f"the compiler ({killed[1] or killed[2]}) was killed, probably for lack of memory; use fewer --jobs, "
                "or free some memory")
    if _FULL.search(log):
        return "no space is left on the disk of the cache; free some, or name another folder with --cache"
    return ""
