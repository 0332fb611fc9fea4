"""The CPU, which runs CUDA sources by `cuda_on_cpu`."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from inlinebench.builds.request import RuntimeLibraries
from inlinebench.device_kinds import kind_of
from inlinebench.devices.base import Instruments
from inlinebench.devices.cpu.arena import CpuArena, open_arena
from inlinebench.devices.cpu.clock import CpuClock
from inlinebench.results.result import Environment
from inlinebench.sandbox.watchdog import available_bytes
from inlinebench.timing.call import Clock
from inlinebench.timing.peaks import Peaks
from inlinebench.timing.poison import PoisonedBlocks
from inlinebench.timing.trace import Tracer, no_tracer


class CpuDevice:
    """The CPU of this machine. Work is finished when it returns, so there is nothing to wait for."""

    kind = kind_of("cpu")
    holds_calls = False
    candidates_share_inputs = False  # they copy inputs to memory whose bounds the runtime guards

    def __init__(self, torch_device: torch.device) -> None:
        self.torch_device = torch_device

    @staticmethod
    def find(index: int) -> torch.device:
        """Returns PyTorch's device."""
        return torch.device("cpu")

    def environment(self, common: Environment) -> Environment:
        """Adds the processor."""
        return replace(common, cpu=f"{_processor()}, {os.cpu_count()} cores")

    def architectures(self) -> tuple[str, ...]:
        """Returns nothing: the compiler chooses."""
        return ()

    def under_test(self) -> None:
        """Returns None: candidates use no GPU."""

    def synchronize(self) -> None:
        """Does nothing."""

    def is_healthy(self) -> bool:
        """Returns True: an error of the CPU ends its process."""
        return True

    def release_cached_memory(self) -> None:
        """Does nothing: PyTorch caches no memory of the CPU."""

    def free_bytes(self) -> int:
        """Returns the bytes that any process can still allocate."""
        return available_bytes()

    def allocatable_bytes(self) -> int:
        """Returns the bytes that this process can still allocate."""
        return available_bytes()

    def unreserved_bytes(self) -> int:
        """Returns the bytes that any process can still allocate."""
        return available_bytes()

    def limit_memory(self, most: int) -> None:
        """Does nothing: the caller limits the process."""

    def allocator_meter(self) -> None:
        """Returns None: PyTorch does not count memory of the CPU."""

    def has_room_for_waiting(self) -> bool:
        """Returns False: a candidate starts at once."""
        return False

    def generators(self) -> list[torch.device]:
        """Returns no device besides the CPU."""
        return []

    def create_arena(self, size: int) -> CpuArena:
        """Creates the shared memory, of `size` bytes."""
        return CpuArena(size)

    def open_arena(self, exported: Mapping[str, Any], descriptor: int) -> torch.Tensor:
        """Maps the arena's file."""
        return open_arena(exported, descriptor)

    def close_arena(self, opened: torch.Tensor) -> None:
        """Does nothing: the mapping ends with the tensor."""

    def locator(self, arena: torch.Tensor) -> None:
        """Returns None: all results are copied to the arena."""

    def prepare_judge(self) -> None:
        """Does nothing."""

    def flag_page(self) -> None:
        """Returns None: the clock needs no flags."""

    def judge_clock(self, libraries: RuntimeLibraries) -> CpuClock:
        """Returns the clock of the judge's process."""
        return CpuClock()

    def judge_tracer(self, libraries: RuntimeLibraries, *, late: bool) -> Tracer:
        """Returns a tracer that records nothing: the runtime counts launches."""
        return no_tracer

    def instruments(self, libraries: Mapping[str, str], page_fd: int | None) -> Instruments:
        """Returns what a candidate's process has."""
        return Instruments(CpuClock(), no_tracer, launch_errors=None)

    def before_call(self, clock: Clock, output_bytes: Sequence[int]) -> PoisonedBlocks:
        """Returns what overwrites the blocks of outputs before calls."""
        return PoisonedBlocks(self.torch_device, output_bytes)

    def peaks(self, clock: Clock, tracer: Tracer, folder: Path) -> Peaks:
        """Raises NotImplementedError: times on the CPU are not compared with anything."""
        raise NotImplementedError

    def watch(self) -> None:
        """Returns None: there is no state to read."""


DEVICE = CpuDevice


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
