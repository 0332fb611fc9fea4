"""Device times by the harness's timer and other methods: the parts of timing_accuracy.py that run in one process."""

from __future__ import annotations

import ctypes
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import torch
from accuracy_bars import Flushed, Spun, Traced, middle, spin_for

from inlinebench.compile import toolchain
from inlinebench.compile.service import BuildService, BuildSettings
from inlinebench.devices.cuda.clock import GpuClock
from inlinebench.devices.cuda.flags import FlagPage
from inlinebench.devices.cuda.target import GpuTarget
from inlinebench.devices.cuda.tracer import CuptiTracer
from inlinebench.devices.registry import of
from inlinebench.evaluation.integrity.attribution import HOLD, STOP
from inlinebench.timing.call import Clock, timed_call
from inlinebench.timing.overhead import null_ms, shown_ms
from inlinebench.timing.trace import HARNESS, Activity
from inlinebench.wire.arithmetic import exact_arithmetic

BLOCK_MS = 50.0
BUILD_TIMEOUT_S = 600.0
Work = Callable[[], object]

SPIN_KERNEL = r"""
__global__ void accuracy_spin(long long cycles, long long* seen) {
  unsigned long long before, after;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before));
  const long long begin = clock64();
  long long passed;
  do {
    passed = clock64() - begin;
  } while (passed < cycles);
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(after));
  if (seen) {
    seen[0] = passed;
    seen[1] = static_cast<long long>(after - before);  // ns
  }
}
"""
"""Launched on the legacy default stream, like the clock's time stamps and torch's work."""

SPIN_LIBRARY = SPIN_KERNEL + r"""
extern "C" int spin_launch(long long cycles, void* seen) {
  accuracy_spin<<<1, 1>>>(cycles, static_cast<long long*>(seen));
  return cudaGetLastError();
}
"""

RATE_CYCLES = 10_000_000
"""About 5 ms, so that the global timer, whose resolution may be 1 µs, is accurate to 0.02 %."""
WARMING_SPINS = 20
"""About 0.1 s, after which the SM clock has left its idle rate."""
SPIN_US = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)

ELEMENTS = tuple(1 << power for power in range(10, 29, 3))
MATRICES = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
CHAINS = (1, 2, 5, 10, 20, 50)
SMALL = 1024
LONGEST_US = 50_000

COPIES_MIB = (0.25, 4, 64, 512)
CLEAN_SWEEPS = 4
IDLE_S = 0.02


class Failed(Exception):
    """A figure cannot be measured; the text says why."""


