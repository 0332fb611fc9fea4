"""An NVIDIA GPU."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from inlinebench.builds.request import RuntimeLibraries
from inlinebench.device_kinds import kind_of
from inlinebench.devices.base import Instruments, UnusableDevice
from inlinebench.devices.cuda import peaks
from inlinebench.devices.cuda.allocator import CudaAllocatorMeter
from inlinebench.devices.cuda.arena import CudaArena, close_arena, open_arena
from inlinebench.devices.cuda.before_call import CudaBeforeCall
from inlinebench.devices.cuda.clock import GpuClock
from inlinebench.devices.cuda.device_memory import Exporter
from inlinebench.devices.cuda.flags import FlagPage
from inlinebench.devices.cuda.launch_errors import PendingError
from inlinebench.devices.cuda.limits import multiprocessors
from inlinebench.devices.cuda.state import GpuWatch, NoGpuState
from inlinebench.devices.cuda.tracer import CuptiTracer, open_tracer
from inlinebench.results.result import Environment
from inlinebench.sandbox import gpu
from inlinebench.sandbox.gpu import Gpu
from inlinebench.timing.call import Clock
from inlinebench.timing.peaks import Peaks
from inlinebench.timing.trace import Tracer

DRIVER_VERSION = Path("/sys/module/nvidia/version")
"""The driver's version. Reading this file takes no time, while nvidia-smi takes a fifth of a second."""
FREE_SHARE = 0.5
"""The share of the GPU's memory that must be free for a waiting candidate, which takes several hundred MB."""


