"""Where the server of a user is met: a socket, the key that opens it, and a lock for whoever starts it."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from inlinebench.records.errors import UsageError
from inlinebench.version import __version__

_PACKAGE = Path(__file__).resolve().parent.parent
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH", "CC", "CXX", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH",
              "INLINEBENCH_IDLE")
"""What a server takes over from whoever starts it; callers with other values have another server."""
DIGITS = 16
PRIVATE = 0o700


@dataclass(frozen=True)
class Endpoint:
    """Files of one server. The folder is its user's alone, and no solution's sandbox shows it."""

    folder: Path
    name: str

    @property
    def socket(self) -> Path:
        return self.folder / f"{self.name}.sock"

    @contextmanager
    def address(self) -> Iterator[str]:
        """The socket as it is named to the system, which takes 107 bytes at most: short, however deep the folder is."""
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
    """The place of the server that fits this Python, this harness as it is now, and this environment.

    Raises UsageError if the folder for it is somebody else's.
    """
    above = Path(environment.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    folder = above / f"inlinebench-{os.getuid()}"
    folder.mkdir(mode=PRIVATE, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise UsageError(f"{folder} is open to others, so no server can be met there; remove it, or set "
                         "XDG_RUNTIME_DIR to a folder of your own")
    facts = [sys.executable, str(_PACKAGE), __version__, str(_newest()), *(environment.get(name, "")
                                                                         for name in _VARIABLES)]
    return Endpoint(folder, hashlib.sha256("\0".join(facts).encode()).hexdigest()[:DIGITS])


def _newest() -> int:
    """When the harness was last changed: a server of other code must not answer."""
    return max(path.stat().st_mtime_ns for path in _PACKAGE.rglob("*.py"))
