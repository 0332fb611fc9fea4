"""The interface to a device: what every kind of device has to provide.

`inlinebench.devices.registry.of` returns the implementation for one of PyTorch's devices. To add a kind of device, add
an entry to `inlinebench.device_kinds`, and a folder with three modules: `device` (`DEVICE` is a class with this
interface), `target` (`target`, `installed`) and `wake`, which starts the device while a process imports the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from inlinebench.builds.request import RuntimeLibraries
from inlinebench.device_kinds import DeviceKind
from inlinebench.results.result import Environment
from inlinebench.sandbox.gpu import Gpu
from inlinebench.timing.call import Clock
from inlinebench.timing.peaks import Peaks
from inlinebench.timing.trace import Tracer
from inlinebench.wire.locations import Location

if TYPE_CHECKING:
    from inlinebench.devices.cuda.flags import FlagPage
    from inlinebench.devices.cuda.state import GpuWatch, NoGpuState

LAUNCH_REFUSED = "CUDA reports: "
"""How a candidate's note on a launch that CUDA refused begins. The reason for a call that differs repeats such notes.
"""


class UnusableDevice(Exception):
    """The requested device cannot be used. The message says what to do."""


class Arena(Protocol):
    """The judge's shared memory."""

    bytes: torch.Tensor
    """All of it (uint8, 1-d)."""

    def export(self) -> dict[str, Any]:
        """Returns what the candidate needs to open the arena, besides a descriptor."""

    def descriptor(self) -> int:
        """Returns a new descriptor by which a candidate opens the arena. The caller closes it."""

    def close(self) -> None:
        """Frees the memory."""


class BeforeCall(Protocol):
    """Prepares memory before calls, so that their times do not depend on what happened before."""

    @property
    def held_bytes(self) -> int:
        """The bytes that it holds of PyTorch's allocator during a call."""

    def prepare(self, inputs: Sequence[tuple[int, int]]) -> None:
        """Call it right before the clock starts. `inputs` has address and size in bytes of each input."""


class Locator(Protocol):
    """Finds where a candidate's memory is, for the judge to read."""

    def locate(self, address: int) -> Location | None:
        """Returns the location of an address, or None if the device cannot share this kind of memory."""


class LaunchErrors(Protocol):
    """Errors of launches that many solutions do not ask for."""

    def describe(self) -> str:
        """Returns the error of the last refused launch, or "" if there is none."""


@dataclass(frozen=True)
class AllocatorPeak:
    """What PyTorch's allocator says about one process and a call."""

    peak_bytes: int
    """The most bytes that were in use at once."""
    reserved_bytes: int
    """The bytes that the allocator holds after the call, in use or cached."""


class AllocatorMeter(Protocol):
    """Reads the counters of PyTorch's allocator in this process."""

    def begin(self) -> int:
        """Begins to record the peak. Returns the bytes that are in use now."""

    def begin_with_empty_cache(self) -> None:
        """Frees cached memory, so that what is reserved afterwards is in use, and begins to record the peak."""

    def free_workspaces(self) -> None:
        """Frees the workspaces of libraries, which the next call that needs one allocates again."""

    def peak(self) -> AllocatorPeak | None:
        """Returns the peak since the beginning. None if PyTorch uses an allocator that does not count it."""


@dataclass(frozen=True)
class Instruments:
    """What a candidate's process has for its device."""

    clock: Clock
    tracer: Tracer
    launch_errors: LaunchErrors | None
    """None if the runtime that executes kernels reports them."""


class Device(Protocol):
    """A device."""

    kind: DeviceKind
    torch_device: torch.device
    """PyTorch's device."""
    holds_calls: bool
    """Whether the judge can hold a candidate's call and keep its time (`inlinebench.evaluation.integrity`)."""
    candidates_share_inputs: bool
    """Whether a candidate computes with its inputs where the judge writes them, in the arena. Otherwise it copies them.
    """

    def __init__(self, torch_device: torch.device) -> None: ...

    @staticmethod
    def find(index: int) -> torch.device:
        """Returns PyTorch's device with this number. Raises UnusableDevice."""

    # What it is

    def environment(self, common: Environment) -> Environment:
        """Adds the hardware and its own software to what results are recorded with."""

    def architectures(self) -> tuple[str, ...]:
        """Returns what to build for, as nvcc names compute capabilities (`90`). Empty on the CPU."""

    def under_test(self) -> Gpu | None:
        """Returns the GPU that candidates may use, or None if there is none."""

    # Memory and work

    def synchronize(self) -> None:
        """Waits for the device, so that its errors are reported now."""

    def is_healthy(self) -> bool:
        """Frees the memory that PyTorch caches. Returns whether the device still works."""

    def release_cached_memory(self) -> None:
        """Frees the memory that PyTorch caches in this process, so that other processes can allocate it."""

    def free_bytes(self) -> int:
        """Returns the bytes that any process can still allocate. Frees what PyTorch caches first."""

    def allocatable_bytes(self) -> int:
        """Returns the bytes that this process can still allocate, including what PyTorch caches. Leaves the cache as it
        is, so that the same memory can be allocated again in each call without delay."""

    def unreserved_bytes(self) -> int:
        """Returns the bytes that no process has reserved. What PyTorch does with its cache does not change it."""

    def limit_memory(self, most: int) -> None:
        """Makes allocations of this process fail beyond `most` bytes, where memory cannot be estimated beforehand."""

    def allocator_meter(self) -> AllocatorMeter | None:
        """Returns what reads the counters of PyTorch's allocator in this process, or None if nothing is counted."""

    def has_room_for_waiting(self) -> bool:
        """Whether a candidate can start before it is needed. False where starting takes no time."""

    def generators(self) -> list[torch.device]:
        """Returns the devices with random generators of their own, besides the CPU."""

    # The shared memory

    def create_arena(self, size: int) -> Arena:
        """Creates the shared memory, of `size` bytes. Raises torch.OutOfMemoryError."""

    def open_arena(self, exported: Mapping[str, Any], descriptor: int) -> torch.Tensor:
        """Opens the judge's arena in the candidate and returns its bytes (uint8, 1-d)."""

    def close_arena(self, opened: torch.Tensor) -> None:
        """Closes an arena that `open_arena` opened. Its memory is not freed before."""

    def locator(self, arena: torch.Tensor) -> Locator | None:
        """Returns what finds the locations of a candidate's results, or None if all are copied to the arena."""

    # Times

    def prepare_judge(self) -> None:
        """Sets up PyTorch in the judge's process, before its first allocation."""

    def flag_page(self) -> FlagPage | None:
        """Creates the flags that the judge shares with a candidate, or returns None if its clock needs none."""

    def judge_clock(self, libraries: RuntimeLibraries) -> Clock:
        """Returns the clock of the judge's process."""

    def judge_tracer(self, libraries: RuntimeLibraries, *, late: bool) -> Tracer:
        """Returns the tracer of the judge's process. With `late`, it starts at its first use."""

    def instruments(self, libraries: Mapping[str, str], page_fd: int | None) -> Instruments:
        """Returns what a candidate's process has. `libraries` are paths by name, `page_fd` is the flag page's."""

    def before_call(self, clock: Clock, output_bytes: Sequence[int]) -> BeforeCall:
        """Returns what prepares memory before calls. `output_bytes` has the size of each output."""

    def peaks(self, clock: Clock, tracer: Tracer, folder: Path) -> Peaks:
        """Returns the measured peaks, from a file in `folder` if nothing has changed."""

    def watch(self) -> GpuWatch | NoGpuState | None:
        """Returns a reader of the device's state, why there is none, or None if there is nothing to read."""
