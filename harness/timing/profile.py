"""Which kernels ran, and when: the GPU's activity during some work, as CUPTI tells it through PyTorch's profiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

Value = TypeVar("Value")

MOST_ACTIVITIES = 20_000
LONGEST_NAME = 400


@dataclass(frozen=True)
class Activity:
    """A kernel, copy or fill on the GPU: its name as C++ writes it (cut at 400 characters), begin and end in µs."""

    name: str
    begin_us: float
    end_us: float


def profiled(work: Callable[[], Value]) -> tuple[Value, list[Activity]]:
    """The value of some work that waits for the GPU itself, and the GPU's activities in order of their begins.

    At most the first 20,000. Empty where CUPTI can't be used, which the profiler says on stderr.
    """
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        value = work()
    found = [
        Activity(event.name[:LONGEST_NAME], event.time_range.start, event.time_range.end)
        for event in profiler.events() or () if event.device_type == DeviceType.CUDA
    ]
    return value, sorted(found, key=lambda activity: activity.begin_us)[:MOST_ACTIVITIES]