class Spin:
    """A kernel of one thread that spins for a number of SM clock cycles, and measures how long it took."""

    SELF, RATE = 0, 1
    """The slots for the measurements of a launch."""

    def __init__(self, folder: Path, device: torch.device) -> None:
        source, library = folder / "spin.cu", folder / "spin.so"
        source.write_text(SPIN_LIBRARY)
        flags = ["-O2", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", f"-arch=sm_{of(device).architectures()[-1]}"]
        command = [toolchain.nvcc(), *flags, str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"the spin kernel was not built:\n{done.stdout}{done.stderr}")
        self._launch = ctypes.CDLL(str(library)).spin_launch
        self._launch.argtypes = [ctypes.c_longlong, ctypes.c_void_p]
        self._seen = torch.zeros(2, 2, dtype=torch.int64, device=device)

    def __call__(self, cycles: int, slot: int = SELF) -> None:
        """Queues a spin. Does not wait."""
        status = self._launch(cycles, self._seen[slot].data_ptr())
        if status:
            raise Failed(f"the spin kernel was not launched: CUDA status {status}")

    def seen(self, slot: int = SELF) -> tuple[int, int]:
        """Returns the cycles and ns of the last spin with this slot. Waits for the device."""
        cycles, nanoseconds = self._seen[slot].tolist()
        return cycles, nanoseconds

    def cycles_per_us(self) -> float:
        """Returns the clock rate that the last spin with slot RATE measured. Waits for the device."""
        cycles, nanoseconds = self.seen(self.RATE)
        return cycles / nanoseconds * 1e3


class Bench:
    """The harness's timer, CUPTI and a spin kernel on one device. `folder` is for builds that are not cached."""

    def __init__(self, device: torch.device, cache: Path, folder: Path) -> None:
        self.device = device
        torch.cuda.set_device(device)
        exact_arithmetic(tf32=False)
        service = BuildService(cache, GpuTarget(of(device).architectures()), BuildSettings(BUILD_TIMEOUT_S))
        libraries = service.runtime_libraries()
        assert libraries.clock is not None and device.index is not None
        self._trace = libraries.trace
        self.spin = Spin(folder, device)  # its tensor makes torch initialize CUDA before the clock's library uses it
        self.clock = GpuClock(libraries.clock, device.index, FlagPage())

    @cached_property
    def tracer(self) -> CuptiTracer:
        """A tracer that uses CUPTI directly: PyTorch's profiler takes seconds to start for each call."""
        if self._trace is None:
            raise Failed("CUPTI's headers are missing; install a CUDA toolkit with extras/CUPTI")
        return CuptiTracer(self._trace)

    def time(
        self, work: Work, finish: Callable[[object], None] = lambda _: None, clock: Clock | None = None
    ) -> float | None:
        """Times one call in µs by the harness's timer, queued behind the blocking kernel; None if that timed out."""
        _, sample = timed_call(clock or self.clock, work, finish, BLOCK_MS)
        return sample.device_ms * 1e3 if sample.blocked else None

    @cached_property
    def shown_us(self) -> float:
        """The timer's time of an empty kernel. Must be measured before CUPTI starts."""
        return shown_ms(self.clock) * 1e3

    @cached_property
    def overhead_us(self) -> float:
        """The overhead that the harness subtracts from every time of this process. Raises Failed without CUPTI."""
        shown, null = self.shown_us, null_ms(self.clock, self.tracer)
        if null is None:
            raise Failed("CUPTI does not trace an empty kernel")
        return shown - null * 1e3

    def net(self, times_us: Sequence[float]) -> list[float]:
        """Subtracts the overhead, as the harness does. Starts CUPTI."""
        return [each - self.overhead_us for each in times_us]

    def traced(self, work: Work) -> tuple[float, float] | None:
        """Times the same call in µs by the timer and by CUPTI; None if one of them has no time."""
        timer, activities = self.tracer(lambda: self.time(work))
        cupti = span_us(activities)
        return None if timer is None or cupti is None else (timer, cupti)

    def wake(self) -> None:
        """Makes the GPU leave its idle clock rate."""
        for _ in range(WARMING_SPINS):
            self.spin(RATE_CYCLES, Spin.RATE)

    def warm(self, work: Work) -> None:
        """Wakes the GPU, and loads the kernels of the work."""
        self.wake()
        work()  # not behind the blocking kernel, because loading a kernel waits for the device
        torch.cuda.synchronize(self.device)
        for _ in range(2):
            self.time(work)

    def rate(self) -> float:
        """Returns the present SM clock rate, in cycles per µs."""
        self.spin(RATE_CYCLES, Spin.RATE)
        return self.spin.cycles_per_us()


def span_us(activities: Sequence[Activity]) -> float | None:
    """Returns the time from the first start to the last end of the activities between blocking and stop kernel, in µs.

    Activities of the clock itself are left out. Activities are sorted by start. None if there are none, or if the
    blocking or the stop kernel is missing.
    """
    names = [activity.name for activity in activities]
    if HOLD not in names or STOP not in names:
        return None
    within = activities[names.index(HOLD) + 1 : names.index(STOP)]
    work = [activity for activity in within if not activity.name.startswith(HARNESS)]
    return max(activity.end_us for activity in work) - work[0].begin_us if work else None


def usable(samples: Sequence[float | None]) -> list[float]:
    """Returns the samples without None."""
    return [sample for sample in samples if sample is not None]


@dataclass(frozen=True)
class Case:
    """Some work on a GPU. `make` allocates its tensors and returns the work."""

    what: str
    make: Callable[[Bench], Work]


def cases() -> list[Case]:
    """Returns work of 1 µs to 50 ms."""
    found = [Case(f"product of {_count(size)} elements", partial(_elementwise, size)) for size in ELEMENTS]
    found += [Case(f"matmul {size}", partial(_matmul, size)) for size in MATRICES]
    found += [Case(f"chain of {length}", partial(_chain, length)) for length in CHAINS]
    return [*found, Case("spin of 50 ms", _long_spin)]


def _count(elements: int) -> str:
    return f"{elements >> 10} K" if elements < 1 << 20 else f"{elements >> 20} M"


def _elementwise(size: int, bench: Bench) -> Work:
    a, b, out = (torch.rand(size, device=bench.device) for _ in range(3))
    return lambda: torch.mul(a, b, out=out)


def _matmul(size: int, bench: Bench) -> Work:
    a, b, out = (torch.rand(size, size, device=bench.device) for _ in range(3))
    return lambda: torch.matmul(a, b, out=out)


def _chain(length: int, bench: Bench) -> Work:
    x = torch.rand(SMALL, device=bench.device)

    def work() -> None:
        for _ in range(length):
            torch.mul(x, 1.0, out=x)

    return work


def _long_spin(bench: Bench) -> Work:
    bench.wake()
    cycles = round(LONGEST_US * bench.rate())
    return lambda: bench.spin(cycles)


def trace(bench: Bench, calls: int, others: bool) -> Iterator[Traced]:
    """Part `cupti`. With `others`, the same work is also timed by other methods.

    These are measured first, because CUPTI slows down launches in a process once it has started.
    """
    _ = bench.shown_us
    by_others = {case.what: time_by_others(bench, case.make(bench), calls) for case in cases()} if others else {}
    for case in cases():
        work = case.make(bench)
        bench.warm(work)
        bench.traced(work)  # CUPTI may wait for the device at the first launch of a kernel
        pairs = [both for _ in range(calls) if (both := bench.traced(work)) is not None]
        timer, cupti = bench.net([each[0] for each in pairs]), [each[1] for each in pairs]
        around = by_others.get(case.what)
        of_others = {} if around is None else {**around, "untraced_us": bench.net(around["untraced_us"])}
        yield Traced(case.what, timer, cupti, **of_others)


def time_by_others(bench: Bench, work: Work, calls: int) -> dict[str, Any]:
    """Times work in µs by the timer without CUPTI, by CUDA events around the call, and by Triton's `do_bench`."""
    bench.warm(work)
    untraced = usable([bench.time(work) for _ in range(calls)])
    around = middle([_events_us(work) for _ in range(calls)])
    return {"untraced_us": untraced, "events_us": around, "do_bench_us": _do_bench_us(work)}


def _events_us(work: Work) -> float:
    begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) * 1e3


