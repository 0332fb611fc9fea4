"""Tests of the records: contradictions are rejected, unknown fields are absent, written results are read back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from inlinebench.results.memory import Memory
from inlinebench.results.result import (
    Accuracy,
    Build,
    Check,
    Element,
    Environment,
    Errors,
    Kernels,
    Mismatch,
    PassKernels,
    Result,
    Verdict,
)
from inlinebench.results.result_json import SCHEMA, from_json, to_json
from inlinebench.results.times import PASSES, Baseline, GpuState, PassTimes, Roofline, Spread, Timing

CHECK = Check(calls=55, tolerance=1e-4, oracle="float64", weights="by name")
SPREAD = Spread(2.0, 1.5, 2.5)
TIMING = Timing(SPREAD, SPREAD, SPREAD)
PASS_TIMES = tuple(PassTimes(name, SPREAD, SPREAD, SPREAD) for name in PASSES)
PASS_KERNELS = tuple(PassKernels(name, 1.0, 0.5) for name in PASSES)
MINIMAL = Result("p", "s", "full", "cuda:0", Verdict.WRONG, "the values differ")
NAN, INFINITE = Element((0, 1), "0.5", "nan"), Element((1, 2), "1+2j", "-inf")
MISMATCH = Mismatch("output", "float32", (2, 3), 6, 2, (NAN, INFINITE), NAN, 1e-4, None, ("every wrong value is NaN",))
COMPLETE = Result(
    problem="matmul_diag",
    solution="naive",
    shape="full",
    device="cuda:0",
    verdict=Verdict.PASSED,
    check=Check(55, 1e-4, "float64", "by name", 3e-7, 1e-6, 2e-7, 0.0, ("converted from the CPU", "naïve"),
                (Accuracy("output", Errors(0.0, 0.1, 0.5, 1e-7, (9, 1)), Errors(0.0, 0.2, 0.4)),)),
    timing=Timing(Spread(2.81, 2.79, 2.83, 50), SPREAD, Spread(26.8, 26.5, 27.1), SPREAD,
                  baselines=(Baseline("compile", SPREAD, SPREAD),), roofline=Roofline(10, 0, 0.5, 0.0, "memory"),
                  gpu=GpuState(SPREAD, SPREAD, 41.0, 50), flags=("noisy",)),
    build=Build(13.1, False, "slim"),
    seed=2**63,
    environment=Environment("2.11.0", "0.1.0", "H100", "580.1", "13.0", "a CPU", "copy 4 TB/s", True),
    log="a line\nanother \x00",
)


def passed(**facts: Any) -> Result:
    return Result("p", "s", "full", "cpu", Verdict.PASSED, **facts)


def changed(**facts: Any) -> str:
    """Returns MINIMAL as a line of JSON, with these fields changed; None removes a field."""
    data = json.loads(to_json(MINIMAL)) | facts
    return json.dumps({name: fact for name, fact in data.items() if fact is not None})


def test_a_passed_result_needs_its_check() -> None:
    with pytest.raises(ValueError, match="needs its check"):
        passed()


@pytest.mark.parametrize("facts", [
    {"timing": replace(TIMING, passes=PASS_TIMES)}, {"kernels": Kernels(0.5, (), PASS_KERNELS)},
])
def test_only_calls_with_a_backward_have_passes(facts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="have no backward"):
        passed(check=CHECK, **facts)
    found = passed(check=CHECK, backward=True, **facts)
    assert from_json(to_json(found)) == found


def test_only_calls_with_a_backward_are_at_a_shape_of_that_name() -> None:
    with pytest.raises(ValueError, match="have no backward"):
        replace(MINIMAL, shape="small+backward")
    assert replace(MINIMAL, shape="small+backward", backward=True).backward


@pytest.mark.parametrize("number", [slice(1), slice(1, 2), slice(None, None, -1)])
def test_passes_are_forward_and_backward_in_this_order(number: slice) -> None:
    with pytest.raises(ValueError, match="not the passes"):
        replace(TIMING, passes=PASS_TIMES[number])
    with pytest.raises(ValueError, match="not the passes"):
        Kernels(0.5, (), PASS_KERNELS[number])


def test_a_passed_result_has_no_reason() -> None:
    with pytest.raises(ValueError, match="reason"):
        passed(check=CHECK, reason="but slow")


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if verdict is not Verdict.PASSED])
class TestNotPassed:
    def test_needs_a_reason(self, verdict: Verdict) -> None:
        with pytest.raises(ValueError, match="reason"):
            Result("p", "s", "full", "cpu", verdict)

    def test_has_no_times(self, verdict: Verdict) -> None:
        with pytest.raises(ValueError, match=f"{verdict} can't have times"):
            Result("p", "s", "full", "cpu", verdict, "because", timing=TIMING)

    def test_has_no_memory(self, verdict: Verdict) -> None:
        with pytest.raises(ValueError, match=f"{verdict} can't have a memory"):
            Result("p", "s", "full", "cpu", verdict, "because", memory=Memory(1, 1))

    def test_may_have_a_check_and_a_build(self, verdict: Verdict) -> None:
        found = Result("p", "s", "full", "cpu", verdict, "because", check=CHECK, build=Build(0.0, True, "slim"))
        assert from_json(to_json(found)) == found


@pytest.mark.parametrize("sizes", [(-1, 0, 0), (0, -1, 0), (1, 0, -1), (1, 0, 2)])
def test_impossible_sizes_of_memory_are_rejected(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"negative|can't be a part"):
        Memory(*sizes)


def test_a_passed_result_may_lack_times() -> None:
    assert passed(check=CHECK).timing is None


@pytest.mark.parametrize(("median", "low", "high"), [(1.0, 1.1, 2.0), (3.0, 1.0, 2.0), (float("nan"), 0.0, 1.0)])
def test_a_median_outside_its_interval_is_rejected(median: float, low: float, high: float) -> None:
    with pytest.raises(ValueError, match="not between"):
        Spread(median, low, high)


@pytest.mark.parametrize("facts", [
    {"count": 7}, {"failed": 0}, {"failed": 7}, {"shape": (6,)}, {"shape": (3, 2)}, {"first": (INFINITE, NAN)},
    {"first": (NAN, NAN)}, {"first": (NAN,)}, {"failed": 3}, {"first": ()}, {"worst_error": 1e-4},
    {"worst_error": float("inf")}, {"worst": Element((2, 0), "1", "2")}, {"worst": Element((1, 0), "1", "2")},
    {"worst": Element((0,), "1", "2")}, {"worst": Element((0, 1), "0.5", "0")},
], ids=repr)
def test_a_contradictory_mismatch_is_rejected(facts: dict[str, Any]) -> None:
    assert replace(MISMATCH, worst=INFINITE, worst_error=2e-4)
    with pytest.raises(ValueError):
        replace(MISMATCH, **facts)


def test_the_worst_of_many_elements_may_come_after_the_first_ones() -> None:
    elements = tuple(Element((index,), "1", "2") for index in range(20))
    many = Mismatch("output", "int32", (20,), 20, 20, elements[:7], elements[19], 0.0, 1.0)
    assert from_json(to_json(replace(MINIMAL, mismatch=many))).mismatch == many
    with pytest.raises(ValueError, match="worst element"):
        replace(many, worst=Element((3,), "1", "3"))


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if verdict is not Verdict.WRONG])
def test_only_a_wrong_result_has_a_mismatch(verdict: Verdict) -> None:
    assert replace(MINIMAL, mismatch=MISMATCH)
    passed = verdict is Verdict.PASSED
    with pytest.raises(ValueError, match="can't have a mismatch"):
        replace(MINIMAL, verdict=verdict, mismatch=MISMATCH, check=CHECK, reason="" if passed else "because")


@pytest.mark.parametrize(
    "result", [MINIMAL, COMPLETE, replace(MINIMAL, mismatch=MISMATCH)], ids=["minimal", "complete", "mismatch"]
)
def test_a_result_is_read_back_from_one_line(result: Result) -> None:
    line = to_json(result)
    assert len(line.splitlines()) == 1
    assert from_json(line) == result


def test_fields_that_are_none_are_absent_from_the_json() -> None:
    assert json.loads(to_json(MINIMAL)) == {
        "schema": SCHEMA,
        "problem": "p",
        "solution": "s",
        "shape": "full",
        "device": "cuda:0",
        "verdict": "wrong",
        "reason": "the values differ",
    }
    assert json.loads(to_json(passed(check=CHECK)))["check"] == {
        "calls": 55,
        "tolerance": 1e-4,
        "oracle": "float64",
        "weights": "by name",
        "notes": [],
        "accuracy": [],
    }


def test_an_integer_in_a_float_field_is_read_as_a_float() -> None:
    data = json.loads(to_json(COMPLETE))
    data["build"]["seconds"] = 13
    build = from_json(json.dumps(data)).build
    assert build is not None
    assert isinstance(build.seconds, float)


def test_unknown_fields_are_ignored() -> None:
    assert from_json(changed(unheard_of=1)) == MINIMAL
    data = json.loads(to_json(COMPLETE))
    data["timing"]["speedup"]["skew"] = 0.5
    assert from_json(json.dumps(data)) == COMPLETE


def test_a_line_of_schema_1_is_read() -> None:
    data = json.loads(to_json(COMPLETE))
    data["schema"] = 1
    data["timing"]["floor"] = data["timing"].pop("roofline")
    assert from_json(json.dumps(data)) == COMPLETE


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_nan_and_infinity_are_rejected(number: float) -> None:
    with pytest.raises(ValueError):
        to_json(passed(check=Check(1, 1e-4, "float64", "by name", worst_error=number)))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "nonsense",
        "[]",
        "1",
        changed(schema=SCHEMA + 1),
        changed(schema=None),
        changed(problem=None),
        changed(problem=3),
        changed(verdict="splendid"),
        changed(verdict=[]),
        changed(reason=""),
        changed(seed="1"),
        changed(seed=True),
        changed(seed=1.5),
        changed(check=[]),
        changed(check={"calls": 1}),
        to_json(MINIMAL)[:-1],
    ],
)
def test_a_line_that_is_not_a_result_is_rejected(line: str) -> None:
    with pytest.raises(ValueError):
        from_json(line)
