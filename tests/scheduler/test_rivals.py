from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.cli.arguments import parse
from inlinebench.messages import Evaluate, ProblemAt
from inlinebench.records import catalog
from inlinebench.records.errors import UsageError
from inlinebench.records.result import Check, Result, Verdict
from inlinebench.records.times import Spread, Timing
from inlinebench.scheduler.plan import choose
from inlinebench.scheduler.rivals import Rivals, over

CHECK = Check(calls=20, tolerance=1e-4, oracle="float64", weights="by name")


def job(solution: str, problem: str = "p", shape: str = "full") -> Evaluate:
    return Evaluate(problem, solution, ProblemAt(Path("p.py"), shape, {}), Path(f"{solution}.py"), shape)


def passed(solution: str, speedup: tuple[float, float, float], shape: str = "full") -> Result:
    low, middle, high = speedup
    ms = Spread(1 / middle, 1 / middle, 1 / middle, 20)
    timing = Timing(Spread(1.0, 1.0, 1.0, 20), ms, Spread(middle, low, high))
    return Result("p", solution, shape, "cuda:0", Verdict.PASSED, check=CHECK, timing=timing)


def failed(solution: str) -> Result:
    return Result("p", solution, "full", "cuda:0", Verdict.WRONG, "it differs")


def test_the_speedup_over_a_rival_is_the_ratio_of_both_speedups() -> None:
    found = over(passed("fast", (3.9, 4.0, 4.1)), passed("naive", (1.9, 2.0, 2.1)))
    assert (found.name, found.ms.median) == ("solution:naive", 0.5)
    assert (found.speedup.low, found.speedup.median, found.speedup.high) == (3.9 / 2.1, 2.0, 4.1 / 1.9)


def test_results_are_held_back_until_the_rivals_is_known() -> None:
    rivals = Rivals(["solution:naive"], [job("fast"), job("naive"), job("odd")])
    assert rivals.release(passed("fast", (3.0, 4.0, 5.0))) == []
    both = rivals.release(passed("naive", (1.0, 2.0, 3.0)))
    assert [row.solution for row in both] == ["fast", "naive"]
    assert both[0].timing and [each.speedup.median for each in both[0].timing.baselines] == [2.0]
    assert both[1].timing and both[1].timing.baselines == ()
    (late,) = rivals.release(passed("odd", (1.0, 1.0, 1.0)))
    assert late.timing and late.timing.baselines[0].speedup.median == 0.5


def test_a_failed_or_missing_rival_holds_no_results_back() -> None:
    rivals = Rivals(["solution:naive"], [job("fast"), job("naive")])
    assert rivals.release(passed("fast", (1.0, 1.0, 1.0), shape="small"))
    rivals.release(passed("fast", (1.0, 1.0, 1.0)))
    after = rivals.release(failed("naive"))
    assert [row.solution for row in after] == ["fast", "naive"]
    assert after[0].timing and after[0].timing.baselines == ()


def test_without_rivals_results_pass_through() -> None:
    row = passed("fast", (1.0, 1.0, 1.0))
    assert Rivals(["compile"], [job("fast")]).release(row) == [row]


def test_a_rival_is_evaluated_too_and_an_unknown_one_is_rejected() -> None:
    wanted = parse(["matmul_transposed_b/host_tensors", "--baseline", "solution:naive"], {})
    known = catalog.read(wanted.problems, wanted.solutions)
    assert [str(solution) for _, solution in choose(wanted, known)] == [
        "matmul_transposed_b/host_tensors", "matmul_transposed_b/naive"
    ]
    unknown = parse(["matmul_diag/naive", "--baseline", "solution:nobody"], {})
    with pytest.raises(UsageError, match="solution:nobody"):
        choose(unknown, known)
