"""What a judge has for its device: the clock, the tracer, the measured peaks, and a reader of its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from inlinebench.builds.request import RuntimeLibraries
from inlinebench.compile.cache.contents import PEAKS
from inlinebench.compile.cache.folder import cache_folder
from inlinebench.devices.base import Device
from inlinebench.messages import Settings
from inlinebench.results.result import Environment
from inlinebench.timing.call import Clock
from inlinebench.timing.peaks import Peaks
from inlinebench.timing.trace import Tracer


class DeviceContext:
    """What a judge has for its device. The clock and the tracer exist from `start` on.

    Args:
        device: the device.
        environment: its hardware and software, for results.
        settings: the options of the run.
    """

    clock: Clock
    """Times calls in the judge's process."""
    tracer: Tracer
    """Records which kernels run in the judge's process."""

    def __init__(self, device: Device, environment: Environment, settings: Settings) -> None:
        self.device, self.environment, self._settings = device, environment, settings
        self.times_calls = settings.timing and device.kind.times_are_comparable
        """Whether times are measured that are compared with others."""
        self.peaks: Peaks | None = None
        """The measured peaks of the device. None if no times are compared."""
        self.watch = device.watch() if settings.timing else None
        """Reads the device's state, or says why it cannot. None if there is none to read, or without timing."""

    def start(self, libraries: RuntimeLibraries, progress: Callable[[str], None]) -> None:
        """Opens the clock and the tracer, and measures the device's peaks if times are compared.

        Call it before a problem is loaded, which might change settings of PyTorch.
        """
        self.clock = self.device.judge_clock(libraries)
        self.tracer = self.device.judge_tracer(libraries, late=not self._settings.timing)
        if self.times_calls:
            progress("measuring the GPU's peak rates")
            folder = cache_folder(self._settings.cache) / PEAKS
            self.peaks = self.device.peaks(self.clock, self.tracer, folder)
            self.environment = replace(self.environment, peaks=str(self.peaks))
