"""What a solution leaves behind is gone after the run: processes, and folders that are hard to remove."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from inlinebench.sandbox.policy import REQUIRED
from inlinebench.sandbox.self_test import available
from tests.running import run_eval

pytestmark = pytest.mark.slow

WITH_SANDBOX = pytest.mark.skipif(
    not set(REQUIRED) <= set(available()), reason="this machine does not offer the whole sandbox"
)
LEAVES_A_PROCESS = """
import os, signal, time
from torch import nn
NAME = "torch.utils.cpp_extension"  # otherwise it is not constructed in advance
if os.fork() == 0:
    os.setsid()
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    if os.fork() == 0:
        os.closerange(0, 100)  # otherwise the judge waits for its channel
        os.execvp("sleep", ["sleep", "{seconds}"])
    os._exit(0)
time.sleep(0.3)
{end}
class ModelNew(nn.Module):
    pass
"""


def running(argument: str) -> list[int]:
    """Returns the processes that were started with this argument."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if argument.encode() in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


@WITH_SANDBOX
@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "raise RuntimeError('end')"])
@pytest.mark.parametrize("mode", [["--build-only"], ["--check", "--shape", "small"]])
def test_no_process_of_a_solution_outlives_the_run(tmp_path: Path, cache: Path, end: str, mode: list[str]) -> None:
    seconds = f"86370.{os.getpid()}"
    (tmp_path / "matmul_diag").mkdir()
    (tmp_path / "matmul_diag" / "leaves.py").write_text(LEAVES_A_PROCESS.format(seconds=seconds, end=end))
    run = run_eval("--solutions", tmp_path, "--device", "cpu", *mode, "--cache", cache)
    assert run.status == 1, run.err
    assert running(seconds) == []
