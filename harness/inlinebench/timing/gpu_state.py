"""The state of a GPU while calls are timed: clocks, heat, power, and who else works on it, as NVML tells them.

NVML is asked through `pynvml`, which the optional extra `gpu` installs. Where it can't be asked, NoGpuState says why.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import median
from typing import Any

from inlinebench.records.result import GpuState, Spread
from inlinebench.timing.statistics import quantile

STABLE_CLOCK = 0.95
"""The share of its median that an SM clock's low end has to reach. The time of a kernel that computes is inverse to the
clock, so below this such calls take over 5 % longer. An undisturbed GPU moves by a few steps of 15 MHz, some 2 %."""

TAIL = 0.05
"""The share of samples beyond each end of a clock's spread: one odd reading in twenty isn't the GPU's state."""

SLOWDOWNS = {
    0x04: "software power cap", 0x08: "hardware slowdown", 0x10: "sync boost", 0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown", 0x80: "power brake",
}
"""NVML's bits for what holds the clocks below those that were asked for. The others are no throttling, as an idle GPU
(0x01) and clocks that somebody set (0x02, 0x100)."""

FIRST_PROCESS_NAMESPACE = "pid:[4026531836]"
"""The number is fixed in Linux (PROC_PID_INIT_INO)."""


@dataclass(frozen=True)
class GpuSample:
    """A GPU at one moment: clocks in MHz, temperature in °C, power in W where the GPU tells it.

    The power is the driver's mean, on recent GPUs over the last second. `throttled` names what slows the GPU down.
    """

    sm_mhz: float
    memory_mhz: float
    temperature_c: float
    power_w: float | None
    throttled: tuple[str, ...] = ()


class NoGpuState(RuntimeError):
    """The state of the GPU can't be read. The message says why, and what to do where something can be done."""


class GpuWatch:
    """Reads the state of the CUDA device with this UUID, with or without `GPU-` in front of it.

    `nvml` is the module to ask through, `pynvml` unless given. Raises NoGpuState where no sample can be taken.
    """

    def __init__(self, uuid: str, nvml: Any = None) -> None:
        self._nvml = _pynvml() if nvml is None else nvml
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            raise NoGpuState(
                f"NVML doesn't start ({error}): it comes with NVIDIA's driver, and a container needs the driver "
                "capability 'utility' for it"
            ) from error
        self._open = True
        try:
            name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
            with self._asking(f"handle, by {name}"):
                self._device = self._nvml.nvmlDeviceGetHandleByUUID(name)
            self.sample()  # what this GPU can't tell is found here, not between calls
        except BaseException:
            self.close()
            raise

    def sample(self) -> GpuSample:
        """The state now. Raises NoGpuState if NVML refuses any of it, but for a power that the GPU doesn't measure."""
        nvml, device = self._nvml, self._device
        with self._asking("throttling"):
            reasons = self._reasons()
        with self._asking("clocks"):
            sm_mhz = float(nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM))
            memory_mhz = float(nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM))
        with self._asking("temperature"):
            temperature_c = float(nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU))
        with self._asking("power"):
            power_w = self._power_w()
        throttled = tuple(name for bit, name in SLOWDOWNS.items() if reasons & bit)
        return GpuSample(sm_mhz, memory_mhz, temperature_c, power_w, throttled)

    def other_processes(self, own: Collection[int]) -> int | None:
        """How many processes compute on the GPU beside this one and those in `own`; None where that can't be known.

        This process has to have a CUDA context: if it isn't listed, the numbers are those of another namespace. In a
        container there may be more than are counted.
        """
        nvml, this = self._nvml, os.getpid()
        # Raised where the driver is older than the binding; no NVMLError.
        mismatch = getattr(nvml, "NVMLLibraryMismatchError", nvml.NVMLError)
        try:
            running = {process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(self._device)}
        except (nvml.NVMLError, mismatch):
            return None
        if this not in running:
            return None
        others = len(running - {this, *own})
        # Drivers that translate the numbers leave out processes without one in our namespace, so 0 would be a guess.
        return others if others or in_first_process_namespace() else None

    def close(self) -> None:
        """May be called again; nothing else may be called after it."""
        if self._open:
            self._open = False
            with suppress(self._nvml.NVMLError):  # the driver may be gone; nothing is asked of it any more
                self._nvml.nvmlShutdown()

    def _reasons(self) -> int:
        """NVML's bits for what limits the clocks."""
        try:
            return int(self._nvml.nvmlDeviceGetCurrentClocksEventReasons(self._device))
        except (AttributeError, self._nvml.NVMLError_FunctionNotFound):  # a binding or a driver that has the older name
            return int(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._device))

    def _power_w(self) -> float | None:
        try:
            return float(self._nvml.nvmlDeviceGetPowerUsage(self._device)) / 1e3  # from mW
        except self._nvml.NVMLError_NotSupported:
            return None

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._nvml.NVMLError as error:
            raise NoGpuState(f"NVML doesn't tell the GPU's {what}: {error}") from error


