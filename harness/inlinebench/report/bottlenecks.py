"""Why a passed kernel is slow: rules over what its result has, each with its evidence and with what to do.

A rule looks at one bottleneck. It says nothing without its evidence, so a result without counters (`--profile`) has
fewer bottlenecks than one with them. Results near the roofline have none, nor have those without a roofline time: it is
not known whether they are slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inlinebench.foreign import one_line
from inlinebench.report.text import significant
from inlinebench.results.launches import (
    REGISTERS,
    SHARED,
    WARP,
    Counters,
    Launched,
    Multiprocessors,
    Residency,
    residency,
)
from inlinebench.results.result import Kernels, KernelShare, Result
from inlinebench.results.times import COMPUTE, MEMORY, Roofline

NEAR_ROOFLINE = 0.6
"""A solution that reaches this share of the roofline has no bottleneck. Good kernels that are bound by memory reach
more than 0.9, and products of matrices 0.6 to 0.9."""
SHORTEST_MS = 0.01
"""Shorter calls have no bottleneck: an empty kernel takes 2 µs already, which no change of a kernel removes."""
MAIN = 0.25
"""The share of the GPU's time from which on a kernel is worth an explanation. If a smaller one took no time at all, the
call would still take three quarters of its time."""
LONGEST_NAME = 60
LOW = 0.3
"""A share of a memory's peak below which something else limits a kernel."""
BARELY = 0.03
"""A share of the time below which tensor cores count as unused. For a product by float32 units, 0.007 was counted."""
QUEUE = 1000
"""About how many launches a GPU's queue holds. The host waits when it is full."""


@dataclass(frozen=True)
class Bottleneck:
    """A reason why a solution is slow."""

    name: str
    """The name of its rule."""
    evidence: str
    """What was measured, as a sentence without a full stop."""
    advice: str
    """What to do, in the imperative, without a full stop."""


@dataclass(frozen=True)
class Case:
    """What is known about a solution that is not near the roofline."""

    kernels: Kernels
    roofline: Roofline
    sm: Multiprocessors | None
    reached: float
    """The share of the roofline that the solution reaches."""

    @property
    def busy_ms(self) -> float:
        """The time in ms of all kernels and copies."""
        first = self.kernels.top[0]
        return first.ms / first.share

    @property
    def own(self) -> Iterator[KernelShare]:
        """The solution's own kernels that take much of the time."""
        return (each for each in self.kernels.top if each.share >= MAIN and each.origin in ("own", "triton"))

    @property
    def launched(self) -> Iterator[tuple[KernelShare, Launched]]:
        """Those whose launch is known."""
        return ((each, each.launch) for each in self.own if each.launch is not None)

    @property
    def placed(self) -> Iterator[tuple[KernelShare, Launched, Multiprocessors, Residency]]:
        """Those whose occupancy is known as well."""
        for share, launch in self.launched:
            if self.sm is not None and (fit := residency(launch, self.sm)).blocks:
                yield share, launch, self.sm, fit

    @property
    def counted(self) -> Iterator[tuple[KernelShare, Counters]]:
        """Those with counters."""
        return ((each, each.counters) for each in self.own if each.counters is not None)

    @property
    def bound_by_memory_alone(self) -> bool:
        """Whether arithmetic would take less than a third of the time for the bytes."""
        return self.roofline.compute_ms < self.roofline.memory_ms / 3


Evidence = Callable[[Case, float], Iterator[str]]
"""Yields what speaks for a bottleneck, given the threshold of its rule. The first sentence counts."""


def _waits(case: Case, most_idle: float) -> Iterator[str]:
    idle, gaps = case.kernels.idle_ms, (case.kernels.activities or 0) - 1
    if idle is None or idle < 0 or not 1 <= gaps < QUEUE:
        return
    share, gap_us = idle / (idle + case.busy_ms), idle / gaps * 1e3
    if share >= most_idle and gap_us >= 4.0:  # the GPU itself needs about 1 µs from one kernel to the next
        yield (f"the GPU is idle for {share:.0%} of the call, {gap_us:.3g} µs on average between the {gaps + 1} "
               "kernels and copies: the host waits for it before it launches the next one")


def _launches(case: Case, fewest: float) -> Iterator[str]:
    count = case.kernels.activities
    if count is None or count < fewest:
        return
    mean_us = case.busy_ms / count * 1e3
    if mean_us <= 10.0:  # five times what an empty kernel takes
        yield (f"a call runs {count:,} kernels and copies of {mean_us:.3g} µs on average, and starting one takes about "
               "2 µs")


