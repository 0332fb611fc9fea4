"""What a judge has for its device: the clock, the tracer, the GPU's peaks, and a reader of its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from inlinebench.compile.cache.contents import PEAKS
from inlinebench.compile.cache.folder import cache_folder
from inlinebench.messages import Settings
from inlinebench.records.build_request import RuntimeLibraries
from inlinebench.records.result import Environment
from inlinebench.sandbox import gpu
from inlinebench.sandbox.gpu import Gpu
from inlinebench.timing.call import Clock
from inlinebench.timing.cpu import CpuClock
from inlinebench.timing.flags import FlagPage
from inlinebench.timing.gpu import GpuClock
from inlinebench.timing.gpu_state import GpuWatch, NoGpuState
from inlinebench.timing.peaks import Peaks, cached, key_of, measure
from inlinebench.timing.profile import CuptiTracer, Tracer, open_tracer, torch_tracer

FREE_SHARE = 0.5
"""The share of the GPU's memory that must be free for a waiting candidate, which takes several hundred MB."""


class DeviceContext:
    """What a judge has for its device.

    Args:
        device: the device.
        environment: its hardware and software, for results.
        settings: the options of the run.
    """

    def __init__(self, device: torch.device, environment: Environment, settings: Settings) -> None:
        self.device, self.environment, self._settings = device, environment, settings
        self.clock: Clock = CpuClock()
        """Times calls in the judge's process. On a GPU from `start` on."""
        self.tracer: Tracer = torch_tracer
        """Records which kernels run in the judge's process."""
        self.peaks: Peaks | None = None
        """Measured peak rates of the GPU. None on the CPU or without timing."""
        self.watch = self._watch() if settings.timing else None
        """Reads the GPU's state, or says why it cannot. None on the CPU or without timing."""

    @property
    def is_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device.type == "cuda"

    @property
    def under_test(self) -> Gpu | None:
        """The GPU that candidates may use, or None on the CPU."""
        return gpu.only(str(self.device), self._uuid) if self.is_gpu else None

    @property
    def has_room(self) -> bool:
        """Whether the device has memory for a waiting candidate. Always False on the CPU, where starting takes no time.
        """
        if not self.is_gpu or self._settings.sanitize is not None:
            return False
        free, whole = torch.cuda.mem_get_info(self.device)
        return free >= FREE_SHARE * whole

    def start(self, libraries: RuntimeLibraries, progress: Callable[[str], None]) -> None:
        """Opens the clock and the tracer of a GPU, and measures its peaks if calls are timed.

        Call it before a problem is loaded, which might change settings of PyTorch.
        """
        if libraries.clock is None:
            return
        settings = self._settings
        self.clock = GpuClock(libraries.clock, self.device.index, FlagPage())
        self.tracer = open_tracer(libraries.trace, late=not settings.timing)
        if settings.timing:
            progress("measuring the GPU's peak rates")
            self._measure_peaks()

    def _measure_peaks(self) -> None:
        device, clock = self.device, self.clock
        # Not PyTorch's profiler, which takes seconds and slows down later calls.
        tracer = self.tracer if isinstance(self.tracer, CuptiTracer) else None
        key = replace(key_of(device), cupti=tracer is not None)
        folder = cache_folder(self._settings.cache) / PEAKS
        self.peaks = cached(folder, key, lambda: measure(clock, device, tracer=tracer))
        self.environment = replace(self.environment, peaks=str(self.peaks))

    def _watch(self) -> GpuWatch | NoGpuState | None:
        """Returns a reader of the GPU's state, or the reason why it cannot be read. None on the CPU."""
        if not self.is_gpu:
            return None
        try:
            return GpuWatch(self._uuid)
        except NoGpuState as error:
            return error

    @property
    def _uuid(self) -> str:
        return str(torch.cuda.get_device_properties(self.device).uuid)