def drops(samples: Sequence[GpuSample]) -> bool:
    """Whether what was measured under throttling is dropped: where it is less than half, and so not the GPU's habit.

    A kernel that draws all the power that the GPU may take runs under its power cap throughout; those are its times.
    """
    return 2 * sum(bool(sample.throttled) for sample in samples) < len(samples)


def summarize(samples: Sequence[GpuSample], other_processes: int | None) -> GpuState:
    """The record of some samples, of which throttled ones are dropped where `drops` says so.

    Raises ValueError without samples.
    """
    if not samples:
        raise ValueError("no samples")
    kept = [sample for sample in samples if not (sample.throttled and drops(samples))]
    seen = {reason for sample in samples for reason in sample.throttled}
    powers = [sample.power_w for sample in kept if sample.power_w is not None]
    return GpuState(
        sm_mhz=_spread([sample.sm_mhz for sample in kept]),
        memory_mhz=_spread([sample.memory_mhz for sample in kept]),
        temperature_c=max(sample.temperature_c for sample in samples),
        samples=len(samples),
        dropped=len(samples) - len(kept),
        throttled=tuple(sorted(seen)),
        power_w=median(powers) if powers else None,
        other_processes=other_processes,
    )


def busy(other_processes: int | None) -> str:
    """That others worked on the GPU; empty if none are known to have."""
    if not other_processes:
        return ""
    others = "1 other process" if other_processes == 1 else f"{other_processes} other processes"
    return f"the GPU was busy: {others} ran on it"


def flags(state: GpuState) -> list[str]:
    """What a person should know before believing times that were taken in this state."""
    found = [text] if (text := busy(state.other_processes)) else []
    clock = state.sm_mhz
    if clock.low < STABLE_CLOCK * clock.median:
        found.append(f"unstable clocks: the SM clock fell to {clock.low:.0f} MHz, its median is {clock.median:.0f} MHz")
    if state.dropped:
        share = f"{state.dropped} of {state.samples} samples were dropped"
        found.append(f"the GPU was slowed down for a while ({', '.join(state.throttled)}): {share}")
    elif state.throttled:
        found.append(f"the GPU was slowed down most of the time ({', '.join(state.throttled)})")
    return found


def in_first_process_namespace() -> bool:
    """Whether this process can see all others of its machine, being in no container."""
    try:
        return os.readlink("/proc/self/ns/pid") == FIRST_PROCESS_NAMESPACE
    except OSError:
        return False


def _spread(clocks: Sequence[float]) -> Spread:
    return Spread(median=quantile(clocks, 0.5), low=quantile(clocks, TAIL), high=quantile(clocks, 1 - TAIL))


def _pynvml() -> Any:
    try:
        return importlib.import_module("pynvml")
    except ImportError as error:
        raise NoGpuState(f"pynvml can't be imported ({error}): pip install 'inlinebench[gpu]'") from error
