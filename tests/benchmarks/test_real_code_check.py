"""Tests of real_code.py --check, on the CPU, with solutions that build nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))  # scripts, not a package

import real_code
from real_code_check import report

from inlinebench.results.result import Verdict

from ..report.samples import check, result

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.rand(4)]
def get_init_inputs():
    return []
"""


def test_the_table_has_verdicts_by_recorded_verdict_and_lists_what_should_pass() -> None:
    measured = check(rel_l2_error=1e-3, reference_rel_l2_error=1e-7)
    results = [result("a/one"), result("a/two"), result("b/one", Verdict.WRONG, check=measured),
               result("b/two", Verdict.WRONG)]
    text = report(results, {"a/one": "passed", "b/one": "passed", "b/two": "failed"}, left=3)
    assert "| verdict | recorded failed | recorded passed | recorded unknown |" in text
    assert "| passed | 0 | 1 | 1 |" in text and "| wrong | 1 | 1 | 0 |" in text
    assert "- b/one: wrong (error 1.0e-03, the reference's 1.0e-07): because" in text
    assert "b/two" not in text and "3 solutions are left to do." in text


def test_nothing_is_listed_if_everything_passed() -> None:
    assert "Recorded as passed" not in report([result("a/one")], {"a/one": "passed"}, left=0)


@pytest.mark.slow
def test_solutions_with_a_recorded_verdict_are_evaluated_once(tmp_path: Path) -> None:
    for name, text in {"problems/p.py": PROBLEM, "verdicts.tsv": "problem\tsolution\tverdict\np\tright\tpassed\n",
                       "solutions/p/right.py": PROBLEM.replace("Model(", "ModelNew("),
                       "solutions/p/other.py": PROBLEM.replace("Model(", "ModelNew(")}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    out = tmp_path / "out.jsonl"
    command = [sys.executable, real_code.__file__, str(tmp_path), "--check", "--recorded", "passed", "--out", str(out),
               "--", "--device", "cpu", "--min-calls", "2", "--allow-library"]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        assert done.returncode == 0, done.stdout + done.stderr
        assert "| passed | 1 |" in done.stdout
    assert len(out.read_text().splitlines()) == 1
