"""`--response`: a model's answer through a whole run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from inlinebench.results.jsonl import read
from inlinebench.results.result import Result, Verdict

from ..running import LONGEST_S, TESTS, command

BLOCK = "```python\nimport torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        " \
    "return {body}\n```\n"
RIGHT, WRONG = BLOCK.format(body="x.transpose(0, 1)"), BLOCK.format(body="x.transpose(0, 1) + 1")
ANSWER = f"<think>\n{RIGHT}</think>\nFirst:\n{WRONG}\nThat adds one, so:\n\n{RIGHT}\nDone."


Done = tuple[subprocess.CompletedProcess[str], list[Result]]


def run(
    tmp_path: Path, answer: str | bytes | None, *more: str | Path, given: str = "my_answer.md", name: str = "view"
) -> Done:
    """A run with an answer in a file, or on standard input where `given` is `-`."""
    path, out = tmp_path / "my_answer.md", tmp_path / "out.jsonl"
    data = answer.encode() if isinstance(answer, str) else answer
    if data is not None:
        path.write_bytes(data)
    line = command(name, "--problems", TESTS / "problems", "--device", "cpu", "--check", "--min-calls", "3",
                   "--allow-library", "--response", "-" if given == "-" else path, "--out", out, *more)
    done = subprocess.run(line, input=(data or b"").decode() if given == "-" else None, capture_output=True, text=True,
                          timeout=LONGEST_S, check=False)
    return done, list(read(out)) if out.exists() else []


def test_the_last_block_is_evaluated_and_the_run_says_which_it_was(tmp_path: Path, cache: Path) -> None:
    done, (row,) = run(tmp_path, ANSWER, "--cache", cache)
    assert (row.problem, row.solution, row.verdict) == ("view", "my_answer", Verdict.PASSED), row.reason
    assert done.returncode == 0 and "my_answer: block 3" in done.stderr


@pytest.mark.slow
def test_every_block_is_evaluated_on_demand(tmp_path: Path, cache: Path) -> None:
    done, rows = run(tmp_path, ANSWER, "--all-blocks", "--cache", cache)
    assert {row.solution: row.verdict for row in rows} == {
        "my_answer_block_2": Verdict.WRONG, "my_answer_block_3": Verdict.PASSED}
    assert done.returncode == 1


@pytest.mark.slow
def test_standard_input_is_an_answer(tmp_path: Path, cache: Path) -> None:
    done, (row,) = run(tmp_path, ANSWER, "--cache", cache, given="-")
    assert (row.solution, row.verdict) == ("response", Verdict.PASSED) and done.returncode == 0


def test_an_answer_without_a_solution_is_invalid_with_what_was_found(tmp_path: Path, cache: Path) -> None:
    done, (row,) = run(tmp_path, "I can't.\n```cpp\nint x;\n```\n", "--cache", cache)
    assert row.verdict is Verdict.INVALID and "ModelNew: 1 cpp" in row.reason
    assert done.returncode == 1


@pytest.mark.parametrize(("answer", "more", "said"), [
    (None, (), "No such file"), (b"\xff\xfe", (), "not UTF-8"),
    (ANSWER, ("--solution", "x.py"), "exclude each other"),
])
def test_what_can_not_be_meant_is_refused(
    tmp_path: Path, answer: str | bytes | None, more: tuple[str, ...], said: str
) -> None:
    done, rows = run(tmp_path, answer, *more)
    assert done.returncode == 2 and said in done.stderr and not rows


def test_an_answer_is_to_one_problem(tmp_path: Path) -> None:
    assert "exactly one problem" in subprocess.run(command("--response", "x.md"), capture_output=True, text=True,
                                                   timeout=LONGEST_S, check=False).stderr
    done, _ = run(tmp_path, ANSWER, name="no_such_problem")
    assert done.returncode == 2 and "no problem 'no_such_problem'" in done.stderr


@pytest.mark.slow
def test_feedback_says_what_to_go_on_instead_of_the_table(tmp_path: Path, cache: Path) -> None:
    done, (row,) = run(tmp_path, WRONG, "--feedback", "--cache", cache)
    assert row.verdict is Verdict.WRONG and done.returncode == 1
    assert "wrong" in done.stdout and "the expected value plus 1" in done.stdout and "fast_1" not in done.stdout
    assert len(done.stdout) < 6000
