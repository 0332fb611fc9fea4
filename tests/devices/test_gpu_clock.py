"""The clock of a GPU takes a time stamp between the passes of a call, which costs little."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest
import torch

from inlinebench.compile import toolchain
from inlinebench.devices.cuda.clock import GpuClock
from inlinebench.devices.cuda.flags import FlagPage
from inlinebench.devices.cuda.target import CLOCK_SOURCE
from inlinebench.timing.call import Sample, timed_call

MOST_MS = 0.003
"""What the time stamp may cost, in ms."""


@pytest.mark.gpu
def test_a_time_stamp_between_the_passes_splits_the_time_of_a_call(tmp_path: Path) -> None:
    library = tmp_path / "clock.so"
    flags = ["-shared", "-Xcompiler", "-fPIC", "-arch=native"]
    subprocess.run([toolchain.nvcc(), *flags, "-o", str(library), str(CLOCK_SOURCE)], check=True)
    clock, x = GpuClock(library, 0, FlagPage()), torch.ones(1 << 26, device="cuda")

    def call(marked: bool) -> Callable[[], None]:
        def work() -> None:
            x.add_(1)
            if marked:
                clock.mark()
            x.add_(1).add_(1).add_(1)
        return work

    def samples(marked: bool) -> list[Sample]:
        found = [timed_call(clock, call(marked), lambda _: None, 50)[1] for _ in range(60)][10:]
        assert sum(each.blocked for each in found) > 40  # the first ones load modules
        return [each for each in found if each.blocked]

    plain, split = samples(False), samples(True)
    assert all(each.forward_ms is None for each in plain)
    shares = [each.forward_ms / each.device_ms for each in split if each.forward_ms is not None]
    assert len(shares) == len(split) and 0.24 < median(shares) < 0.26
    cost = median(each.device_ms for each in split) - median(each.device_ms for each in plain)
    print(f"a time stamp between the passes costs {1e3 * cost:.2f} µs")
    assert cost < MOST_MS
