"""What a forkserver ends before it forks candidates."""

from __future__ import annotations

import ctypes

import pytest

from inlinebench.process.forkserver import _end_nvml


class Nvml:
    """NVML, which was started so many times."""

    def __init__(self, started: int) -> None:
        self.started = started

    def nvmlShutdown(self) -> int:
        self.started -= 1
        return 0 if self.started >= 0 else 1  # NVML_ERROR_UNINITIALIZED


@pytest.mark.parametrize("started", [0, 1, 3])
def test_nvml_is_ended_as_often_as_it_was_started(started: int, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml(started)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: nvml)
    _end_nvml()
    assert nvml.started == -1


def test_without_a_driver_there_is_nothing_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    _end_nvml()