def _spills(case: Case, least: float) -> Iterator[str]:
    roofline = case.roofline
    for share, found in case.counted:
        if not found.local_bytes or not roofline.bytes:
            continue
        took_ms = found.local_bytes * roofline.memory_ms / roofline.bytes  # at the speed of DRAM
        if took_ms >= least * found.ms:
            yield (f"{_time_of(share)}, which moves {found.local_bytes:,} bytes between registers and local memory: "
                   "spilled registers, or arrays whose indices are not known at compile time")


def _few_blocks(case: Case, busy_share: float) -> Iterator[str]:
    for share, launch, sm, _ in case.placed:
        if launch.blocks < busy_share * sm.count:
            yield (f"{_time_of(share)} with {_blocks(launch)} on {sm.count} SMs, so {sm.count - launch.blocks} of them "
                   "have nothing to do")


def _tiny_blocks(case: Case, fewest_threads: float) -> Iterator[str]:
    for share, launch, sm, fit in case.placed:
        if launch.threads < fewest_threads and launch.blocks >= sm.count:
            used = fit.occupancy * min(1.0, launch.threads / WARP)
            yield (f"{_time_of(share)} with {_blocks(launch)}: an SM runs at most {sm.blocks} blocks, so no more than "
                   f"{used:.0%} of its threads work")


def _occupancy(limit: str) -> Evidence:
    def find(case: Case, least: float) -> Iterator[str]:
        for share, launch, sm, fit in case.placed:
            if fit.occupancy > least or fit.limited_by != limit or launch.blocks < sm.count * fit.blocks:
                continue
            if case.bound_by_memory_alone:
                uses = (f"{launch.registers} registers per thread" if limit == REGISTERS else
                        f"{launch.shared_bytes:,} bytes of shared memory per block")
                yield (f"{_time_of(share)} at an occupancy of {fit.occupancy:.0%}: with {uses}, an SM runs "
                       f"{_number(fit.blocks, 'block')} of {launch.threads} threads, too few to hide memory's latency")
    return find


def _passes(case: Case, most: float) -> Iterator[str]:
    roofline = case.roofline
    if roofline.binds != MEMORY or not roofline.bytes:
        return
    counted = [each.counters.dram_bytes for each in case.kernels.top if each.counters is not None]
    if counted and None not in counted:
        moved = sum(filter(None, counted))
        if moved >= most * roofline.bytes:
            yield (f"the kernels move {moved:,} bytes to and from DRAM, {moved / roofline.bytes:.3g} times the "
                   f"{roofline.bytes:,} that the work needs")
        return
    # Without counters: kernels of which each takes a third of the time for all bytes, or more.
    long = [each for each in case.kernels.top
            if each.launches and each.ms / each.launches >= roofline.memory_ms / 3]
    passes = sum(each.launches or 0 for each in long)
    if passes > most:
        mean_ms = sum(each.ms for each in long) / passes
        yield (f"a call runs {passes} kernels or copies of {significant(mean_ms)} ms on average, and all bytes could "
               f"be moved once in {significant(roofline.memory_ms)} ms: intermediate results pass through memory")


def _uncoalesced(case: Case, most_sectors: float) -> Iterator[str]:
    for share, found in case.counted:
        if found.sectors is not None and found.sectors > most_sectors:
            yield (f"{_time_of(share)}, and a warp's access to global memory touches {found.sectors:.3g} sectors of 32 "
                   "bytes on average: neighbouring threads access addresses far apart")


def _conflicts(case: Case, most: float) -> Iterator[str]:
    for share, found in case.counted:
        if (found.conflict_share or 0.0) >= most and (found.shared_share or 0.0) >= LOW:
            yield (f"{_time_of(share)}, and {found.conflict_share:.0%} of its accesses to shared memory only repeat "
                   "others because of bank conflicts")


def _atomics(case: Case, least_ns: float) -> Iterator[str]:
    for share, found in case.counted:
        if not found.atomics or found.atomics < 10_000 or (found.dram_share or 0.0) >= LOW:
            continue
        each_ns = found.ms * 1e6 / found.atomics
        if least_ns <= each_ns <= 100 * least_ns:
            yield (f"{_time_of(share)} with {found.atomics:,} atomic instructions on global memory, one every "
                   f"{each_ns:.2g} ns: about what one address takes")


def _no_tensor_cores(case: Case, most_reached: float) -> Iterator[str]:
    roofline = case.roofline
    if roofline.binds != COMPUTE or case.reached > most_reached:
        return
    counted = [each.counters for each in case.kernels.top if each.counters is not None]
    shares = [each.tensor_share for each in counted if each.tensor_share is not None]
    if shares and max(shares) < BARELY:
        yield (f"the tensor cores are idle, and the {roofline.flops:.3g} operations of the call reach "
               f"{case.reached:.1%} of what the GPU can do")


