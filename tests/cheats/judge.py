"""Where a cheat finds the judge: above the supervisor of its sandbox."""

import os
from pathlib import Path


def parent_of(process: int) -> int:
    """The parent of a process, or 0 if that is in another PID namespace."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def process_id() -> int:
    """The judge; or the supervisor, which is outside of the sandbox as well, where the judge is out of sight."""
    return parent_of(os.getppid()) or os.getppid()
