"""The endpoint of a user's server: its socket, its key, and the lock for starting it."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from inlinebench.errors import UsageError
from inlinebench.version import __version__
from inlinebench.wire.own_python import PACKAGE

_PACKAGES = tuple(Path(PACKAGE) / name for name in ("inlinebench", "cuda_on_cpu"))
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH", "CC", "CXX", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH",
              "INLINEBENCH_IDLE")
"""Environment variables that a server inherits from the client that starts it. Clients with different values use
different servers."""
DIGITS = 16
PRIVATE = 0o700


@dataclass(frozen=True)
class Endpoint:
    """The files of one server."""

    folder: Path
    """A folder that only the user can access. It is not visible in the sandbox of a solution."""
    name: str
    """The name of the files, without their suffixes."""

    @property
    def socket(self) -> Path:
        return self.folder / f"{self.name}.sock"

    @contextmanager
    def address(self) -> Iterator[str]:
        """Yields a short path of the socket: the system limits it to 107 bytes, and the folder's path may be longer."""
        folder = os.open(self.folder, os.O_PATH | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{folder}/{self.socket.name}"
        finally:
            os.close(folder)

    @property
    def key(self) -> Path:
        return self.folder / f"{self.name}.key"

    @property
    def lock(self) -> Path:
        return self.folder / f"{self.name}.lock"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"


def endpoint(environment: Mapping[str, str] = os.environ) -> Endpoint:
    """Returns the endpoint of the server for this Python, this state of the harness and this environment.

    Raises UsageError if other users can access its folder.
    """
    above = Path(environment.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    folder = above / f"inlinebench-{os.getuid()}"
    folder.mkdir(mode=PRIVATE, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise UsageError(f"{folder} can be accessed by other users, so a server there is not safe; remove it, or "
                         "set XDG_RUNTIME_DIR to a folder of your own")
    given = (environment.get(name, "") for name in _VARIABLES)
    facts = [sys.executable, PACKAGE, __version__, str(_newest()), *given]
    return Endpoint(folder, hashlib.sha256("\0".join(facts).encode()).hexdigest()[:DIGITS])


def _newest() -> int:
    """Returns the time of the last change to the harness, so that a server with older code is not used."""
    return max(path.stat().st_mtime_ns for package in _PACKAGES for path in package.rglob("*.py"))
