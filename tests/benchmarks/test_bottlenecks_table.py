"""What the benchmark of bottlenecks counts as named, prints, and keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import bottlenecks
from benchmarks.bottlenecks import Evaluated, again, counted, evaluate, evidence, line, verdict
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


def passed(local_bytes: int | None, ms: float = 1.0) -> Result:
    counters = None if local_bytes is None else Counters(1.0, local_bytes=local_bytes)
    share = KernelShare("rows", "own", ms, 1.0, 1, Launched(4096, 256, 32, 0), counters)
    times = replace(timing(2.0, ms), roofline=Roofline(1000, 10, 0.2, 0.01, "memory"))
    return result("p/s", timing=times, kernels=Kernels(1.0, (share,), (), 1, 0.0), environment=SM)


@pytest.mark.parametrize(("case", "row", "fine"), [
    (PLANTED, passed(1_500), True),
    (PLANTED, passed(0), False),
    (GOOD, passed(0), True),
    (GOOD, passed(1_500), False),
    (GOOD, passed(1_500, 0.25), True),  # near the roofline
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
    (tmp_path / "bottlenecks-spills.json").write_text(to_json(passed(1_500)))
    (tmp_path / "bottlenecks-spills.csv").write_text(table(("rows", H100)))
    found, = again([PLANTED, GOOD], tmp_path)  # of GOOD, nothing was kept
    assert {"spills", "bank conflicts"} <= set(found.named)


@pytest.mark.slow
def test_each_result_is_kept_before_the_run_ends(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bottlenecks, "CALLS", ("--check", "--device", "cpu", "--min-calls", "6"))
    cases = [Planted(ROOT / "solutions" / name / "naive.py", name) for name in ("row_sum", "transpose")]
    rows = evaluate(cases, tmp_path, ["--cache", str(cache)])
    first = next(rows)
    assert first.row.verdict is Verdict.PASSED and [path.stem for path in tmp_path.glob("*.json")] == [first.case.name]
    assert {first.case.name, *(each.case.name for each in rows)} == {case.name for case in cases}
    assert all(each.row.verdict is Verdict.PASSED for each in again(cases, tmp_path))


NEED = [Planted(Path(f"bottlenecks/{name}.py"), "gelu", bottleneck="spills") for name in ("breaks", "counts")]
FAKE = f"""#!/bin/sh
if [ "$1" = --import ]; then cat <<'END'
{table(("rows", H100))}END
exit; fi
case "$*" in *breaks*) echo it broke; exit 9;; esac
while [ "$1" != --export ]; do shift; done
echo report > "$2.ncu-rep"
"""
"""Profiles every solution but `breaks`."""


def test_counters_come_last_and_a_solution_without_them_ends_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ncu").write_text(FAKE)
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setattr(bottlenecks.ncu, "program", lambda: str(tmp_path / "ncu"))
    (tmp_path / "keep").mkdir()
    rows = [*(Evaluated(case, passed(None)) for case in NEED), Evaluated(GOOD, passed(None))]
    good, broken, fine = counted(rows, tmp_path / "keep", [])
    assert (good, broken.is_fine, fine.is_fine, fine.named[0]) == (rows[2], False, True, "spills")
    assert line(broken).endswith("| no: gelu-bottlenecks-breaks-full: no report from ncu, which exited with status 9: "
                                 "it broke |")
    assert {path.name for path in (tmp_path / "keep").iterdir()} == {
        "bottlenecks-breaks.json", "bottlenecks-counts.json", "bottlenecks-counts.csv"}
    assert [each.named for each in again(NEED, tmp_path / "keep")] == [broken.named, fine.named]
    assert list(counted([fine], tmp_path / "keep", [])) == [fine], "it has been counted"


def test_without_nsight_compute_the_row_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bottlenecks.ncu, "program", lambda: None)
    found, = counted([Evaluated(NEED[0], passed(None))], tmp_path, [])
    assert line(found).endswith("| no: ncu is not installed |")


def test_a_solution_without_a_result_is_named_and_does_not_reach_the_bar() -> None:
    fine = Evaluated(PLANTED, passed(1_500))
    assert verdict([PLANTED], [fine]) == (
        "1 solutions: 0 planted bottlenecks not named; 0 good solutions have one or failed; without a result: none",
        True)
    said, reached = verdict([PLANTED, GOOD], [fine])
    assert said.endswith("without a result: p-fast") and not reached


def test_a_run_that_fails_is_told_and_has_no_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = Planted(ROOT / "solutions" / "gelu" / "naive.py", "gelu")
    assert list(evaluate([case], tmp_path, ["--no-such-option"])) == []
    assert "the run failed: " in capsys.readouterr().err
