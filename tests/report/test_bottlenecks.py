"""Bottlenecks by records as an H100 gives them: each rule names its planted bottleneck, and no other kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from inlinebench.report.bottlenecks import RULES, bottlenecks
from inlinebench.report.terminal.feedback import LONGEST_LINE
from inlinebench.results.launches import Counters, Launched, Multiprocessors
from inlinebench.results.result import Environment, Kernels, KernelShare, Result
from inlinebench.results.times import Roofline

from .samples import any_result, result, timing

H100 = Environment("2.11", "0.4", "NVIDIA H100 80GB HBM3",
                   multiprocessors=Multiprocessors(132, 2048, 32, 65536, 233472, 1024))
MEMORY = Roofline(536_870_912, 67_108_864, 0.18, 0.001, "memory")
COMPUTE = Roofline(200_000_000, 137_438_953_472, 0.06, 0.5, "compute")
GOOD = Launched(16_384, 256, 40, 4_096)
COUNTED = Counters(0.5, 540_000_000, 0.9, 0.4, 0.0, 4.0, 0.1, 0.05, 0, 0, "long_scoreboard", 0.6)


def case(
    *, ms: float = 1.0, roofline: Roofline = MEMORY, launch: Launched | None = GOOD, share: float = 0.9,
    launches: int = 1, idle_ms: float = 0.0, counters: Counters | None = None, origin: str = "own", **more: Any
) -> Result:
    """Returns a result of `ms` milliseconds with one kernel that takes most of the time, and a copy."""
    name = "void (anonymous namespace)::rows<float, 4>(float const*, float*)"
    kernel = KernelShare(name, origin, share * ms, share, launches, launch, counters)
    copy = KernelShare("Memcpy", "copy", (1 - share) * ms, 1 - share, 1)
    kernels = Kernels(1.0, (kernel, copy), (), more.pop("activities", launches + 1), idle_ms)
    times = replace(timing(2.0, ms), roofline=roofline)
    return result("p/s", timing=times, kernels=kernels, environment=H100, **more)


def launched(**facts: int) -> Launched:
    return replace(GOOD, **facts)


def counted(**facts: Any) -> Counters:
    return replace(COUNTED, **facts)


SPILLED = counted(local_bytes=600_000_000)
PLANTED = {
    "needless synchronization": case(activities=65, idle_ms=0.7, launches=64),
    "chain of small kernels": case(activities=513, launches=512),
    "spills": case(counters=SPILLED),
    "too few blocks": case(launch=launched(blocks=1, threads=1024)),
    "tiny blocks": case(launch=launched(threads=8, blocks=8_388_608, shared_bytes=0)),
    "occupancy limited by registers": case(launch=launched(registers=200)),
    "occupancy limited by shared memory": case(launch=launched(threads=64, shared_bytes=33_024)),
    "extra passes over memory": case(launches=4),
    "uncoalesced access": case(counters=counted(sectors=32.0, dram_share=0.3)),
    "bank conflicts": case(counters=counted(conflict_share=0.94, shared_share=0.8, dram_share=0.2)),
    "atomics on one address": case(ms=1.5, counters=counted(ms=1.4, atomics=2_097_152, dram_share=0.1)),
    "no tensor cores": case(ms=10.0, roofline=COMPUTE, counters=counted(ms=9.0, dram_share=0.1, tensor_share=0.007)),
}
ALSO = {"needless synchronization": {"chain of small kernels"}}
"""What comes with a planted bottleneck, because it has the same cause."""
HONEST = {
    "near the roofline, whatever else": case(ms=0.25, launch=launched(blocks=1), counters=SPILLED),
    "as short as a launch": case(ms=0.008, roofline=replace(MEMORY, memory_ms=0.002), launch=launched(blocks=1)),
    "a library's kernel": case(counters=SPILLED, origin="library"),
    "a kernel that takes little of the time": case(counters=SPILLED, share=0.2),
    "plain counters": case(counters=COUNTED),
    "a few spilled registers": case(counters=counted(local_bytes=50_000_000)),
    "loads of 16 bytes, some misaligned": case(counters=counted(sectors=16.3)),
    "two-way conflicts": case(counters=counted(conflict_share=0.5, shared_share=0.8)),
    "conflicts in the few accesses to shared memory": case(counters=counted(conflict_share=0.94, shared_share=0.05)),
    "a few atomics": case(ms=0.5, counters=counted(atomics=4_096, dram_share=0.1)),
    "atomics on many addresses": case(ms=0.5, counters=counted(atomics=67_108_864, dram_share=0.1)),
    "atomics of a kernel that keeps DRAM busy": case(ms=0.5, counters=counted(atomics=1_000_000)),
    "a product on tensor cores": case(ms=2.0, roofline=COMPUTE, counters=counted(tensor_share=0.3)),
    "a product that tensor cores wait for": case(ms=4.0, roofline=COMPUTE, counters=counted(tensor_share=0.05)),
    "a convolution that float32 units compute well": case(ms=1.4, roofline=COMPUTE, counters=COUNTED),
    "a persistent kernel": case(launch=launched(blocks=132, threads=1024)),
    "one block more than run at once": case(launch=launched(blocks=132 * 8 + 1)),
    "more launches than the queue holds, of long kernels": case(ms=100.0, launches=2_000, idle_ms=90.0),
    "a product with tiles in shared memory": case(roofline=COMPUTE, launch=launched(shared_bytes=200_000)),
    "a kernel with many registers and much arithmetic":
        case(launch=launched(registers=200), roofline=replace(MEMORY, compute_ms=0.1)),
    "an occupancy of a quarter": case(launch=launched(registers=128)),
    "two passes": case(launches=2, share=0.97),
    "gaps as the GPU needs them": case(activities=19, idle_ms=0.02),
    "idle for once": case(activities=3, idle_ms=0.1),
    "a tracer that does not tell more": case(launch=None, activities=None, idle_ms=None),
    "an unknown GPU": replace(case(launch=launched(blocks=1)), environment=None),
}


@given(any_result())
def test_a_result_of_any_numbers_is_explained_without_an_error(found: Result) -> None:
    for each in bottlenecks(replace(found, device="cuda:0")):
        assert each.evidence and "\n" not in each.evidence


def names(found: Result) -> list[str]:
    return [each.name for each in bottlenecks(found)]


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bottleneck_is_named(name: str) -> None:
    found = names(PLANTED[name])
    assert name in found and set(found) - {name} <= ALSO.get(name, set())


def test_every_rule_has_a_planted_bottleneck() -> None:
    assert [rule.name for rule in RULES] == list(PLANTED)


@pytest.mark.parametrize("why", HONEST)
def test_an_honest_kernel_has_no_bottleneck(why: str) -> None:
    assert bottlenecks(HONEST[why]) == ()


def test_what_is_not_known_names_nothing() -> None:
    full, idle = case(launch=launched(blocks=1)), KernelShare("idle", "own", 0.0, 0.0)
    assert names(full) == ["too few blocks"]
    for unknown in ({"timing": None}, {"timing": timing(2.0, 1.0)}, {"kernels": None}, {"kernels": Kernels(1.0)},
                    {"kernels": Kernels(0.0, (idle,))}, {"device": "cpu"}):
        assert names(replace(full, **unknown)) == []


def test_dram_tells_more_about_passes_than_times_do() -> None:
    assert names(case(launches=4, counters=COUNTED)) == []
    assert names(case(counters=counted(dram_bytes=2_000_000_000))) == ["extra passes over memory"]


def test_a_sentence_has_its_evidence() -> None:
    found, = bottlenecks(PLANTED["spills"])[:1]
    assert found.evidence == (
        "90% of the time goes to `rows<float, 4>`, which moves 600,000,000 bytes between registers and local "
        "memory: spilled registers, or arrays whose indices are not known at compile time")


@pytest.mark.parametrize("name", PLANTED)
def test_a_sentence_fits_on_a_line_of_feedback(name: str) -> None:
    for found in bottlenecks(PLANTED[name]):
        assert len(found.evidence) < LONGEST_LINE - 20 and len(found.advice) < LONGEST_LINE - 20


def test_names_of_kernels_are_foreign_text() -> None:
    hostile = case(counters=SPILLED)
    assert hostile.kernels is not None
    share = replace(hostile.kernels.top[0], name="k\n\x1b[2J" * 40)
    evidence = bottlenecks(replace(hostile, kernels=Kernels(1.0, (share,))))[0].evidence
    assert "\x1b" not in evidence and "\n" not in evidence and len(evidence) < LONGEST_LINE
