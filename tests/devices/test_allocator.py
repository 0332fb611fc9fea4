"""The counters of PyTorch's allocator around a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from inlinebench.devices.base import AllocatorPeak
from inlinebench.devices.cuda import allocator as module
from inlinebench.devices.cuda.allocator import CudaAllocatorMeter

MIB = 1 << 20
GPU = torch.device("cuda", 0)


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Fakes PyTorch's counters, and records what is asked of the allocator."""
    state: dict[str, Any] = {"peak": 0, "current": 0, "reserved": 0, "backend": "native", "asked": []}

    def statistics(_: torch.device) -> dict[str, Any]:
        return {"requested_bytes": {"all": {"peak": state["peak"], "current": state["current"]}},
                "reserved_bytes": {"all": {"peak": 10**9, "current": state["reserved"]}},
                "allocated_bytes": {"all": {"peak": 10**9, "current": 10**9}}}

    monkeypatch.setattr(module, "_statistics", statistics)
    monkeypatch.setattr(module, "_reset", lambda _: state["asked"].append("reset"))
    monkeypatch.setattr(module, "_empty_cache", lambda: state["asked"].append("empty"))
    monkeypatch.setattr(module, "_backend", lambda: state["backend"])
    return state


def test_the_peak_is_of_requested_bytes_since_the_beginning(counters: dict[str, Any]) -> None:
    meter = CudaAllocatorMeter(GPU)
    counters["current"] = 5
    assert meter.begin() == 5 and counters["asked"] == ["reset"]
    counters.update(peak=12, reserved=20)
    assert meter.peak() == AllocatorPeak(12, 20)


def test_the_cache_is_emptied_before_the_peak_is_reset(counters: dict[str, Any]) -> None:
    CudaAllocatorMeter(GPU).begin_with_empty_cache()
    assert counters["asked"] == ["empty", "reset"]


def test_another_allocator_is_not_read(counters: dict[str, Any]) -> None:
    counters["backend"] = "cudaMallocAsync"
    assert CudaAllocatorMeter(GPU).peak() is None


@pytest.fixture
def meter() -> Iterator[CudaAllocatorMeter]:
    torch.cuda.init()
    torch.cuda.empty_cache()
    yield CudaAllocatorMeter(GPU)
    torch.cuda.empty_cache()


@pytest.mark.gpu
def test_a_temporary_tensor_is_in_the_peak_with_the_bytes_that_were_asked_for(meter: CudaAllocatorMeter) -> None:
    kept = torch.empty(3 * MIB, dtype=torch.uint8, device=GPU)
    before = meter.begin()
    del kept
    torch.empty(100 * MIB + 1, dtype=torch.uint8, device=GPU)
    peak = meter.peak()
    assert peak is not None and peak.peak_bytes - before == 97 * MIB + 1
    assert peak.reserved_bytes >= 100 * MIB


@pytest.mark.gpu
def test_what_is_cached_is_not_reserved_after_the_cache_was_emptied(meter: CudaAllocatorMeter) -> None:
    torch.empty(500 * MIB, dtype=torch.uint8, device=GPU)
    meter.begin_with_empty_cache()
    peak = meter.peak()
    assert peak is not None and peak.reserved_bytes < 400 * MIB


@pytest.mark.gpu
def test_a_workspace_of_cublas_is_in_the_peak_after_it_was_freed(meter: CudaAllocatorMeter) -> None:
    matrix = torch.ones(256, 256, device=GPU)
    product = matrix @ matrix
    before = meter.begin()
    product = matrix @ matrix
    peak = meter.peak()
    assert peak is not None and peak.peak_bytes - before == product.numel() * 4
    meter.free_workspaces()
    before = meter.begin()
    product = matrix @ matrix
    peak = meter.peak()
    assert peak is not None and peak.peak_bytes - before > MIB
