"""What the benchmark of bottlenecks counts as named, and what it evaluates again with counters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.bottlenecks import is_fine, report, wants_counters
from inlinebench.results.launches import Launched, Multiprocessors
from inlinebench.results.result import Environment, Kernels, KernelShare, Result, Verdict
from inlinebench.results.times import Roofline

from ..planted import Planted
from ..report.samples import result, timing

PLANTED = Planted(Path("bottlenecks/spills.py"), "p", bottleneck="spills")
GOOD = Planted(Path("p/fast.py"), "p")
SM = Environment("2.11", "0.4", multiprocessors=Multiprocessors(132, 2048, 32, 65536, 233472, 1024))


def passed(local_bytes: int, ms: float = 1.0) -> Result:
    share = KernelShare("rows", "own", ms, 1.0, 1, Launched(4096, 256, 32, 0, local_bytes))
    times = replace(timing(2.0, ms), roofline=Roofline(1000, 10, 0.2, 0.01, "memory"))
    return result("p/s", timing=times, kernels=Kernels(1.0, (share,), (), 1, 0.0), environment=SM)


@pytest.mark.parametrize(("case", "row", "fine", "again"), [
    (PLANTED, passed(512), True, False),
    (PLANTED, passed(0), False, True),
    (GOOD, passed(0), True, True),  # counters could accuse it
    (GOOD, passed(0, 0.25), True, False),
    (GOOD, passed(512), False, True),
    (GOOD, result("p/s", Verdict.WRONG), False, False),
    (PLANTED, result("p/s", Verdict.BUILD_FAILED), False, False),
    (GOOD, result("p/s"), False, True),  # no times: nothing was looked at
])
def test_what_is_as_expected_and_what_is_evaluated_again(case: Planted, row: Result, fine: bool, again: bool) -> None:
    assert (is_fine(case, row), wants_counters(case, row)) == (fine, again)


def test_the_table_marks_what_is_not_as_expected(capsys: pytest.CaptureFixture[str]) -> None:
    report([PLANTED, GOOD], {PLANTED.name: passed(0), GOOD.name: result("p/s", Verdict.WRONG)})
    said = capsys.readouterr().out
    assert "| bottlenecks-spills | spills | none **(not as expected)** | 20.0% | no |" in said
    assert "| p-fast | none | wrong **(not as expected)** | unknown | no |" in said
    assert "'registers': 32" in said
