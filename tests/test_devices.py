"""A run on several devices gives what a run on one gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from inlinebench.records.result import Result, Verdict

from .running import TESTS, run_eval

NAMES = ("shapes", "view", "level1_matmul", "batch_norm")


def facts(results: list[Result]) -> dict[tuple[str, str, str], Result]:
    """What has to be equal: all but times, what was built when, and what was printed."""
    return {
        (row.problem, row.solution, row.shape): replace(row, timing=None, build=None, log=None) for row in results
    }


def test_two_judges_find_what_one_finds(cache: Path, tmp_path: Path) -> None:
    common = (*NAMES, "--problems", TESTS / "problems", "--solutions", TESTS / "solutions", "--check", "--calls", "3",
              "--seed", "5", "--allow-library", "--cache", cache)
    one = run_eval(*common, "--device", "cpu", out=tmp_path / "one.jsonl")
    two = run_eval(*common, "--devices", "cpu,cpu", out=tmp_path / "two.jsonl")
    assert len(one.results) == len(two.results) > len(NAMES)
    assert facts(one.results) == facts(two.results)
    assert one.status == two.status


def test_a_judge_that_dies_takes_one_result_with_it_and_no_more(cache: Path, tmp_path: Path) -> None:
    """The problem's own reference ends the judge, while another judge is at work beside it."""
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
