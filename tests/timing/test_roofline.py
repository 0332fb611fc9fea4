from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from inlinebench.results.times import COMPUTE, MEMORY, Roofline
from inlinebench.timing.peaks import METHODS, Peaks
from inlinebench.timing.roofline import Work, roofline

PEAKS = Peaks(1e12, {"float32": 1e13, "tf32": 9e13, "float64": 5e12, "float16": 1e14, "bfloat16": 2e14})

counts = st.integers(0, 10**18)
dtypes = st.sampled_from([*METHODS, "float8_e4m3fn"])
works = st.builds(Work, counts, counts, dtypes)
speeds = st.floats(1e3, 1e18)


def test_a_copy_is_bound_by_memory_and_a_product_by_its_operations() -> None:
    copy = roofline(Work(2 * 10**9, 0, "float32"), PEAKS)
    assert (copy.memory_ms, copy.compute_ms, copy.binds, copy.ms) == (pytest.approx(2.0), 0.0, MEMORY, copy.memory_ms)
    product = roofline(Work(10**6, 10**12, "float16"), PEAKS)
    assert (product.compute_ms, product.binds, product.ms) == (pytest.approx(10.0), COMPUTE, product.compute_ms)


def test_the_rate_is_the_fastest_methods_of_the_accuracy() -> None:
    taken = {dtype: roofline(Work(0, 10**12, dtype), PEAKS).ms for dtype in METHODS}
    assert taken == pytest.approx({
        "float64": 200.0, "float32": 30.0, "tf32": 10.0, "float16": 10.0, "bfloat16": 5.0,
    })


def test_operations_without_a_measured_rate_take_no_time() -> None:
    found = roofline(Work(10**9, 10**15, "float8_e4m3fn"), PEAKS)
    assert (found.compute_ms, found.binds, found.flops) == (0.0, MEMORY, 10**15)


def test_no_work_takes_no_time() -> None:
    assert roofline(Work(0, 0, "float32"), PEAKS) == Roofline(0, 0, 0.0, 0.0, MEMORY)


@given(works)
def test_the_roofline_is_the_larger_of_both_terms(work: Work) -> None:
    found = roofline(work, PEAKS)
    assert found.ms == max(found.memory_ms, found.compute_ms)
    assert found.ms == (found.memory_ms if found.binds == MEMORY else found.compute_ms)
    assert (found.bytes, found.flops) == (work.bytes, work.flops)


@given(works, counts, counts)
def test_more_work_takes_no_less_time(work: Work, more_bytes: int, more_flops: int) -> None:
    more = replace(work, bytes=work.bytes + more_bytes, flops=work.flops + more_flops)
    assert roofline(more, PEAKS).ms >= roofline(work, PEAKS).ms


@given(works, speeds, speeds)
def test_a_faster_device_takes_no_more_time(work: Work, one: float, other: float) -> None:
    slow, fast = sorted((one, other))
    assert roofline(work, replace(PEAKS, copy_bytes_s=fast)).ms <= roofline(work, replace(PEAKS, copy_bytes_s=slow)).ms
    for kind in PEAKS.matmul:
        slower, faster = (replace(PEAKS, matmul={**PEAKS.matmul, kind: speed}) for speed in (slow, fast))
        assert roofline(work, faster).ms <= roofline(work, slower).ms


@given(works, st.integers(1, 1000))
def test_repeated_work_takes_a_multiple_of_the_roofline_time(work: Work, times: int) -> None:
    several = replace(work, bytes=work.bytes * times, flops=work.flops * times)
    assert roofline(several, PEAKS).ms == pytest.approx(roofline(work, PEAKS).ms * times, rel=1e-12)


@given(works)
def test_json_has_both_terms_and_the_binding_one(work: Work) -> None:
    found = roofline(work, PEAKS)
    line = json.dumps(asdict(found), allow_nan=False)
    assert set(json.loads(line)) == {"bytes", "flops", "memory_ms", "compute_ms", "binds"}
    assert Roofline(**json.loads(line)) == found


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_a_contradictory_roofline_raises(memory_ms: float, compute_ms: float) -> None:
    assume(memory_ms != compute_ms)
    right, wrong = (MEMORY, COMPUTE) if memory_ms > compute_ms else (COMPUTE, MEMORY)
    assert Roofline(1, 1, memory_ms, compute_ms, right).ms == max(memory_ms, compute_ms)
    with pytest.raises(ValueError, match=f"not {wrong}"):
        Roofline(1, 1, memory_ms, compute_ms, wrong)


@pytest.mark.parametrize("term", [-1.0, math.nan, math.inf])
def test_invalid_times_raise(term: float) -> None:
    with pytest.raises(ValueError, match="no time"):
        Roofline(1, 1, term, 0.0, MEMORY)
    with pytest.raises(ValueError, match="no time"):
        Roofline(1, 1, 0.0, term, COMPUTE)


@pytest.mark.parametrize(("size", "flops"), [(-1, 0), (0, -1)])
def test_negative_counts_raise(size: int, flops: int) -> None:
    with pytest.raises(ValueError, match="not a valid amount of work"):
        Work(size, flops, "float32")
    with pytest.raises(ValueError, match="negative"):
        Roofline(size, flops, 0.0, 0.0, MEMORY)


def test_an_unknown_binding_term_raises() -> None:
    with pytest.raises(ValueError, match="not both"):
        Roofline(1, 1, 1.0, 1.0, "both")


def test_the_module_does_not_import_torch() -> None:
    program = "import sys, inlinebench.timing.roofline; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