def _do_bench_us(work: Work) -> float | None:
    try:
        from triton.testing import do_bench  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return None
    return float(do_bench(work, return_mode="median")) * 1e3


def spin(bench: Bench, calls: int) -> Iterator[Spun]:
    """Part `spin`. The clock rate is that of a long spin after the timed one, in the same call."""
    bench.warm(lambda: bench.spin(0))

    def measure_clock(_: object) -> None:
        bench.spin(RATE_CYCLES, Spin.RATE)

    for asked in SPIN_US:
        row = Spun(f"{asked:g} µs", [], [], [], [])
        cycles = round(asked * bench.rate())
        for _ in range(calls):
            timer = bench.time(partial(bench.spin, cycles), measure_clock)
            if timer is None:
                continue
            row.cycles.append(bench.spin.seen()[0])
            row.cycles_per_us.append(bench.spin.cycles_per_us())
            row.timer_us.append(timer)
            row.overhead_us.append(bench.overhead_us)
        yield row


class OtherFlush:
    """A clock with another flush."""

    def __init__(self, clock: Clock, flush: Callable[[], None]) -> None:
        self._clock, self.flush = clock, flush

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)


def flush(bench: Bench, calls: int) -> Iterator[Flushed]:
    """Part `flush`. All of L2 is dirty before each flush. All but the third must leave no dirty lines."""
    clock = bench.clock
    dirt = torch.empty(2 * torch.cuda.get_device_properties(bench.device).L2_cache_size // 4, device=bench.device)

    def ours() -> None:
        dirt.fill_(1.0)
        clock.flush()

    def clean() -> None:
        dirt.fill_(1.0)
        for _ in range(CLEAN_SWEEPS):
            clock.sweep()
        torch.cuda.synchronize(bench.device)
        time.sleep(IDLE_S)

    def dirty() -> None:
        clock.flush()
        dirt.fill_(1.0)

    clocks = [cast(Clock, OtherFlush(clock, each)) for each in (ours, clean, dirty)]
    for mebibytes in COPIES_MIB:
        source = torch.rand(int(mebibytes * 2**20) // 4, device=bench.device)
        work = partial(torch.mul, source, 1.0, out=torch.empty_like(source))  # `copy_` may not be a kernel
        bench.warm(work)
        dirt.fill_(1.0)
        rounds = [[bench.time(work, clock=each) for each in clocks] for _ in range(calls)]
        blocked = [usable(each) for each in rounds if None not in each]
        yield Flushed(f"{mebibytes:g} MiB", *([each[index] for each in blocked] for index in range(3)))


def calibrate(bench: Bench, work: Work, share: float, calls: int) -> tuple[int, float]:
    """Returns the cycles of a spin that makes some work slower by a share, and the measured ratio of the times.

    Raises Failed if no spin does that.
    """
    bench.warm(work)
    some = round(share * _median_us(bench, work, calls) * bench.rate())

    def longer(cycles: int) -> None:
        work()
        bench.spin(cycles)

    added: dict[int, list[float]] = {0: [], some: []}
    plain = []
    for _ in range(calls):
        before = bench.time(work)
        after = {cycles: bench.time(partial(longer, cycles)) for cycles in added}
        if before is not None and None not in after.values():
            plain.append(before)
            for cycles, found in added.items():
                found.append(cast(float, after[cycles]) - before)
    try:
        cycles = spin_for(share * middle(plain), middle(added[0]), middle(added[some]), some)
    except ValueError as error:
        raise Failed(f"a solution that is {share:.0%} slower cannot be made: {error}") from error
    pairs = [(bench.time(partial(longer, cycles)), bench.time(work)) for _ in range(calls)]
    return cycles, middle([long / short for long, short in pairs if long is not None and short is not None])


def _median_us(bench: Bench, work: Work, calls: int) -> float:
    """Returns the median time in µs. Raises Failed if the blocking kernel timed out in every call."""
    found = usable([bench.time(work) for _ in range(calls)])
    if not found:
        raise Failed("the blocking kernel timed out in every call")
    return middle(found)
