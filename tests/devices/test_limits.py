"""The limits of SMs, from a stand-in for the CUDA runtime, and from a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inlinebench.devices.cuda import limits
from inlinebench.results.launches import Multiprocessors

H100 = {16: 132, 39: 2048, 106: 32, 82: 65536, 81: 233472, 111: 1024}
"""What CUDA tells about an H100, by the numbers of `cudaDeviceAttr` in CUDA's headers."""


def runtime(known: dict[int, int]) -> SimpleNamespace:
    def ask(value: Any, attribute: int, index: int) -> int:
        value._obj.value = known.get(attribute, 0)
        return 0 if attribute in known and index == 3 else 1
    return SimpleNamespace(cudaDeviceGetAttribute=ask)


def test_the_limits_are_asked_for_by_cudas_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "cuda_runtime", lambda: runtime(H100))
    assert limits.multiprocessors(3) == Multiprocessors(132, 2048, 32, 65536, 233472, 1024)


def test_a_limit_that_is_not_known_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "cuda_runtime", lambda: runtime({}))
    with pytest.raises(RuntimeError, match="cudaDeviceGetAttribute"):
        limits.multiprocessors(3)


@pytest.mark.gpu
def test_the_limits_of_a_gpu_are_those_that_pytorch_knows() -> None:
    found, properties = limits.multiprocessors(0), torch.cuda.get_device_properties(0)
    assert found.count == properties.multi_processor_count
    assert found.threads == properties.max_threads_per_multi_processor
    assert found.shared_bytes == properties.shared_memory_per_multiprocessor
