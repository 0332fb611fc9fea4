"""Runs Python programs inside a sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from inlinebench.sandbox import supervisor
from inlinebench.sandbox.policy import Policy, Sandbox, clean_environment
from inlinebench.sandbox.self_test import available

ROOT = Path(__file__).resolve().parent.parent.parent
PROTECTIONS = tuple(map(str, available()))


def run(code: str, scratch: Path, *, readable: tuple[Path, ...] = (), policy: Policy | None = None) -> str:
    """Returns the last line that a Python program prints inside the sandbox, or the exception that ended it."""
    policy = policy or Sandbox(PROTECTIONS, (str(ROOT / "harness"),)).policy(scratch, readable, (os.getpid(),))
    command = [*supervisor.command(policy), sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=scratch,
                          start_new_session=True, env={**clean_environment(os.environ), "TMPDIR": str(scratch)})
    return (done.stdout + done.stderr).strip().rpartition("\n")[2]
