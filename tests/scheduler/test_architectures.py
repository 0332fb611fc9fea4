"""Tests of the architectures that a run builds for."""

from __future__ import annotations

import pytest

from inlinebench.errors import UsageError
from inlinebench.messages import Hello
from inlinebench.options import Options
from inlinebench.results.result import Environment
from inlinebench.scheduler.executor import _architectures


def hello(*architectures: str) -> Hello:
    return Hello("cuda:0" if architectures else "cpu", Environment(torch="2.11.0", harness="0"), architectures)


def test_without_arch_a_run_builds_for_all_its_devices() -> None:
    assert _architectures(Options(), [hello("90"), hello("80")]) == ("90", "80")
    assert _architectures(Options(), [hello()]) == ()


def test_arch_counts_if_every_gpu_can_run_one_of_its_architectures() -> None:
    wanted = Options(architectures=("80", "90a"))
    assert _architectures(wanted, [hello("90"), hello("86")]) == ("80", "90a")


@pytest.mark.parametrize(("wanted", "devices", "said"), [
    (("90",), [hello("80")], "--arch 90: cuda:0 is a GPU of compute capability 80"),
    (("90a",), [hello("90"), hello("100")], "compute capability 100"),
    (("90",), [hello()], "no GPU is in use"),
])
def test_an_arch_that_a_device_cannot_run_is_rejected(wanted: tuple[str, ...], devices: list[Hello], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        _architectures(Options(architectures=wanted), devices)
