"""A judge's process that begins before there is a bench: taken over, or ended with what it made."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from inlinebench.records.errors import UsageError
from inlinebench.records.options import RAY, Options
from inlinebench.scheduler.judge_process import Scratch, head_start


def judges_below(scratch: Path) -> set[int]:
    """The processes that have their temporary files there."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"TMPDIR={scratch}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.add(int(process.name))
    return found - {os.getpid()}


def test_the_first_that_is_asked_for_has_begun_before(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "cache")
    begun = judges_below(scratch.path)
    assert len(begun) == 1
    first, second = scratch.process(), scratch.process()
    assert first is not second and len(judges_below(scratch.path) - begun) >= 1
    first.kill()
    second.kill()
    scratch.close()
    assert not judges_below(scratch.path) and not scratch.path.exists()


def test_one_that_nobody_takes_ends_with_the_run() -> None:
    with pytest.raises(UsageError), head_start(Options()) as scratch:
        assert scratch is not None and judges_below(scratch.path)
        raise UsageError("no such problem")
    assert not judges_below(scratch.path) and not scratch.path.exists()


def test_one_that_was_taken_over_is_left_to_its_owner() -> None:
    with head_start(Options()) as scratch:
        assert scratch is not None
        process = scratch.process()
        process.kill()
        scratch.close()
    assert not judges_below(scratch.path) and not scratch.path.exists()


def test_elsewhere_nothing_begins() -> None:
    with head_start(Options(executor=RAY)) as scratch:
        assert scratch is None
