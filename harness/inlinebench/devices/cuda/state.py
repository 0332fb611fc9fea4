"""Reads the state of a GPU through NVML while calls are timed: clocks, temperature, power and other processes.

The module `pynvml` is installed by the optional extra `gpu`. NoGpuState says why the state cannot be read.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import median
from typing import Any

from inlinebench.results.times import GpuState, Spread
from inlinebench.timing.statistics import quantile

STABLE_CLOCK = 0.95
"""The SM clock's low end divided by its median has to reach this share. The time of a compute-bound kernel is inversely
proportional to the clock, so below this share calls take over 5 % longer. On an undisturbed GPU the clock varies by a
few steps of 15 MHz, about 2 %."""

TAIL = 0.05
"""The share of samples left out at each end of a clock's spread, so that a single odd reading does not count."""

SLOWDOWNS = {
    0x04: "software power cap", 0x08: "hardware slowdown", 0x10: "sync boost", 0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown", 0x80: "power brake",
}
"""NVML's bits for the reasons that lower the clocks. The other bits are not throttling: an idle GPU (0x01), or clocks
that a user set (0x02, 0x100)."""

FIRST_PROCESS_NAMESPACE = "pid:[4026531836]"
"""The number is a constant in Linux (PROC_PID_INIT_INO)."""


@dataclass(frozen=True)
class GpuSample:
    """The state of a GPU at one moment."""

    sm_mhz: float
    """SM clock in MHz."""
    memory_mhz: float
    """Memory clock in MHz."""
    temperature_c: float
    """Temperature in °C."""
    power_w: float | None
    """Power in W as the driver's average, on recent GPUs over the last second. None if the GPU does not measure it."""
    throttled: tuple[str, ...] = ()
    """The reasons that lower the clocks, as in `SLOWDOWNS`."""


class NoGpuState(RuntimeError):
    """The state of the GPU cannot be read. The message says why, and what to do about it if possible."""


class GpuWatch:
    """Reads the state of the CUDA device with this UUID. The prefix `GPU-` is optional.

    `nvml` is the NVML binding, `pynvml` by default. Raises NoGpuState if no sample can be taken.
    """

    def __init__(self, uuid: str, nvml: Any = None) -> None:
        self._nvml = _pynvml() if nvml is None else nvml
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            raise NoGpuState(
                f"cannot initialize NVML ({error}): it is part of the NVIDIA driver, and a container needs the driver "
                "capability 'utility' to use it"
            ) from error
        self._open = True
        try:
            name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
            with self._asking(f"handle by UUID {name}"):
                self._device = self._nvml.nvmlDeviceGetHandleByUUID(name)
            self.sample()  # fails here, not between calls, if this GPU lacks a value
        except BaseException:
            self.close()
            raise

    def sample(self) -> GpuSample:
        """Returns the current state. Raises NoGpuState if NVML fails to read a value, except a power that the GPU does
        not measure."""
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
        """Counts the processes that compute on the GPU, without this one and those in `own`; None if unknown.

        This process must have a CUDA context: if NVML does not list it, the PIDs belong to another namespace. In a
        container there may be more processes than the count says.
        """
        nvml, this = self._nvml, os.getpid()
        # Raised if the driver is older than the binding; it is not an NVMLError.
        mismatch = getattr(nvml, "NVMLLibraryMismatchError", nvml.NVMLError)
        try:
            running = {process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(self._device)}
        except (nvml.NVMLError, mismatch):
            return None
        if this not in running:
            return None
        others = len(running - {this, *own})
        # A driver that translates PIDs omits processes without a PID in our namespace, so 0 would be a guess.
        return others if others or in_first_process_namespace() else None

    def close(self) -> None:
        """Closes NVML. May be called more than once; do not use the watch afterwards."""
        if self._open:
            self._open = False
            with suppress(self._nvml.NVMLError):  # the driver may be gone, and NVML is not needed any more
                self._nvml.nvmlShutdown()

    def _reasons(self) -> int:
        """Returns NVML's bits for the reasons that limit the clocks."""
        try:
            return int(self._nvml.nvmlDeviceGetCurrentClocksEventReasons(self._device))
        except (AttributeError, self._nvml.NVMLError_FunctionNotFound):  # an older binding or driver has the old name
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
            raise NoGpuState(f"NVML cannot read the GPU's {what}: {error}") from error


def drops(samples: Sequence[GpuSample]) -> bool:
    """Whether samples taken under throttling are dropped: they are if they are fewer than half.

    A kernel that draws the maximum power runs under the power cap all the time; then these are its times.
    """
    return 2 * sum(bool(sample.throttled) for sample in samples) < len(samples)


def dropped(samples: Sequence[GpuSample | None], kinds: Sequence[str]) -> list[bool]:
    """Returns for each sample whether it is dropped. None is an unknown state, which is kept.

    `kinds` has the kind of inputs of each call. A kernel may draw the maximum power on one kind only; if at least half
    of the calls on a kind are throttled, these are its times, and without them the kind would not count.
    """
    known = [(sample, kind) for sample, kind in zip(samples, kinds, strict=True) if sample is not None]
    if not drops([sample for sample, _ in known]):
        return [False] * len(samples)
    affected = {kind for kind in set(kinds) if drops([sample for sample, of in known if of == kind])}
    return [sample is not None and bool(sample.throttled) and kind in affected
            for sample, kind in zip(samples, kinds, strict=True)]


def summarize(
    samples: Sequence[GpuSample], other_processes: int | None, kinds: Sequence[str] | None = None
) -> GpuState:
    """Summarizes samples, without those that are `dropped`. Without `kinds`, all calls are of one kind.

    Raises ValueError without samples.
    """
    if not samples:
        raise ValueError("no samples")
    left_out = dropped(samples, [""] * len(samples) if kinds is None else kinds)
    kept = [sample for sample, drop in zip(samples, left_out, strict=True) if not drop]
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
    """Returns a message that other processes used the GPU, or "" if none are known."""
    if not other_processes:
        return ""
    others = "1 other process" if other_processes == 1 else f"{other_processes} other processes"
    return f"the GPU was busy: {others} ran on it"


def flags(state: GpuState) -> list[str]:
    """Returns warnings about times that were measured in this state."""
    found = [text] if (text := busy(state.other_processes)) else []
    clock = state.sm_mhz
    if clock.low < STABLE_CLOCK * clock.median:
        found.append(f"unstable clocks: the SM clock fell to {clock.low:.0f} MHz, its median is {clock.median:.0f} MHz")
    if state.dropped:
        share = f"{state.dropped} of {state.samples} samples were dropped"
        found.append(f"the GPU was throttled for part of the time ({', '.join(state.throttled)}): {share}")
    elif state.throttled:
        found.append(f"the GPU was throttled during measured calls ({', '.join(state.throttled)})")
    return found


def in_first_process_namespace() -> bool:
    """Whether this process is outside of any container, and so can see all processes of the machine."""
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
        raise NoGpuState(f"cannot import pynvml ({error}); run pip install 'inlinebench[gpu]'") from error
