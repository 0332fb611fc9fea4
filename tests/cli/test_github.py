"""What a run adds in GitHub Actions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inlinebench.cli.github import annotation, line_of
from inlinebench.results.result import Verdict

from ..report.samples import result
from .test_bad_inputs import FAST, SOLUTION, here, inlinebench, write

__all__ = ["here"]


@pytest.mark.slow
def test_failures_are_annotated_at_their_lines_and_summed_up(here: Path, cache: Path) -> None:
    write(here / "solutions/twice/b.py", "import torch\nimport no_such_module\n")
    write(here / "solutions/twice/c.py", SOLUTION.replace("x * 2", "x * 3"))
    on = {**os.environ, "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(here),
          "GITHUB_STEP_SUMMARY": str(here / "summary.md")}
    arguments = ("check", *FAST, "--cache", str(cache), "-q")
    done = inlinebench(here, *arguments, environment=on)
    wrong, missing = sorted(done.stderr.splitlines(), key=lambda line: "no_such_module" in line)
    assert missing.startswith("::error file=solutions/twice/b.py,line=2,title=twice/b (small)%3A invalid::Module")
    assert wrong.startswith("::error file=solutions/twice/c.py,title=twice/c (small)%3A wrong::")
    summary = (here / "summary.md").read_text()
    assert "1 of 3 passed" in summary and "1 wrong" in summary
    off = {name: text for name, text in os.environ.items() if not name.startswith("GITHUB")}
    assert "::" not in inlinebench(here, *arguments, environment=off).stderr


@pytest.mark.slow
def test_a_summary_that_cannot_be_written_is_one_line(here: Path, cache: Path) -> None:
    on = {**os.environ, "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "/none/such"}
    done = inlinebench(here, "check", "twice/a", *FAST, "--cache", str(cache), "-q", environment=on)
    assert done.returncode == 0
    assert done.stderr.splitlines() == ["GITHUB_STEP_SUMMARY: /none/such can't be written (No such file or directory)"]


def test_the_line_of_a_build_error_is_the_only_one_with_the_quoted_text(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text('CUDA = """\nint a;\n  out[i] = foo(x);\n}\n}\n"""\n')
    assert line_of("cuda_sources:2:3: error\n    2 |   out[i] = foo(x);\n      |   ^", file) == 3
    assert line_of("error\n    4 | }", file) is None
    assert line_of("ValueError (a.py, line 5)", file) == 5
    assert line_of("ValueError (other.py, line 5)", file) is None
    assert line_of("    1 | int a;", tmp_path / "gone.py") is None


def test_a_reason_cannot_add_commands(tmp_path: Path) -> None:
    text = annotation(result("p,a/b:c", Verdict.WRONG, reason="50%\n::set-env name=x::y"), None, tmp_path)
    assert text == "::error title=p%2Ca/b%3Ac (full)%3A wrong::50%25%0A  | ::set-env name=x::y"


def test_a_failure_of_a_library_solution_is_a_warning(tmp_path: Path) -> None:
    assert annotation(result("a/library", Verdict.WRONG), None, tmp_path).startswith("::warning ")


def test_a_failure_at_a_derived_shape_is_a_warning(tmp_path: Path) -> None:
    wrong = result("a/b", Verdict.WRONG, shape="derived", constants=("N=4",))
    assert annotation(wrong, None, tmp_path).startswith("::warning title=a/b (derived)%3A wrong::")
