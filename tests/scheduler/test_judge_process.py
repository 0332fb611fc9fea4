"""Tests of the judge process that starts before its executor exists."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import pytest

from inlinebench.errors import UsageError
from inlinebench.options import RAY, Options
from inlinebench.scheduler.judge_process import Scratch, head_start


def judges_below(scratch: Path) -> set[int]:
    """Returns the process ids whose temporary folder is `scratch`."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"TMPDIR={scratch}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.add(int(process.name))
    return found - {os.getpid()}


def begun_judges(scratch: Path, besides: Collection[int] = ()) -> set[int]:
    """Waits for a judge besides these, and returns all others. A process has no environment at once when it begins."""
    deadline = time.monotonic() + 10
    while not (found := judges_below(scratch) - set(besides)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def test_the_first_judge_process_starts_with_the_scratch_folder(tmp_path: Path) -> None:
    scratch = Scratch()
    begun = begun_judges(scratch.path)
    assert len(begun) == 1
    first, second = scratch.process(), scratch.process()
    assert first is not second and begun_judges(scratch.path, begun)
    first.kill()
    second.kill()
    scratch.close()
    assert not judges_below(scratch.path) and not scratch.path.exists()


@pytest.mark.parametrize("policy", ["PASSIVE", "ACTIVE"])
def test_idle_threads_sleep_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if policy != "PASSIVE":
        monkeypatch.setenv("OMP_WAIT_POLICY", policy)
    scratch = Scratch()
    (judge,) = begun_judges(scratch.path)
    environment = Path(f"/proc/{judge}/environ").read_bytes().split(b"\0")
    scratch.close()
    assert f"OMP_WAIT_POLICY={policy}".encode() in environment


def test_an_unused_judge_process_ends_with_the_run() -> None:
    with pytest.raises(UsageError), head_start(Options()) as scratch:
        assert scratch is not None and begun_judges(scratch.path)
        raise UsageError("no such problem")
    assert not judges_below(scratch.path) and not scratch.path.exists()


def test_a_used_judge_process_belongs_to_the_caller() -> None:
    with head_start(Options()) as scratch:
        assert scratch is not None
        process = scratch.process()
        process.kill()
        scratch.close()
    assert not judges_below(scratch.path) and not scratch.path.exists()


def test_with_ray_no_judge_process_starts_here() -> None:
    with head_start(Options(executor=RAY)) as scratch:
        assert scratch is None
