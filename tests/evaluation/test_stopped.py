"""A process that runs while the judge has stopped it is found, whatever continued it."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from inlinebench.results.result import Verdict
from inlinebench.results.result_json import from_json
from inlinebench.wire.processes import descendants
from tests.running import PYTHONPATH, command


def is_stopped(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False


@pytest.mark.parametrize("continued", [True, False], ids=["continued from outside", "left alone"])
def test_a_continued_process_is_rejected(tmp_path: Path, cache: Path, continued: bool) -> None:
    out = tmp_path / "out.jsonl"
    line = command("row_sum/naive", "--device", "cpu", "--shape", "small", "--min-calls", "40", "--cache", cache,
                   "--out", out)
    run = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env={**os.environ, "PYTHONPATH": PYTHONPATH})
    while run.poll() is None:
        for pid in filter(is_stopped, descendants(run.pid) if continued else ()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    run.communicate()
    result = from_json(out.read_text())
    if continued:
        assert result.verdict is Verdict.REJECTED and "ran while it was stopped" in result.reason
    else:
        assert result.verdict is Verdict.PASSED, result.reason
