"""What the benchmark of bottlenecks counts as named, prints, and keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import bottlenecks
from benchmarks.bottlenecks import Evaluated, again, evaluate, evidence, line
from inlinebench.results.launches import Counters, Launched, Multiprocessors
from inlinebench.results.result import Environment, Kernels, KernelShare, Result, Verdict
from inlinebench.results.result_json import to_json
from inlinebench.results.times import Roofline

from ..planted import Planted
from ..profiling.test_counters import H100, table
from ..report.samples import result, timing
from ..running import ROOT

PLANTED = Planted(Path("bottlenecks/spills.py"), "p", bottleneck="spills")
GOOD = Planted(Path("p/fast.py"), "p")
SM = Environment("2.11", "0.4", multiprocessors=Multiprocessors(132, 2048, 32, 65536, 233472, 1024))


def passed(local_bytes: int, ms: float = 1.0) -> Result:
    share = KernelShare("rows", "own", ms, 1.0, 1, Launched(4096, 256, 32, 0),
                        Counters(1.0, local_bytes=local_bytes))
    times = replace(timing(2.0, ms), roofline=Roofline(1000, 10, 0.2, 0.01, "memory"))
    return result("p/s", timing=times, kernels=Kernels(1.0, (share,), (), 1, 0.0), environment=SM)


@pytest.mark.parametrize(("case", "row", "fine"), [
    (PLANTED, passed(512), True),
    (PLANTED, passed(0), False),
    (GOOD, passed(0), True),
    (GOOD, passed(512), False),
    (GOOD, passed(512, 0.25), True),  # near the roofline
    (GOOD, result("p/s", Verdict.WRONG), False),
    (PLANTED, result("p/s", Verdict.BUILD_FAILED), False),
    (GOOD, result("p/s"), False),  # no times: nothing was looked at
])
def test_what_is_as_expected(case: Planted, row: Result, fine: bool) -> None:
    assert Evaluated(case, row).is_fine == fine


def test_the_table_marks_what_is_not_as_expected() -> None:
    missed, wrong = Evaluated(PLANTED, passed(0)), Evaluated(GOOD, result("p/s", Verdict.WRONG))
    assert line(missed) == "| bottlenecks-spills | spills | none **(not as expected)** | 20.0% | yes |"
    assert line(wrong) == "| p-fast | none | wrong **(not as expected)** | unknown | no |"
    assert "'registers': 32" in "\n".join(evidence(missed))


def test_kept_results_are_explained_again_by_their_metrics(tmp_path: Path) -> None:
    (tmp_path / "bottlenecks-spills.json").write_text(to_json(passed(512)))
    (tmp_path / "bottlenecks-spills.csv").write_text(table(("rows", H100)))
    found, = again([PLANTED, GOOD], tmp_path)  # of GOOD, nothing was kept
    assert {"spills", "bank conflicts"} <= set(found.named)


def test_each_result_is_kept_before_the_run_ends(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bottlenecks, "CALLS", ("--check", "--device", "cpu", "--min-calls", "6"))
    cases = [Planted(ROOT / "solutions" / name / "naive.py", name) for name in ("row_sum", "transpose")]
    rows = evaluate(cases, tmp_path, ["--cache", str(cache)], counters=False)
    first = next(rows)
    assert first.row.verdict is Verdict.PASSED and [path.stem for path in tmp_path.glob("*.json")] == [first.case.name]
    assert {first.case.name, *(each.case.name for each in rows)} == {case.name for case in cases}
    assert all(each.row.verdict is Verdict.PASSED for each in again(cases, tmp_path))