class CudaDevice:
    """A GPU, through PyTorch, the CUDA runtime that PyTorch has loaded, and the harness's own libraries."""

    kind = kind_of("cuda")
    holds_calls = True
    candidates_share_inputs = True

    def __init__(self, torch_device: torch.device) -> None:
        self.torch_device = torch_device

    @staticmethod
    def find(index: int) -> torch.device:
        """Returns the GPU with this number. Raises UnusableDevice."""
        if not torch.cuda.is_available():
            raise UnusableDevice(_why_no_cuda())
        if index >= torch.cuda.device_count():
            count = torch.cuda.device_count()
            raise UnusableDevice(f"--device cuda:{index}: there are {count} CUDA devices, numbered from 0")
        return torch.device("cuda", index)

    def environment(self, common: Environment) -> Environment:
        """Adds the GPU, its driver and PyTorch's CUDA version."""
        name = torch.cuda.get_device_name(self.torch_device)
        return replace(common, gpu=name, driver=_driver(), cuda=torch.version.cuda,
                       multiprocessors=multiprocessors(self.torch_device.index))

    def architectures(self) -> tuple[str, ...]:
        """Returns the GPU's compute capability."""
        major, minor = torch.cuda.get_device_capability(self.torch_device)
        return (f"{major}{minor}",)

    def under_test(self) -> Gpu:
        """Returns this GPU as a candidate sees it."""
        return gpu.only(str(self.torch_device), self._uuid)

    def synchronize(self) -> None:
        """Waits for the GPU."""
        torch.cuda.synchronize(self.torch_device)

    def is_healthy(self) -> bool:
        """Frees the memory that PyTorch caches. Returns whether the GPU still works in this process."""
        try:
            torch.cuda.synchronize(self.torch_device)
            self.release_cached_memory()
        except RuntimeError:  # a kernel's error may be reported only now, and persists
            return False
        return True

    def release_cached_memory(self) -> None:
        """Frees the memory that PyTorch caches in this process."""
        torch.cuda.empty_cache()

    def free_bytes(self) -> int:
        """Returns the bytes that any process can still allocate. Frees what PyTorch caches first."""
        self.release_cached_memory()
        return self.unreserved_bytes()

    def allocatable_bytes(self) -> int:
        """Returns the bytes that this process can still allocate, including what PyTorch caches."""
        cached = torch.cuda.memory_reserved(self.torch_device) - torch.cuda.memory_allocated(self.torch_device)
        return self.unreserved_bytes() + cached

    def unreserved_bytes(self) -> int:
        """Returns the bytes that no process has reserved, by the driver."""
        return int(torch.cuda.mem_get_info(self.torch_device)[0])

    def limit_memory(self, most: int) -> None:
        """Makes PyTorch's allocator fail beyond `most` bytes."""
        whole = torch.cuda.get_device_properties(self.torch_device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, most / whole), self.torch_device)

    def allocator_meter(self) -> CudaAllocatorMeter:
        """Returns what reads the counters of PyTorch's allocator in this process."""
        return CudaAllocatorMeter(self.torch_device)

    def has_room_for_waiting(self) -> bool:
        """Whether half of the memory is free."""
        free, whole = torch.cuda.mem_get_info(self.torch_device)
        return free >= FREE_SHARE * whole

    def generators(self) -> list[torch.device]:
        """Returns this GPU."""
        return [self.torch_device]

    def create_arena(self, size: int) -> CudaArena:
        """Creates the shared memory, of `size` bytes. Raises torch.OutOfMemoryError."""
        return CudaArena(size, self.torch_device)

    def open_arena(self, exported: Mapping[str, Any], descriptor: int) -> torch.Tensor:
        """Maps the judge's arena in the candidate and returns its bytes (uint8, 1-d)."""
        return open_arena(exported, descriptor, self.torch_device)

    def close_arena(self, opened: torch.Tensor) -> None:
        """Closes an arena that `open_arena` opened."""
        close_arena(opened)

    def locator(self, arena: torch.Tensor) -> Exporter:
        """Returns what finds locations by CUDA IPC handles."""
        return Exporter((arena.data_ptr(), arena.numel()))

    def prepare_judge(self) -> None:
        """Makes PyTorch allocate in expandable segments.

        Other processes can open what cudaMalloc allocates, by guessing small numbers, but not what these are made of.
        """
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")

    def flag_page(self) -> FlagPage:
        """Creates the flags of a blocking kernel."""
        return FlagPage()

    def judge_clock(self, libraries: RuntimeLibraries) -> GpuClock:
        """Returns the clock of the judge's process, which has one."""
        assert libraries.clock is not None
        return GpuClock(libraries.clock, self.torch_device.index, FlagPage())

    def judge_tracer(self, libraries: RuntimeLibraries, *, late: bool) -> Tracer:
        """Returns the tracer of the judge's process. With `late`, CUPTI starts at the first use."""
        return open_tracer(libraries.trace, late=late)

    def instruments(self, libraries: Mapping[str, str], page_fd: int | None) -> Instruments:
        """Starts CUDA in a candidate's process, and returns what it has."""
        assert page_fd is not None
        torch.cuda.set_device(self.torch_device)
        clock = GpuClock(Path(libraries["clock"]), self.torch_device.index, FlagPage(page_fd))
        instruments = Instruments(clock, open_tracer(libraries.get("trace")), PendingError())
        torch.cuda.synchronize(self.torch_device)
        return instruments

    def before_call(self, clock: Clock, output_bytes: Sequence[int]) -> CudaBeforeCall:
        """Returns what prepares memory before calls."""
        return CudaBeforeCall(clock, self.torch_device, output_bytes)

    def peaks(self, clock: Clock, tracer: Tracer, folder: Path) -> Peaks:
        """Returns the measured peaks, from a file in `folder` if nothing has changed."""
        # Not PyTorch's profiler, which takes seconds and slows down later calls.
        cupti = tracer if isinstance(tracer, CuptiTracer) else None
        key = replace(peaks.key_of(self.torch_device), cupti=cupti is not None)
        return peaks.cached(folder, key, lambda: peaks.measure(clock, self.torch_device, tracer=cupti))

    def watch(self) -> GpuWatch | NoGpuState:
        """Returns a reader of the GPU's state, or the reason why it cannot be read."""
        try:
            return GpuWatch(self._uuid)
        except NoGpuState as error:
            return error

    @property
    def _uuid(self) -> str:
        return str(torch.cuda.get_device_properties(self.torch_device).uuid)


DEVICE = CudaDevice


def _why_no_cuda() -> str:
    if torch.version.cuda is None:
        return (f"no CUDA device: this PyTorch ({torch.__version__}) is built without CUDA; install a CUDA build of "
                "torch on a machine with an NVIDIA GPU")
    return ("no CUDA device: PyTorch finds none; check that nvidia-smi lists a GPU and that CUDA_VISIBLE_DEVICES "
            "doesn't hide it")


def _driver() -> str | None:
    with suppress(OSError):
        return DRIVER_VERSION.read_text(encoding="ascii").strip()
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.split("\n")[0].strip() or None
