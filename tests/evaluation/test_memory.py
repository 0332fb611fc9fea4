"""The arithmetic of a call's memory, and which growth of the driver's memory counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.devices.base import AllocatorPeak
from inlinebench.devices.cpu.clock import CpuClock
from inlinebench.devices.cpu.device import CpuDevice
from inlinebench.evaluation.memory import LEAST_OUTSIDE, MOST_HIDDEN, CandidateMemory, measured_call, peak_memory
from inlinebench.evaluation.reference import Reference
from inlinebench.results.memory import MIB, Memory

from .workloads import workload_of

KNOWN = 100 * MIB
"""Outputs, parameters, buffers and what the harness holds."""
CODE = 92 * MIB
"""The code of the kernels that a solution loads."""
sizes = st.integers(0, 1 << 40)
peaks = st.builds(AllocatorPeak, sizes, sizes)


def in_use(workspace: int, raw: int = 0, cached: int = 0) -> tuple[int, int] | None:
    """The memory of a solution with a workspace from the allocator, and with raw memory."""
    peak = KNOWN + workspace
    return peak_memory(AllocatorPeak(peak, peak + cached), peak + cached + raw + CODE, KNOWN)


def test_a_solution_without_memory_of_its_own_has_none() -> None:
    assert in_use(0) == (0, 0)


def test_a_workspace_of_the_allocator_counts_exactly() -> None:
    assert in_use(100 * MIB) == (100 * MIB, 0)
    assert in_use(1) == (1, 0)


def test_raw_memory_counts_with_the_code_of_kernels() -> None:
    assert in_use(0, raw=256 * MIB) == (256 * MIB + CODE, 256 * MIB + CODE)
    assert in_use(100 * MIB, raw=256 * MIB) == (356 * MIB + CODE, 256 * MIB + CODE)


def test_what_the_allocator_reserves_and_nothing_uses_does_not_count() -> None:
    assert in_use(10 * MIB, cached=40 * MIB) == (10 * MIB, 0)


@pytest.mark.parametrize("claimed", [AllocatorPeak(0, 0), AllocatorPeak(KNOWN, KNOWN), AllocatorPeak(0, 1024 * MIB)])
def test_a_false_claim_hides_no_more_than_the_bound(claimed: AllocatorPeak) -> None:
    found = peak_memory(claimed, 1024 * MIB, KNOWN)
    assert found is not None and found[0] >= 1024 * MIB - KNOWN - MOST_HIDDEN


@given(peaks, sizes, sizes)
def test_no_claim_makes_the_memory_smaller_than_the_driver_shows(peak: AllocatorPeak, growth: int, known: int) -> None:
    found = peak_memory(peak, growth, known)
    if found is not None:
        total, outside = found
        assert total >= growth - known - MOST_HIDDEN and total >= peak.peak_bytes - known
        assert 0 <= outside <= total
        Memory(total, 0, outside)


@given(peaks, sizes, sizes, st.integers(0, 1 << 30))
def test_more_memory_is_never_less(peak: AllocatorPeak, growth: int, known: int, more: int) -> None:
    before, after = peak_memory(peak, growth, known), peak_memory(peak, growth + more, known)
    assert before is None or (after is not None and after[0] >= before[0])


@given(sizes, sizes, st.integers(0, LEAST_OUTSIDE))
def test_the_code_of_kernels_alone_does_not_count(known: int, workspace: int, code: int) -> None:
    peak = known + workspace
    assert peak_memory(AllocatorPeak(peak, peak), peak + code, known) == (workspace, 0)


def test_an_allocator_that_holds_more_than_the_driver_shows_is_not_known() -> None:
    """Another process has freed memory meanwhile, or the claim is false."""
    assert peak_memory(AllocatorPeak(0, 200 * MIB), 200 * MIB - LEAST_OUTSIDE, 0) is not None
    assert peak_memory(AllocatorPeak(0, 200 * MIB), 200 * MIB - LEAST_OUTSIDE - 1, 0) is None


def test_the_measured_call_is_a_secret_one_between_the_first_and_the_last_warm_up_call() -> None:
    assert {measured_call(5, Random(seed)) for seed in range(100)} == {2, 3, 4}
    assert [measured_call(warmup, Random(1)) for warmup in range(4)] == [None, None, None, 2]


@dataclass
class Free:
    """A device with this free memory."""

    bytes: int

    def unreserved_bytes(self) -> int:
        return self.bytes


@dataclass
class FakeReference:
    own: int | None = 7
    calls: int = 0

    def known_bytes(self) -> int:
        return KNOWN

    def memory_bytes(self) -> int | None:
        self.calls += 1
        return self.own


def measured(device: Free, call: int | None) -> CandidateMemory:
    return CandidateMemory(cast("Any", device), call)


def test_only_what_falls_while_the_candidate_runs_is_added_up() -> None:
    device = Free(1 << 40)
    memory = measured(device, 2)
    for taken in (KNOWN, 256 * MIB):
        device.bytes -= 500 * MIB  # the judge's own
        with memory.growing():
            device.bytes -= taken
    memory.end(AllocatorPeak(KNOWN, KNOWN))
    with memory.growing():
        device.bytes -= 300 * MIB  # after the measured call
    assert memory.record(cast("Any", FakeReference())) == Memory(256 * MIB, 7, 256 * MIB)


@pytest.mark.parametrize("peak", [None, AllocatorPeak(0, 1 << 40)])
def test_without_a_usable_claim_there_is_no_record(peak: AllocatorPeak | None) -> None:
    memory = measured(Free(1 << 40), 2)
    memory.end(peak)
    assert memory.record(cast("Any", FakeReference())) is None


def test_without_the_reference_s_memory_there_is_no_record() -> None:
    memory = measured(Free(1 << 40), 2)
    memory.end(AllocatorPeak(0, 0))
    assert memory.record(cast("Any", FakeReference(own=None))) is None


def test_what_is_not_measured_costs_nothing() -> None:
    memory, reference = measured(Free(1 << 40), None), FakeReference()
    with memory.growing():
        pass
    assert not any(map(memory.measures, range(10)))
    assert memory.record(cast("Any", reference)) is None and reference.calls == 0


@dataclass
class FakeMeter:
    """The counters of an allocator, of which 1000 bytes are in use before a call, and these at its peak."""

    peak_bytes: int | None
    asked: list[str] = field(default_factory=list)

    def free_workspaces(self) -> None:
        self.asked.append("free_workspaces")

    def begin(self) -> int:
        self.asked.append("begin")
        return 1000

    def peak(self) -> AllocatorPeak | None:
        return None if self.peak_bytes is None else AllocatorPeak(self.peak_bytes, 1 << 30)


@pytest.fixture
def reference(tmp_path: Path) -> Reference:
    """A reference with an output of 24 bytes and weights of 224, of which 32 have two names, after a call."""
    workload = workload_of(tmp_path, "return (x * self.one) @ y + self.two.sum()", made=(
        "self.one = self.same = torch.nn.Parameter(torch.rand(8)); "
        "self.register_buffer('two', torch.rand(24, dtype=torch.float64))"))
    made = Reference(workload, CpuClock())
    made.run([torch.rand(6, 8), torch.rand(8)], (), 7, blocked=False)
    return made


def test_outputs_parameters_and_buffers_are_known_once_each(reference: Reference) -> None:
    assert reference.known_bytes() == 6 * 4 + 8 * 4 + 24 * 8


@pytest.mark.parametrize(("peak", "counted"), [(1000 + 24 + 50, 50), (1000 + 24, 0), (1000, 0), (None, None)])
def test_the_reference_s_memory_is_what_a_call_adds_besides_its_outputs(
    monkeypatch: pytest.MonkeyPatch, reference: Reference, peak: int | None, counted: int | None
) -> None:
    meter = FakeMeter(peak)
    monkeypatch.setattr(CpuDevice, "allocator_meter", lambda _: meter)
    assert reference.memory_bytes() == counted
    assert meter.asked == ["free_workspaces", "begin"]


def test_no_call_of_the_reference_is_made_where_nothing_is_counted(
    monkeypatch: pytest.MonkeyPatch, reference: Reference
) -> None:
    monkeypatch.setattr(reference, "run", None)
    assert reference.memory_bytes() is None
