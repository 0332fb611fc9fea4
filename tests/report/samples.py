"""Results for tests: `result` makes given ones, `any_result` generates arbitrary valid ones."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from inlinebench.results.launches import Counters, Launched, Multiprocessors
from inlinebench.results.memory import Memory
from inlinebench.results.repeats import Repeatability, Varying
from inlinebench.results.result import (
    MOST_FIRST,
    Build,
    Check,
    Element,
    Environment,
    Kernels,
    KernelShare,
    Mismatch,
    Result,
    Verdict,
)
from inlinebench.results.times import Roofline, Spread, Timing, binding

FAILURES = tuple(verdict for verdict in Verdict if verdict is not Verdict.PASSED)


def check(**facts: Any) -> Check:
    return Check(**{"calls": 55, "tolerance": 1e-4, "oracle": "float64", "weights": "by name", **facts})


def timing(speedup: float, solution_ms: float = 0.1) -> Timing:
    reference_ms = speedup * solution_ms
    return Timing(
        Spread(reference_ms, reference_ms * 0.99, reference_ms * 1.01, 50),
        Spread(solution_ms, solution_ms * 0.99, solution_ms * 1.01, 50),
        Spread(speedup, speedup * 0.99, speedup * 1.01),
    )


SLOW = replace(timing(2.0, 1.0), roofline=Roofline(536_870_912, 67_108_864, 0.18, 0.001, "memory"))
"""Times of a solution on an H100 that reaches a fifth of the roofline."""


def result(
    name: str = "matmul_diag/naive", verdict: Verdict = Verdict.PASSED, speedup: float | None = None, **facts: Any
) -> Result:
    """Returns a valid result of `problem/solution` with this verdict."""
    problem, _, solution = name.partition("/")
    passed = verdict is Verdict.PASSED
    given: dict[str, Any] = {
        "shape": "full",
        "device": "cuda:0",
        "reason": "" if passed else "because",
        "check": check(worst_error=3.1e-7) if passed else None,
        "timing": None if speedup is None else timing(speedup),
        **facts,
    }
    return Result(problem, solution, verdict=verdict, **given)


def mismatch(**facts: Any) -> Mismatch:
    """Returns a mismatch in the last two rows of a small matrix."""
    first = tuple(Element((row, column), "1.5", "nan") for row in (2, 3) for column in range(4))
    given = {
        "what": "output", "dtype": "float32", "shape": (4, 4), "count": 16, "failed": 8, "first": first[:MOST_FIRST],
        "worst": first[0], "tolerance": 1e-4, "patterns": ("rows >= 2, every column: all elements of these",),
        "call": "call 3", "variant": "negated", **facts,
    }
    return Mismatch(**given)


_numbers = st.floats(allow_nan=False, allow_infinity=False)
_counts = st.integers(0, 1000)
_texts = st.text()
_names = st.sampled_from(["naive", "fast", "@reference", "1e5"]) | _texts


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@st.composite
def _spreads(draw: st.DrawFn, values: st.SearchStrategy[float]) -> Spread:
    low, median, high = sorted(draw(st.tuples(values, values, values)))
    return Spread(median, low, high, draw(_maybe(_counts)))


_tuples = st.lists(_texts, max_size=3).map(tuple)
_checks = st.builds(
    Check,
    calls=_counts,
    tolerance=_numbers,
    oracle=_texts,
    weights=_texts,
    worst_error=_maybe(_numbers),
    max_abs_error=_maybe(_numbers),
    rel_l2_error=_maybe(_numbers),
    reference_rel_l2_error=_maybe(_numbers),
    notes=_tuples,
)
_terms = st.floats(0, 1e6)
_rooflines = st.builds(lambda count, flops, memory, compute: Roofline(
    count, flops, memory, compute, binding(memory, compute)), _counts, _counts, _terms, _terms)
_timings = st.builds(
    Timing,
    reference_ms=_spreads(_numbers),
    solution_ms=_spreads(_numbers),
    speedup=_spreads(st.floats(1e-6, 1e6)),
    wall_ms=_maybe(_spreads(_numbers)),
    first_call_ms=_maybe(_numbers),
    load_ms=_maybe(_numbers),
    judge_ms=_maybe(_spreads(_numbers)),
    roofline=_maybe(_rooflines),
    flags=_tuples,
)
_launches = st.builds(Launched, *[_counts] * 4)
_limits = st.builds(Multiprocessors, *[st.integers(1, 2**20)] * 5, st.integers(0, 2048))
_counters = st.builds(
    Counters,
    ms=_numbers,
    dram_bytes=_maybe(_counts),
    dram_share=_maybe(_numbers),
    local_bytes=_maybe(_counts),
    tensor_share=_maybe(_numbers),
    sectors=_maybe(_numbers),
    shared_share=_maybe(_numbers),
    conflict_share=_maybe(_numbers),
    atomics=_maybe(_counts),
    stall=_maybe(_texts),
    stall_share=_maybe(_numbers),
)
_kernels = st.builds(
    Kernels,
    own_share=st.floats(0, 1),
    top=st.lists(
        st.builds(KernelShare, name=_texts, origin=st.sampled_from(["own", "triton", "library"]) | _texts, ms=_numbers,
                  share=_numbers, launches=_maybe(_counts), launch=_maybe(_launches), counters=_maybe(_counters)),
        max_size=2,
    ).map(tuple),
    activities=_maybe(_counts),
    idle_ms=_maybe(_numbers),
)
_memories = st.builds(lambda inside, outside, reference: Memory(inside + outside, reference, outside),
                      *[st.integers(0, 1 << 40)] * 3)
_builds = st.builds(Build, seconds=_numbers, cached=st.booleans(), headers=_texts)
_environments = st.builds(
    Environment,
    torch=_texts,
    harness=_texts,
    gpu=_maybe(_texts),
    driver=_maybe(_texts),
    cuda=_maybe(_texts),
    cpu=_maybe(_texts),
    tf32=st.booleans(),
    multiprocessors=_maybe(_limits),
)


@st.composite
def _mismatches(draw: st.DrawFn) -> Mismatch:
    shape = tuple(draw(st.lists(st.integers(1, 5), max_size=4)))
    count = math.prod(shape)
    flat = sorted(draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=20)))
    elements = [Element(_unravel(each, shape), draw(_texts), draw(_texts)) for each in flat]
    tolerance = draw(st.floats(0, 1))
    return Mismatch(
        what=draw(_texts), dtype=draw(_texts), shape=shape, count=count, failed=len(flat),
        first=tuple(elements[:MOST_FIRST]), worst=draw(st.sampled_from(elements)), tolerance=tolerance,
        worst_error=draw(_maybe(st.floats(tolerance, 1e9, exclude_min=True))), patterns=draw(_tuples),
        call=draw(_maybe(_texts)), variant=draw(_maybe(_texts)),
    )


def _unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(flat // math.prod(shape[axis + 1 :]) % size for axis, size in enumerate(shape))


@st.composite
def _repeats(draw: st.DrawFn) -> Repeatability:
    calls, processes, moved = draw(st.integers(1, 40)), draw(st.integers(1, 3)), draw(st.booleans())
    equal = draw(st.integers(1, calls))
    if equal == calls:
        return Repeatability(calls, equal, processes, moved, (), *draw(st.tuples(*[_maybe(st.booleans())] * 2)))
    count = draw(st.integers(1, 1 << 40))
    varying = Varying(draw(_texts), draw(st.integers(1, count)), count, draw(_maybe(st.integers(0, 1 << 63))))
    return Repeatability(calls, equal, processes, moved, (varying,))


@st.composite
def any_result(draw: st.DrawFn) -> Result:
    """Any result that the records allow and that JSON can represent."""
    verdict = draw(st.sampled_from(Verdict))
    passed = verdict is Verdict.PASSED
    return Result(
        problem=draw(st.sampled_from(["matmul_diag", "gemm"]) | _texts),
        solution=draw(_names),
        shape=draw(st.sampled_from(["full", "small"]) | _texts),
        constants=draw(_maybe(st.lists(_texts, max_size=2).map(tuple))),
        device=draw(st.sampled_from(["cuda:0", "cpu"])),
        verdict=verdict,
        reason="" if passed else draw(st.text(min_size=1)),
        check=draw(_checks if passed else _maybe(_checks)),
        timing=draw(_maybe(_timings)) if passed else None,
        kernels=draw(_maybe(_kernels)),
        build=draw(_maybe(_builds)),
        protections=draw(_maybe(_tuples)),
        seed=draw(_maybe(st.integers())),
        environment=draw(_maybe(_environments)),
        log=draw(_maybe(_texts)),
        repeats=draw(_maybe(_repeats())) if passed else None,
        memory=draw(_maybe(_memories)) if passed else None,
        mismatch=draw(_maybe(_mismatches())) if verdict is Verdict.WRONG else None,
    )