@dataclass(frozen=True)
class Rule:
    """How one bottleneck is found, and what to do against it."""

    name: str
    """The name of the bottleneck."""
    find: Evidence
    """Finds its evidence."""
    threshold: float
    """From where on the evidence counts."""
    advice: str
    """What to do, in the imperative."""


RULES = (
    # Share of idle time. Behind the clock's blocking kernel, the launches of a call that never waits leave none.
    Rule("needless synchronization", _waits, 0.2,
         "Remove what waits for the GPU from forward: cudaDeviceSynchronize, cudaStreamSynchronize, .item(), .cpu() "
         "and blocking copies"),
    # Kernels and copies in a call. Good solutions have a handful.
    Rule("chain of small kernels", _launches, 20,
         "Do the steps in one kernel: fuse them, and loop over steps or rows inside it"),
    # The time for local memory at DRAM's bandwidth over the kernel's. A good attention kernel has 0.05.
    Rule("spills", _spills, 0.2,
         "Use fewer registers: smaller tiles per thread, less unrolling, constant indices after unrolling, or a higher "
         "limit by __launch_bounds__"),
    # Share of the SMs with a block. A persistent kernel has a block for each.
    Rule("too few blocks", _few_blocks, 0.6,
         "Split the work over more blocks, at least one for each SM, for example along the dimension that is summed"),
    # Threads of a block. With 32 blocks of 64 threads, all current GPUs reach the occupancy that they need.
    Rule("tiny blocks", _tiny_blocks, 64, "Use 128 to 256 threads a block"),
    # Occupancy. Tuned kernels work at 0.25, with several loads per thread under way.
    Rule("occupancy limited by registers", _occupancy(REGISTERS), 0.2,
         "Use fewer registers per thread, for example by __launch_bounds__ with a number of blocks, or keep several "
         "independent loads per thread under way"),
    Rule("occupancy limited by shared memory", _occupancy(SHARED), 0.2,
         "Use smaller tiles in shared memory, keep values in registers, or use more threads a block"),
    # Bytes moved over bytes needed, or passes without counters. The second pass over data is often from L2.
    Rule("extra passes over memory", _passes, 2,
         "Fuse the kernels, and keep in registers or shared memory what is read again"),
    # Sectors of an access. A warp that reads 16 bytes per thread without gaps touches 16, or 17 if they are misaligned.
    Rule("uncoalesced access", _uncoalesced, 20,
         "Let neighbouring threads access neighbouring addresses, by another assignment of elements to threads or by a "
         "tile in shared memory"),
    # Share of repeated accesses. Two threads in the same bank on average make 0.5.
    Rule("bank conflicts", _conflicts, 0.6,
         "Pad the rows of the tile by one element, or permute its columns (swizzle), so that threads of a warp access "
         "different banks"),
    # ns per atomic instruction. One address takes about one in a cycle of L2 (0.6 ns), many addresses a hundred.
    Rule("atomics on one address", _atomics, 0.25,
         "Sum within a warp and a block first, so that each block has one atomic, or give blocks results of their own"),
    # Share of the roofline. The float32 units reach a quarter to a half of the rate of split products.
    Rule("no tensor cores", _no_tensor_cores, 0.3,
         "Compute the products with mma or wgmma instructions; float32 operands can be split into parts of TF32 or "
         "float16"),
)
"""All rules, in the order in which their bottlenecks are listed."""


def bottlenecks(result: Result) -> tuple[Bottleneck, ...]:
    """Returns the reasons why a passed solution is slow on a GPU, the most basic first. Empty if none is known."""
    case = _case(result)
    if case is None:
        return ()
    found = ((rule, next(rule.find(case, rule.threshold), None)) for rule in RULES)
    return tuple(Bottleneck(rule.name, evidence, rule.advice) for rule, evidence in found if evidence is not None)


def _case(result: Result) -> Case | None:
    """Returns what the rules look at; None if the solution is near the roofline, or too little is known."""
    timing, kernels = result.timing, result.kernels
    if timing is None or timing.roofline is None or not result.times_are_comparable:
        return None
    if kernels is None or not kernels.top or min(kernels.top[0].share, kernels.top[0].ms) <= 0:
        return None
    took_ms = timing.solution_ms.median
    if took_ms < SHORTEST_MS or (reached := timing.roofline.ms / took_ms) >= NEAR_ROOFLINE:
        return None
    sm = result.environment.multiprocessors if result.environment else None
    return Case(kernels, timing.roofline, sm, reached)


def _time_of(share: KernelShare) -> str:
    name = re.sub(r"\(anonymous namespace\)::|^void ", "", share.name).partition("(")[0]  # without parameters
    return f"{share.share:.0%} of the time goes to `{one_line(name, LONGEST_NAME)}`"


def _blocks(launch: Launched) -> str:
    return f"{_number(launch.blocks, 'block')} of {_number(launch.threads, 'thread')}"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
