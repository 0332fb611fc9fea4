"""A run on several devices gives the same results as a run on one device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inlinebench.results.result import Result, Verdict

from .running import TESTS, run_eval

pytestmark = pytest.mark.slow

NAMES = ("shapes", "view", "level1_matmul", "batch_norm")


def facts(results: list[Result]) -> dict[tuple[str, str, str], Result]:
    """Returns the results without the fields that may differ: times, builds and logs."""
    return {
        (row.problem, row.solution, row.shape): replace(row, timing=None, build=None, log=None, seconds=None)
        for row in results
    }


def test_two_judges_give_the_same_results_as_one(cache: Path, tmp_path: Path) -> None:
    common = (*NAMES, "--problems", TESTS / "problems", "--solutions", TESTS / "solutions", "--check", "--min-calls",
              "3", "--seed", "5", "--allow-library", "--cache", cache)
    one = run_eval(*common, "--device", "cpu", out=tmp_path / "one.jsonl")
    two = run_eval(*common, "--devices", "cpu,cpu", out=tmp_path / "two.jsonl")
    assert len(one.results) == len(two.results) > len(NAMES)
    assert facts(one.results) == facts(two.results)
    assert one.status == two.status


def test_a_judge_that_dies_affects_only_one_result(cache: Path, tmp_path: Path) -> None:
    """A problem's reference kills its judge while another judge runs."""
    problems = tmp_path / "problems"
    problems.mkdir()
    for source in ("view", "shapes"):
        (problems / f"{source}.py").symlink_to(TESTS / "problems" / f"{source}.py")
    (problems / "deadly.py").write_text(
        "import os, torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n    calls = 0\n\n"
        "    def forward(self, x):\n        return x + 1\n\n\ndef get_inputs():\n"
        "    if 'inlinebench.judge.loop' in __import__('sys').modules:\n        os.kill(os.getpid(), 9)\n"
        "    return [torch.rand(4)]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    run = run_eval("deadly/@reference", "view/@reference", "shapes/@reference", "--problems", problems, "--check",
                   "--allow-library", "--devices", "cpu,cpu", "--cache", cache, out=tmp_path / "out.jsonl")
    verdicts = {row.problem: row.verdict for row in run.results}
    assert verdicts.pop("deadly") is Verdict.INTERNAL_ERROR
    assert set(verdicts.values()) == {Verdict.PASSED}
