"""Where a user's service and the processes that share a GPU find each other."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from inlinebench.errors import UsageError
from inlinebench.version import __version__
from inlinebench.wire.own_python import PACKAGE

SOCKET = "service.sock"
_SCRATCH, _PREFIX = "service.scratch", "inlinebench-service-"
"""The file with the path of the service's folder of temporary files, and how the name of that begins."""
PRIVATE = 0o700
_PACKAGES = tuple(Path(PACKAGE) / name for name in ("inlinebench", "cuda_on_cpu"))


def folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns a folder that only the user can access. It is not visible in the sandbox of a solution.

    Raises UsageError if other users can access it.
    """
    found = Path(environment.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"inlinebench-{os.getuid()}"
    found.mkdir(mode=PRIVATE, exist_ok=True)
    status = found.lstat()
    if found.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise UsageError(f"{found} can be accessed by other users, so a service there is not safe; remove it, or "
                         "set XDG_RUNTIME_DIR to a folder of your own")
    return found


@contextmanager
def short(socket: Path) -> Iterator[str]:
    """Yields a short path of a socket: the system limits it to 107 bytes, and the folder's path may be longer."""
    above = os.open(socket.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{above}/{socket.name}"
    finally:
        os.close(above)


@contextmanager
def scratch() -> Iterator[None]:
    """Has temporary files in a folder of their own, and removes that of a service that was killed.

    Only for the user's only service. A killed process leaves its temporary files behind, up to gigabytes of a solution.
    """
    os.environ["XDG_RUNTIME_DIR"] = str(folder().parent)  # TMPDIR does not decide any more where it is
    note = folder() / _SCRATCH
    if note.exists() and Path(note.read_text()).name.startswith(_PREFIX):  # nothing else is removed
        shutil.rmtree(note.read_text(), ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as found:
        note.write_text(found)
        os.environ["TMPDIR"], tempfile.tempdir = found, found
        try:
            yield
        finally:
            tempfile.tempdir = None


@contextmanager
def turn(device: str) -> Iterator[None]:
    """Waits until no other evaluation of this user runs on the device, in this process or another."""
    name = hashlib.sha256(f"{os.environ.get('CUDA_VISIBLE_DEVICES')} {device}".encode()).hexdigest()[:16]
    with (folder() / f"{name}.turn").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def version() -> str:
    """Returns the version of the harness, with the time of the last change to its files when this process first asked.
    """
    newest = max(path.stat().st_mtime_ns for package in _PACKAGES for path in package.rglob("*.py"))
    return f"{__version__}+{newest}"
